"""Recall over a log that others write to, that is rolled back, forked, cut off and restored: on the real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.log import update_text_search_config
from glyphoxa.adapters.postgres.transcript.reading import PostgresTalkFeed
from glyphoxa.app.memory import TableMemory
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.npc.table_state import TableState
from glyphoxa.recall.transcript_memory import TranscriptMemory
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.transcript.ports import FeedUtterance, TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, a_campaign, an_utterance
from tests.support.embedders import embedder_of_topics
from tests.support.network import Network, a_network
from tests.support.patience import DEADLINE_MS
from tests.support.postgres import the_one_that_waits, two_others
from tests.support.recalled import PATIENT
from tests.support.supervised import closing
from tests.support.world_tables import DM, a_campaign_row

EMBEDDER = embedder_of_topics({"sister": 0, "sibling": 0, "blade": 1, "sword": 1, "rain": 2, "weather": 2})
QUESTION = "Where is my sister?"
N_STEPS = 25


def a_state() -> TableState:
    campaign = a_campaign()
    return TableState(campaign, SESSION, campaign.scenes[0], {})


def told(text: str, *, id: str, at_ms: int = 1_000, **changes: Any) -> Utterance:
    return replace(an_utterance(text, id=id), at_ms=at_ms, **changes)


@pytest.fixture
async def memory(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn, embedder=EMBEDDER, recall=PATIENT) as opened:
        await a_campaign_row(opened, CAMPAIGN)
        yield opened


async def ids(store: Store, question: str = QUESTION, campaign: CampaignId = CAMPAIGN) -> list[str]:
    return [str(one.utterance_id) for one in await store.past_talk.recall(campaign, SMITH, TalkQuery(question))]


# -- the feed


@pytest.mark.parametrize("is_ordinary", [False, True])
async def test_whoever_follows_the_changes_misses_nothing_of_what_many_write_at_once(
    is_ordinary: bool,
    dsn: str,
    owners_dsn: str,
) -> None:
    """Two processes append, better, roll back and undo, change the language, and give transactions up."""
    dsn = owners_dsn if is_ordinary else dsn
    async with (
        open_store(dsn) as one,
        open_store(dsn) as other,
        open_store(dsn) as reader,
    ):
        await a_campaign_row(one, CAMPAIGN)
        await one.log.append([told("It began.", id="first")])
        writers = [
            _appending(one, "a"),
            _appending(other, "b"),
            _giving_up(other),
            _bettering(one, "a"),
            _rolling_back(other),
            _changing_language(one),
        ]
        feed = PostgresTalkFeed(reader.database)
        held = TranscriptMemory(feed, CAMPAIGN)
        seen: dict[UtteranceId, FeedUtterance] = {}
        done = asyncio.gather(*writers)
        change_seq = -1
        while True:
            is_last = done.done()
            page = (await feed.changes(CAMPAIGN, since=change_seq + 1, limit=50)).said
            assert [said.change_seq for said in page] == sorted({said.change_seq for said in page})
            seen |= {said.utterance_id: said for said in page}
            change_seq = page[-1].change_seq if page else change_seq
            await held.refresh()
            if is_last and not page:
                break
        await done
        now = {said.utterance_id: said for said in (await feed.changes(CAMPAIGN, since=0, limit=100_000)).said}
        assert seen == now
        assert len(now) == 1 + 2 * N_STEPS * 3
        index = await held.refresh()
        rebuilt = await TranscriptMemory(feed, CAMPAIGN).refresh()
        asked = index.terms.of_question("what of the sword, part 3")
        found = [
            sorted(each.said(int(row)).utterance_id for row in each.look(SMITH, asked).columns.rows)
            for each in (index, rebuilt)
        ]
        assert found[0] == found[1]
        assert index.session_numbers() == rebuilt.session_numbers()


async def _appending(store: Store, who: str) -> None:
    for step in range(N_STEPS):
        await store.log.append(
            [
                told(f"The sword, part {n}.", id=f"{who}{step}-{n}", session_id=SessionId(f"s{step % 3}"))
                for n in range(3)
            ]
        )


async def _giving_up(store: Store) -> None:
    for step in range(N_STEPS):
        with pytest.raises(ZeroDivisionError):
            async with store.database.use(CAMPAIGN, deadline_ms=DEADLINE_MS) as connection, connection.transaction():
                await connection.execute(
                    "INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id,"
                    " speaker_name, text, raw_text, timestamp, duration_ns, witnesses, fts_config)"
                    " SELECT campaign_id, session_id, 100000 + $1, 'never', speaker_id, speaker_name, text, raw_text,"
                    " timestamp, duration_ns, witnesses, fts_config FROM session_entries WHERE utterance_id = 'first'",
                    step,
                )
                await asyncio.sleep(0)
                raise ZeroDivisionError


async def _bettering(store: Store, who: str) -> None:
    text = "It began."
    for step in range(N_STEPS):
        better = f"It began, {who} {step}."
        assert await store.log.revise(told(better, id="first"), was=told(text, id="first"))
        text = better


async def _rolling_back(store: Store) -> None:
    for step in range(N_STEPS // 2):
        event = await store.world.rollback(CAMPAIGN, SessionId("s1"), step, DM)
        if event is not None and step % 2:
            await store.world.undo(CAMPAIGN, [event.seq], DM)


async def _changing_language(store: Store) -> None:
    for step in range(N_STEPS // 2):
        async with store.database.use(None, deadline_ms=DEADLINE_MS) as connection:
            await connection.execute("UPDATE campaigns SET language = $1", ("de", "en")[step % 2])
        await update_text_search_config(store.database, CAMPAIGN)


async def test_a_change_that_is_seen_later_has_a_later_number(memory: Store, dsn: str) -> None:
    """Else whoever is at the later change already never reads it."""
    await memory.log.append([told("One.", id="u1"), told("Two.", id="u2", at_ms=2_000)])
    feed = PostgresTalkFeed(memory.database)
    known = list((await feed.changes(CAMPAIGN, since=0, limit=9)).said)
    better = "UPDATE session_entries SET text = text || $1 WHERE utterance_id = $2"
    async with two_others(dsn) as (one, watcher):
        under_way = one.transaction()
        await under_way.start()
        await one.execute(better, "!", "u1")
        second = asyncio.create_task(memory.log.revise(told("Two!", id="u2"), was=told("Two.", id="u2")))
        await asyncio.wait(
            {second, asyncio.create_task(the_one_that_waits(watcher))}, return_when=asyncio.FIRST_COMPLETED
        )
        seen = list((await feed.changes(CAMPAIGN, since=known[-1].change_seq + 1, limit=9)).said)
        await under_way.commit()
    assert await second
    latest = max(said.change_seq for said in known + seen)
    seen += (await feed.changes(CAMPAIGN, since=latest + 1, limit=9)).said
    assert {said.text for said in seen} == {"One.!", "Two!"}


# -- in one process


async def test_what_was_rolled_back_is_not_in_the_next_answer_and_what_was_given_back_is(memory: Store) -> None:
    await memory.log.append([told("Welcome.", id="u0"), told("My sister sails.", id="u1", at_ms=2_000)])
    await memory.chunks.fill_missing(CAMPAIGN)
    assert "u1" in await ids(memory)
    event = await memory.world.rollback(CAMPAIGN, SessionId("s1"), 1, DM)
    assert event is not None
    assert await ids(memory) == []
    assert memory.past_talk.recall_nowait(CAMPAIGN, SMITH, TalkQuery(QUESTION)) == []
    await memory.world.undo(CAMPAIGN, [event.seq], DM)
    assert "u1" in await ids(memory)


async def test_another_process_sees_a_rollback_at_its_next_question(memory: Store, dsn: str) -> None:
    await memory.log.append([told("Welcome.", id="u0"), told("My sister sails.", id="u1", at_ms=2_000)])
    async with open_store(dsn, embedder=EMBEDDER, recall=PATIENT) as table:
        assert "u1" in await ids(table)
        await memory.world.rollback(CAMPAIGN, SessionId("s1"), 1, DM)
        assert await ids(table) == []


async def test_a_fork_remembers_the_same_and_each_goes_its_own_way(memory: Store) -> None:
    other = CampaignId("fork")
    await memory.log.append(
        [
            told("Welcome.", id="u0"),
            told("My sibling sails.", id="u1", at_ms=2_000),
            told("My sister fell.", id="u2", at_ms=3_000, session_id=SessionId("s2")),
        ]
    )
    await memory.chunks.fill_missing(CAMPAIGN)
    await memory.world.rollback(CAMPAIGN, SessionId("s2"), 0, DM)
    whole = await memory.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))
    assert await ids(memory, campaign=other) == []
    await memory.world.fork(CAMPAIGN, other, name="Fork")
    assert await memory.past_talk.recall(other, SMITH, TalkQuery(QUESTION)) == whole
    await memory.log.append([told("My sister is here.", id="u3", campaign_id=other, at_ms=4_000)])
    assert "u3" in await ids(memory, campaign=other)
    assert "u3" not in await ids(memory)


# -- the database fails


@pytest.fixture
async def network(dsn: str) -> AsyncIterator[Network]:
    async with a_network(dsn) as network:
        yield network


def watched(store: Store) -> MemoryWatch:
    async def nothing() -> None:
        return None

    watch = MemoryWatch(
        ping=lambda: store.database.ping(deadline_ms=DEADLINE_MS),
        make_good=nothing,
        changed=lambda: None,
        now_ms=lambda: 0,
    )
    store.past_talk.transcript(CAMPAIGN).reading.guarded = watch.guarded
    return watch


async def test_what_is_missed_while_the_database_is_away_is_recalled_when_it_is_back(
    memory: Store,
    network: Network,
) -> None:
    async with open_store(network.dsn, recall=PATIENT) as table:
        watch, talk = watched(table), table.past_talk
        network.cut()
        with pytest.raises(Unavailable):
            await talk.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))
        assert talk.recall_nowait(CAMPAIGN, SMITH, TalkQuery(QUESTION)) is None
        watch.lost("it is away")
        with pytest.raises(Unavailable, match="unavailable"):
            await talk.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))

        network.well()
        watch.is_away = False
        await memory.log.append([told("My sister sails.", id="u1")])
        assert [one.utterance_id for one in await talk.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))] == ["u1"]

        network.cut()
        await memory.log.append([told("My sister fell.", id="u2", at_ms=2_000)])
        # Not known to be away yet, and then known: what is in memory is told.
        unaware = await table.past_talk.search(CAMPAIGN, SMITH, TalkQuery(QUESTION))
        assert [one.utterance_id for one in unaware.items] == ["u1"]
        assert any(why.startswith("the latest utterances: the database is away") for why in unaware.left_out)
        watch.lost("it is away")
        assert [one.utterance_id for one in await talk.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))] == ["u1"]
        assert await talk.recall(CAMPAIGN, INNKEEPER, TalkQuery(QUESTION)) == []

        network.well()
        watch.is_away = False
        assert {one.utterance_id for one in await talk.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))} == {"u1", "u2"}


@pytest.mark.parametrize("fault", [Unavailable("it is gone"), ValueError("a bug")])
async def test_past_talk_that_cannot_be_read_keeps_nobody_from_writing_down_more(
    memory: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def broken() -> None:
        raise fault

    monkeypatch.setattr(memory.past_talk.transcript(CAMPAIGN), "refresh", broken)
    table = TableMemory(memory, a_state(), tmp_path / "spool")
    try:
        await table.open()
        assert table.health.state == "ok"
        await table.journal.keep(told("My sister.", id="u1"))
        running = asyncio.create_task(table.journal.delivery.run())
        assert await table.flush()
        running.cancel()
        assert await memory.log.count(CAMPAIGN) == 1
    finally:
        await table.close()


async def test_memory_is_read_once_the_database_answers_after_the_table_was_opened(
    memory: Store, network: Network, tmp_path: Path
) -> None:
    """Also if an utterance was sent before the watch has looked again."""
    await memory.log.append([told("My sister sails.", id="u1")])
    changed = asyncio.Event()
    async with open_store(network.dsn, recall=PATIENT) as store, closing(Supervisor()) as supervisor:
        network.cut()
        state = a_state()
        state.events.subscribe(lambda _: changed.set())
        table = TableMemory(store, state, tmp_path / "spool")
        await table.open()
        assert table.health.state == "degraded"
        network.well()
        await table.store_campaign()
        changed.clear()
        table.start(supervisor)
        await changed.wait()
        assert table.health.state == "ok"
        index = store.past_talk.transcript(CAMPAIGN).index
        assert index is not None and "u1" in index
        assert store.world_memory(CAMPAIGN).world is not None
        await table.close()
