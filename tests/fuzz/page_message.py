"""A message of the page, refused with `ValidationError` that has words for whoever sent it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from glyphoxa.web.page_socket import PageMessage, _line_in
from glyphoxa.web.requests import first_problem
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    text = data.decode("utf-8", "replace")
    try:
        PageMessage.model_validate_json(text)
    except ValidationError as error:
        assert first_problem(error)
    _line_in(text)


TARGET = FuzzTarget(
    "page_message", feed, (b'"', b"{", b"[" * 3_000, b'{"id":' * 2_000, b"9" * 5_000, b"\\ud800", b"NaN", b"null")
)
