"""Memory level 2: what is embedded, what is found, and what never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks import Filled
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.memory import database_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import DM
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, an_utterance
from tests.support.chunk_rows import nearest, reindexed
from tests.support.embedders import an_embedder, embedder_of_topics

EMBEDDER = embedder_of_topics({"sister": 0, "kin": 0, "rain": 1, "weather": 1, "sword": 2})
PREFIX = "Tamsin: "


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn, embedder=EMBEDDER) as opened:
        yield opened


def said(text: str, *, id: str = "u1", at_ms: int = 1_000, **changes: Any) -> Utterance:
    return replace(an_utterance(text, id=id), at_ms=at_ms, **changes)


async def vector(text: str) -> NDArray[float32]:
    vectors = await EMBEDDER.embed([text])
    assert vectors is not None
    first: NDArray[float32] = vectors[0]
    return first


async def found(store: Store, question: str, *, viewer: Any = SMITH) -> list[str]:
    chunks = await nearest(store, CAMPAIGN, viewer, await vector(question), model=EMBEDDER.name)
    return [chunk for chunk, distance in chunks if distance < 0.9]


async def rows(store: Store, columns: str) -> list[Any]:
    async with store.database.use(CAMPAIGN) as connection:
        return [tuple(row) for row in await connection.fetch(f"SELECT {columns} FROM chunks ORDER BY id")]


async def an_entity(store: Store, id: str, name: str, *aliases: str) -> None:
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute(
            "INSERT INTO campaigns (id, name, language) VALUES ($1, 'The town', 'en') ON CONFLICT DO NOTHING", CAMPAIGN
        )
        await connection.execute(
            "INSERT INTO entities (campaign_id, id, type, name, aliases, origin) VALUES ($1, $2, 'npc', $3, $4, 'dm')",
            *(CAMPAIGN, id, name, list(aliases)),
        )


async def test_what_is_embedded_keeps_who_said_it_when_where_and_who_heard_it(store: Store) -> None:
    await store.log.append([said("My sister is a pirate.", at_ms=5_000)])
    assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)
    [(chunk, distance)] = await nearest(store, CAMPAIGN, SMITH, await vector("kin"), model=EMBEDDER.name)
    assert chunk == "u1"
    assert distance == pytest.approx(0, abs=1e-6)
    assert await rows(store, "utterance_id, session_id, content, speaker_id, extract(epoch FROM timestamp)::int") == [
        ("u1", "s1", PREFIX + "My sister is a pirate.", an_utterance("x").speaker_id, 5)
    ]
    assert await rows(store, "model, knowers, retracted") == [("twin", sorted(an_utterance("x").witnesses), False)]


async def test_who_was_not_there_finds_nothing_and_the_dm_everything(store: Store) -> None:
    await store.log.append([said("My sister.", witnesses=frozenset({SMITH}))])
    await store.chunks.fill_missing(CAMPAIGN)
    assert await found(store, "kin") == ["u1"]
    assert await found(store, "kin", viewer=INNKEEPER) == []
    assert await found(store, "kin", viewer=DM) == ["u1"]
    with pytest.raises(ValueError, match="the viewer of a query"):
        await found(store, "kin", viewer=NpcId(""))


async def test_a_chunk_is_tagged_with_the_names_in_it_as_whole_words(store: Store) -> None:
    await an_entity(store, "e-will", "Will")
    await an_entity(store, "e-eldrinax", "Eldrinax", "the old wizard")
    await store.log.append(
        [
            said("I met the old wizard, and Eldrinax met Will.", id="u1"),
            said("It will rain; Eldrinaxian weather.", id="u2"),
        ]
    )
    await store.chunks.fill_missing(CAMPAIGN)
    assert await rows(store, "entity_ids") == [(["e-eldrinax", "e-will"],), ([],)]


async def test_a_name_that_comes_later_is_found_in_what_was_said_before_by_a_thorough_look(store: Store) -> None:
    await store.log.append([said("I met Eldrinax.")])
    await store.chunks.fill_missing(CAMPAIGN)
    await an_entity(store, "e-eldrinax", "Eldrinax")
    assert await reindexed(store, EMBEDDER, CAMPAIGN) == Filled()
    assert await rows(store, "entity_ids") == [(["e-eldrinax"],)]


async def test_a_long_utterance_is_found_by_each_of_its_parts_and_recalled_once(store: Store) -> None:
    text = " ".join(["My sister sails.", *["Nothing of note was said here."] * 60, "Bring me the sword."])
    await store.log.append([said(text)])
    assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)
    assert [row[0] for row in await rows(store, "id")] == ["u1", "u1#2", "u1#3"]
    assert await found(store, "kin") == ["u1"]
    assert await found(store, "sword") == ["u1#3"]
    assert len(await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery("Is the sword my sister's?"))) == 1
    assert await store.log.revise(said("Short."), was=said(text))
    assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)
    assert [row[0] for row in await rows(store, "id")] == ["u1"]


async def test_talk_that_is_rolled_back_is_not_found_and_comes_back_with_its_undoing(store: Store) -> None:
    await store.log.append([said("My sister.")])
    await store.chunks.fill_missing(CAMPAIGN)
    for retracted, ids in ((True, []), (False, ["u1"])):
        async with store.database.use(CAMPAIGN) as connection:
            await connection.execute("UPDATE session_entries SET retracted = $1", retracted)
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(skipped=1)
        assert await found(store, "kin") == ids


async def test_only_changed_chunks_are_embedded_again(dsn: str) -> None:
    embedded: list[str] = []

    async def noting(texts: list[str]) -> NDArray[float32]:
        embedded.extend(texts)
        return await EMBEDDER.embed(texts)

    embedder = an_embedder(noting)
    async with open_store(dsn, embedder=embedder) as store:
        await store.log.append([said("One.", id="u1"), said("Two.", id="u2"), said(" ", id="u3")])
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=2, skipped=1)
        await store.log.revise(said("Two and a half.", id="u2"), was=said("Two.", id="u2"))
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)
        assert await reindexed(store, embedder, CAMPAIGN) == Filled()
        assert embedded == [PREFIX + text for text in ("One.", "Two.", "Two and a half.")]
        assert await reindexed(store, embedder, CAMPAIGN, full=True) == Filled(embedded=2, skipped=1)
        assert len(embedded) == 5


async def test_concurrent_fills_embed_each_line_once(dsn: str) -> None:
    embedded: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(texts: list[str]) -> NDArray[float32]:
        embedded.extend(texts)
        begun.set()
        await go_on.wait()
        return await EMBEDDER.embed(texts)

    async with open_store(dsn, embedder=an_embedder(slowly)) as store:
        await store.log.append([said(f"line {n}", id=f"u{n}") for n in range(4)])
        first = asyncio.create_task(store.chunks.fill_missing(CAMPAIGN))
        await begun.wait()
        second = asyncio.create_task(store.chunks.fill_missing(CAMPAIGN))
        # The second has had every chance to read what is missing when others have written in the same database.
        await store.log.append([said("line 4", id="u4")])
        await store.log.count(CAMPAIGN)
        go_on.set()
        assert (await first) + (await second) == Filled(embedded=5)
    assert sorted(embedded) == sorted(f"{PREFIX}line {n}" for n in range(5))


async def test_what_the_model_cannot_bear_is_named_by_its_id_never_by_its_text_and_the_rest_is_embedded(
    dsn: str,
) -> None:
    told: list[str] = []

    async def choosy(texts: list[str]) -> NDArray[float32]:
        if any("cursed" in text for text in texts):
            raise RuntimeError("the model broke on: cursed words")
        vectors = await EMBEDDER.embed(texts)
        assert vectors is not None
        for row, text in zip(vectors, texts, strict=True):
            if "hollow" in text:
                row[:] = np.nan
        return vectors

    embedder = an_embedder(choosy)
    async with open_store(dsn, embedder=embedder) as store:
        await store.log.append(
            [said("Fine.", id="u1"), said("cursed", id="u2"), said("hollow", id="u3"), said("Good.", id="u4")]
        )
        listening = logger.add(lambda message: told.append(str(message)), level="WARNING")
        try:
            assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=2, failed=2)
            assert any("u2" in line for line in told)
            assert any("u3" in line for line in told)
            assert not any("cursed" in line or "hollow" in line for line in told)
            # A few times more, in case it was a passing trouble; then no more, until somebody asks for it.
            for failed in (2, 2, 0, 0):
                assert await store.chunks.fill_missing(CAMPAIGN) == Filled(failed=failed)
            assert await reindexed(store, embedder, CAMPAIGN) == Filled(failed=2)
        finally:
            logger.remove(listening)


async def test_a_model_that_is_away_is_no_failure_of_the_talk(dsn: str) -> None:
    async def away(texts: list[str]) -> NDArray[float32]:
        raise Unavailable("gone for now")

    async with open_store(dsn, embedder=an_embedder(away)) as store:
        await store.log.append([said("My sister.")])
        with pytest.raises(Unavailable, match="gone for now"):
            await store.chunks.fill_missing(CAMPAIGN)
    async with open_store(dsn, embedder=EMBEDDER) as store:
        assert await store.chunks.fill_missing(CAMPAIGN) == Filled(embedded=1)


async def test_two_models_of_equal_dimensions_are_never_compared(store: Store) -> None:
    """A chunk that another model embedded is nearest to the question, and not found."""
    await store.log.append([said("My sister.", id="u1"), said("My sister!", id="u2")])
    await store.chunks.fill_missing(CAMPAIGN)
    async with store.database.use(CAMPAIGN) as connection:
        await connection.execute("UPDATE chunks SET model = 'another' WHERE id = 'u1'")
    assert await found(store, "kin") == ["u2"]
    assert await found(store, "kin", viewer=DM) == ["u2"]
    recalled = await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery("kin?"))
    assert {r.utterance_id: r.similarity is not None for r in recalled} == {"u2": True, "u1": False}
    # What is of another model is missing.
    assert await reindexed(store, EMBEDDER, CAMPAIGN) == Filled(embedded=1)
    assert sorted(await found(store, "kin")) == ["u1", "u2"]


async def test_a_model_that_gives_other_dimensions_than_it_says_is_refused(dsn: str) -> None:
    async def narrow(texts: list[str]) -> NDArray[float32]:
        return np.ones((len(texts), 3), float32)

    async with open_store(dsn, embedder=an_embedder(narrow)) as store:
        await store.log.append([said("My sister.")])
        with pytest.raises(InvalidInput, match="is 384, but the model twin gave a vector of 3"):
            await store.chunks.fill_missing(CAMPAIGN)
    with pytest.raises(InvalidInput, match=r"memory.embedding_dimensions is 384, but the model twin has 3"):
        database_of(Settings(), an_embedder(narrow, dimensions=3))
