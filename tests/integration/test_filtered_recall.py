"""A filter loses nothing of what is nearest: pgvector by itself filters after its search, and so finds too little.

Of 10,000 passages, or 20,000 in `make proof`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.knowledge import DM, Viewer
from glyphoxa.world.graph import Neighbourhood
from tests.support.embedders import an_embedder
from tests.support.many_chunks import BIG, HUB, MODEL, SHARES, ManyChunks
from tests.support.postgres import TestServer
from tests.support.proof import n_examples

N_CHUNKS, N_QUESTIONS, TOP = n_examples(20_000, one_of=2), 25, 10


async def not_needed(texts: list[str]) -> NDArray[float32] | None:
    return None


@pytest.fixture(scope="module")
def many_chunks() -> ManyChunks:
    return ManyChunks(N_CHUNKS)


@pytest.fixture(scope="module")
def filled(postgres: TestServer, many_chunks: ManyChunks) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    asyncio.run(many_chunks.fill(postgres.server.dsn(name)))
    yield postgres.server.dsn(name)
    asyncio.run(postgres.drop(name))


@pytest.fixture
async def store(filled: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(filled, data_dir=tmp_path, embedder=an_embedder(not_needed, name=MODEL)) as opened:
        yield opened


@pytest.mark.parametrize("viewer", [*SHARES, DM], ids=str)
async def test_what_is_nearest_in_a_scope_is_found_in_scopes_of_any_size(
    store: Store, many_chunks: ManyChunks, viewer: Viewer
) -> None:
    """All talk speaks of the neighbourhood, of which the viewer heard a share."""
    heard = many_chunks.heard[viewer] if isinstance(viewer, str) else np.ones(N_CHUNKS, bool)
    shares = []
    for question in many_chunks.near(N_QUESTIONS):
        distances = np.where(heard, 1 - many_chunks.vectors @ question, 9)
        nearest = {f"u{n}" for n in np.argsort(distances)[: min(TOP, heard.sum())]}
        passages = await store.graph_rag.query_with_embedding(
            BIG, viewer, question, around=Neighbourhood(HUB, 1), limit=TOP
        )
        found = {passage.recalled.utterance_id for passage in passages}
        assert found <= {f"u{n}" for n in np.flatnonzero(heard)}
        shares.append(len(found & nearest) / len(nearest))
    assert float(np.mean(shares)) >= 0.95


async def test_the_settings_of_the_index_are_taken(store: Store) -> None:
    """A wrong value only warns, and the search falls back to finding too little."""
    async with store.database.use(BIG) as connection:
        await connection.fetchval("SELECT '[1]'::vector")  # loads the extension, which then checks its settings
        assert await connection.fetchval("SHOW hnsw.iterative_scan") == "relaxed_order"
        assert int(await connection.fetchval("SHOW hnsw.max_scan_tuples")) >= 20_000
