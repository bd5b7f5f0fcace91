"""A pool of connections that heals itself: everything that memory asks of PostgreSQL goes through `Database.use`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import asyncpg
import pgvector.asyncpg
from loguru import logger
from pydantic_core import from_json

from glyphoxa.adapters.postgres.server.migrate import migrate
from glyphoxa.adapters.postgres.server.words import REFUSED, in_words
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    OwnConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]

_AWAY = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,  # it shuts down, starts up, or has cancelled the query
    asyncpg.InsufficientResourcesError,  # disk full, out of memory, too many connections
    asyncpg.PostgresSystemError,  # its disk fails
    asyncpg.InternalServerError,  # what is on its disk is damaged
    asyncpg.InvalidTransactionStateError,  # a standby that is not promoted yet, a transaction it has given up
    asyncpg.TransactionRollbackError,  # others were in the way
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.InvalidCachedStatementError,  # somebody changed a table
    asyncpg.InternalClientError,
)
_CONNECT_TIMEOUT_S = 5.0
_STATEMENT_TIMEOUT_MS = 10_000
_RELEASE_TIMEOUT_S = 2.0


class Database:
    """Connections to one database whose schema is up to date.

    The first use connects and migrates; a use while the server is away raises `Unavailable`, and the next one tries
    again. Nothing has to be told that the server is back.

    Args:
        dsn: A DSN, or what gives one: called before each attempt to connect anew. The embedded server's is made
            by starting it, so that a server that died is revived by its next use. May raise `Unavailable`.
        embedding_dimensions: Of the vectors in this database.
        embedding_model: Whose vectors they are; None when this process makes none.
        any_model: The database may be for other dimensions and another model: it is opened to change that.
        max_connections: A process is served best by two to four.
    """

    def __init__(
        self,
        dsn: str | Callable[[], Awaitable[str]],
        *,
        embedding_dimensions: int = 384,
        embedding_model: str | None = None,
        any_model: bool = False,
        max_connections: int = 4,
    ) -> None:
        self._dsn = dsn
        self._embedding_dimensions = embedding_dimensions
        self._embedding_model = embedding_model
        self._any_model = any_model
        self._max_connections = max_connections
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._address: Dsn | None = None
        self._opening: asyncio.Task[asyncpg.Pool[asyncpg.Record]] | None = None
        self._releases: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self, *, deadline_ms: int = 120_000) -> None:
        """Connect and migrate now instead of at the first use.

        Raises:
            Unavailable: The server cannot be reached.
            InvalidInput: It refuses this user or database, or the database is for other dimensions or another model.
            Corrupt: An applied migration was changed.
        """
        with self._as_ours("open", deadline_ms):
            async with asyncio.timeout(deadline_ms / 1000):
                await self._ready()

    @asynccontextmanager
    async def use(
        self, campaign: CampaignId | None, *, deadline_ms: int = 1000, plan_once: bool = False
    ) -> AsyncIterator[Connection]:
        """A connection for the time of the block, which is cut off at the deadline.

        Args:
            campaign: The one whose rows there are for this connection; None for what belongs to no campaign.
            plan_once: A statement's plan for any values is good enough, and serves from its first execution on. The
                server by itself plans what reads a partitioned table anew each time, because it takes all partitions
                for read that are left out only when the values are known.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        with self._as_ours("answer", deadline_ms):
            async with asyncio.timeout(deadline_ms / 1000):
                pool = await self._ready()
                try:
                    connection = await pool.acquire()
                except (*_AWAY, *REFUSED):
                    await self._forget(pool)
                    raise
                try:
                    await connection.enter(campaign or "", plan_once=plan_once)  # type: ignore[attr-defined] # passed on
                    yield connection
                except BaseException:
                    # Cancelling a running query takes a round trip that the caller, already late, does not wait for.
                    self._release_later(pool, connection)
                    raise
                await pool.release(connection)

    async def ping(self, *, deadline_ms: int = 1000) -> None:
        """Ask for a sign of life.

        Raises:
            Unavailable: There is none before the deadline.
            InvalidInput, Corrupt: As `open`.
        """
        async with self.use(None, deadline_ms=deadline_ms) as connection:
            await connection.fetchval("SELECT 1")

    @asynccontextmanager
    async def administer(self, *, deadline_ms: int = 600_000) -> AsyncIterator[OwnConnection]:
        """A connection outside the pool with all rights of the user of the DSN, for changes of the schema. Rows of
        all campaigns are there for it if that user is a superuser, of none otherwise.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        connection = await self.connect()
        with self._as_ours("answer", deadline_ms):
            try:
                async with asyncio.timeout(deadline_ms / 1000):
                    await _prepare(connection)
                    await connection.execute("SET statement_timeout = 0")
                    yield connection
            finally:
                with contextlib.suppress(TimeoutError, *_AWAY):
                    await connection.close(timeout=_RELEASE_TIMEOUT_S)

    async def connect(self, *, deadline_ms: int = 5000) -> OwnConnection:
        """A connection outside the pool, for who listens to notifications. The caller ends it.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        with self._as_ours("answer", deadline_ms):
            async with asyncio.timeout(deadline_ms / 1000):
                pool = await self._ready()
                dsn = None if self._address is None else self._address.text
                try:
                    connection = await asyncpg.connect(
                        dsn, timeout=_CONNECT_TIMEOUT_S, server_settings=_SERVER_SETTINGS
                    )
                    await connection.execute(_LOOKS_IN_PUBLIC)
                    return connection
                except _AWAY:
                    await self._forget(pool)
                    raise

    async def close(self) -> None:
        """Give all connections back. Later uses raise `Unavailable`."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._releases:
            await asyncio.gather(*self._releases, return_exceptions=True)
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                    await pool.close()
            except (TimeoutError, *_AWAY):
                pool.terminate()

    async def _ready(self) -> asyncpg.Pool[asyncpg.Record]:
        if self._closed:
            raise Unavailable("the database was closed")
        if self._pool is not None:
            return self._pool
        # Starting a server may take longer than whoever asked first can wait: it goes on for those who come next.
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._connect())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    async def _connect(self) -> asyncpg.Pool[asyncpg.Record]:
        text = self._dsn if isinstance(self._dsn, str) else await self._dsn()
        try:
            self._address = dsn = Dsn.read(text)
        except InvalidInput as error:
            raise InvalidInput(f"memory.postgres_dsn {error}") from None
        await self._migrate(dsn)
        self._pool = await asyncpg.create_pool(
            dsn.text,
            min_size=0,
            max_size=self._max_connections,
            timeout=_CONNECT_TIMEOUT_S,
            connection_class=_OfOneCampaign,
            init=_init,
            reset=_no_reset,
            server_settings=_SERVER_SETTINGS,
        )
        return self._pool

    def _opened(self, task: asyncio.Task[asyncpg.Pool[asyncpg.Record]]) -> None:
        self._opening = None
        if not task.cancelled() and (error := task.exception()):
            logger.debug("no database: {}", in_words(error, self._address))  # those who wait for it are told

    async def _migrate(self, dsn: Dsn) -> None:
        try:
            connection = await asyncpg.connect(dsn.text, timeout=_CONNECT_TIMEOUT_S)
        except REFUSED as error:
            raise InvalidInput(f"memory.postgres_dsn: the server refuses: {in_words(error, dsn)}") from None
        except (ValueError, asyncpg.ClientConfigurationError):
            raise InvalidInput(
                f"memory.postgres_dsn: {dsn} cannot be connected to: its host, a parameter behind `?` or a variable "
                "PG... of the environment is not one that the client takes"
            ) from None
        try:
            await connection.execute(_LOOKS_IN_PUBLIC)
            await migrate(
                connection,
                embedding_dimensions=self._embedding_dimensions,
                embedding_model=self._embedding_model,
                any_model=self._any_model,
            )
            if await connection.fetchval(_IS_ABOVE_RULES):
                logger.warning(
                    "memory.postgres_dsn: its user has the right BYPASSRLS, so that only the queries keep campaigns "
                    "apart, not the database as well: use an ordinary user"
                )
            # When the model is changed while this process lives, it finds nothing by meaning, but all the rest.
            self._any_model = True
        finally:
            with contextlib.suppress(*_AWAY):
                await connection.close(timeout=_RELEASE_TIMEOUT_S)

    @contextlib.contextmanager
    def _as_ours(self, verb: str, deadline_ms: int) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise Unavailable(f"the database did not {verb} within {deadline_ms} ms") from None
        except REFUSED as error:
            raise Unavailable(f"the database refuses: {in_words(error, self._address)}") from None
        except _AWAY as error:
            if isinstance(error, ValueError):
                raise  # asyncpg's word for an argument that does not fit its column: not the server's fault
            raise Unavailable(f"the database is away: {in_words(error, self._address)}") from None

    async def _forget(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        """The next use connects anew: the server may have come back elsewhere, or has to be revived."""
        if self._pool is pool:
            self._pool = None
            pool.terminate()

    def _release_later(self, pool: asyncpg.Pool[asyncpg.Record], connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(_release(pool, connection))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)


class _OfOneCampaign(asyncpg.Connection):
    """A connection for which one campaign's rows are there at a time (see `0008_isolation.sql`)."""

    campaign: str | None = None
    plan_once: bool | None = False

    async def enter(self, campaign: str, *, plan_once: bool = False) -> None:
        if self.campaign != campaign:
            self.campaign = None  # nobody knows, until it is done
            await self.execute("SELECT set_config('glyphoxa.campaign', $1, false)", campaign)
            self.campaign = campaign
        if self.plan_once != plan_once:
            self.plan_once = None
            await self.execute(_PLAN_ONCE if plan_once else _PLAN_AS_USUAL)
            self.plan_once = plan_once


