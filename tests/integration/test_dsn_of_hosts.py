"""Connection strings as hosted databases give them, at a real server."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.domain.errors import GlyphoxaError
from tests.support.patience import DEADLINE_MS


def with_parameters(dsn: str, more: str) -> str:
    return f"{dsn}{'&' if '?' in dsn else '?'}{more}"


@pytest.mark.parametrize(
    "more",
    [
        "channel_binding=require",
        "sslmode=prefer&channel_binding=prefer",
        "connect_timeout=10",
        "gssencmode=disable&keepalives=1&keepalives_idle=30&tcp_user_timeout=1000",
        "target_session_attrs=read-write",
        "application_name=x&statement_timeout=30s",
        "options=-c%20geqo%3Doff",
        "client_encoding=UTF8",
    ],
)
async def test_parameter_of_a_host_is_accepted(dsn: str, more: str) -> None:
    async with open_store(with_parameters(dsn, more)) as store:
        await store.database.open(deadline_ms=DEADLINE_MS)
        async with store.database.administer() as connection:
            assert await connection.fetchval("SELECT 1") == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("pgbouncer=true&connection_limit=1", "pgbouncer"),
        ("schema=public", "schema"),
        ("supa=base-pooler.x", "supa"),
        ("sslmode=no-such", "parameter after `\\?`"),
        ("options=endpoint%3Dep-cool-1", "endpoint=ep-cool-1"),
        ("work_mem=much", "work_mem"),
    ],
)
async def test_parameter_that_the_server_refuses_is_named(dsn: str, more: str, why: str) -> None:
    async with open_store(with_parameters(dsn, more)) as store:
        with pytest.raises(GlyphoxaError, match=why) as raised:
            await store.database.open(deadline_ms=DEADLINE_MS)
    assert "memory.postgres_dsn" in str(raised.value)


async def test_host_that_accepts_and_never_answers_is_not_waited_for(dsn: str) -> None:
    """A primary whose machine is gone, before one that was promoted."""
    parts = urlsplit(dsn)
    given = parse_qs(parts.query)
    silent = await asyncio.start_server(lambda *_: None, "127.0.0.1")
    async with silent:
        hosts = f"127.0.0.1:{silent.sockets[0].getsockname()[1]},{quote(given['host'][0], safe='')}:{given['port'][0]}"
        async with open_store(f"postgresql://postgres@{hosts}{parts.path}") as store:
            await store.database.open(deadline_ms=DEADLINE_MS)
            async with store.database.use(None) as connection:
                assert await connection.fetchval("SELECT 1") == 1
