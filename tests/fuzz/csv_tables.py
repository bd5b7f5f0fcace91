"""Tables of entities and relationships, refused with `InvalidInput`; alone, and for a campaign."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from glyphoxa.config.campaign_csv import read_tables
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from tests.fuzz.running import CORPUS, FuzzTarget


def feed(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    for campaign in (None, _campaign()):
        with suppress(InvalidInput):
            read_tables(scratch, into=campaign)


@cache
def _campaign() -> Campaign:
    return read_campaign(CORPUS / "campaign_yaml" / "small.yaml").campaign


WORDS = (b",", b";", b'"', b'""', b"\r", b"\r\n", b"\n\n", b"\t", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x" * 140_000)
TARGET = FuzzTarget("csv_tables", feed, (*WORDS, b"name", b"type", b"npc", b"known_by", b"hidden", b"yes", b"Grimjaw"))
