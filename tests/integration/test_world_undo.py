"""Taking back: single events, or all that was learned behind an ordinal. Looking back, and worlds that part ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world import event_log
from glyphoxa.adapters.postgres.world.commits import COPIED
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance
from glyphoxa.world.event_kinds import EntitiesMerged, EntityAdded, FactRejected, FactStated, SlotDeclared
from glyphoxa.world.event_log import Cause, difference
from tests.support.builders import an_utterance
from tests.support.world_tables import (
    A_ROW_EACH,
    DM,
    INN,
    MIRA,
    SWORD,
    TOWN,
    a_town,
    everything,
    stands_as_replayed,
)

FIRST, SECOND = SessionId("first"), SessionId("second")
CALLED = FactStated(Claim.attribute(MIRA, "occupation", "innkeeper"), Provenance(confidence=0.5))
OWNS = FactStated(Claim.relation(MIRA, "OWNS", SWORD))
RUNS = FactStated(Claim.relation(MIRA, "LOCATED_AT", INN), supports=(OWNS.claim.fact_id,))


@pytest.fixture
async def town(store: Store) -> Store:
    await a_town(store, TOWN)
    return store


def of_talk(session: SessionId, ordinal: int, *, at_ms: int = 0) -> Cause:
    return Cause("talk", at_ms, session, ordinal, UtteranceId(f"{session}-{ordinal}"))


async def said(store: Store, session: SessionId, *, ordinals: range, began_ms: int) -> None:
    await store.log.append(
        [
            replace(
                an_utterance(f"word {ordinal}", id=f"{session}-{ordinal}"),
                campaign_id=TOWN,
                session_id=session,
                at_ms=began_ms + ordinal,
            )
            for ordinal in ordinals
        ]
    )


async def heard(store: Store) -> list[str]:
    """Utterances that are not retracted."""
    async with store.database.use(TOWN) as connection:
        rows = await connection.fetch(
            "SELECT utterance_id FROM session_entries WHERE campaign_id = $1 AND NOT retracted ORDER BY id", TOWN
        )
    return [row["utterance_id"] for row in rows]


async def test_a_rollback_takes_what_was_learned_later_and_the_talk_and_its_undoing_gives_it_back(town: Store) -> None:
    await said(town, FIRST, ordinals=range(1, 5), began_ms=1_000)
    await said(town, SECOND, ordinals=range(1, 3), began_ms=9_000)
    await town.world.commit(TOWN, [OWNS], of_talk(FIRST, 2))
    early = await everything(town, TOWN)
    await town.world.commit(TOWN, [RUNS], of_talk(FIRST, 3))
    await town.world.commit(TOWN, [CALLED], of_talk(SECOND, 1))
    late = await everything(town, TOWN)

    event = await town.world.rollback(TOWN, FIRST, 2, DM)
    assert event is not None
    assert difference(await stands_as_replayed(town, TOWN), early).is_empty
    assert await heard(town) == ["first-1", "first-2"]

    await said(town, SECOND, ordinals=range(3, 4), began_ms=9_000)
    await town.world.undo(TOWN, [event.seq], DM)
    assert difference(await stands_as_replayed(town, TOWN), late).is_empty
    assert await heard(town) == [*(f"first-{n}" for n in range(1, 5)), *(f"second-{n}" for n in range(1, 4))]


async def test_chunks_of_retracted_talk_are_retracted(town: Store) -> None:
    await said(town, FIRST, ordinals=range(1, 4), began_ms=1_000)
    async with town.database.use(TOWN) as connection:
        await connection.execute(
            """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model)
               SELECT campaign_id, utterance_id, utterance_id, session_id, text, '',
                      array_fill(1, ARRAY[384])::vector, 'm'
                 FROM session_entries WHERE campaign_id = $1""",
            TOWN,
        )
    event = await town.world.rollback(TOWN, FIRST, 1, DM)
    assert event is not None
    retracted = "SELECT id FROM chunks WHERE campaign_id = $1 AND retracted ORDER BY id"
    async with town.database.use(TOWN) as connection:
        assert [row["id"] for row in await connection.fetch(retracted, TOWN)] == ["first-2", "first-3"]
    await town.world.undo(TOWN, [event.seq], DM)
    async with town.database.use(TOWN) as connection:
        assert await connection.fetch(retracted, TOWN) == []


async def test_looking_back_from_a_kept_state_shows_the_same(town: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [FactStated(Claim.attribute(MIRA, "note", n)) for n in range(20)]
    for n, note in enumerate(notes, start=1):
        await town.world.commit(TOWN, [note], Cause("dm", 1_000 * n))
    await town.world.undo(TOWN, [20], Cause("dm", 90_000))
    await town.world.undo(TOWN, [7], Cause("dm", 99_000))
    asked = [{"seq": n} for n in range(27)] + [{"at_ms": 1_000 * n} for n in range(0, 100, 3)]
    plain = [await town.world.as_of(TOWN, **each) for each in asked]
    monkeypatch.setattr(event_log, "SNAPSHOT_EVERY", 4)
    for _ in range(2):
        for each, state in zip(asked, plain, strict=True):
            assert difference(await town.world.as_of(TOWN, **each), state).is_empty, each
    async with town.database.use(TOWN) as connection:
        kept = await connection.fetch("SELECT seq FROM world_snapshots WHERE campaign_id = $1 ORDER BY seq", TOWN)
    assert [row["seq"] for row in kept] == [4, 8, 12, 16, 20, 24]
    await town.world.undo(TOWN, [24], DM)
    await stands_as_replayed(town, TOWN)
    await town.world.undo(TOWN, [2], DM)
    await stands_as_replayed(town, TOWN)


async def test_a_fork_has_the_same_past_and_a_future_of_its_own(town: Store) -> None:
    other = CampaignId("other")
    await said(town, FIRST, ordinals=range(1, 4), began_ms=1_000)
    await town.world.commit(TOWN, [OWNS, RUNS, CALLED], of_talk(FIRST, 3))
    await town.world.commit(TOWN, [FactRejected(CALLED.claim.fact_id), SlotDeclared("note", "one")], DM)
    rolled = await town.world.rollback(TOWN, FIRST, 2, DM)
    assert rolled is not None
    await town.world.fork(TOWN, other, name="The other town")

    past = await stands_as_replayed(town, TOWN)
    assert difference(await stands_as_replayed(town, other), past).is_empty
    assert await town.world.events(other) == await town.world.events(TOWN)
    await town.world.undo(other, [rolled.seq], DM)
    await town.world.commit(other, [CALLED], DM)
    await stands_as_replayed(town, other)
    assert difference(await stands_as_replayed(town, TOWN), past).is_empty
    assert await heard(town) == ["first-1", "first-2"]
    with pytest.raises(InvalidInput, match="a campaign 'other' already exists"):
        await town.world.fork(TOWN, other, name="Again")
    with pytest.raises(NotFound):
        await town.world.fork(CampaignId("nowhere"), CampaignId("new"), name="New")


_MADE_AGAIN = """
INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model)
    VALUES ('town', 'first-1', 'first-1', 'first', 'word 1', 'h', array_fill(0.5, ARRAY[384])::vector, 'm');
