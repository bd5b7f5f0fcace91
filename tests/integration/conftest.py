from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from tests.support.postgres import TestServer, a_directory, a_test_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """One embedded server for all tests of this run."""
    with a_test_server() as server:
        yield server


@pytest.fixture
def reachable_dir() -> Iterator[Path]:
    """A new directory whose path holds spaces and that a server's account can reach."""
    with a_directory() as directory:
        yield directory


@pytest.fixture
async def dsn(postgres: TestServer) -> AsyncIterator[str]:
    """A database of this test's own with the whole schema and no rows."""
    name = await postgres.create()
    yield postgres.server.dsn(name)
    await postgres.drop(name)


@pytest.fixture
async def empty_dsn(postgres: TestServer) -> AsyncIterator[str]:
    """A database without a schema."""
    name = await postgres.create(migrated=False)
    yield postgres.server.dsn(name)
    await postgres.drop(name)


@pytest.fixture
async def store(dsn: str, tmp_path: Path) -> AsyncIterator[Store]:
    """Memory without embeddings on a database of its own."""
    async with open_store(dsn, data_dir=tmp_path) as opened:
        yield opened
