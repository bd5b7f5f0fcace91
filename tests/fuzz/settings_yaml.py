"""A settings file, refused with `InvalidInput`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from glyphoxa.config.settings import read_settings
from glyphoxa.domain.errors import InvalidInput
from tests.fuzz.campaign_yaml import WORDS
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    with suppress(InvalidInput):
        read_settings(scratch)


TARGET = FuzzTarget("settings_yaml", feed, (*WORDS, b"-1", b"1e400", b".inf", b"~nobody/x", b"http://[", b"null"))
