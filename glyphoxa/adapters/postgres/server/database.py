"""A pool of connections that heals itself: everything that memory asks of PostgreSQL goes through `Database.use`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import asyncpg
import pgvector.asyncpg
from loguru import logger
from pydantic_core import from_json

from glyphoxa.adapters.postgres.server.migrate import migrate, not_applied
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    OwnConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]


# A pooler between the program and its server that gives one session to several clients is found out before it harms.
#
# A connection belongs to one campaign at a time by a setting of its session, and news, locks and prepared statements
# are of a session, too. A pooler that lends a server's session for a transaction only (PgBouncer: `pool_mode =
# transaction`) would let one campaign's statements run where another's rows are.


_PID = "SELECT pg_backend_pid()"
_LENT = (
    asyncpg.InvalidSQLStatementNameError,  # what was prepared in one session is not known in the next
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.ProtocolViolationError,  # a pooler that lends for a statement takes no transaction
    asyncpg.ConnectionDoesNotExistError,
)


async def is_pooled(connection: OwnConnection) -> bool:
    """Whether somebody stands in between: who answered the connection is not who answers its statements."""
    return bool(await connection.fetchval(_PID) != connection.get_server_pid())


async def keeps_sessions(one: OwnConnection, other: OwnConnection) -> bool:
    """Whether a server's session stays with its client for as long as that is connected.

    Args:
        one: A connection that is in no transaction.
        other: Another to the same address: it takes what `one` does not hold.
    """
    try:
        before = await one.fetchval(_PID)
        async with other.transaction():
            taken = await other.fetchval(_PID)
            after = await one.fetchval(_PID)
    except _LENT:
        return False
    return bool(before == after != taken)


# What every connection of the program is given: its settings, its type codecs, its role, and its one campaign.


STATEMENT_TIMEOUT_MS: Final = 10_000
SERVER_SETTINGS: Final = {"application_name": "glyphoxa"}
"""At a connection's start. PgBouncer takes no other there."""

# Everything stands in the schema `public`, and there the rules about rows are made. By itself a server looks first in a
# schema that is named like the user, if there is one: tables would be made there that no rule watches over, and
# another's functions would be taken for ours.
SEARCH_PATH: Final = "SET search_path = public"
SESSION_SETTINGS: Final = f"""
{SEARCH_PATH};
SET statement_timeout = {STATEMENT_TIMEOUT_MS};
SET idle_in_transaction_session_timeout = {STATEMENT_TIMEOUT_MS};
"""
_GENERIC_PLAN: Final = "SET plan_cache_mode = force_generic_plan"
_PLAN_AS_USUAL: Final = "RESET plan_cache_mode"

# The extension by itself filters what its index gives, and then has too little: it shall go on until there is
# enough.
_HNSW_SETTINGS: Final = """
SET hnsw.iterative_scan = relaxed_order;
SET hnsw.ef_search = 100;
SET hnsw.max_scan_tuples = 40000;
SET hnsw.scan_mem_multiplier = 2;
"""


class CampaignConnection(asyncpg.Connection):
    """A connection for which one campaign's rows are there at a time (see `0008_isolation.sql`)."""

    campaign: str | None = None
    generic_plan: bool | None = False

    async def enter(self, campaign: str, *, generic_plan: bool = False) -> None:
        if self.campaign != campaign:
            self.campaign = None  # nobody knows, until it is done
            await self.execute("SELECT set_config('glyphoxa.campaign', $1, false)", campaign)
            self.campaign = campaign
        if self.generic_plan != generic_plan:
            self.generic_plan = None
            await self.execute(_GENERIC_PLAN if generic_plan else _PLAN_AS_USUAL)
            self.generic_plan = generic_plan


async def set_up(connection: OwnConnection) -> None:
    """For a connection of the pool."""
    await connection.execute(SESSION_SETTINGS)
    await register_codecs(connection)
    await connection.execute(_HNSW_SETTINGS)
    # Superusers stand above the rules that keep campaigns apart.
    if await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        await connection.execute("SET ROLE glyphoxa_app")


