"""Nobody is told what they may not know: talk around an entity against a slow reader of the same worlds, over two
thousand random graphs, or ten thousand in `make proof`. A hundred of them are one campaign; all campaigns use the same
ids.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial

import numpy as np
import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.recall.vectors import Embedder
from glyphoxa.world.graph import Neighbourhood
from tests.support.patience import DEADLINE_MS
from tests.support.postgres import TestServer
from tests.support.proof import n_examples
from tests.support.random_graphs import CENTRE, DIMENSIONS, MODEL, VIEWERS, WORDS, World, a_world, depths, put

WORLDS = n_examples(100)


async def no_embedding(_texts: list[str]) -> None:
    return None


@pytest.fixture(scope="module")
def worlds() -> dict[CampaignId, World]:
    dice = random.Random(20)
    return {CampaignId(f"campaign-{n}"): a_world(dice) for n in range(WORLDS)}


@pytest.fixture(scope="module")
def filled_dsn(postgres: TestServer, worlds: dict[CampaignId, World]) -> Iterator[str]:
    with postgres.a_database(partial(fill, worlds)) as dsn:
        yield dsn


async def fill(worlds: dict[CampaignId, World], dsn: str) -> None:
    database = Database(dsn)
    async with database.administer(deadline_ms=DEADLINE_MS) as connection:
        # Filled without it, and made of all at once: that is a tenth of the time.
        index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'idx_chunks_embedding'")
        await connection.execute("DROP INDEX idx_chunks_embedding")
        await connection.execute("SET session_replication_role = replica")  # without triggers and look-ups of keys
        async with connection.transaction():
            for campaign, world in worlds.items():
                await put(connection, campaign, world)
        await connection.execute(index.replace(" ON ONLY ", " ON "))
        await connection.execute("ANALYZE")
    await database.close()


@pytest.fixture
async def filled(filled_dsn: str) -> AsyncIterator[Store]:
    async with open_store(filled_dsn, embedder=Embedder(MODEL, DIMENSIONS, no_embedding)) as store:
        yield store


@pytest.mark.parametrize("how", ["by the neighbourhood", "by what is nearest in all talk"])
async def test_talk_around_an_entity_was_heard_and_speaks_of_what_may_be_known(
    filled: Store, worlds: dict[CampaignId, World], how: str
) -> None:
    if how == "by what is nearest in all talk":
        async with filled.database.administer() as connection:
            await connection.execute("ALTER FUNCTION pg_catalog.arraycontains(anyarray, anyarray) NOT LEAKPROOF")

    async def look(campaign: CampaignId, world: World) -> None:
        dice = random.Random(campaign)
        for viewer in VIEWERS:
            for start in (CENTRE, *dice.sample(list(world.entities), 3)):
                await talk(filled, campaign, world, viewer, start, dice)

    await in_turn(look, worlds)


async def in_turn(look: Callable[[CampaignId, World], Awaitable[None]], worlds: dict[CampaignId, World]) -> None:
    """Four at a time, as the pool has connections."""
    waiting = list(worlds.items())

    async def work() -> None:
        while waiting:
            await look(*waiting.pop())

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(work())


async def talk(
    store: Store, campaign: CampaignId, world: World, viewer: Viewer, start: EntityId, dice: random.Random
) -> None:
    facts = world.facts_for(viewer)
    scope = depths(facts, start, depth=2) if start in world.entities_for(viewer) else {}
    heard = [s for s in world.talk if s.is_for(viewer) and scope.keys() & set(s.speaks_of)]

    word = dice.choice(WORDS)
    spoken = await store.graph_rag.query_with_context(campaign, viewer, word, around=Neighbourhood(start), limit=100)
    assert {p.recalled.utterance_id for p in spoken} == {s.id for s in heard if word in s.text}
    assert len(
        await store.graph_rag.query_with_context(campaign, viewer, word, around=Neighbourhood(start), limit=2)
    ) == min(2, len(spoken))

    question = np.random.default_rng(dice.randrange(1_000)).normal(size=DIMENSIONS).astype(np.float32)
    question /= np.linalg.norm(question)
    near = await store.graph_rag.query_with_embedding(campaign, viewer, question, around=Neighbourhood(start), limit=5)
    ours = {s.id: s for s in heard if s.model == MODEL}
    best = sorted(ours.values(), key=lambda s: -float(s.embedding @ question))[:5]
    assert [p.recalled.utterance_id for p in near] == [s.id for s in best]
    for passage in near:
        said = ours[passage.recalled.utterance_id]  # type: ignore[index] # past talk has one
        assert set(passage.entity_ids) == scope.keys() & set(said.speaks_of)
        assert passage.depth == min(scope[entity] for entity in passage.entity_ids)
        assert passage.score == pytest.approx(float(said.embedding @ question), abs=1e-5)
