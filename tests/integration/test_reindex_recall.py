"""The real command embeds the whole transcript again on the real server while a table recalls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks.reindex import Reindexed, reindex
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.heard import Utterance
from glyphoxa.recall.recall import RecallSettings
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, SMITH, an_utterance
from tests.support.editions import tagged, watch_editions
from tests.support.embedders import an_embedder
from tests.support.patience import DEADLINE_MS
from tests.support.world_tables import a_campaign_row

N = 60
PATIENT = RecallSettings(
    deadline_ms=DEADLINE_MS, embed_deadline_ms=DEADLINE_MS, refresh_deadline_ms=DEADLINE_MS,
    summaries_deadline_ms=DEADLINE_MS,
)  # fmt: skip


def _by_topic(text: str) -> NDArray[float32]:
    vector = np.zeros(380, float32)
    for axis, words in enumerate((("sister", "kin"), ("rain", "weather"), ("lantern", "lamp"))):
        vector[axis] = any(word in text.lower() for word in words)
    if not vector.any():
        vector[10 + sum(text.encode()) % 370] = 1
    return vector / np.float32(np.linalg.norm(vector))


def an_edition(name: str, tag: float, dimensions: int) -> Embedder:
    embed = tagged(_by_topic, tag, dimensions=dimensions)

    async def embed_all(texts: list[str]) -> NDArray[float32]:
        return np.stack([embed(text) for text in texts])

    return an_embedder(embed_all, name=name, dimensions=dimensions)


OLD, NEW, WIDE, WIDER = (
    an_edition(*of) for of in (("old", 0.1, 384), ("new", 0.2, 384), ("wide", 0.3, 768), ("old", 0.4, 512))
)
TAGS = {(OLD.name, 384): 0.1, (NEW.name, 384): 0.2, (WIDE.name, 768): 0.3, (WIDER.name, 512): 0.4}


def tag_of(embedder: Embedder) -> float:
    return TAGS[embedder.name, embedder.dimensions]


def told(text: str, n: int) -> Utterance:
    return replace(an_utterance(text, id=f"u{n}"), at_ms=1_000 * n)


@asynccontextmanager
async def opened(dsn: str, embedder: Embedder = OLD, *, any_model: bool = False) -> AsyncIterator[Store]:
    dimensions = embedder.dimensions
    database = Database(dsn, embedding_dimensions=dimensions, embedding_model=embedder.name, any_model=any_model)
    async with open_store(database, embedder=embedder, recall=PATIENT) as store:
        await store.database.open()
        yield store


async def reindexed(dsn: str, embedder: Embedder, *, full: bool = False) -> Reindexed:
    async with opened(dsn, embedder, any_model=True) as store:
        return await reindex(store.database, embedder, full=full)


def stepwise(embedder: Embedder, step: Callable[[int], object]) -> Embedder:
    """
    Args:
        step: Called with the number of each batch, from 1, and awaited, before it is embedded. May raise.
    """
    n = 0

    async def embed(texts: list[str]) -> NDArray[float32]:
        nonlocal n
        n += 1
        waiting = step(n)
        if asyncio.iscoroutine(waiting):
            waiting = await waiting
        return waiting if isinstance(waiting, np.ndarray) else await embedder.embed(texts)

    return replace(embedder, embed=embed)


async def ids(store: Store, question: str, limit: int = 5) -> list[str]:
    return [
        str(one.utterance_id) for one in await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question, limit=limit))
    ]


async def an_evening(store: Store) -> None:
    await a_campaign_row(store, CAMPAIGN)
    await store.log.append([told("My sister is a pirate.", 0), *(told(f"Line number {n}.", n) for n in range(1, N))])
    await store.chunks.fill_missing(CAMPAIGN)
    assert await ids(store, "Who are your kin?", 1) == ["u0"]


async def is_of(store: Store, embedder: Embedder) -> bool:
    """Whether all talk is in memory with the vectors of that model."""
    await store.past_talk.transcript(CAMPAIGN).refresh()
    index = store.past_talk.transcript(CAMPAIGN).index
    assert index is not None
    blocks = index._vectors.now()
    tags = {round(float(tag), 3) for block in blocks.blocks for tag in block[:, -1] if tag}
    return tags == {tag_of(embedder)} and len(blocks.owners) == len(index)


async def test_open_table_recalls_during_a_full_reindex_and_keeps_its_vectors(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_with = watch_editions(monkeypatch)
    async with opened(dsn) as table:
        await an_evening(table)

        async def play(n: int) -> None:
            await table.log.append([told(f"A lantern, part {n}.", 100 + n)])
            assert f"u{100 + n}" in await ids(table, f"a lantern, {n}?", 30)
            assert await ids(table, "Who are your kin?", 1) == ["u0"]
            if n % 2:
                await table.chunks.fill_missing(CAMPAIGN)
            await table.past_talk.transcript(CAMPAIGN).refresh()

        running = asyncio.create_task(reindexed(dsn, stepwise(OLD, play), full=True))
        while not running.done():
            assert "u0" in await ids(table, "Is she a pirate?")
            await table.past_talk.transcript(CAMPAIGN).refresh()
        assert (await running).is_anew
        assert await ids(table, "Who are your kin?", 1) == ["u0"]
        await table.log.append([told("It rains.", 200)])
        assert (await table.chunks.fill_missing(CAMPAIGN)).embedded == 1
        assert "u200" in await ids(table, "Does it rain?", 5)
    async with opened(dsn) as reopened:
        assert await ids(reopened, "Bad weather?", 1) == ["u200"]
        assert await is_of(reopened, OLD)
    assert asked_with == {0.1}


@pytest.mark.parametrize("new", [NEW, WIDE, WIDER], ids=["as long", "longer", "longer, of one name"])
async def test_open_table_finds_new_lines_by_words_after_a_change_of_model(
    dsn: str, new: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_with = watch_editions(monkeypatch)
    warnings: list[str] = []
    sink = logger.add(warnings.append, level="WARNING", format="{message}")
    try:
        async with opened(dsn) as table:
            await an_evening(table)
            assert (await reindexed(dsn, new)).is_anew
            for n in range(2):
                await table.log.append([told(f"A lantern is lit, part {n}.", 100 + n)])
                assert not (await table.chunks.fill_missing(CAMPAIGN)).embedded
                assert f"u{100 + n}" in await ids(table, "a lantern?", 30)
                assert await ids(table, "Is she a pirate?", 1) == ["u0"]
            found = await table.past_talk.search(CAMPAIGN, SMITH, TalkQuery("Who are your kin?", limit=1))
            assert [str(one.utterance_id) for one in found.items] == ["u0"] and not found.left_out
    finally:
        logger.remove(sink)
    of_queue = [each for each in warnings if "the vectors in the database are from" in each]
    of_recall = [each for each in warnings if "found by words until the table is reopened" in each]
    assert len(of_queue) == len(of_recall) == 1 and len(warnings) == 2
    async with opened(dsn, new) as table:
        await table.chunks.fill_missing(CAMPAIGN)
        assert await ids(table, "Who are your kin?", 1) == ["u0"]
        assert await is_of(table, new)
    assert asked_with == {0.1, tag_of(new)}