async def register_codecs(connection: OwnConnection) -> None:
    """Vectors as numpy arrays, JSON as Python values."""
    await pgvector.asyncpg.register_vector(connection)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=from_json, schema="pg_catalog")


async def keep_session(_connection: OwnConnection) -> None:
    """The pool's `reset`: nothing of ours changes a session; the default would cost a round trip at each release."""


# Why a server does not answer, in words that do not tell what its DSN keeps secret.


AWAY: Final = (
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
"""The server cannot answer now; trying later may work."""

REFUSED: Final = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
"""The server is there and lets nobody in (any more): another password, a database that is restored from a backup."""


def describe(error: BaseException, dsn: Dsn | None) -> str:
    """What is wrong, without the password."""
    match error:
        case asyncpg.InvalidPasswordError():
            return "user or password is wrong (a % that is meant as such is written %25 in memory.postgres_dsn)"
        case asyncpg.InvalidAuthorizationSpecificationError():
            return "it does not know this user, or does not let it in from here (pg_hba.conf)"
        case asyncpg.InvalidCatalogNameError():
            return "it has no such database"
        case OSError():
            text = error.strerror or str(error)
        case _:
            text = str(error)
    return (text if dsn is None else dsn.hidden_in(text)) or type(error).__name__


_CONNECT_TIMEOUT_S = 5.0
_RELEASE_TIMEOUT_S = 2.0


class Database:
    """Connections to one database whose schema is up to date.

    The first use connects and migrates; a use while the server is away raises `Unavailable`, and the next one tries
    again. Nothing has to be told that the server is back.

    Args:
        dsn: A DSN, or a function that returns one, called before each reconnection. The embedded server's is made
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
        self, campaign: CampaignId | None, *, deadline_ms: int = 1000, generic_plan: bool = False
    ) -> AsyncIterator[Connection]:
        """A connection for the time of the block, which is cut off at the deadline.

        Args:
            campaign: The one whose rows there are for this connection; None for what belongs to no campaign.
            generic_plan: A statement's plan for any values is good enough, and serves from its first execution on. The
                server by default plans each read of a partitioned table again, because it assumes that all partitions
                are read until the values are known.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        with self._as_ours("answer", deadline_ms):
            async with asyncio.timeout(deadline_ms / 1000):
                pool = await self._ready()
                try:
                    connection = await pool.acquire()
                except (*AWAY, *REFUSED):
                    await self._forget(pool)
                    raise
                try:
                    await connection.enter(campaign or "", generic_plan=generic_plan)  # type: ignore[attr-defined] # passed on
                    yield connection
                except BaseException:  # cancellation included: the pool may lose no connection
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
                    await register_codecs(connection)
                    await connection.execute("SET statement_timeout = 0")
                    yield connection
            finally:
                with contextlib.suppress(TimeoutError, *AWAY):
                    await connection.close(timeout=_RELEASE_TIMEOUT_S)

    async def connect(self, *, deadline_ms: int = 5000) -> OwnConnection:
        """Open a connection outside the pool, to listen for notifications. The caller closes it.

        Raises:
            Unavailable: The server is away, or the deadline has passed.
        """
        with self._as_ours("answer", deadline_ms):
            async with asyncio.timeout(deadline_ms / 1000):
                pool = await self._ready()
                dsn = None if self._address is None else self._address.text
                try:
                    connection = await asyncpg.connect(dsn, timeout=_CONNECT_TIMEOUT_S, server_settings=SERVER_SETTINGS)
                    await connection.execute(SESSION_SETTINGS)
                    return connection
                except AWAY:
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
            except (TimeoutError, *AWAY):
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
            connection_class=CampaignConnection,
            init=set_up,
            reset=keep_session,
            server_settings=SERVER_SETTINGS,
        )
        return self._pool

    def _opened(self, task: asyncio.Task[asyncpg.Pool[asyncpg.Record]]) -> None:
        self._opening = None
        if not task.cancelled() and (error := task.exception()):
            logger.debug("no database: {}", describe(error, self._address))  # those who wait for it are told

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
                    "memory.postgres_dsn: its user has the right BYPASSRLS, so that only the queries keep campaigns "
                    "apart, not the database as well: use an ordinary user"
                )
            # When the model is changed while this process lives, it finds nothing by meaning, but all the rest.
            self._any_model = True

    @contextlib.contextmanager
    def _as_ours(self, verb: str, deadline_ms: int) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise Unavailable(f"the database did not {verb} within {deadline_ms} ms") from None
        except REFUSED as error:
            raise Unavailable(f"the database refuses: {describe(error, self._address)}") from None
        except AWAY as error:
            if isinstance(error, ValueError):
                raise  # asyncpg's word for an argument that does not fit its column: not the server's fault
            raise Unavailable(f"the database is away: {describe(error, self._address)}") from None

    async def _forget(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        """Reconnect on the next use: the server may have moved, or has to be restarted."""
        if self._pool is pool:
            self._pool = None
            pool.terminate()

    def _release_later(self, pool: asyncpg.Pool[asyncpg.Record], connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(_release(pool, connection))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)


class CampaignQueries:
    """The named queries of one `.sql` file, each on a connection of one campaign and within one deadline.

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
        async with self._database.use(campaign, deadline_ms=self.deadline_ms) as connection:
            return await connection.fetch(self._sql[query], campaign, *values)


@asynccontextmanager
async def connected(dsn: Dsn) -> AsyncIterator[OwnConnection]:
    """A connection to a server that is fit to hold memory. Nothing is written.

    Raises:
        InvalidInput: It refuses this user or database, the DSN is not one that the client takes, or a pooler stands in
            between that gives a session to several clients.
        OSError, asyncpg.PostgresError: It is away: see `AWAY`.
    """
    try:
        connection = await asyncpg.connect(dsn.text, timeout=_CONNECT_TIMEOUT_S)
    except REFUSED as error:
        raise InvalidInput(f"memory.postgres_dsn: the server refuses: {describe(error, dsn)}") from None
    except (ValueError, asyncpg.ClientConfigurationError):
        raise InvalidInput(
            f"memory.postgres_dsn: {dsn} cannot be connected to: its host, a parameter behind `?` or a variable "
            "PG... of the environment is not one that the client takes"
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
    other = await asyncpg.connect(dsn.text, timeout=_CONNECT_TIMEOUT_S)
    try:
        keeps = await keeps_sessions(connection, other)
    finally:
        with contextlib.suppress(*AWAY):
            await other.close(timeout=_RELEASE_TIMEOUT_S)
    if not keeps:
        raise InvalidInput(
            f"memory.postgres_dsn: the pooler at {dsn} gives a session of the server to several clients, which "
            "would let one campaign see another: let it keep sessions (PgBouncer: `pool_mode = session`), or "
            "name the server itself"
        )


# A superuser gives that rank up: see `set_up`.
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
        is_read_only: It takes no writes: a standby, or a database set so.
        pgvector: The version of the extension in this database; None where it was not created there.
        has_pgvector: The server has the extension, in this database or not.
        n_to_apply: Migrations that the next start will apply.
        ahead_s: How far the server's clock is ahead of this machine's, in seconds; negative is behind.
    """

    version: str
    is_read_only: bool
    pgvector: str | None
    has_pgvector: bool
    n_to_apply: int
    ahead_s: float


def condition_of(dsn: str, *, embedding_dimensions: int, deadline_s: float) -> Condition:
    """Connects and asks; blocks. Not for a thread that runs an event loop.

    Args:
        embedding_dimensions: Of the vectors that the settings want.

    Raises:
        Unavailable: It is away, or does not answer in time.
        InvalidInput: It refuses, lends its sessions, or is for other dimensions. No message shows what a DSN hides.
        Corrupt: It is newer than this program, or an applied migration was changed.
    """
    try:
        read = Dsn.read(dsn)
    except InvalidInput as error:
        raise InvalidInput(f"memory.postgres_dsn {error}") from None
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
            raise Unavailable(f"the database at {dsn} says nothing of itself")
        waiting = await not_applied(connection, embedding_dimensions=embedding_dimensions)
    return Condition(
        state["version"],
        state["is_read_only"],
        state["pgvector"],
        state["has_pgvector"],
        len(waiting),
        state["now_s"] - here_s,
    )
