"""A pooler between the program and its server that gives one session to several clients is found out before it harms.

A connection belongs to one campaign at a time by a setting of its session, and news, locks and prepared statements are
of a session, too. A pooler that lends a server's session for a transaction only (PgBouncer: `pool_mode = transaction`)
would let one campaign's statements run where another's rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.connection import OwnConnection

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