DELETE FROM talk_to_embed WHERE utterance_id = 'first-1';
INSERT INTO session_states (campaign_id, session_id, view, state) VALUES ('town', 'first', 'dm', '{"summary": []}');
INSERT INTO entity_vectors (campaign_id, entity_id, content, model, embedding)
    VALUES ('town', 'mira', 'Mira', 'm', array_fill(0.5, ARRAY[384])::vector);
"""


async def test_a_fork_has_all_that_the_campaign_has_row_by_row(town: Store) -> None:
    other = CampaignId("other")
    await said(town, FIRST, ordinals=range(1, 4), began_ms=1_000)
    note = FactStated(Claim.attribute(MIRA, "note", "one-eyed"))
    await town.world.commit(TOWN, [OWNS, RUNS, CALLED, note, SlotDeclared("note", "one")], of_talk(FIRST, 1))
    gone = [FactRejected(CALLED.claim.fact_id), EntityAdded(EntityId("x"), "item", "X")]
    await town.world.commit(TOWN, [*gone, EntitiesMerged(SWORD, EntityId("x"))], DM)
    await town.world.rollback(TOWN, FIRST, 2, DM)
    async with town.database.use(TOWN) as connection:
        await connection.execute(A_ROW_EACH + _MADE_AGAIN)
    await town.world.fork(TOWN, other, name="The other town")
    for table in COPIED:
        rows = await _rows(town, TOWN, table)
        assert rows, table
        if table == "campaign_documents":
            rows[0]["document"] |= {"id": "other", "name": "The other town"}
        assert await _rows(town, other, table) == rows, table


async def _rows(store: Store, campaign: CampaignId, table: str) -> list[dict[str, object]]:
    async with store.database.use(campaign) as connection:
        found = await connection.fetch(
            f"SELECT to_jsonb(t) - 'campaign_id' - 'change_seq' AS row FROM {table} t ORDER BY 1"
        )
    return [row["row"] for row in found]


async def test_every_table_of_a_campaign_is_known_to_forks(town: Store) -> None:
    async with town.database.administer() as connection:
        rows = await connection.fetch(
            """SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'campaign_id'
                WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""
        )
    of_a_table = {"table_commands", "table_epochs", "table_files"}
    assert sorted(row["relname"] for row in rows) == sorted({*COPIED, "world_snapshots", *of_a_table})


async def test_what_the_dm_decided_and_what_a_file_says_survives_a_rollback(town: Store) -> None:
    await said(town, FIRST, ordinals=range(1, 4), began_ms=1_000)
    await town.world.commit(TOWN, [OWNS], Cause("dm", 0, FIRST, 3))
    await town.world.commit(TOWN, [RUNS], Cause("campaign_file", 0))
    before = await everything(town, TOWN)
    assert await town.world.rollback(TOWN, FIRST, 1, DM) is not None
    assert difference(await stands_as_replayed(town, TOWN), before).is_empty
    assert await heard(town) == ["first-1"]
    assert await town.world.rollback(TOWN, FIRST, 1, DM) is None
    with pytest.raises(NotFound, match="no session 'never'"):
        await town.world.rollback(TOWN, SessionId("never"), 1, DM)


async def test_what_is_said_after_a_rollback_stays_and_an_older_rollback_keeps_what_it_took(town: Store) -> None:
    await said(town, FIRST, ordinals=range(1, 4), began_ms=1_000)
    first = await town.world.rollback(TOWN, FIRST, 2, DM)
    await said(town, FIRST, ordinals=range(4, 6), began_ms=1_000)
    second = await town.world.rollback(TOWN, FIRST, 1, DM)
    assert first is not None
    assert second is not None
    assert await heard(town) == ["first-1"]
    [undone] = await town.world.undo(TOWN, [second.seq], DM)
    assert await heard(town) == ["first-1", "first-2", "first-4", "first-5"]
    await town.world.undo(TOWN, [first.seq], DM)
    assert await heard(town) == [f"first-{n}" for n in range(1, 6)]
    await town.world.undo(TOWN, [undone.seq], DM)
    assert await heard(town) == ["first-1"]
