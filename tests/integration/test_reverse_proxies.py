"""The recipes of `deploy/` for a server with https in front: real ones, and a table behind them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext, create_default_context

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from glyphoxa.adapters.certificates import Tls, self_signed
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Grant, Role
from tests.support.patience import DEADLINE_S
from tests.support.programs import program
from tests.support.web_client import Browser, next_of
from tests.support.web_door import QUICK
from tests.support.web_table import TAMSIN, TwinTable, served

DEPLOY = Path(__file__).parents[2] / "deploy"
PLAYER = "127.0.0.5"
"""Where a player's browser is: another address of this machine than the proxy's."""
Recipe = Callable[[str, str, Tls, Path], list[str]]


def nginx(address: str, table: str, tls: Tls, place: Path) -> list[str]:
    path = program("nginx", package="nginx-light")
    recipe = (DEPLOY / "nginx.conf").read_text("utf-8")
    for ours, tests in (
        ("listen 443 ssl", f"listen {address} ssl"),
        ("/etc/letsencrypt/live/table.example/fullchain.pem", str(tls.certificate)),
        ("/etc/letsencrypt/live/table.example/privkey.pem", str(tls.key)),
        ("127.0.0.1:7860", table),
    ):
        assert ours in recipe
        recipe = recipe.replace(ours, tests)
    temporary = "".join(
        f"{name}_temp_path {place}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    account = "user root;" if os.geteuid() == 0 else ""
    (place / "nginx.conf").write_text(
        f"{account}\ndaemon off;\npid {place}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{recipe}\n}}\n"
    )
    return [path, "-e", "stderr", "-c", str(place / "nginx.conf")]


def caddy(address: str, table: str, tls: Tls, place: Path) -> list[str]:
    path = program("caddy", package="caddy")
    recipe = (DEPLOY / "Caddyfile").read_text("utf-8")
    for ours, tests in (
        ("table.example {", f"https://localhost:{address.rpartition(':')[2]} {{\n\tbind 127.0.0.1\n"
                            f"\ttls {tls.certificate} {tls.key}"),
        ("127.0.0.1:7860", table),
    ):  # fmt: skip
        assert ours in recipe
        recipe = recipe.replace(ours, tests)
    whole = f"{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {place}\n}}\n{recipe}"
    (place / "Caddyfile").write_text(whole)
    return [path, "run", "--adapter", "caddyfile", "--config", str(place / "Caddyfile")]


@dataclass
class Proxied:
    """A table behind a proxy, and its link for a player."""

    url: str
    token: str
    trust: SSLContext
    http: httpx.AsyncClient
    recorded: list[tuple[AuditKind, str]] = field(default_factory=list)

    @asynccontextmanager
    async def sits(self, player: str) -> AsyncIterator[ClientConnection]:
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        async with connect(
            f"{self.url.replace('https', 'wss', 1)}/ws?player={player}",
            origin=self.url,  # type: ignore[arg-type]
            ssl=self.trust,
            additional_headers={"Cookie": cookies},
            open_timeout=DEADLINE_S,
        ) as websocket:
            yield websocket


@asynccontextmanager
async def behind(recipe: Recipe, place: Path) -> AsyncIterator[Proxied]:
    tls = self_signed(place / "tls", ["localhost"])
    trust = create_default_context(cafile=str(tls.certificate))
    table = TwinTable()
    links = Links(table.campaign, place / "access")
    recorded: list[tuple[AuditKind, str]] = []

    def record(kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None:
        recorded.append((kind, address))

    entrance = Entrance(links, is_secure=True, record=record)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"https://localhost:{port}"
    links.served_at(f"{url}/")
    async with served(table, entrance=entrance, pulse=QUICK, trusted_proxies=("127.0.0.1",)) as own:
        command = recipe(f"127.0.0.1:{port}", own.removeprefix("http://").replace("localhost", "127.0.0.1"), tls, place)
        environment = {**os.environ, "HOME": str(place)}
        running = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            transport = httpx.AsyncHTTPTransport(verify=trust, local_address=PLAYER)
            async with httpx.AsyncClient(
                base_url=url, timeout=DEADLINE_S, headers={"Origin": url}, transport=transport
            ) as http:
                async with asyncio.timeout(DEADLINE_S):
                    while True:
                        assert running.returncode is None
                        with suppress(httpx.TransportError):
                            if (await http.get("/readyz")).is_success:
                                break
                yield Proxied(url, links.link(Grant(Role.PLAYER, TAMSIN.id)).partition("#")[2], trust, http, recorded)
        finally:
            if running.returncode is None:
                running.terminate()
            await running.wait()
    await table.close()


@pytest.mark.parametrize("recipe", [nginx, caddy])
async def test_a_player_comes_in_talks_and_hears_behind_a_server_with_https(recipe: Recipe, tmp_path: Path) -> None:
    async with behind(recipe, tmp_path) as table:
        # No client is believed about its own address.
        joined = await table.http.post(
            "/api/join", json={"token": table.token}, headers={"X-Forwarded-For": "203.0.113.9"}
        )
        assert joined.status_code == 200
        assert "secure" in joined.headers["set-cookie"].lower()
        assert (AuditKind.JOINED, PLAYER) in table.recorded
        assert (await table.http.get("/api/table")).json()["players"]
        async with table.sits("tamsin") as websocket:
            await next_of(websocket, "welcome")
            await websocket.send(json.dumps({"say": "Grimjaw, is my blade done?"}))
            spoken = await next_of(websocket, "utterance")
            assert spoken["spans"][0]["text"] == "Grimjaw, is my blade done?"
            for _ in range(3):
                await next_of(websocket, "beat")
        browser = Browser()
        offer = {"player": "tamsin", "sdp": await browser.offer(), "type": "offer"}
        await browser.accept(await table.http.post("/api/offer", json=offer))
        await browser.wait_until_connected()
        await browser.close()
        table.http.headers["Origin"] = "https://evil.example"
        assert (await table.http.post("/api/join", json={"token": table.token})).status_code == 403


async def test_without_a_proxy_nobody_says_who_asks_but_the_connection(tmp_path: Path) -> None:
    table = TwinTable()
    recorded: list[str] = []

    def record(kind: AuditKind, *, who: str = "", what: str = "", address: str = "") -> None:
        recorded.append(address)

    links = Links(table.campaign, tmp_path)
    entrance = Entrance(links, record=record)
    for trusted in ((), ("10.0.0.0/8",)):
        async with (
            served(table, entrance=entrance, trusted_proxies=trusted) as url,
            httpx.AsyncClient(base_url=url, timeout=DEADLINE_S) as http,
        ):
            assert (await http.get("/api/table", headers={"X-Forwarded-For": "203.0.113.9"})).status_code == 401
    await table.close()
    assert set(recorded) == {"127.0.0.1"}
