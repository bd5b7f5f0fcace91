"""What every connection of the program is given: its settings, its type codecs, its role, and its one campaign."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

import asyncpg
import pgvector.asyncpg
from pydantic_core import from_json

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    OwnConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]

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
