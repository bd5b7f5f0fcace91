from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.log import PostgresTurns, turn_of_row
from glyphoxa.domain.errors import InvalidInput, Unavailable, Unstorable
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import RecalledFact, RecalledSummary, RecalledUtterance, Signal
from glyphoxa.domain.turn_record import AssembledPrompt, Fault, Outcome, Rejected, Stage, Unsaid
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.transcript.ports import TranscriptLog
from tests.support.builders import CAMPAIGN, SESSION, a_turn_record, an_utterance
from tests.support.recalled import a_fact, heard

RECALLED = (
    heard("x", score=0.5, at_ms=1_000, similarity=0.25, signals={Signal.WORDS: 1.5, Signal.ROUND: 1.0}),
    a_fact("Mirelle keeps the inn.", path="named 'Mirelle'"),
    RecalledSummary(SESSION, "They crossed the fen.", 1_000, reason="asked about last session"),
)


async def test_characters_a_database_cannot_hold_do_not_stop_the_rest(store: Store) -> None:
    await store.log.append([an_utterance("a\0b \ud83d c"), an_utterance("fine", id="u2")])
    assert [u.text for u in await store.log.recent(CAMPAIGN, SESSION, since_ms=0)] == ["a\ufffdb ? c", "fine"]


async def test_a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    too_late = replace(an_utterance("in the year 300000", id="u2"), at_ms=10**16)
    with pytest.raises(InvalidInput):
        await store.log.append([an_utterance("fine"), too_late])
    assert await store.log.count(CAMPAIGN) == 0


async def ordinals(store: Store, session: str = "s1", campaign: CampaignId = CAMPAIGN) -> list[tuple[int, str]]:
    async with store.database.use(campaign) as connection:
        rows = await connection.fetch(
            "SELECT ordinal, utterance_id FROM session_entries WHERE session_id = $1 ORDER BY ordinal", session
        )
        last = await connection.fetchval("SELECT last_ordinal FROM sessions WHERE id = $1", session)
    assert last == len(rows)
    return [tuple(row) for row in rows]


async def test_an_ordinal_is_the_number_of_an_utterance_in_its_session_in_the_order_of_arrival(store: Store) -> None:
    late = replace(an_utterance("said first, heard last", id="c"), at_ms=1)
    elsewhere = replace(an_utterance("elsewhere", id="x"), session_id=SessionId("s2"))
    far_away = replace(an_utterance("far away", id="a"), campaign_id=CampaignId("other"))
    await store.log.append([an_utterance("one", id="a"), elsewhere, an_utterance("two", id="b"), far_away])
    await store.log.append([an_utterance("one", id="a"), late, an_utterance("four", id="d"), late])
    assert await ordinals(store) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert await ordinals(store, "s2") == [(1, "x")]
    assert await ordinals(store, campaign=CampaignId("other")) == [(1, "a")]


async def test_ordinals_have_no_gap_when_many_append_to_one_session_at_once(
    store: Store,
    dsn: str,
) -> None:
    """Two processes, each with its own connections; what both send is there once."""

    async def send(log: TranscriptLog, batch: int) -> None:
        await log.append(
            [an_utterance("line", id=f"u{batch}-{n}") for n in range(5)] + [an_utterance("ours", id="both")]
        )

    async with open_store(dsn) as other:
        await asyncio.gather(*(send(log, n) for n in range(20) for log in (store.log, other.log)))
        numbers = await ordinals(store)
    assert [number for number, _ in numbers] == list(range(1, 102))
    for batch in range(20):
        places = [number for number, utterance in numbers if utterance.startswith(f"u{batch}-")]
        assert places == sorted(places)


async def test_one_utterance_sent_under_two_sessions_at_once_leaves_no_gap(
    store: Store,
    dsn: str,
) -> None:
    async with open_store(dsn) as other:
        for n in range(10):
            said = an_utterance("twice", id=f"u{n}")
            await asyncio.gather(
                store.log.append([said]), other.log.append([replace(said, session_id=SessionId("s2"))])
            )
    assert len(await ordinals(store)) + len(await ordinals(store, "s2")) == 10


