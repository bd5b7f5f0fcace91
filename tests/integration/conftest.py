from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from loguru import logger

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId
from tests.support.command_line import CommandLine, a_settings_file, the_campaign, two_evenings
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.postgres import TestServer, a_directory, a_test_server

_DEADLINES_S = (
    "glyphoxa.adapters.postgres.server.database._CONNECT_TIMEOUT_S",
    "glyphoxa.adapters.postgres.server.listen._ANSWER_TIMEOUT_S",
    "glyphoxa.app.doctor.AT_THE_DESK_WITHIN_S",
    "glyphoxa.app.doctor.SLOW_WITHIN_S",
    "glyphoxa.app.doctor.WITHIN_S",
    "glyphoxa.app.doctor._CONNECT_WITHIN_S",
    "glyphoxa.web.desk.frame.WITHIN_S",
    "glyphoxa_processors.cloud.deepgram_stt.ACKNOWLEDGED_WITHIN_S",
    "glyphoxa_processors.cloud.deepgram_stt.ANSWERED_WITHIN_S",
    "glyphoxa.chat.client._CONNECT_WITHIN_S",
    "glyphoxa_processors.sockets.OPEN_WITHIN_S",
)


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
async def campaign_dsn(postgres: TestServer) -> AsyncIterator[str]:
    """A database with a campaign, of which nothing was said yet."""
    name = await postgres.create(filled=the_campaign)
    yield postgres.server.dsn(name)
    await postgres.drop(name)


@pytest.fixture
async def evenings_dsn(postgres: TestServer) -> AsyncIterator[str]:
    """A database with a campaign, two sessions of talk, and what was learned from it."""
    name = await postgres.create(filled=two_evenings)
    yield postgres.server.dsn(name)
    await postgres.drop(name)


@pytest.fixture
async def empty_dsn(postgres: TestServer) -> AsyncIterator[str]:
    """A database without a schema."""
    name = await postgres.create(migrated=False)
    yield postgres.server.dsn(name)
    await postgres.drop(name)


@pytest.fixture
async def owners_dsn(postgres: TestServer) -> AsyncIterator[str]:
    """A database of an ordinary user, in which an administrator has created the extension."""
    name = await postgres.create(migrated=False)
    connection = await asyncpg.connect(postgres.server.dsn(name))
    try:
        if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'just_a_user')"):
            await connection.execute("CREATE ROLE just_a_user LOGIN")
        await connection.execute(f"ALTER DATABASE {name} OWNER TO just_a_user")
        await connection.execute("CREATE EXTENSION vector")
    finally:
        await connection.close()
    yield (
        postgres.server.dsn(name).replace("//postgres@", "//just_a_user@").replace("user=postgres", "user=just_a_user")
    )
    await postgres.drop(name)


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Store]:
    """Memory without embeddings on a database of its own."""
    async with open_store(dsn) as opened:
        yield opened


@pytest.fixture
def cli(tmp_path: Path, evenings_dsn: str, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line at a database with two evenings."""
    return CommandLine(a_settings_file(tmp_path, evenings_dsn), capsys)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for each provider of a language model."""
    for provider in ("OPENAI", "GOOGLE", "DEEPSEEK", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "k")


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """Messages of the log, from warnings on."""
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(line.record["message"]), level="WARNING")
    yield lines
    logger.remove(sink)


@pytest.fixture(autouse=True)
def wide_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that a verb shows is one line, unless a test says how wide its terminal is."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture(autouse=True)
def without_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry_nobody(monkeypatch)


@pytest.fixture
def paced() -> None:
    """Let NPCs speak as slowly as they do at a table: for a test that stops one in the middle of a sentence."""


@pytest.fixture(autouse=True)
def sound_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let NPCs say a sentence in no time."""
    if request.node.get_closest_marker("realtime") is None and "paced" not in request.fixturenames:
        monkeypatch.setattr("glyphoxa_processors.speaker._AHEAD_S", 3_600.0)


def hurry_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for parts that a table would omit when late: a slow machine is no fault of the code.

    A deadline of less than a second is a test's own.
    """
    use = Database.use

    def use_patiently(
        self: Database, campaign: CampaignId | None, *, deadline_ms: int = DEADLINE_MS, **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        patient_ms = deadline_ms if deadline_ms < 1_000 else max(deadline_ms, DEADLINE_MS)
        return use(self, campaign, deadline_ms=patient_ms, **options)

    monkeypatch.setattr(Database, "use", use_patiently)
    for deadline in _DEADLINES_S:
        monkeypatch.setattr(deadline, DEADLINE_S)
