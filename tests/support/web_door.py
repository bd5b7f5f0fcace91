"""A served table to which one comes by a link, and browsers with and without one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from websockets.asyncio.client import ClientConnection, connect

from glyphoxa.app.scope import Scope
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import AuditKind, ConsentRegister
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.app import OwnLinesOfTable
from glyphoxa.web.seats import Pulse
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.web_table import TwinTable, served

NOW = 1_800_000_000
QUICK = Pulse(every_ms=20, page_waits_ms=DEADLINE_MS, server_waits_ms=DEADLINE_MS)


@dataclass
class Door:
    """A table by invitation, and its audit log."""

    table: TwinTable
    origin: str
    links: Links
    recorded: list[tuple[AuditKind, str]] = field(default_factory=list)

    def browser(self) -> Visitor:
        headers = {"Origin": self.origin}
        # Nothing is encrypted, and reading the authorities' certificates takes longer than a request.
        return Visitor(self, httpx.AsyncClient(base_url=self.origin, timeout=DEADLINE_S, headers=headers, verify=False))

    async def invited(self, grant: Grant | None) -> Visitor:
        """A browser that has opened this link; None: none."""
        visitor = self.browser()
        if grant is not None:
            link = self.links.dm_link() if grant.role is Role.DM else self.links.link(grant)
            assert (await visitor.joins(link)).status_code == 200
        return visitor


@dataclass
class Visitor:
    door: Door
    http: httpx.AsyncClient

    async def joins(self, link: str) -> httpx.Response:
        return await self.http.post("/api/join", json={"token": link.partition("#")[2]})

    @asynccontextmanager
    async def opens(self, query: str) -> AsyncIterator[ClientConnection]:
        url = f"{self.door.origin.replace('http', 'ws', 1)}/ws?{query}"
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        headers = {"Cookie": cookies} if cookies else {}
        async with connect(url, origin=self.door.origin, additional_headers=headers) as socket:  # type: ignore[arg-type]
            yield socket

    async def offers(self, player: str, sdp: str = "v=0") -> int:
        return (await self.http.post("/api/offer", json={"player": player, "sdp": sdp, "type": "offer"})).status_code


@asynccontextmanager
async def a_door(
    directory: Path,
    table: TwinTable | None = None,
    pulse: Pulse = QUICK,
    desk: Scope | None = None,
    consents: ConsentRegister | None = None,
    remembered: OwnLinesOfTable | None = None,
) -> AsyncIterator[Door]:
    table = table or TwinTable()
    links = Links(table.campaign, directory, now_s=lambda: NOW)
    recorded: list[tuple[AuditKind, str]] = []

    def record(kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None:
        recorded.append((kind, who))

    async with served(
        table,
        entrance=Entrance(links, record=record, consents=consents),
        pulse=pulse,
        desk=desk,
        remembered=remembered,
    ) as url:
        links.served_at(f"{url}/")
        yield Door(table, url, links, recorded)
    await table.close()
