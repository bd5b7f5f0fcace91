"""A campaign's bundle, refused with `InvalidInput`; its events with `Corrupt`, or as `campaign import` refuses them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from glyphoxa.adapters.postgres.world.bundle import BUNDLED
from glyphoxa.adapters.postgres.world.campaigns import check_document
from glyphoxa.dm.campaign_bundle import BundleReader, BundleWriter, Row
from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.world.encoding import decode
from glyphoxa.world.events import Cause, WorldEvent, replay
from tests.fuzz.running import FuzzTarget

BY_DM = Cause("dm", 1)


def feed(data: bytes, scratch: Path) -> None:
    tables: dict[str, list[Row]] = {}
    reader = BundleReader(BytesIO(data), tables=BUNDLED)
    try:
        for table, _at, row in reader.rows():
            tables.setdefault(table, []).append(row)
    except InvalidInput:
        return
    # What was read can be written, and is the same.
    file = BytesIO()
    writer = BundleWriter(file, reader.campaign, with_secrets=True)
    try:
        for table in reader.n_rows:
            writer.put(table, tables.get(table, ()))
    except UnicodeEncodeError:
        return  # half a character: no database holds one
    writer.finish()
    file.seek(0)
    again = BundleReader(file, tables=BUNDLED)
    assert [row for _, _, row in again.rows()] == [row for rows in tables.values() for row in rows]
    assert (again.campaign, again.n_rows) == (reader.campaign, reader.n_rows)
    with suppress(InvalidInput):
        BundleWriter(BytesIO(), reader.campaign, with_secrets=False).put(
            "x", [row for rows in tables.values() for row in rows]
        )
    for row in tables.get("campaign_documents", ()):
        if isinstance(document := row.get("document"), dict):
            with suppress(InvalidInput):
                check_document(document, reader.campaign.id)
    with suppress(Corrupt, KeyError, TypeError, ValueError, InvalidInput):
        replay(_events(reader.campaign.id, tables.get("world_events", ())))


def _events(campaign: CampaignId, rows: Sequence[Row]) -> list[WorldEvent]:
    """Raises: Corrupt."""
    return [
        decode(campaign, seq, BY_DM, str(row.get("event_type")), json.dumps(row.get("payload")))
        for seq, row in enumerate(rows, start=1)
    ]


WORDS = (b'"', b"{", b"[" * 3_000, b'{"a":' * 2_000, b"9" * 5_000, b"9" * 18, b"1e999", b"NaN", b"\\ud800", b"\\u0000")
TARGET = FuzzTarget("bundle_file", feed, (*WORDS, b"null", b"-1", b'"id"', b'"tables": {', b'"seq": 2', b'"retract"'))
