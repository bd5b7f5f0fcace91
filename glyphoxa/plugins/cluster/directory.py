"""The directory of the cluster in PostgreSQL: nodes, the lease of each open table, the database of each campaign."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.domain.errors import NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.placement import Node, choose

DEADLINE_MS: Final = 1_000
_TRIES: Final = 5
_MOST_COUNTED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a node to hold the one live table of a campaign.

    Attributes:
        server: The campaign's database, by its name in the settings; "" is the directory's own.
        epoch: Grows with each holder.
        url: Where the table is reached; "" until it is open.
        is_valid: False if it was not renewed in time: any node may take it.
    """

    campaign: CampaignId
    server: str
    node: str
    epoch: int
    url: str
    is_valid: bool


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer to a node's report.

    Attributes:
        leases: Those that the node has, with those of tables that it is to open.
        lost: Tables of all nodes that were not renewed in time.
    """

    leases: Mapping[CampaignId, Lease]
    is_draining: bool
    lost: int


class Directory:
    """Every method raises `Unavailable` while the database is away.

    Args:
        lease_ms: Validity of a lease after it was renewed.
    """

    def __init__(self, database: Database, *, lease_ms: int) -> None:
        self.lease_ms: Final = lease_ms
        self._database = database
        self._sql = load_queries("cluster")

    async def report(self, node: Node, held: Collection[Lease]) -> Reported:
        """Report that a node runs, and renew the leases that it holds, each with the address of its table."""
        tables = [each.campaign for each in held], [each.epoch for each in held], [each.url for each in held]
        state = (node.name, node.url, node.capacity, node.memory_used, node.lag_ms)
        async with self._database.use(None, deadline_ms=DEADLINE_MS) as connection, connection.transaction():
            row = await connection.fetchrow(self._sql["report"], *state)
            leases = await connection.fetch(self._sql["renew"], node.name, *tables, self.lease_ms)
        is_draining, lost = (False, 0) if row is None else (row["is_draining"], row["lost"])
        return Reported({each["campaign"]: Lease(**each) for each in leases}, is_draining, lost)

    async def place(self, campaign: CampaignId) -> Lease:
        """Return the lease of a campaign's table; place it if no node has it.

        A lease whose node was lost is returned as it is: another node takes the table over.

        Raises:
            Unavailable: No node takes it.
        """
        async with self._database.use(None, deadline_ms=DEADLINE_MS) as connection:
            for _ in range(_TRIES):
                row = await connection.fetchrow(self._sql["lease"], campaign)
                if row is not None and (row["node"] or row["is_valid"]):
                    break
                nodes = [Node(**each) for each in await connection.fetch(self._sql["nodes"], self.lease_ms)]
                node = choose(nodes, campaign)
                # No lease: somebody else was faster, and the next round finds theirs; or the node is full by now.
                await connection.fetchrow(self._sql["take"], campaign, node.name, self.lease_ms)
        if row is None:
            raise Unavailable(f"the table of {campaign!r} was not placed: all nodes are filling up; try again")
        if not row["node"]:
            raise Unavailable(f"{campaign!r} is being moved to another database; try again later")
        return Lease(**row)

    async def reserve(self, campaign: CampaignId, *, for_ms: int) -> int | None:
        """Keep a campaign closed, and return the epoch to release it with; None if its table is open."""
        epoch: int | None = await self._value("reserve", campaign, for_ms)
        return epoch

    async def nodes(self) -> list[Node]:
        return [Node(**row) for row in await self._rows("nodes", self.lease_ms)]

    async def leases(self) -> list[Lease]:
        return [Lease(**row) for row in await self._rows("leases")]

    async def unread(self, *, late_ms: int = 0) -> int:
        """Return how many campaigns of this database have waited to be read for at least `late_ms`; at most 1,000."""
        return int(await self._value("unread", late_ms, _MOST_COUNTED))

    async def adopt(self, node: str, *, most: int) -> list[CampaignId]:
        """Take over tables of lost nodes; return which."""
        return [row["campaign"] for row in await self._rows("adopt", node, most, self.lease_ms)]

    async def release(self, campaign: CampaignId, epoch: int) -> None:
        """Give a lease back, unless another node has it by now."""
        await self._value("release", campaign, epoch)

    async def drain(self, node: str) -> None:
        """
        Raises:
            NotFound: There is no such node.
        """
        if await self._value("drain", node) is None:
            known = [each.name for each in await self.nodes()]
            raise NotFound(f"there is no node {node!r}; known: {', '.join(known) or 'none'}")

    async def forget(self, node: str) -> None:
        """Remove a node that has left."""
        await self._value("forget_node", node)

    async def server(self, campaign: CampaignId) -> str:
        """Return the name of the database of a campaign; "" is the directory's own."""
        return await self._value("server", campaign) or ""

    async def assign(self, campaign: CampaignId, server: str) -> None:
        """Note the database of a campaign. The caller holds its lease."""
        await self._value("assign", campaign, server)

    async def _rows(self, query: str, *values: object) -> list[asyncpg.Record]:
        async with self._database.use(None, deadline_ms=DEADLINE_MS) as connection:
            return await connection.fetch(self._sql[query], *values)

    async def _value(self, query: str, *values: object) -> Any:
        """Return the first value of the first row; None without a row."""
        async with self._database.use(None, deadline_ms=DEADLINE_MS) as connection:
            return await connection.fetchval(self._sql[query], *values)


async def raise_epoch(database: Database, campaign: CampaignId, epoch: int) -> None:
    """Open a campaign's database to the table of this epoch, and close it to tables of earlier ones.

    Raises:
        Unavailable: A later one was opened; or the database is away.
    """
    async with database.use(campaign, deadline_ms=DEADLINE_MS) as connection:
        if await connection.fetchval(load_queries("cluster")["raise_epoch"], campaign, epoch) is None:
            raise Unavailable(f"the table of {campaign!r} was moved to another node")
    database.epochs[campaign] = epoch


async def queue_reading(database: Database, campaign: CampaignId) -> None:
    """Have the readers of the cluster read what was and will be said in a campaign.

    Raises:
        Unavailable: The database is away.
    """
    async with database.use(campaign, deadline_ms=DEADLINE_MS) as connection:
        await connection.execute(load_queries("cluster")["queue_reading"], campaign)
