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


def a_recall(feed: FeedTwin) -> Recall:
    return Recall(feed, embedder=an_edition("old", OLD, dimensions=WIDTH), settings=PATIENT, now_ms=lambda: 0)


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


async def test_vectors_of_another_model_are_not_read_and_words_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed)
    await search(recall)
    for generation in (IndexGeneration("unheard of", WIDTH, 2), IndexGeneration("old", 4 * WIDTH, 3)):
        feed.vectors, feed.embed = generation, WIDE
        feed.tell(said(f"u3{generation.number}", "A lantern is lit.", ordinal=31))
        found, left_out = await search(recall, "a lantern?", limit=40)
        assert f"u3{generation.number}" in found
        assert left_out == ("meaning: utterances were embedded again by another model",)
        assert not vectors_of(recall).any()
        n_pages = feed.asked["embeddings"]
        await recall.transcripts.refresh(CAMPAIGN)
        assert feed.asked["embeddings"] == n_pages
    assert asked_with == {0.1}
    await recall.close()


async def test_question_is_answered_from_memory_while_new_vectors_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glyphoxa.recall.transcript_memory._PAGE", 5)
    monkeypatch.setattr("glyphoxa.recall.recall._IN_A_THREAD", 0)
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed)
    await search(recall)
    feed.vectors = IndexGeneration("old", WIDTH, 2)
    going_on = asyncio.create_task(recall.transcripts.refresh(CAMPAIGN))
    n = 100  # no utterance has such a number
    while not going_on.done():
        n += 1
        index = recall.transcripts.index(CAMPAIGN)
        assert index is not None
        # Like a question that does not wait for the utterances being read.
        asked = recall._read(CAMPAIGN, index, SMITH, f"{QUESTION} {n}")
        assert asked is not None
        vector = await recall._embed(index, asked, DEADLINE_MS)
        assert isinstance(vector, np.ndarray)
        ranked = await recall._ranked(
            index, SMITH, replace(asked, vector=vector), TalkQuery(asked.text), recall.weights
        )
        assert any("sister" in one.text for one in ranked.items(10))
    await going_on
    assert asked_with == {0.1}
    assert vectors_of(recall)[:, -1].all()
    await recall.close()


async def test_vectors_replaced_between_pages_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glyphoxa.recall.transcript_memory._PAGE", 5)
    watch_editions(monkeypatch)
    feed = a_feed()
    now = [OLD]

    async def embed_by_what_is_there(texts: list[str]) -> np.ndarray[Any, Any]:
        return np.stack([now[0](text) for text in texts])

    recall = Recall(feed, embedder=Embedder("old", WIDTH, embed_by_what_is_there), settings=PATIENT, now_ms=lambda: 0)
    n_pages = 0

    async def replace_vectors(what: str) -> None:
        nonlocal n_pages
        n_pages += what == "embeddings"
        if n_pages == 3:
            feed.vectors, feed.embed = IndexGeneration("old", WIDTH, 2), SAME

    feed.before = replace_vectors
    await search(recall)
    assert set(vectors_of(recall)[:, -1].tolist()) == {np.float32(0.1), np.float32(0)}
    now[0] = SAME
    await recall.transcripts.refresh(CAMPAIGN)
    await search(recall)
    assert set(vectors_of(recall)[:, -1].tolist()) == {np.float32(0.2)}
    await recall.close()
