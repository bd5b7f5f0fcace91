"""The schema as the sum of numbered, forward-only migration files.

Each file runs once, in its own transaction, and is recorded with its checksum. Concurrent processes take turns.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from loguru import logger

from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.errors import Corrupt, InvalidInput, Unavailable

_LOCK = 0x676C7970  # "glyp": held during a migration, the same in every database
_TIMEOUT_S = 3_600.0
"""Time for a migration, and for another process that migrates. The connection's own limit is for quick statements."""
_BOOKKEEPING = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number     INT PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS schema_settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations_folder() -> Path:
    """The migrations inside the installed package, or at the root of a checkout.

    Raises:
        Unavailable: There are none: the installation is broken.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "migrations", package.parents[2] / "migrations"):
        if any(folder.glob("[0-9]*.sql")):
            return folder
    raise Unavailable("the database migrations are missing from this installation; reinstall Glyphoxa")


def read_migrations(folder: Path) -> list[Migration]:
    """All files `NNNN_name.sql`, by number.

    Raises:
        InvalidInput: A name has another form, or a number is missing or duplicate.
    """
    found: list[Migration] = []
    for path in sorted(folder.glob("*.sql")):
        parts = re.fullmatch(r"(\d{4})_(\w+)\.sql", path.name)
        if parts is None:
            raise InvalidInput(f"{path}: a migration must be named like 0001_what_it_does.sql")
        found.append(Migration(int(parts[1]), parts[2], path.read_text("utf-8")))
    if [m.number for m in found] != list(range(1, len(found) + 1)):
        raise InvalidInput(f"{folder}: migrations must be numbered from 0001 without gaps or duplicates")
    return found


async def migrate(
    connection: asyncpg.Connection[asyncpg.Record],
    *,
    embedding_dimensions: int,
    embedding_model: str | None = None,
    any_model: bool = False,
    folder: Path | None = None,
) -> int:
    """Bring the schema up to date; safe at every start. Returns the number of applied migrations.

    Args:
        embedding_dimensions: Length of vectors in a new database.
        embedding_model: Model of a new database's vectors; None if not known yet.
        any_model: Accept an existing database with any model and dimensions.

    Raises:
        Corrupt: An applied migration has been changed since, or the database is newer than this version.
        InvalidInput: The database is for other dimensions or another model, or lacks a privilege.
        Unavailable: It is a replica, and its primary has not been migrated.
    """
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        if await not_applied(connection, embedding_dimensions=embedding_dimensions):
            raise Unavailable("the database is a replica, and its primary is of an earlier version: start that first")
        return 0
    migrations = read_migrations(folder or migrations_folder())
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK, timeout=_TIMEOUT_S)
    try:
        await connection.execute("SET client_min_messages = warning")
        try:
            await connection.execute(_BOOKKEEPING)
        except asyncpg.InsufficientPrivilegeError as error:
            raise InvalidInput(
                f"the database user may not create tables ({error}): an administrator of the server must run "
                "`GRANT CREATE ON SCHEMA public TO` that user in this database once"
            ) from None
        rows = await connection.fetch("SELECT number, name, checksum FROM schema_migrations ORDER BY number")
        _check(migrations, rows)
        dimensions = int(await _stored(connection, "embedding_dimensions", str(embedding_dimensions)))
        model = embedding_model and await _stored(connection, "embedding_model", embedding_model)
        if not any_model:
            _check_model(dimensions, model, wanted_dimensions=embedding_dimensions, wanted_model=embedding_model)
        for migration in migrations[len(rows) :]:
            await _apply(connection, migration, dimensions, is_new=not rows)
        if not rows and migrations:
            logger.info("database created ({} migrations)", len(migrations))
        await _give_rights(connection)
        return len(migrations) - len(rows)
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def not_applied(connection: asyncpg.Connection[asyncpg.Record], *, embedding_dimensions: int) -> list[Migration]:
    """The migrations that `migrate` would apply. Writes nothing.

    Raises:
        Corrupt, InvalidInput: See `migrate`, as far as can be checked without writing.
    """
    migrations = read_migrations(migrations_folder())
    if await connection.fetchval("SELECT to_regclass('schema_migrations') IS NULL"):
        return migrations
    rows = await connection.fetch("SELECT number, name, checksum FROM schema_migrations ORDER BY number")
    _check(migrations, rows)
    dimensions = await connection.fetchval("SELECT value FROM schema_settings WHERE name = 'embedding_dimensions'")
    if dimensions is not None:
        _check_model(int(dimensions), None, wanted_dimensions=embedding_dimensions, wanted_model=None)
    return migrations[len(rows) :]


def _check(migrations: list[Migration], rows: list[asyncpg.Record]) -> None:
    if len(rows) > len(migrations):
        raise Corrupt(
            f"the database is at migration {rows[-1]['number']:04}_{rows[-1]['name']}, this version has only "
            f"{len(migrations)}: a newer version used it; update Glyphoxa"
        )
    for migration, row in zip(migrations, rows, strict=False):
        if migration.checksum != row["checksum"]:
            raise Corrupt(
                f"migration {migration.number:04}_{migration.name}.sql was changed after it was applied "
                f"(checksum {migration.checksum[:12]}, applied {row['checksum'][:12]}): restore the file "
                "and write the change as a new migration"
            )


async def _stored(connection: asyncpg.Connection[asyncpg.Record], name: str, otherwise: str) -> str:
    """Read a setting of this database; the first call stores its value."""
    await connection.execute("INSERT INTO schema_settings VALUES ($1, $2) ON CONFLICT DO NOTHING", name, otherwise)
    return str(await connection.fetchval("SELECT value FROM schema_settings WHERE name = $1", name))


def _check_model(dimensions: int, model: str | None, *, wanted_dimensions: int, wanted_model: str | None) -> None:
    if dimensions != wanted_dimensions:
        raise InvalidInput(
            f"memory.embedding_dimensions is {wanted_dimensions}, but this database is for {dimensions}: set it "
            f"back to {dimensions}, or run `glyphoxa worker reindex` to re-embed all transcripts with the other model"
        )
    if model != wanted_model:
        raise InvalidInput(
            f"the embedding model is {wanted_model!r}, but the vectors in this database are of {model!r}: set it back, "
            "or run `glyphoxa worker reindex` to re-embed all transcripts with the other model"
        )


async def _give_rights(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Grant the rights of the role for row isolation, which a backup restored to another server may lack."""
    sql = load_queries("server/server")
    if not await connection.fetchval(sql["is_superuser"]):
        return
    if await connection.fetchval(sql["has_role"]) and await connection.fetchval(sql["has_all"]):
        return
    async with connection.transaction():
        await connection.execute(sql["give"])
    logger.info("restored the privileges of the database")


async def _apply(
    connection: asyncpg.Connection[asyncpg.Record], migration: Migration, dimensions: int, *, is_new: bool
) -> None:
    try:
        async with connection.transaction():
            text = migration.text.replace("{{embedding_dimensions}}", str(int(dimensions)))
            await connection.execute(text, timeout=_TIMEOUT_S)
            await connection.execute(
                "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.checksum,
            )
    except asyncpg.InsufficientPrivilegeError as error:
        raise InvalidInput(
            f"migration {migration.number:04}_{migration.name}: {error}. An administrator of the server must run "
            "`CREATE EXTENSION vector;` in this database once"
        ) from None
    except (asyncpg.UndefinedFileError, asyncpg.FeatureNotSupportedError) as error:
        raise InvalidInput(f"this PostgreSQL server has no pgvector extension, which memory needs: {error}") from None
    logger.log("DEBUG" if is_new else "INFO", "applied migration {:04}_{}", migration.number, migration.name)