# Everything stands in the schema `public`, and there the rules about rows are made. By itself a server looks first in a
# schema that is named like the user, if there is one: tables would be made there that no rule watches over, and
# another's functions would be taken for ours.
_LOOKS_IN_PUBLIC = "SET search_path = public"
_PLAN_ONCE = "SET plan_cache_mode = force_generic_plan"
_PLAN_AS_USUAL = "RESET plan_cache_mode"
# A superuser gives that rank up: see `_init`.
_IS_ABOVE_RULES = "SELECT rolbypassrls AND NOT rolsuper FROM pg_roles WHERE rolname = current_user"
_SERVER_SETTINGS = {
    "application_name": "glyphoxa",
    "statement_timeout": str(_STATEMENT_TIMEOUT_MS),
    "idle_in_transaction_session_timeout": str(_STATEMENT_TIMEOUT_MS),
}


# The extension by itself filters what its index gives, and then has too little: it shall go on until there is
# enough. Not among the settings of a connection's start, since PgBouncer takes none that it does not know.
_OF_VECTORS = """
SET hnsw.iterative_scan = relaxed_order;
SET hnsw.ef_search = 100;
SET hnsw.max_scan_tuples = 40000;
SET hnsw.scan_mem_multiplier = 2;
"""


async def _release(pool: asyncpg.Pool[asyncpg.Record], connection: Connection) -> None:
    try:
        await pool.release(connection, timeout=_RELEASE_TIMEOUT_S)
    except (TimeoutError, *_AWAY) as error:
        logger.debug("a connection was dropped: {}", type(error).__name__)


async def _init(connection: OwnConnection) -> None:
    await connection.execute(_LOOKS_IN_PUBLIC)
    await _prepare(connection)
    await connection.execute(_OF_VECTORS)
    # Superusers stand above the rules that keep campaigns apart.
    if await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        await connection.execute("SET ROLE glyphoxa_app")


async def _prepare(connection: OwnConnection) -> None:
    await pgvector.asyncpg.register_vector(connection)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=from_json, schema="pg_catalog")


async def _no_reset(_connection: OwnConnection) -> None:
    """Nothing of ours changes a session; the default reset would cost a round trip at each release."""
