"""Better words in the log: what follows from them, and what happens when it goes wrong half-way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.heard import Correction
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, SESSION, SMITH, an_utterance
from tests.support.embedders import an_embedder
from tests.support.postgres import the_one_that_waits, two_others
from tests.support.recalled import PATIENT

NAMES = ("Eldrinax", "elder nacks", "Ironhold")


async def embed_names(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    rows = np.zeros((len(texts), 384), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for axis, name in enumerate(NAMES):
            row[axis] = name in text
        row[100] = not row.any()
    unit: np.ndarray[Any, np.dtype[np.float32]] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn, embedder=an_embedder(embed_names), recall=PATIENT) as opened:
        yield opened


PHONETIC = Correction(0, 9, "iron hold", "Ironhold", 1.0, "phonetic", "spelling")
BY_MODEL = Correction(16, 27, "elder nacks", "Eldrinax", 0.8, "llm", "sounds alike")
WAS = replace(
    an_utterance("Ironhold: where elder nacks lives"),
    raw_text="iron hold where elder nacks lives",
    corrections=(PHONETIC,),
)
NOW = replace(WAS, text="Ironhold: where Eldrinax lives", corrections=(PHONETIC, BY_MODEL))


async def recalled(store: Store, question: str) -> list[str]:
    return [found.text for found in await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question))]


async def stored(store: Store) -> Any:
    [utterance] = await store.log.recent(CAMPAIGN, SESSION, since_ms=0)
    return utterance


async def n_rows(store: Store, table: str) -> int:
    async with store.database.use(CAMPAIGN) as connection:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))


async def test_a_revision_changes_the_text_and_never_the_raw_text_and_says_why(store: Store) -> None:
    await store.log.append([WAS])
    assert await store.log.revise(NOW, was=WAS)
    assert await stored(store) == NOW
    assert (await stored(store)).raw_text == WAS.raw_text


async def test_what_was_said_is_then_recalled_by_the_right_name_by_words_and_by_meaning(store: Store) -> None:
    await store.log.append([WAS])
    await store.chunks.fill_missing(CAMPAIGN)
    assert await recalled(store, "tell me of Eldrinax") == []
    assert await store.log.revise(NOW, was=WAS)
    # By words at once, by meaning once it is embedded again.
    assert await recalled(store, "tell me of Eldrinax") == ["Ironhold: where Eldrinax lives"]
    assert (await store.chunks.fill_missing(CAMPAIGN)).embedded == 1
    async with store.database.use(CAMPAIGN) as connection:
        [chunk] = await connection.fetch("SELECT content, embedding FROM chunks")
    assert chunk["content"] == "Tamsin: Ironhold: where Eldrinax lives"
    assert list(chunk["embedding"].to_numpy()[:2] > 0) == [True, False]


async def test_what_the_spool_sends_again_does_not_undo_a_revision(store: Store) -> None:
    await store.log.append([WAS])
    await store.log.revise(NOW, was=WAS)
    await store.log.append([WAS])
    assert await stored(store) == NOW


async def test_a_revision_is_made_whole_or_not_at_all(store: Store) -> None:
    await store.log.append([WAS])
    await store.chunks.fill_missing(CAMPAIGN)
    too_far = replace(BY_MODEL, start=2**40)
    with pytest.raises(InvalidInput):
        await store.log.revise(replace(NOW, corrections=(PHONETIC, too_far)), was=WAS)
    assert await stored(store) == WAS
    assert await n_rows(store, "chunks") == 1


async def test_a_process_that_is_killed_between_the_steps_leaves_the_old_text(store: Store, dsn: str) -> None:
    await store.log.append([WAS])
    async with two_others(dsn) as (other, watcher), other.transaction():
        # Nobody can write corrections: the revision has changed the text and hangs before the next step.
        await other.execute("LOCK TABLE corrections IN ACCESS EXCLUSIVE MODE")
        revising = asyncio.create_task(store.log.revise(NOW, was=WAS))
        await watcher.fetchval("SELECT pg_terminate_backend($1)", await the_one_that_waits(watcher))
        with pytest.raises(Unavailable):
            await revising
    assert await stored(store) == WAS
    assert await store.log.revise(NOW, was=WAS)
    assert await stored(store) == NOW


async def test_words_that_were_revised_while_they_were_being_embedded_are_embedded_again(
    dsn: str,
) -> None:
    seen: list[str] = []

    async with open_store(dsn) as log_only:

        async def embed(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
            if not seen:
                assert await log_only.log.revise(NOW, was=WAS)
            seen.extend(texts)
            return await embed_names(texts)

        async with open_store(dsn, embedder=an_embedder(embed)) as store:
            await store.log.append([WAS])
            await store.chunks.fill_missing(CAMPAIGN)
            async with store.database.use(CAMPAIGN) as connection:
                contents = [row["content"] for row in await connection.fetch("SELECT content FROM chunks")]
    assert contents == ["Tamsin: Ironhold: where Eldrinax lives"]
    assert len(seen) == 2


async def test_a_revision_waits_for_a_chunk_that_is_being_stored_and_drops_it(store: Store, dsn: str) -> None:
    await store.log.append([WAS])
    await store.chunks.fill_missing(CAMPAIGN)
    async with two_others(dsn) as (other, watcher):
        async with other.transaction():
            await other.execute("SELECT FROM session_entries FOR SHARE")
            revising = asyncio.create_task(store.log.revise(NOW, was=WAS))
            await the_one_that_waits(watcher)
        assert await revising
    assert await n_rows(store, "chunks") == 0
