"""Talk held in memory while the log changes, the database fails, and several ask at once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.terms import Terms
from glyphoxa.recall.transcript_memory import TranscriptMemory, Transcripts
from glyphoxa.transcript.ports import Embedding, TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.recalled import PATIENT
from tests.support.talk_feed import DIMENSIONS, FeedTwin, an_embedder_of_words, said
from tests.support.virtual_time import run_in_virtual_time

OTHER = CampaignId("other")
QUESTION = "What of my sister?"


def a_recall(feed: FeedTwin, *, settings: RecallSettings = PATIENT, **more: Any) -> Recall:
    return Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=settings, now_ms=lambda: 0, **more)


def a_memory(feed: FeedTwin) -> TranscriptMemory:
    return TranscriptMemory(feed, CAMPAIGN, embedder=an_embedder_of_words())


async def ids(recall: Recall, question: str = QUESTION, campaign: CampaignId = CAMPAIGN) -> list[str]:
    return [str(one.utterance_id) for one in await recall.recall(campaign, SMITH, TalkQuery(question))]


async def ids_by_words(recall: Recall, question: str = QUESTION) -> list[str]:
    found = await recall.search(CAMPAIGN, SMITH, TalkQuery(question), by_words=True)
    return [str(one.utterance_id) for one in found.items]


def some_talk() -> FeedTwin:
    feed = FeedTwin()
    feed.tell(said("u1", "My sister sails.", ordinal=1), said("u2", "It rains.", ordinal=2, at_ms=2_000))
    return feed


async def test_what_was_rolled_back_while_somebody_else_read_is_not_recalled() -> None:
    """A read that began before the request does not answer it."""
    feed = some_talk()
    recall = a_recall(feed)
    await ids(recall)
    read, go_on = asyncio.Event(), asyncio.Event()

    async def hold(what: str) -> None:
        if what == "changes" and not read.is_set():
            read.set()
            await go_on.wait()

    feed.after = hold
    early = asyncio.create_task(ids(recall))
    await read.wait()
    feed.change("u1", retracted=True)
    late = asyncio.create_task(ids(recall))
    await asyncio.sleep(0)
    go_on.set()
    assert "u1" not in await late
    await early


async def test_those_who_ask_together_share_a_reading_and_those_who_ask_meanwhile_the_next() -> None:
    feed = some_talk()
    held = a_memory(feed)
    await held.refresh()
    read, go_on = asyncio.Event(), asyncio.Event()

    async def hold(what: str) -> None:
        read.set()
        await go_on.wait()

    feed.before = hold
    feed.asked.clear()
    early = [asyncio.create_task(held.refresh()) for _ in range(10)]
    await read.wait()
    late = [asyncio.create_task(held.refresh()) for _ in range(10)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*early, *late)
    assert feed.asked["changes"] == 2


async def test_an_answer_that_was_found_while_talk_was_rolled_back_is_not_given_again() -> None:
    feed = some_talk()

    async def slow(campaign: CampaignId) -> Callable[[NpcId, SessionId], str | None]:
        feed.change("u1", retracted=True)
        await recall.transcript(CAMPAIGN).refresh()
        read.append(campaign)
        return lambda npc, session: None

    read: list[CampaignId] = []
    recall = a_recall(feed, summaries=slow)
    question = "What happened in this session with my sister?"
    await recall.recall(CAMPAIGN, SMITH, TalkQuery(question))
    assert read
    assert "u1" not in await ids(recall, question)


async def test_sessions_are_numbered_the_same_after_a_restart() -> None:
    feed = FeedTwin()
    for n in (1, 2, 3):
        feed.tell(said(f"u{n}", "My sister sails.", session=f"s{n}", at_ms=n * 100_000_000))
    recall, restarted = a_recall(feed), a_recall(feed)
    await ids(recall)
    feed.change("u2", retracted=True)
    question = "What of my sister in session 2?"
    assert [replace(one, similarity=None) for one in await recall.recall(CAMPAIGN, SMITH, TalkQuery(question))] == [
        replace(one, similarity=None) for one in await restarted.recall(CAMPAIGN, SMITH, TalkQuery(question))
    ]


async def test_talk_of_a_campaign_that_was_not_stored_yet_is_in_its_language() -> None:
    feed = FeedTwin()
    recall = a_recall(feed)
    assert await ids_by_words(recall) == []
    feed.languages[CAMPAIGN] = "de"
    feed.tell(said("u1", "Die Schwestern segeln."))
    assert await ids_by_words(recall, "schwester") == ["u1"]


async def test_who_waits_when_all_is_closed_is_told_so() -> None:
    """Nobody cancelled them."""
    feed = some_talk()
    recall = a_recall(feed)
    asked = asyncio.Event()

    async def never(what: str) -> None:
        if what == "changes":
            asked.set()
            await asyncio.Event().wait()

    feed.before = never
    waiting = [asyncio.create_task(recall.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))) for _ in range(2)]
    await asked.wait()
    await recall.close()
    for one in waiting:
        with pytest.raises(Unavailable):
            await one
    with pytest.raises(Unavailable):
        await recall.recall(CAMPAIGN, SMITH, TalkQuery(QUESTION))


async def test_vectors_of_another_size_are_left_out() -> None:
    feed = some_talk()

    async def of_another_model(campaign: CampaignId, utterances: object, edition: object) -> list[Embedding]:
        return [Embedding(UtteranceId("u1"), np.ones((1, DIMENSIONS + 1), np.float32))]

    feed.embeddings = of_another_model  # type: ignore[method-assign]
    assert await ids(a_recall(feed)) == ["u1", "u2"]


@pytest.mark.parametrize("model", [("unheard of", DIMENSIONS), ("words", 4 * DIMENSIONS)], ids=["name", "length"])
async def test_vectors_of_another_model_are_not_read_and_new_lines_are_found_by_words(model: tuple[str, int]) -> None:
    feed = some_talk()
    recall = a_recall(feed)
    await ids(recall)
    warnings: list[str] = []
    sink = logger.add(warnings.append, level="WARNING", format="{message}")
    feed.model = model
    for n in (3, 4):
        feed.tell(said(f"u{n}", "A lantern is lit.", ordinal=n))
        assert f"u{n}" in await ids(recall, "a lantern?")
    logger.remove(sink)
    assert warnings == [f"{CAMPAIGN} was embedded again: new lines are found by words until the table is reopened\n"]
    assert (await recall.transcript(CAMPAIGN).refresh()).n_vectors == 2
    assert (await a_memory(feed).refresh()).n_vectors == 0


async def test_a_page_that_breaks_off_is_read_again() -> None:
    feed = FeedTwin()
    feed.tell(*(said(f"u{n}", f"Word {n}.", ordinal=n) for n in range(1, 5_001)))
    held = a_memory(feed)

    async def cut(what: str) -> None:
        if what == "changes" and feed.asked[what] == 2:
            raise Unavailable("cut")

    feed.before = cut
    with pytest.raises(Unavailable):
        await held.refresh()
    assert held.index is None
    feed.change("u7", text="Sister.")
    index = await held.refresh()
    assert len(index) == 5_000
    assert [len(match.places) for match in index.look(SMITH, index.terms.of_question("a sister")).matches] == [1]


async def test_of_more_talk_than_memory_may_hold_the_vectors_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glyphoxa.recall.transcript_memory._MOST_VECTOR_BYTES", 4 * DIMENSIONS * 1_000)
    feed = FeedTwin()
    feed.tell(*(said(f"u{n}", f"Word {n}.", ordinal=n) for n in range(1, 4_001)))
    held = a_memory(feed)
    await held.refresh()
    for n in range(4_001, 4_011):
        feed.tell(said(f"u{n}", f"Word {n}.", ordinal=n))
        index = await held.refresh()
    assert 1_010 <= index.n_vectors <= 1_100


async def test_vectors_of_older_talk_are_read_while_the_latest_is_still_to_be_embedded() -> None:
    feed = FeedTwin()
    feed.tell(*(said(f"u{n}", f"Word {n}.", ordinal=n) for n in range(1, 2_001)))
    real, n_embedded = feed.embeddings, 0

    async def embedded_so_far(campaign: CampaignId, utterances: Sequence[UtteranceId], model: str) -> list[Embedding]:
        return [one for one in await real(campaign, utterances, model) if int(one.utterance_id[1:]) <= n_embedded]

    feed.embeddings = embedded_so_far  # type: ignore[method-assign]
    held = a_memory(feed)
    assert (await held.refresh()).n_vectors == 0
    n_embedded = 300
    feed.tell(said("u2001", "Word.", ordinal=2_001))
    assert (await held.refresh()).n_vectors == 300


async def test_reload_reflects_a_concurrent_rollback() -> None:
    feed = some_talk()
    feed.tell(*(said(f"n{n}", "It snows.", ordinal=n + 3) for n in range(10)))
    recall = a_recall(feed)
    await ids(recall)
    for n in range(1_200):
        feed.change("n1", text=f"It snows {n}.")
        if n % 100 == 0:
            await recall.transcript(CAMPAIGN).refresh()
    feed.change("u1", retracted=True)
    assert "u1" not in await ids(recall)


def test_a_database_that_hangs_costs_a_turn_no_more_than_its_deadline_and_it_is_said() -> None:
    async def scene() -> None:
        feed = some_talk()
        recall = a_recall(feed, settings=RecallSettings())
        feed.has_meanings = False  # a thread takes time of the outside world
        await ids(recall)

        async def never(_what: str) -> None:
            await asyncio.Event().wait()

        feed.before = never
        began = asyncio.get_running_loop().time()
        found = await recall.search(CAMPAIGN, SMITH, TalkQuery(QUESTION))
        assert asyncio.get_running_loop().time() - began <= 0.0201
        assert [str(one.utterance_id) for one in found.items] == ["u1", "u2"]
        assert found.left_out == ("the latest utterances: it took more than 20 ms",)
        again = await recall.search(CAMPAIGN, SMITH, TalkQuery(QUESTION))
        assert again.left_out == found.left_out
        await recall.close()

    run_in_virtual_time(scene())


@pytest.mark.parametrize("n_new", [0, 1, 3, 6])
async def test_restored_and_diverged_log_is_recalled_exactly(
    n_new: int,
) -> None:
    """Other campaigns have some of its numbers now, so that what is there where the last one was tells nothing."""
    feed = some_talk()
    feed.tell(*(said(f"u{n}", f"My sister, {n}.", ordinal=n) for n in range(3, 9)))
    recall = a_recall(feed)
    await ids(recall)
    feed.forget()
    feed.tell(*some_talk().forget())
    feed.tell(*(said(f"v{n}", f"My sister fell, {n}.", ordinal=n + 3) for n in range(n_new)))
    feed.tell(*(said(f"o{n}", "Another table.") for n in range(6 - n_new)), campaign=OTHER)
    feed.tell(said("last", "My sister is here.", ordinal=30))
    index = await recall.transcript(CAMPAIGN).refresh()
    there = {"u1", "u2", *(f"v{n}" for n in range(n_new)), "last"}
    assert {index.said(row).utterance_id for row in range(len(index))} == there
    assert set(await ids(recall)) <= there


@pytest.mark.parametrize("n_changed", [1, 2, 5, 700, 999])
async def test_log_with_a_revised_tail_is_not_reloaded(n_changed: int) -> None:
    feed = FeedTwin()
    feed.tell(*(said(f"u{n}", f"Word {n}.", ordinal=n) for n in range(1, 1_001)))
    held = a_memory(feed)
    index = await held.refresh()
    for n in range(1_000, 1_000 - n_changed, -1):
        feed.change(f"u{n}", text=f"A better word {n}.")
    again = await held.refresh()
    assert again is index
    texts = {index.said(row).text for row in index.rows_of([UtteranceId(f"u{n}") for n in range(1, 1_001)])}
    assert len([text for text in texts if "better" in text]) == n_changed


async def test_a_look_whether_it_is_the_same_log_that_is_cut_off_is_made_again() -> None:
    feed = some_talk()
    feed.tell(*(said(f"u{n}", "It rains.", ordinal=n) for n in range(3, 9)))
    held = a_memory(feed)
    await held.refresh()
    feed.forget()
    feed.tell(*some_talk().forget())
    feed.tell(*(said(f"o{n}", "Another table.") for n in range(9)), campaign=OTHER)
    feed.tell(*(said(f"v{n}", "My sister fell.", ordinal=n + 30) for n in range(600)))
    left = 0

    async def cut(what: str) -> None:
        nonlocal left
        left -= what == "changes"
        if left == 0:
            raise Unavailable("cut")

    feed.before = cut
    for n_answers in range(1, 8):
        left = n_answers
        with contextlib.suppress(Unavailable):
            await held.refresh()
    index = await held.refresh()
    assert {index.said(row).utterance_id for row in range(len(index))} == {"u1", "u2", *(f"v{n}" for n in range(600))}


async def test_a_languages_lists_of_words_are_not_read_where_sound_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []

    def read(language: str) -> Terms:
        threads.append(threading.current_thread())
        return Terms(language)

    monkeypatch.setattr("glyphoxa.recall.transcript_memory.Terms", read)
    await ids(a_recall(some_talk()))
    assert threads
    assert threading.main_thread() not in threads


async def test_rankings_in_threads_see_talk_that_changes_meanwhile_as_it_was_at_some_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("glyphoxa.recall.recall._IN_A_THREAD", 0)
    feed = FeedTwin()
    feed.tell(*(said(f"u{n}", f"My sister, part {n}.", ordinal=n, at_ms=n * 1_000) for n in range(1, 101)))
    recall = a_recall(feed)
    await ids(recall)

    async def play() -> None:
        for n in range(101, 301):
            feed.tell(
                said(f"u{n}", f"My sister, part {n}.", ordinal=n, at_ms=n * 1_000, speaker=f"Speaker{n}"),
                said(f"x{n}", "My sister is false.", session="s2", ordinal=n, witnesses=frozenset({INNKEEPER})),
            )
            feed.change(f"u{n - 100}", text=f"A sister, better {n}.")
            feed.change(f"u{n - 90}", retracted=n % 2 == 0)
            await recall.transcript(CAMPAIGN).refresh()

    playing = asyncio.create_task(play())
    questions = (QUESTION, "What did Speaker150 say before my sister, part 3?", "What happened after my sister came?")
    while not playing.done():
        for found in await asyncio.gather(
            *(recall.recall(CAMPAIGN, SMITH, TalkQuery(each, exclude=[UtteranceId("u9")])) for each in questions)
        ):
            assert len({one.utterance_id for one in found}) == len(found)
            assert all("sister" in one.text and "false" not in one.text for one in found)
    await playing
    rebuilt = a_recall(feed)
    await ids(rebuilt)
    for question in questions:
        assert await ids(recall, question) == await ids(rebuilt, question)
    await recall.close()
    await rebuilt.close()
