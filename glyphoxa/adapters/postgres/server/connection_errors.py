"""Why a server does not answer, in words that do not tell what its DSN keeps secret."""

from __future__ import annotations

from typing import Final

import asyncpg

from glyphoxa.domain.dsn import Dsn

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
