"""An offer before anything is made of it, refused with `InvalidInput`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from glyphoxa.domain.errors import InvalidInput
from glyphoxa_pipelines.webrtc import check_offer
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    with suppress(InvalidInput):
        check_offer(data.decode("utf-8", "replace"))


TARGET = FuzzTarget("sdp_offer", feed, (b"\r\n", b"m=audio", b"m=video 9 x 0", b"a=", b"a=group:BUNDLE ", b"9" * 5_000))
