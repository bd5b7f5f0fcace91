"""A database that is dumped and restored, copied row by row or as files: talk is recalled from it as before."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres, find_binaries, server_account
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.reading import PostgresTalkFeed
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.transcript.ports import FeedUtterance, TalkQuery
from tests.support.builders import CAMPAIGN, SMITH, an_utterance
from tests.support.embedders import embedder_of_topics
from tests.support.postgres import TEST_SETTINGS, TestServer, a_directory, wait_until
from tests.support.recalled import PATIENT
from tests.support.world_tables import a_campaign_row

EMBEDDER = embedder_of_topics({"sister": 0, "sibling": 0, "rain": 1, "weather": 1})
QUESTION = "What of my sibling?"
OTHER = CampaignId("other")


def told(text: str, n: int, *, campaign: CampaignId = CAMPAIGN) -> Utterance:
    return replace(an_utterance(text, id=f"u{n}"), at_ms=1_000 * n, campaign_id=campaign)


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[Store]:
    async with open_store(dsn, embedder=EMBEDDER, recall=PATIENT) as store:
        await store.database.open()
        yield store


async def an_evening(dsn: str) -> None:
    """Some of it revised and some embedded, so that neither change numbers nor vectors are as they were given first."""
    async with opened(dsn) as store:
        await a_campaign_row(store, CAMPAIGN)
        talk = [told(("My sister sails.", "It rains.")[n % 2] + f" Part {n}.", n) for n in range(40)]
        await store.log.append(talk)
        await store.log.append([told("Another table.", 1, campaign=OTHER)])
        await store.chunks.fill_missing(CAMPAIGN)
        await store.log.revise(replace(talk[6], text="My sister fell."), was=talk[6])


async def talk_in(store: Store) -> list[FeedUtterance]:
    return list((await PostgresTalkFeed(store.database).changes(CAMPAIGN, since=0, limit=1_000)).said)


async def ids(store: Store, question: str = QUESTION) -> list[UtteranceId]:
    return [one.utterance_id for one in await store.past_talk.recall(CAMPAIGN, SMITH, TalkQuery(question, limit=40))]


async def goes_on_as_before(before: Store, after: Store) -> None:
    """A cache that follows the restored log recalls exactly what a new cache recalls."""
    assert await talk_in(after) == await talk_in(before)
    assert await ids(after) == await ids(before)
    for n in range(100, 103):
        new = told(f"The lantern of {('Esk', 'Ura', 'Ilo')[n - 100]} is out.", n)
        await after.log.append([new])
        assert new.id in await ids(after, "What of the lantern?")
    assert await after.chunks.fill_missing(CAMPAIGN)
    index = await after.past_talk.transcript(CAMPAIGN).refresh()
    assert [index.said(row) for row in index.rows_of(said.utterance_id for said in await talk_in(after))] == (
        await talk_in(after)
    )
    assert len(index) == 43


def run(server: EmbeddedPostgres, name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    program = find_binaries(server_account(server.data)).program(name)
    if not program.is_file():
        pytest.skip(f"there is no {name} beside this PostgreSQL")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def dump(server: EmbeddedPostgres, dsn: str, into: Path) -> Path:
    made = run(server, "pg_dump", "-Fc", "-f", into, dsn)
    assert made.returncode == 0, made.stderr
    return into


@pytest.fixture
def another_server() -> Iterator[TestServer]:
    """Start a new server with neither the schema nor a role."""
    with a_directory() as directory:
        server = EmbeddedPostgres(directory, settings=TEST_SETTINGS)
        server.start()
        try:
            yield TestServer(server)
        finally:
            server.release()
            wait_until(lambda: server.pid() is None)


@pytest.mark.parametrize("options", [(), ("--no-acl",)], ids=["with rights", "without rights"])
async def test_a_dump_is_restored_on_a_server_that_has_never_seen_the_program(
    options: tuple[str, ...], another_server: TestServer, postgres: TestServer, dsn: str, tmp_path: Path
) -> None:
    await an_evening(dsn)
    there = another_server.server.dsn(await another_server.create(migrated=False))
    run(postgres.server, "pg_restore", *options, "-d", there, dump(postgres.server, dsn, tmp_path / "dump"))
    async with opened(dsn) as before, opened(there) as after:
        await goes_on_as_before(before, after)
        async with after.database.use(OTHER) as connection:
            assert await connection.fetchval("SELECT current_user") == "glyphoxa_app"
            assert await connection.fetchval("SELECT array_agg(campaign_id) FROM session_entries") == [OTHER]
            plain = "SELECT bool_and(proleakproof) FROM pg_proc WHERE proname IN ('ts_match_vq', 'arraycontains')"
            assert await connection.fetchval(plain)


async def test_a_table_that_is_open_while_its_database_is_restored_tells_what_is_there_now(
    postgres: TestServer, dsn: str, tmp_path: Path
) -> None:
    """With other talk since, and with change numbers that other campaigns have by now."""
    await an_evening(dsn)
    name = dsn.split("?")[0].rsplit("/", 1)[1]
    async with opened(dsn) as table:
        await ids(table)
        kept = dump(postgres.server, dsn, tmp_path / "dump")
        await table.log.append([told("My sister is lost.", n) for n in range(50, 55)])
        assert UtteranceId("u50") in await ids(table)
        await postgres.drop(name)
        administrator = await asyncpg.connect(postgres.server.dsn())
        await administrator.execute(f"CREATE DATABASE {name}")
        await administrator.close()
        restored = run(postgres.server, "pg_restore", "-d", dsn, kept)
        assert restored.returncode == 0, restored.stderr
        async with opened(dsn) as other:
            await other.log.append([told("Another table.", n, campaign=OTHER) for n in range(50, 60)])
            await other.log.append([told("My sister is found.", 60)])
            there = {said.utterance_id for said in await talk_in(other)}
        for _ in range(5):  # its connections are to what was dropped, and each is noticed by a use
            try:
                index = await table.past_talk.transcript(CAMPAIGN).refresh()
                break
            except GlyphoxaError:
                continue
        assert {index.said(row).utterance_id for row in range(len(index))} == there
        assert UtteranceId("u60") in await ids(table)
        assert UtteranceId("u50") not in await ids(table)


async def test_an_owner_without_special_rights_saves_a_campaign_at_a_time_and_no_part_of_it_by_mistake(
    postgres: TestServer, owners_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await an_evening(owners_dsn)
    async with opened(owners_dsn) as table, table.database.use(OTHER) as connection:
        await connection.execute("INSERT INTO campaign_servers VALUES ($1, 'second')", OTHER)
    refused = run(postgres.server, "pg_dump", "-Fc", "-f", tmp_path / "all", owners_dsn)
    assert "row-level security" in refused.stderr
    monkeypatch.setenv("PGOPTIONS", f"-c glyphoxa.campaign={CAMPAIGN}")
    rows_of_one = (
        "--enable-row-security",
        "--exclude-table-data=(cluster_nodes|table_leases|campaign_servers|reading_queue)",
    )
    made = run(postgres.server, "pg_dump", "-Fc", *rows_of_one, "-f", tmp_path / "one", owners_dsn)
    assert made.returncode == 0, made.stderr
    monkeypatch.delenv("PGOPTIONS")
    name = await postgres.create(migrated=False)
    there = postgres.server.dsn(name)
    restored = run(postgres.server, "pg_restore", "-d", there, tmp_path / "one")
    assert restored.returncode == 0, restored.stderr
    try:
        async with opened(owners_dsn) as before, opened(there) as after:
            await goes_on_as_before(before, after)
            async with after.database.use(OTHER) as connection:
                assert not await connection.fetchval("SELECT count(*) FROM session_entries")
                assert not await connection.fetchval("SELECT count(*) FROM campaign_servers")
    finally:
        await postgres.drop(name)


async def test_the_files_of_a_server_that_stands_are_copied(another_server: TestServer) -> None:
    server = another_server.server
    await an_evening(server.dsn())
    with a_directory() as elsewhere:
        server.release()
        await asyncio.to_thread(wait_until, lambda: server.pid() is None)
        moved = EmbeddedPostgres(elsewhere, settings=TEST_SETTINGS)
        await asyncio.to_thread(subprocess.run, ["cp", "-a", server.data, moved.data], check=True)
        server.start()
        moved.start()
        try:
            async with opened(server.dsn()) as before, opened(moved.dsn()) as after:
                await goes_on_as_before(before, after)
        finally:
            moved.release()
            await asyncio.to_thread(wait_until, lambda: moved.pid() is None)


async def test_a_copy_of_the_files_that_is_roots_is_refused_with_the_command_that_helps() -> None:
    if server_account(Path("/nowhere")).uid is None:
        pytest.skip("only root's copies are root's")
    with a_directory() as directory:
        server = EmbeddedPostgres(directory, settings=TEST_SETTINGS)
        server.start()
        server.release()
        await asyncio.to_thread(wait_until, lambda: server.pid() is None)
        owner = server.data.stat()
        shutil.move(server.data, directory / "was")
        shutil.copytree(directory / "was", server.data)
        with pytest.raises(InvalidInput, match=r"belongs to root.*chown -R"):
            server.start()
        assert owner.st_uid != 0
