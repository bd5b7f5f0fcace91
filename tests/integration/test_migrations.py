from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.adapters.postgres.migrate import migrate, migrations_folder, read_migrations
from glyphoxa.domain.errors import Corrupt, InvalidInput

NAMED_INDEXES = {
    "idx_session_entries_session_id",
    "idx_session_entries_timestamp",
    "idx_session_entries_session_timestamp",
    "idx_session_entries_fts",
    "idx_chunks_session_id",
    "idx_entities_type",
    "idx_entities_name",
    "idx_rel_source",
    "idx_rel_target",
    "idx_rel_type",
    "idx_rel_provenance_confidence",
}


async def applied(dsn: str, *, dimensions: int = 384, folder: Path | None = None) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        return await migrate(connection, embedding_dimensions=dimensions, folder=folder)
    finally:
        await connection.close()


async def test_an_empty_database_gets_the_whole_schema_and_a_second_start_changes_nothing(empty_dsn: str) -> None:
    """R-144, R-145, R-147"""
    assert await applied(empty_dsn) == len(read_migrations(migrations_folder()))
    assert await applied(empty_dsn) == 0


async def test_processes_that_start_together_take_turns(empty_dsn: str) -> None:
    counts = await asyncio.gather(*(applied(empty_dsn) for _ in range(4)))
    assert sorted(counts) == [0, 0, 0, len(read_migrations(migrations_folder()))]


async def test_the_indexes_that_are_promised_are_there(dsn: str) -> None:
    """R-062 to R-065, R-086, R-117 to R-119"""
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
    await connection.close()
    assert {row["indexname"] for row in rows} >= NAMED_INDEXES


async def test_every_key_begins_with_the_campaign(dsn: str) -> None:
    """C-19"""
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        """SELECT c.conrelid::regclass::text AS table, a.attname AS first
             FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
            WHERE c.contype IN ('p', 'u') AND c.connamespace = 'public'::regnamespace AND c.conrelid::regclass::text
                  NOT IN ('campaigns', 'schema_migrations', 'schema_settings')"""
    )
    await connection.close()
    assert {row["first"] for row in rows} == {"campaign_id"}


async def test_a_migration_that_was_changed_after_it_ran_is_named(empty_dsn: str, tmp_path: Path) -> None:
    await applied(empty_dsn)
    folder = shutil.copytree(migrations_folder(), tmp_path / "migrations")
    with (folder / "0002_chunks.sql").open("a") as file:
        file.write("-- a late thought\n")
    with pytest.raises(Corrupt, match=r"0002_chunks\.sql was changed after it was applied"):
        await applied(empty_dsn, folder=folder)


async def test_a_database_of_a_newer_version_is_not_touched(empty_dsn: str, tmp_path: Path) -> None:
    await applied(empty_dsn)
    folder = shutil.copytree(migrations_folder(), tmp_path / "migrations")
    max(folder.glob("*.sql")).unlink()
    with pytest.raises(Corrupt, match="newer version"):
        await applied(empty_dsn, folder=folder)


async def test_a_migration_that_fails_leaves_nothing_of_itself(empty_dsn: str, tmp_path: Path) -> None:
    (tmp_path / "0001_bad.sql").write_text("CREATE TABLE half (a INT); SELECT no_such_thing;")
    with pytest.raises(asyncpg.UndefinedColumnError):
        await applied(empty_dsn, folder=tmp_path)
    connection = await asyncpg.connect(empty_dsn)
    assert await connection.fetchval("SELECT to_regclass('half')") is None
    await connection.close()


async def test_another_number_of_dimensions_is_refused_with_the_stored_one(empty_dsn: str) -> None:
    """R-148"""
    await applied(empty_dsn, dimensions=768)
    with pytest.raises(InvalidInput, match="is 384, but this database was made for 768"):
        await applied(empty_dsn, dimensions=384)


def test_a_gap_in_the_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").write_text("")
    (tmp_path / "0003_c.sql").write_text("")
    with pytest.raises(InvalidInput, match="without a gap"):
        read_migrations(tmp_path)
