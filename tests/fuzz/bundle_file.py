"""A campaign's bundle, refused with `InvalidInput`; its events with `Corrupt`, or as `campaign import` refuses them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from glyphoxa.adapters.postgres.world.campaigns import check_document
from glyphoxa.config.located_yaml import text_of
from glyphoxa.dm.campaign_bundle import MAX_BYTES, CampaignBundle, read_bundle
from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.world.encoding import decode
from glyphoxa.world.events import Cause, WorldEvent, replay
from tests.fuzz.running import FuzzTarget

BY_DM = Cause("dm", 1)


def feed(data: bytes, scratch: Path) -> None:
    scratch.write_bytes(data)
    try:
        bundle = read_bundle(text_of(scratch, most_bytes=MAX_BYTES))
    except InvalidInput:
        return
    # What was read can be written, and is the same.
    assert read_bundle(bundle.text()) == bundle
    assert bundle.has_secrets in (True, False)
    for row in bundle.tables.get("campaign_documents", ()):
        if isinstance(document := row.get("document"), dict):
            with suppress(InvalidInput):
                check_document(document, bundle.id)
    with suppress(Corrupt, KeyError, TypeError, ValueError, InvalidInput):
        replay(_events(bundle))


def _events(bundle: CampaignBundle) -> list[WorldEvent]:
    """Raises: Corrupt."""
    return [
        decode(bundle.id, seq, BY_DM, str(row.get("event_type")), json.dumps(row.get("payload")))
        for seq, row in enumerate(bundle.tables.get("world_events", ()), start=1)
    ]


WORDS = (b'"', b"{", b"[" * 3_000, b'{"a":' * 2_000, b"9" * 5_000, b"9" * 18, b"1e999", b"NaN", b"\\ud800", b"\\u0000")
TARGET = FuzzTarget("bundle_file", feed, (*WORDS, b"null", b"-1", b'"id"', b'"tables": {', b'"seq": 2', b'"retract"'))
