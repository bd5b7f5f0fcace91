"""A self-healing connection pool: all of memory's access to PostgreSQL goes through `Database.use`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import asyncpg
import pgvector.asyncpg
from loguru import logger
from pydantic_core import from_json

from glyphoxa.actors.deadline import answered_within, end_tasks
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres, in_thread
from glyphoxa.adapters.postgres.server.migrate import migrate, not_applied
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    OwnConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]


# Detecting a pooler that shares server sessions between clients, before it does harm.
#
# A session setting assigns a connection to one campaign, and notifications, locks and prepared statements
# belong to a session, too. A pooler that lends sessions per transaction (PgBouncer: `pool_mode =
# transaction`) would let one campaign's statements see another campaign's rows.


_PID = "SELECT pg_backend_pid()"
_LENT = (
    asyncpg.InvalidSQLStatementNameError,  # a statement prepared in one session is unknown in another
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.ProtocolViolationError,  # a pooler with statement pooling rejects transactions
    asyncpg.ConnectionDoesNotExistError,
)


async def is_pooled(connection: OwnConnection) -> bool:
    """Whether there is a pooler: the backend that accepted the connection does not execute its statements."""
    return bool(await connection.fetchval(_PID) != connection.get_server_pid())


# Set-up of every connection: settings, type codecs, role, and campaign.


STATEMENT_TIMEOUT_MS: Final = 10_000
SERVER_SETTINGS: Final = {"application_name": "glyphoxa"}
"""Parameters at connection start. PgBouncer accepts no others there."""

# Everything is in the schema `public`, including the row rules. By default a server first searches a
# schema named like the user: tables created there would not have the row rules, and
# foreign functions could shadow ours.
SEARCH_PATH: Final = "SET search_path = public"
SESSION_SETTINGS: Final = f"""
{SEARCH_PATH};
SET statement_timeout = {STATEMENT_TIMEOUT_MS};
SET idle_in_transaction_session_timeout = {STATEMENT_TIMEOUT_MS};
"""
_GENERIC_PLAN: Final = "SET plan_cache_mode = force_generic_plan"
_PLAN_AS_USUAL: Final = "RESET plan_cache_mode"
_ENTER: Final = "SELECT set_config('glyphoxa.campaign', $1, false), set_config('glyphoxa.epoch', $2, false)"

# By default the extension filters the index's results and may return too few: make it continue until there are
# enough.
_HNSW_SETTINGS: Final = """
SET hnsw.iterative_scan = relaxed_order;
SET hnsw.ef_search = 100;
SET hnsw.max_scan_tuples = 40000;
SET hnsw.scan_mem_multiplier = 2;
"""


class CampaignConnection(asyncpg.Connection):
    """A connection that sees the rows of one campaign at a time (see `0008_isolation.sql`).

    With an epoch it writes only while that is the campaign's latest (see `0044_cluster.sql`).
    """

    entered: tuple[str, str] | None = None
    generic_plan: bool | None = False

    async def enter(self, campaign: str, *, epoch: str = "", generic_plan: bool = False) -> None:
        if self.entered != (campaign, epoch):
            self.entered = None  # unknown until the statement succeeds
            await self.execute(_ENTER, campaign, epoch)
            self.entered = campaign, epoch
        if self.generic_plan != generic_plan:
            self.generic_plan = None
            await self.execute(_GENERIC_PLAN if generic_plan else _PLAN_AS_USUAL)
            self.generic_plan = generic_plan


async def set_up(connection: OwnConnection) -> None:
    """Set up a connection of the pool."""
    try:
        await connection.execute(SESSION_SETTINGS)
        await register_codecs(connection)
        await connection.execute(_HNSW_SETTINGS)
        # Superusers bypass the rules that isolate campaigns.
        if await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
            await connection.execute("SET ROLE glyphoxa_app")
    except BaseException:
        connection.terminate()  # the pool would close it in order, and wait for ever for a server that is silent
        raise


async def register_codecs(connection: OwnConnection) -> None:
    """Vectors as numpy arrays, JSON as Python values."""
    await pgvector.asyncpg.register_vector(connection)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=from_json, schema="pg_catalog")


async def keep_session(_connection: OwnConnection) -> None:
    """The pool's `reset`: nothing changes a session, and the default would cost a round trip per release."""


# Classes and descriptions of server errors, without secrets of the DSN.


