"""Recall during a reindex never compares vectors of two models, and nobody waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from glyphoxa.domain.ids import UtteranceId
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import IndexGeneration, TalkQuery
from tests.support.builders import CAMPAIGN, SMITH
from tests.support.editions import tagged, watch_editions
from tests.support.patience import DEADLINE_MS
from tests.support.talk_feed import DIMENSIONS, FeedTwin, an_edition, embed, said

PATIENT = RecallSettings(
    deadline_ms=DEADLINE_MS, embed_deadline_ms=DEADLINE_MS, refresh_deadline_ms=DEADLINE_MS,
    summaries_deadline_ms=DEADLINE_MS,
)  # fmt: skip
QUESTION = "What of my sister?"
WIDTH = DIMENSIONS + 1
OLD, SAME, WIDE = (
    tagged(embed, tag, dimensions=dimensions) for tag, dimensions in ((0.1, WIDTH), (0.2, WIDTH), (0.3, 4 * WIDTH))
)


def a_feed(n: int = 30) -> FeedTwin:
    feed = FeedTwin(vectors=IndexGeneration("old", WIDTH, 1), embed=OLD)
    feed.tell(*(said(f"u{n}", ("My sister sails.", "It rains.")[n % 2] + f" {n}", ordinal=n) for n in range(1, n + 1)))
    return feed


def a_recall(feed: FeedTwin, **more: Any) -> Recall:
    return Recall(feed, embedder=an_edition("old", OLD, dimensions=WIDTH), settings=PATIENT, now_ms=lambda: 0, **more)


async def another(name: str, dimensions: int) -> Embedder | None:
    return an_edition("wide", WIDE, dimensions=4 * WIDTH) if name == "wide" else None


async def search(recall: Recall, question: str = QUESTION, limit: int = 8) -> tuple[set[str], tuple[str, ...]]:
    found = await recall.search(CAMPAIGN, SMITH, TalkQuery(question, limit=limit))
    return {str(one.utterance_id) for one in found.items}, found.left_out


def vectors_of(recall: Recall) -> np.ndarray[Any, Any]:
    index = recall.transcripts.index(CAMPAIGN)
    assert index is not None
    rows = np.array(index.rows_of([UtteranceId(f"u{n}") for n in range(1, 31)]), np.int32)
    return index._vectors.first_of(rows)


async def test_reembedded_transcript_gets_new_question_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind one name there may be another model by now: a server's `latest`."""
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    now = [OLD]

    async def embed_by_what_is_there(texts: list[str]) -> np.ndarray[Any, Any]:
        return np.stack([now[0](text) for text in texts])

    recall = Recall(feed, embedder=Embedder("old", WIDTH, embed_by_what_is_there), settings=PATIENT, now_ms=lambda: 0)
    before = await search(recall)
    feed.vectors, feed.embed, now[0] = IndexGeneration("old", WIDTH, 2), SAME, SAME
    await recall.transcripts.refresh(CAMPAIGN)
    assert await search(recall) == before
    assert asked_with == {0.1, 0.2}
    assert set(vectors_of(recall)[:, -1].tolist()) == {np.float32(0.2)}


async def test_another_model_is_followed_without_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed, another=another)
    before = await search(recall)
    feed.vectors, feed.embed = IndexGeneration("wide", 4 * WIDTH, 2), WIDE
    feed.tell(said("u31", "My sister is back.", ordinal=31))
    found, left_out = await search(recall, limit=40)
    assert found > before[0]
    assert "u31" in found
    assert not left_out
    assert asked_with == {0.1, 0.3}
    assert vectors_of(recall).shape == (30, 4 * WIDTH)
    assert set(vectors_of(recall)[:, -1].tolist()) == {np.float32(0.3)}
    await recall.close()


async def test_a_model_that_is_not_to_be_had_changes_nothing_of_what_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed)
    before = await search(recall)
    feed.vectors, feed.embed = IndexGeneration("unheard of", WIDTH, 2), WIDE
    await recall.transcripts.refresh(CAMPAIGN)
    assert await search(recall) == before
    feed.tell(said("u31", "A lantern is lit.", ordinal=31))
    assert "u31" in (await search(recall, "a lantern?", limit=40))[0]
    assert asked_with == {0.1}


async def test_who_asks_while_vectors_are_exchanged_is_answered_by_words_or_by_one_of_the_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("glyphoxa.recall.transcript_memory._PAGE", 5)
    monkeypatch.setattr("glyphoxa.recall.recall._IN_A_THREAD", 0)
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed, another=another)
    await search(recall)
    feed.vectors, feed.embed = IndexGeneration("wide", 4 * WIDTH, 2), WIDE
    going_on = asyncio.create_task(recall.transcripts.refresh(CAMPAIGN))
    n = 100  # nothing that was said has such a number
    while not going_on.done():
        n += 1
        index = recall.transcripts.index(CAMPAIGN)
        assert index is not None
        # As who is late for what is being read: from memory, as it is.
        asked = recall._read(CAMPAIGN, index, SMITH, f"{QUESTION} {n}")
        assert asked is not None
        vector = await recall._embed(index, asked, DEADLINE_MS)
        assert isinstance(vector, np.ndarray)
        ranked = await recall._ranked(
            index, SMITH, replace(asked, vector=vector), TalkQuery(asked.text), recall.weights
        )
        # While only some turns have a vector, those that stand beside a sister's may come first.
        assert any("sister" in one.text for one in ranked.items(10))
    await going_on
    assert asked_with >= {0.1}
    await search(recall)
    assert 0.3 in asked_with
    await recall.close()


async def test_pages_that_are_read_while_the_vectors_are_exchanged_once_more_are_not_mixed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("glyphoxa.recall.transcript_memory._PAGE", 5)
    watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed, another=another)
    n_pages = 0

    async def exchange(what: str) -> None:
        nonlocal n_pages
        n_pages += what == "embeddings"
        if n_pages == 3:
            feed.vectors, feed.embed = IndexGeneration("wide", 4 * WIDTH, 2), WIDE

    feed.before = exchange
    await search(recall)
    assert set(vectors_of(recall)[:, -1].tolist()) == {np.float32(0.1), np.float32(0)}
    await recall.transcripts.refresh(CAMPAIGN)
    await search(recall)
    assert set(vectors_of(recall)[:, -1].tolist()) == {np.float32(0.3)}
    await recall.close()