async def test_an_utterance_no_column_can_hold_is_told_from_a_database_that_refuses(store: Store) -> None:
    """The first is set aside; the second is waited for."""
    with pytest.raises(Unstorable):
        await store.log.append([replace(an_utterance("long"), duration_ms=2**62)])
    with pytest.raises(Unstorable):
        await store.log.append([an_utterance(" ".join(f"{n:x}" for n in range(400_000)))])
    async with store.database.administer() as connection:
        await connection.execute("ALTER TABLE session_entries RENAME TO gone")
    with pytest.raises(Unavailable):
        await store.log.append([an_utterance("later")])
    assert await ordinals_of_nobody(store) == 0


async def ordinals_of_nobody(store: Store) -> int:
    async with store.database.use(CAMPAIGN) as connection:
        return int(await connection.fetchval("SELECT count(*) FROM sessions"))


async def test_a_turn_is_logged_once_with_its_outcome_and_timeline(store: Store) -> None:
    turn = a_turn_record(
        Outcome.INTERRUPTED,
        raw_text="raw",
        text="text",
        address_reason="named",
        reply="A long story.",
        reply_heard="A long",
        prompt=AssembledPrompt(
            recalled=RECALLED, rejected=(Rejected(RECALLED[0], "no room"),), omitted=("scene: late",)
        ),
        stages={Stage.SPEECH_END: 1_000, Stage.FIRST_AUDIO: 1_700},
        tier="STANDARD",
        tier_reason="asks for memory: 'remember'",
        unsaid=(Unsaid("Grimjaw nods.", Fault.NARRATED),),
    )
    await store.log.record_turn(CAMPAIGN, turn)
    await store.log.record_turn(CAMPAIGN, replace(turn, reply="another"))
    async with store.database.use(CAMPAIGN) as connection:
        rows = await connection.fetch("SELECT * FROM turns")
    assert len(rows) == 1
    assert rows[0]["outcome"] == "interrupted"
    assert rows[0]["reply"] == "A long story."
    assert rows[0]["stages"] == {"speech_end": 1_000, "first_audio": 1_700}
    read = turn_of_row(rows[0])
    assert read.prompt.recalled == RECALLED
    assert [(one.recalled, one.why) for one in read.prompt.rejected] == [(RECALLED[0], "no room")]
    assert read.unsaid == turn.unsaid
    assert await PostgresTurns(store.database).turn(CAMPAIGN, turn.id) == read


OLDER: Mapping[str, Any] = {
    "text": "Tamsin said: My sister sails.",
    "source": "said",
    "score": 0.5,
    "session_id": "s1",
    "utterance_id": "u1",
    "reason": "witnessed in session s1",
    "at_ms": 1_000,
    "speaker_id": "tamsin",
    "similarity": None,
    "signals": {"words": 1.5, "a signal of old": 1.0},
    "fact_id": None,
    "path": "",
}


async def test_what_an_older_version_recorded_is_read(store: Store) -> None:
    """It had no types: all fields for everything, and who spoke in the text."""
    await store.log.record_turn(CAMPAIGN, a_turn_record())
    fact = {**OLDER, "source": "entity", "text": "Mirelle keeps the inn.", "fact_id": "f1", "path": "named 'Mirelle'"}
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute("UPDATE turns SET recalled = $1", [OLDER, fact, {**OLDER, "source": "summary"}])
        [row] = await connection.fetch("SELECT * FROM turns")
    said, known, summary = turn_of_row(row).prompt.recalled
    assert isinstance(said, RecalledUtterance)
    assert recalled_line(said) == "Tamsin said: My sister sails."
    assert said.signals == {Signal.WORDS: 1.5}
    assert isinstance(known, RecalledFact)
    assert (known.fact_id, known.path, recalled_line(known)) == ("f1", "named 'Mirelle'", "Mirelle keeps the inn.")
    assert isinstance(summary, RecalledSummary)


async def test_a_database_that_is_not_there_is_unavailable_and_nothing_else() -> None:
    async with open_store("postgresql://nobody@127.0.0.1:1/none") as store:
        with pytest.raises(Unavailable, match="the database is away"):
            await store.log.append([an_utterance("into the void")])
        with pytest.raises(Unavailable):
            await store.log.recent(CAMPAIGN, SESSION, since_ms=0)


async def test_a_query_is_cut_off_at_its_deadline_and_the_next_one_works(store: Store) -> None:
    await store.database.open()
    with pytest.raises(Unavailable, match="did not answer within 20 ms"):
        async with store.database.use(CAMPAIGN, deadline_ms=20) as connection:
            await connection.fetchval("SELECT pg_sleep(5)")
    assert await store.log.count(CAMPAIGN) == 0
