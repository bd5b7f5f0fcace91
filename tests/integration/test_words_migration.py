"""What was kept while an ordinal was a floor, and retracted talk struck, is read under the words of today."""

from __future__ import annotations

import shutil
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.migrate import migrate, migrations_folder
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, Claim, Provenance
from glyphoxa.world.events import Cause, RolledBack, UtteranceRetracted, replay
from glyphoxa.world.fact_events import FactStated

SAID = Provenance(0.9, session_id=SessionId("s1"), utterance_id=UtteranceId("u1"), ordinal=1, at_ms=1_000)
CLAIM = Claim.attribute(EntityId("e-g"), "occupation", "smith")
_KEPT = """{"confidence": 0.9, "source": "stated", "dm_confirmed": false, "session_id": "s1", "utterance_id": "u1",
            "floor": 1, "at_ms": 1000, "reason": "", "accept_at": 0.7}"""
_OF_0016 = f"""
INSERT INTO campaigns (id, name, language) VALUES ('town', 'Town', 'en'), ('other', 'Other', 'en');
INSERT INTO sessions (campaign_id, id, started_at, last_floor) VALUES ('town', 's1', to_timestamp(1), 2);
INSERT INTO session_entries (campaign_id, session_id, floor, utterance_id, text, timestamp, struck)
    VALUES ('town', 's1', 1, 'u1', 'Grimjaw is a smith.', to_timestamp(1), false),
           ('town', 's1', 2, 'u2', 'No, a baker.', to_timestamp(2), true);
INSERT INTO entities (campaign_id, id, type, name, origin) VALUES ('town', 'e-g', 'npc', 'Grimjaw', 'dm');
INSERT INTO attribute_facts (campaign_id, fact_id, entity_id, attribute, value, provenance, origin, seq)
    VALUES ('town', '{CLAIM.fact_id}', 'e-g', 'occupation', '"smith"', '{_KEPT}', 'talk', 2);
INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by, session_id, floor, source_turn_id) VALUES
    ('town', 1, 'entity_added', '{{"entity": "e-g", "type": "npc", "name": "Grimjaw"}}', to_timestamp(1), 'dm',
     NULL, NULL, NULL),
    ('town', 2, 'fact_stated', '{{"claim": {{"subject": "e-g", "predicate": "occupation", "value": "\\"smith\\""}},
                                 "provenance": {{"confidence": 0.9, "session_id": "s1", "utterance_id": "u1",
                                                 "origin": "talk", "floor": 1, "at_ms": 1000}}}}',
     to_timestamp(1), 'talk', 's1', 1, 'u1'),
    ('town', 3, 'utterance_struck', '{{"utterance": "u2", "session": "s1", "floor": 2, "events": []}}',
     to_timestamp(3), 'dm', NULL, NULL, NULL),
    ('town', 4, 'rolled_back', '{{"session": "s1", "floor": 2, "events": []}}', to_timestamp(4), 'dm',
     NULL, NULL, NULL);
INSERT INTO struck_talk (campaign_id, seq, session_id, after_floor, last_floor) VALUES ('town', 3, 's1', 1, 2);
"""
TOWN = CampaignId("town")


@pytest.mark.parametrize("is_ordinary", [False, True])
async def test_events_facts_and_talk_are_as_they_were(
    empty_dsn: str, owners_dsn: str, tmp_path: Path, is_ordinary: bool
) -> None:
    dsn = owners_dsn if is_ordinary else empty_dsn
    await _grown(dsn, tmp_path)
    async with open_store(dsn, data_dir=tmp_path) as store:
        events = await store.world.events(TOWN)
        stated = events[1].event
        assert isinstance(stated, FactStated)
        assert (stated.provenance.ordinal, events[1].cause.ordinal) == (1, 1)
        assert events[2].event == UtteranceRetracted(UtteranceId("u2"), SessionId("s1"), 2, ())
        assert events[3].event == RolledBack(SessionId("s1"), 2, ())
        assert [
            fact.provenance.ordinal for fact in await PostgresInspection(store.database).current(TOWN, DM, limit=9)
        ] == [1]
        assert (await store.world.now(TOWN)).facts.keys() == replay(events).facts.keys()
        # An undoing gives back what was struck: which talk that was is still known.
        await store.world.undo(TOWN, 3, Cause("dm", 5_000))
        async with store.database.use(TOWN) as connection:
            rows = await connection.fetch("SELECT ordinal, retracted, change_seq FROM session_entries ORDER BY ordinal")
        assert [(row["ordinal"], row["retracted"]) for row in rows] == [(1, False), (2, False)]
        assert rows[1]["change_seq"] > rows[0]["change_seq"]


async def test_the_log_of_events_is_still_only_added_to(empty_dsn: str, tmp_path: Path) -> None:
    await _grown(empty_dsn, tmp_path)
    connection = await asyncpg.connect(empty_dsn)
    try:
        with pytest.raises(asyncpg.RaiseError, match="only added to"):
            await connection.execute("UPDATE world_events SET at = now()")
    finally:
        await connection.close()


async def _grown(dsn: str, tmp_path: Path) -> None:
    """From a database of the sixteenth migration, to one of all."""
    folder = tmp_path / "before"
    folder.mkdir()
    for path in sorted(migrations_folder().glob("*.sql"))[:16]:
        shutil.copy(path, folder)
    connection = await asyncpg.connect(dsn)
    try:
        await migrate(connection, embedding_dimensions=384, folder=folder)
        # An ordinary owner sees one campaign at a time, too.
        await connection.execute("SELECT set_config('glyphoxa.campaign', 'town', false)")
        await connection.execute(_OF_0016)
        await connection.execute("SELECT set_config('glyphoxa.campaign', '', false)")
        await migrate(connection, embedding_dimensions=384)
    finally:
        await connection.close()
