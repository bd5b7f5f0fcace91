"""`glyphoxa cluster`: tables on several machines."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.app.transcript_reader import embeds
from glyphoxa.cli.scope import opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import Verb, argument, in_a_loop
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.directory import Directory, Lease
from glyphoxa.plugins.cluster.moving import move_campaign
from glyphoxa.plugins.cluster.reading import LATE_MS, late_campaigns
from glyphoxa.plugins.cluster.settings import ClusterSettings, database_names, settings_of
from glyphoxa.providers.extras import need

_CONFIG: Final = argument("--config", type=Path, metavar="FILE", help="settings (YAML) with memory.postgres_dsn")
_RAY: Final = argument(
    "--ray", metavar="ADDRESS", default="auto", help="the Ray cluster; default: that of this machine"
)
_OPENS_WITHIN_S: Final = 60.0

VERB = Verb(in_a_loop, common=(_CONFIG,))


@asynccontextmanager
async def _directory(options: argparse.Namespace) -> AsyncIterator[tuple[Settings, Directory]]:
    settings = settings_with_memory(options.config, to_hold="the directory of the cluster")
    if settings.memory.postgres_dsn is None:
        raise InvalidInput(
            "memory.postgres_dsn is not set: the machines of a cluster share a PostgreSQL server; name it there"
        )
    database = Database(settings.memory.postgres_dsn, any_model=True, max_connections=2)
    try:
        yield settings, Directory(database, lease_ms=settings.section(ClusterSettings).lease_ms)
    finally:
        await database.close()


@VERB.action(
    "Start a node for each share of tables on the machines of a Ray cluster; those that run stay.",
    _RAY,
    argument("--door", metavar="URL", required=True, help="the URL at which players reach the cluster"),
)
async def up(options: argparse.Namespace) -> int:
    async with _directory(options) as (settings, directory):
        need("ray", by="`glyphoxa cluster up`", extra="cluster")
        from glyphoxa.plugins.cluster.ray_nodes import connect, start_nodes, start_readers

        await directory.nodes()  # the database is there, with its tables, before any node needs them
        connect(options.ray)
        if settings.reads_talk or embeds(settings):
            start_readers(settings)
        names = await asyncio.to_thread(start_nodes, settings, door=f"{options.door.rstrip('/')}/")
        print(f"{len(names)} nodes run: {', '.join(names)}")
    return 0


@VERB.action("Close all tables in order, and end all nodes.", _RAY)
async def down(options: argparse.Namespace) -> int:
    need("ray", by="`glyphoxa cluster down`", extra="cluster")
    from glyphoxa.plugins.cluster.ray_nodes import connect, stop_nodes

    connect(options.ray)
    print(f"{await asyncio.to_thread(stop_nodes)} nodes ended")
    return 0


@VERB.action("Show the nodes and their tables.")
async def status(options: argparse.Namespace) -> int:
    async with _directory(options) as (settings, directory):
        nodes, leases = await directory.nodes(), await directory.leases()
    for node in nodes:
        print(
            f"{node.name}: {node.tables} of {node.capacity} tables, memory {node.memory_used:.0%}, "
            f"lag {node.lag_ms:.0f} ms{f' ({node.refusal})' if node.refusal else ''}"
        )
        for lease in leases:
            if lease.node == node.name:
                print(f"  {lease.campaign}: {_state(lease)}")
    if not nodes:
        print("no node runs; start them: glyphoxa cluster up")
    if settings.section(ClusterSettings).readers:
        async with aclosing(late_campaigns(settings)) as late:
            print(f"{await anext(late)} campaigns have waited for {LATE_MS / 1_000:g} s or longer to be read")
    return 0


@VERB.action(
    "Take no new tables on a node, and move its tables to others, each between two turns.",
    argument("node", help="its name, as `cluster status` shows it"),
)
async def drain(options: argparse.Namespace) -> int:
    async with _directory(options) as (_, directory):
        await directory.drain(options.node)
    print(f"{options.node} takes no more tables; its tables move between two turns: see glyphoxa cluster status")
    return 0


@VERB.action(
    "Open the table of a stored campaign on a node, and show the links to it.",
    _RAY,
    argument("campaign", help="its id"),
)
async def place(options: argparse.Namespace) -> int:
    async with _directory(options) as (settings, directory):
        async with opened_store(settings) as store:
            campaign = await stored_campaign(store, options.campaign)
        until_s = time.monotonic() + _OPENS_WITHIN_S
        while not (lease := await directory.place(campaign)).url:
            if time.monotonic() > until_s:
                raise Unavailable(f"{lease.node} does not open the table of {campaign!r}; its log says why")
            await asyncio.sleep(0.2)
        print(f"{campaign}: {_state(lease)} on {lease.node}")
        need("ray", by="`glyphoxa cluster place`", extra="cluster")
        from glyphoxa.plugins.cluster.ray_nodes import connect, invitations

        connect(options.ray)
        for line in await asyncio.to_thread(invitations, lease.node, campaign):
            print(line)
    return 0


@VERB.action(
    "Move a campaign that nobody plays to another database, and delete it where it is.",
    argument("campaign", type=CampaignId, help="its id"),
    argument("server", help='its name in cluster.servers; "" is the database of memory.postgres_dsn'),
)
async def move(options: argparse.Namespace) -> int:
    async with _directory(options) as (settings, directory):
        servers = database_names(settings)
        if options.server not in servers:
            raise InvalidInput(
                f"cluster.servers has no {options.server!r}; valid: {', '.join(map(repr, sorted(servers)))}"
            )
        now = await directory.server(options.campaign)
        if now == options.server:
            print(f"{options.campaign} is there already")
            return 0
        async with (
            opened_store(settings_of(settings, now)) as source,
            opened_store(settings_of(settings, options.server)) as target,
        ):
            campaign = await stored_campaign(source, options.campaign)
            await move_campaign(directory, campaign, options.server, source=source.database, target=target.database)
    print(f"{options.campaign} moved to {options.server or 'the database of memory.postgres_dsn'}")
    return 0


def _state(lease: Lease) -> str:
    if not lease.is_valid:
        return "lost; another node opens it"
    return f"open at {lease.url}" if lease.url else "is being opened"
