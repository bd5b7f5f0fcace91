"""A campaign file, refused with `InvalidInput`."""

from __future__ import annotations

from pathlib import Path

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.errors import InvalidInput
from tests.fuzz.running import FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    try:
        read_campaign(scratch)
    except InvalidInput as error:
        assert str(scratch) in str(error)


WORDS = (
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!python/object:os.system ",
    b"? ",
    b"- ",
    b"[",
    b"{",
    b"\t",
    b"\n---\n",
    b": ",
    b"~",
)
TARGET = FuzzTarget("campaign_yaml", feed, (*WORDS, b"9" * 30, b".nan", b"2026-02-30", b"0x1F", b"\xc2\x85"))
