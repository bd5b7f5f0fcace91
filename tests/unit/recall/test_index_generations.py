"""Recall never compares vectors of two models: an open table keeps those that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loguru import logger

from glyphoxa.domain.ids import UtteranceId
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.transcript_memory import Transcripts
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
    return Recall(
        Transcripts(feed, embedder=an_edition("old", OLD, dimensions=WIDTH)), settings=PATIENT, now_ms=lambda: 0
    )


async def search(recall: Recall, question: str = QUESTION, limit: int = 8) -> tuple[set[str], tuple[str, ...]]:
    found = await recall.search(CAMPAIGN, SMITH, TalkQuery(question, limit=limit))
    return {str(one.utterance_id) for one in found.items}, found.left_out


def vectors_of(recall: Recall) -> np.ndarray[Any, Any]:
    index = recall.transcript(CAMPAIGN).index
    assert index is not None
    rows = np.array(index.rows_of([UtteranceId(f"u{n}") for n in range(1, 31)]), np.int32)
    return index._vectors.first_of(rows)


def tags_of(recall: Recall) -> set[float]:
    return set(vectors_of(recall)[:, -1].tolist())


async def test_open_table_keeps_its_vectors_after_a_reindex_until_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one name there may be another model by now: a server's `latest`."""
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed)
    before = await search(recall)
    feed.vectors, feed.embed = IndexGeneration("old", WIDTH, 2), SAME
    await recall.transcript(CAMPAIGN).refresh()
    assert await search(recall) == before
    assert tags_of(recall) == {np.float32(0.1)}
    assert asked_with == {0.1}
    reopened = Recall(
        Transcripts(feed, embedder=an_edition("old", SAME, dimensions=WIDTH)), settings=PATIENT, now_ms=lambda: 0
    )
    assert await search(reopened) == before
    assert tags_of(reopened) == {np.float32(0.2)}


async def test_vectors_of_another_model_are_not_read_and_words_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed)
    by_meaning = await search(recall)
    warnings: list[str] = []
    sink = logger.add(warnings.append, level="WARNING", format="{message}")
    for generation in (IndexGeneration("unheard of", WIDTH, 2), IndexGeneration("old", 4 * WIDTH, 3)):
        feed.vectors, feed.embed = generation, WIDE
        feed.tell(said(f"u3{generation.number}", "A lantern is lit.", ordinal=31))
        found, left_out = await search(recall, "a lantern?", limit=40)
        assert f"u3{generation.number}" in found and not left_out
        n_pages = feed.asked["embeddings"]
        await recall.transcript(CAMPAIGN).refresh()
        assert feed.asked["embeddings"] == n_pages
    logger.remove(sink)
    assert await search(recall) == by_meaning
    assert tags_of(recall) == {np.float32(0.1)}
    assert asked_with == {0.1}
    assert warnings == [f"{CAMPAIGN} was embedded again: new lines are found by words until the table is reopened\n"]
    await recall.close()


async def test_table_with_another_model_than_the_database_reads_no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_with = watch_editions(monkeypatch)
    feed = a_feed()
    feed.vectors, feed.embed = IndexGeneration("unheard of", WIDTH, 1), SAME
    recall = a_recall(feed)
    found, _ = await search(recall, "a sister?", limit=40)
    assert "u2" in found and not vectors_of(recall).any() and not feed.asked["embeddings"]
    assert asked_with <= {0.1}


async def test_vectors_replaced_between_pages_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glyphoxa.recall.transcript_memory._PAGE", 5)
    watch_editions(monkeypatch)
    feed = a_feed()
    recall = a_recall(feed)
    n_pages = 0

    async def replace_vectors(what: str) -> None:
        nonlocal n_pages
        n_pages += what == "embeddings"
        if n_pages == 3:
            feed.vectors, feed.embed = IndexGeneration("old", WIDTH, 2), SAME

    feed.before = replace_vectors
    await search(recall)
    assert tags_of(recall) == {np.float32(0.1), np.float32(0)}
    await recall.transcript(CAMPAIGN).refresh()
    await search(recall)
    assert tags_of(recall) == {np.float32(0.1), np.float32(0)}
    await recall.close()
