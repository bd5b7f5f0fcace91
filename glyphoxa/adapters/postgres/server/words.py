"""What is wrong with a server, without what its DSN keeps to itself."""

from __future__ import annotations

from typing import Final

import asyncpg

from glyphoxa.domain.dsn import Dsn

REFUSED: Final = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
"""The server is there and lets nobody in (any more): another password, a database that is restored from a backup."""


def in_words(error: BaseException, dsn: Dsn | None) -> str:
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