AWAY: Final = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,  # it shuts down, starts up, or has cancelled the query
    asyncpg.InsufficientResourcesError,  # disk full, out of memory, too many connections
    asyncpg.PostgresSystemError,  # its disk fails
    asyncpg.InternalServerError,  # its data are damaged
    asyncpg.InvalidTransactionStateError,  # a standby before promotion, an aborted transaction
    asyncpg.TransactionRollbackError,  # a conflict with other transactions
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.InvalidCachedStatementError,  # a table was altered
    asyncpg.InternalClientError,
)
"""The server cannot answer now; a later attempt may work."""

REFUSED: Final = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
"""The server rejects the login: a changed password, or a database that was restored from a backup."""


_PARAMETER_REFUSED: Final = (
    asyncpg.UndefinedObjectError,
    asyncpg.InvalidParameterValueError,
    asyncpg.CantChangeRuntimeParamError,
    asyncpg.PostgresSyntaxError,  # in `options`
    asyncpg.ProtocolViolationError,  # PgBouncer, for a parameter that it does not pass on
)
"""Errors of a connection attempt: the server does not take a parameter of the DSN."""


def describe(error: BaseException, dsn: Dsn | None) -> str:
    """Describe an error without the password."""
    match error:
        case asyncpg.InvalidPasswordError():
            return "user or password is wrong (write a literal % as %25 in memory.postgres_dsn)"
        case asyncpg.InvalidAuthorizationSpecificationError():
            return "the user is unknown, or may not connect from this host (pg_hba.conf)"
        case asyncpg.InvalidCatalogNameError():
            return "there is no such database"
        case OSError():
            text = error.strerror or str(error)
        case _:
            text = str(error)
    return (text if dsn is None else dsn.hidden_in(text)) or type(error).__name__


_CONNECT_TIMEOUT_S = 5.0
_RELEASE_TIMEOUT_S = 2.0
_ROLLBACK_TIMEOUT_S = 0.5


