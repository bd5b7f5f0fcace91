"""How a database server is, asked from outside: nothing is migrated, written or kept open."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from glyphoxa.adapters.postgres.server.database import AWAY, connected, describe
from glyphoxa.adapters.postgres.server.migrate import not_applied
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput, Unavailable


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
        state = await connection.fetchrow(load_queries("server/condition")["state"])
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