class Database:
    """Connections to one database with an up-to-date schema.

    The first use connects and migrates; while the server is away, a use raises `Unavailable`, and the next one tries
    again. No call is needed when the server returns.

    Args:
        server: A DSN, or an embedded server. This is started before each new connection attempt, so that the next use
            restarts a crashed one, and released at the end.
        embedding_dimensions: Length of the vectors in this database.
        embedding_model: The model of the vectors; None when this process computes none.
        any_model: Accept other dimensions and another model: the database is opened to change that.
        max_connections: Two to four are best for one process.

    Attributes:
        epochs: Those of the tables that are open here, if several machines may open them: a table whose campaign has
            a later one writes no more, and `use` raises `Unavailable`.
    """

    def __init__(
        self,
        server: str | EmbeddedPostgres,
        *,
        embedding_dimensions: int = 384,
        embedding_model: str | None = None,
        any_model: bool = False,
        max_connections: int = 4,
    ) -> None:
        self.epochs: dict[CampaignId, int] = {}
        self._server = server
        self._embedding_dimensions = embedding_dimensions
        self._embedding_model = embedding_model
        self._any_model = any_model
        self._max_connections = max_connections
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._address: Dsn | None = None
        self._opening: asyncio.Task[asyncpg.Pool[asyncpg.Record]] | None = None
        self._releases: set[asyncio.Task[None]] = set()
        self._closed = False

    async def dsn(self) -> str:
        """Return the DSN for another process, after starting an embedded server.

        Raises:
            Unavailable: The embedded server does not start.
        """
        if isinstance(self._server, str):
            return self._server
        await in_thread(self._server.start)
        return self._server.dsn()

    async def open(self, *, deadline_ms: int = 120_000) -> None:
        """Connect and migrate now instead of at the first use.

        Raises:
            Unavailable: The server cannot be reached.
            InvalidInput: It rejects this user or database, or the database is for other dimensions or another model.
            Corrupt: An applied migration was changed.
        """
        async with self._as_ours("open", deadline_ms):
            await self._ready()

    @asynccontextmanager
    async def use(
        self, campaign: CampaignId | None, *, deadline_ms: int = 1000, generic_plan: bool = False
    ) -> AsyncIterator[Connection]:
        """Lend a connection for the block, which is cancelled at the deadline.

        Args:
            campaign: The campaign whose rows are visible; None for data that belong to no campaign.
            generic_plan: Use a generic plan from the first execution on. Otherwise the server plans queries on
                partitioned tables every time: a generic plan seems to read partitions that are pruned at run time.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        loop = asyncio.get_running_loop()
        late_s = loop.time() + deadline_ms / 1_000 + _ROLLBACK_TIMEOUT_S
        async with self._as_ours("answer", deadline_ms):
            pool = await self._ready()
            try:
                connection = await pool.acquire()
            except (*AWAY, *REFUSED):
                await self._forget(pool)
                raise
            # A block that is cancelled rolls its transaction back, and would wait for ever for a server that is silent.
            give_up = loop.call_at(late_s, connection.terminate)
            try:
                epoch = str(self.epochs.get(campaign, "")) if campaign else ""
                await connection.enter(campaign or "", epoch=epoch, generic_plan=generic_plan)  # type: ignore[attr-defined] # proxied
                yield connection
            except BaseException:  # also when cancelled: no connection may be lost to the pool
                # Cancelling a query takes a round trip; the caller, already late, does not wait for it.
                self._release_later(pool, connection)
                raise
            finally:
                give_up.cancel()
            await pool.release(connection)

    async def ping(self, *, deadline_ms: int = 1000) -> None:
        """Check that the server responds.

        Raises:
            Unavailable: It does not before the deadline.
            InvalidInput, Corrupt: See `open`.
        """
        async with self.use(None, deadline_ms=deadline_ms) as connection:
            await connection.fetchval("SELECT 1")

    @asynccontextmanager
    async def administer(self, *, deadline_ms: int = 600_000) -> AsyncIterator[OwnConnection]:
        """A connection outside the pool with all rights of the DSN's user, for changes of the schema.

        It sees the rows of all campaigns if that user is a superuser, otherwise none.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        connection = await self.connect()
        try:
            async with self._as_ours("answer", deadline_ms):
                await register_codecs(connection)
                await connection.execute("SET statement_timeout = 0")
                yield connection
        finally:
            with contextlib.suppress(TimeoutError, *AWAY):
                await connection.close(timeout=_RELEASE_TIMEOUT_S)

    async def connect(self, *, deadline_ms: int = 5000) -> OwnConnection:
        """A connection outside the pool, for LISTEN. The caller closes it.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        async with self._as_ours("answer", deadline_ms):
            pool = await self._ready()
            try:
                dsn = self._address or _read(await self.dsn())
                connection = await connect_to(dsn, timeout=_CONNECT_TIMEOUT_S, server_settings=SERVER_SETTINGS)
            except AWAY:
                await self._forget(pool)
                raise
            try:
                await connection.execute(SESSION_SETTINGS)
            except BaseException:  # also when cancelled, by a server that is silent
                connection.terminate()
                raise
            return connection

    async def close(self) -> None:
        """Close all connections. Later uses raise `Unavailable`."""
        self._closed = True
        try:
            if self._opening is not None:
                await end_tasks(self._opening)
            if self._releases:
                await asyncio.gather(*self._releases, return_exceptions=True)
            pool, self._pool = self._pool, None
            if pool is not None:
                try:
                    async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                        await pool.close()
                except (TimeoutError, *AWAY):
                    pool.terminate()
        finally:
            if isinstance(self._server, EmbeddedPostgres):
                self._server.release()

    async def _ready(self) -> asyncpg.Pool[asyncpg.Record]:
        if self._closed:
            raise Unavailable("the database was closed")
        if self._pool is not None:
            return self._pool
        # Starting a server may outlast the first caller's deadline: it continues for later callers.
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._connect())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    async def _connect(self) -> asyncpg.Pool[asyncpg.Record]:
        self._address = dsn = _read(await self.dsn())
        await self._migrate(dsn)
        self._pool = await asyncpg.create_pool(  # type: ignore[call-overload] # `connect` with fewer arguments
            dsn.text,
            connect=lambda _, **options: connect_to(dsn, **options),
            min_size=0,
            max_size=self._max_connections,
            timeout=_CONNECT_TIMEOUT_S,
            connection_class=CampaignConnection,
            init=set_up,
            reset=keep_session,
            server_settings=SERVER_SETTINGS,
        )
        return self._pool

    def _opened(self, task: asyncio.Task[asyncpg.Pool[asyncpg.Record]]) -> None:
        self._opening = None
        if not task.cancelled() and (error := task.exception()):
            logger.debug("no database: {}", describe(error, self._address))  # waiting callers get the error

    async def _migrate(self, dsn: Dsn) -> None:
        async with connected(dsn) as connection:
            await migrate(
                connection,
                embedding_dimensions=self._embedding_dimensions,
                embedding_model=self._embedding_model,
                any_model=self._any_model,
            )
            if await connection.fetchval(_IS_ABOVE_RULES):
                logger.warning(
                    "memory.postgres_dsn: its user has the privilege BYPASSRLS, so only the queries isolate campaigns, "
                    "not the database: use an ordinary user"
                )
            # If the model changes while this process runs, search by meaning stops working, but nothing else.
            self._any_model = True

    @asynccontextmanager
    async def _as_ours(self, verb: str, deadline_ms: int) -> AsyncIterator[None]:
        try:
            async with answered_within(deadline_ms, f"the database did not {verb}"):
                yield
        except REFUSED as error:
            raise Unavailable(f"the database rejects the connection: {describe(error, self._address)}") from None
        except AWAY as error:
            if isinstance(error, ValueError):
                raise  # asyncpg's error for an argument that does not fit its column: not the server's fault
            raise Unavailable(f"the database is away: {describe(error, self._address)}") from None

    async def _forget(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        """Make the next use reconnect: the server may have moved or need a restart."""
        if self._pool is pool:
            self._pool = None
            pool.terminate()

    def _release_later(self, pool: asyncpg.Pool[asyncpg.Record], connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(_release(pool, connection))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)


class CampaignQueries:
    """The named queries of one `.sql` file, each run on a campaign's connection within a deadline.

    Attributes:
        file: See `load_queries`.
    """

    file: ClassVar[str]
    deadline_ms: ClassVar[int] = 1_000

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries(self.file)

    async def _fetch(self, query: str, campaign: CampaignId, *values: object) -> list[asyncpg.Record]:
        """
        Raises:
            Unavailable: The database is away or late.
        """
        async with self._use(campaign) as connection:
            return await connection.fetch(self._sql[query], campaign, *values)

    async def _row(self, query: str, campaign: CampaignId, *values: object) -> asyncpg.Record | None:
        """Return the first row. Raises as `_fetch`."""
        return next(iter(await self._fetch(query, campaign, *values)), None)

    def _use(self, campaign: CampaignId) -> AbstractAsyncContextManager[Connection]:
        return self._database.use(campaign, deadline_ms=self.deadline_ms)


class CampaignStatements:
    """The named queries of one `.sql` file for one campaign, on a connection in a transaction.

    Attributes:
        file: See `load_queries`.
    """

    file: ClassVar[str]

    def __init__(self, connection: Connection, campaign: CampaignId) -> None:
        self._connection = connection
        self._campaign = campaign
        self._sql = load_queries(self.file)

    async def _fetch(self, name: str, *values: object) -> list[asyncpg.Record]:
        return await self._connection.fetch(self._sql[name], self._campaign, *values)

    async def _fetch_many(self, name: str, *values: object, block: int = 250) -> list[asyncpg.Record]:
        """Return rows of any number, a block at a time: 250 delay a running table by a few milliseconds."""
        cursor = await self._connection.cursor(self._sql[name], self._campaign, *values)
        rows: list[asyncpg.Record] = []
        while found := await cursor.fetch(block):
            rows += found
        return rows


def _read(dsn: str) -> Dsn:
    try:
        return Dsn.read(dsn)
    except InvalidInput as error:
        raise InvalidInput(f"memory.postgres_dsn {error}") from None


async def connect_to(dsn: Dsn, **options: Any) -> OwnConnection:
    """Connect to the host that takes writes. If there are several, all are tried at once, because a
    dead one may not reject the connection.

    Args:
        options: See `asyncpg.connect`. Raises as that does.
    """
    if len(dsn.texts) > 1:
        options["target_session_attrs"] = "read-write"
    attempts: list[asyncio.Task[OwnConnection]] = [
        asyncio.create_task(asyncpg.connect(text, **options)) for text in dsn.texts
    ]
    connection: OwnConnection | None = None
    try:
        for attempt_done in asyncio.as_completed(attempts):
            with contextlib.suppress(*AWAY, *REFUSED):
                connection = await attempt_done
                return connection
        return await attempts[0]  # raises its error
    finally:
        for attempt in attempts:
            if not attempt.cancel() and attempt.exception() is None and attempt.result() is not connection:
                attempt.result().terminate()


@asynccontextmanager
async def connected(dsn: Dsn) -> AsyncIterator[OwnConnection]:
    """A connection to a server that is suitable for memory. Writes nothing.

    Raises:
        InvalidInput: It rejects this user or database, the client rejects the DSN, or a pooler shares sessions between
            clients.
        OSError, asyncpg.PostgresError: It is away: see `AWAY`.
    """
    try:
        late_s = STATEMENT_TIMEOUT_MS / 1_000
        connection = await connect_to(dsn, timeout=_CONNECT_TIMEOUT_S, command_timeout=late_s)
    except REFUSED as error:
        raise InvalidInput(f"memory.postgres_dsn: the server rejects the connection: {describe(error, dsn)}") from None
    except _PARAMETER_REFUSED as error:
        raise InvalidInput(
            f"memory.postgres_dsn: the server at {dsn} rejects a parameter after `?`: {describe(error, dsn)}; remove it"
        ) from None
    except (ValueError, asyncpg.ClientConfigurationError):
        raise InvalidInput(
            f"memory.postgres_dsn: cannot connect to {dsn}: invalid host, parameter after `?` or variable "
            "PG... of the environment"
        ) from None
    try:
        await connection.execute(SEARCH_PATH)
        if await is_pooled(connection):
            await _refuse_lent_sessions(connection, dsn)
        yield connection
    finally:
        with contextlib.suppress(*AWAY):
            await connection.close(timeout=_RELEASE_TIMEOUT_S)


async def _refuse_lent_sessions(connection: OwnConnection, dsn: Dsn) -> None:
    """Refuse a pooler through which another client gets the session of a connection outside any transaction."""
    other = await connect_to(dsn, timeout=_CONNECT_TIMEOUT_S)
    try:
        before = await connection.fetchval(_PID)
        async with other.transaction():
            taken = await other.fetchval(_PID)
            if before == await connection.fetchval(_PID) != taken:
                return
    except _LENT:
        pass
    finally:
        with contextlib.suppress(*AWAY):
            await other.close(timeout=_RELEASE_TIMEOUT_S)
    raise InvalidInput(
        f"memory.postgres_dsn: the pooler at {dsn} shares server sessions between clients, which "
        "would let one campaign see another: use session pooling (PgBouncer: `pool_mode = session`), or "
        "connect to the server directly"
    )


# A superuser switches to an ordinary role: see `set_up`.
_IS_ABOVE_RULES = "SELECT rolbypassrls AND NOT rolsuper FROM pg_roles WHERE rolname = current_user"


async def _release(pool: asyncpg.Pool[asyncpg.Record], connection: Connection) -> None:
    try:
        await pool.release(connection, timeout=_RELEASE_TIMEOUT_S)
    except (TimeoutError, *AWAY) as error:
        logger.debug("a connection was dropped: {}", type(error).__name__)


@dataclass(frozen=True, slots=True)
class Condition:
    """
    Attributes:
        version: PostgreSQL's.
        is_read_only: It rejects writes: a standby, or a read-only database.
        pgvector: The extension's version in this database; None if it was not created there.
        has_pgvector: The extension is available on the server.
        n_to_apply: Number of migrations that the next start will apply.
        ahead_s: How far the server's clock is ahead of this machine's, in seconds; may be negative.
    """

    version: str
    is_read_only: bool
    pgvector: str | None
    has_pgvector: bool
    n_to_apply: int
    ahead_s: float


def condition_of(dsn: str, *, embedding_dimensions: int, deadline_s: float) -> Condition:
    """Connect and check the server; blocks. Do not call in a thread that runs an event loop.

    Args:
        embedding_dimensions: Length of vectors in the settings.

    Raises:
        Unavailable: It is away, or does not answer in time.
        InvalidInput: It rejects the login, shares sessions, or is for other dimensions. Messages hide the DSN's
            secrets.
        Corrupt: It is newer than this version, or an applied migration was changed.
    """
    read = _read(dsn)
    try:
        return asyncio.run(_in_time(read, embedding_dimensions, deadline_s))
    except TimeoutError:
        raise Unavailable(f"the database at {read} did not answer within {deadline_s:g} s") from None
    except AWAY as error:
        raise Unavailable(f"the database at {read} is away: {describe(error, read)}") from None


async def _in_time(dsn: Dsn, embedding_dimensions: int, deadline_s: float) -> Condition:
    async with asyncio.timeout(deadline_s), connected(dsn) as connection:
        asked_s = time.time()
        state = await connection.fetchrow(load_queries("server/server")["state"])
        here_s = (asked_s + time.time()) / 2
        if state is None:
            raise Unavailable(f"the database at {dsn} does not report its state")
        waiting = await not_applied(connection, embedding_dimensions=embedding_dimensions)
    return Condition(
        state["version"],
        state["is_read_only"],
        state["pgvector"],
        state["has_pgvector"],
        len(waiting),
        state["now_s"] - here_s,
    )
