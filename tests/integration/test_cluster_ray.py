"""A real Ray cluster on this machine: tables placed on nodes, played through the door, and reopened when nodes die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import run
from typing import Any

import aiohttp
import pytest
import yaml

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.directory import Directory, Lease
from tests.support.live_table import write_campaign
from tests.support.patience import DEADLINE_S
from tests.support.postgres import TestServer
from tests.support.proof import proof_only

pytestmark = proof_only

BIN = Path(sys.executable).parent
N_TABLES, N_MACHINES, PER_MACHINE = 6, 3, 4
SEAT = {"player": "tamsin", "ticket": "abcdefghijklmnopqrstuvwxy", "attempt": "1"}


class Cluster:
    """The command line and the door of a cluster."""

    def __init__(self, settings: Path, dsn: str, port: int) -> None:
        self.settings, self.dsn = settings, dsn
        self.door = f"http://127.0.0.1:{port}/"

    def glyphoxa(self, *arguments: str) -> str:
        done = run(
            [BIN / "glyphoxa", *arguments, "--config", self.settings],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def leases(self) -> dict[CampaignId, Lease]:
        async with open_store(self.dsn) as store:
            return {each.campaign: each for each in await Directory(store.database, lease_ms=4_000).leases()}

    async def said(self, campaign: str) -> list[str]:
        async with open_store(self.dsn) as store, store.database.use(CampaignId(campaign)) as connection:
            rows = await connection.fetch("SELECT raw_text FROM session_entries WHERE npc_id = '' ORDER BY timestamp")
        return [row["raw_text"] for row in rows]


def ray(*arguments: str) -> None:
    environ = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "OPENAI_API_KEY": "x", "DEEPGRAM_API_KEY": "x"}
    run([BIN / "ray", *arguments], check=True, capture_output=True, timeout=DEADLINE_S, env=environ)


@pytest.fixture
def cluster(postgres: TestServer, tmp_path: Path) -> Iterator[Cluster]:
    """Three machines, as far as Ray knows, with one node each; a node holds up to four tables."""
    name = asyncio.run(postgres.create())
    dsn, port = postgres.server.dsn(name), 7_893
    settings = tmp_path / "glyphoxa.yaml"
    document = {
        "data_dir": str(tmp_path / "data"),
        "providers": {
            "stt": {"name": "deepgram-nova"},
            "llm": {"name": "openai"},
            "tts": {"name": "openai"},
            "embeddings": {"name": "none"},
        },
        "memory": {"postgres_dsn": dsn},
        "cluster": {"door_port": port, "tables_per_node": PER_MACHINE},
    }
    settings.write_text(yaml.safe_dump(document), "utf-8")
    resources = json.dumps({"glyphoxa_tables": PER_MACHINE})
    common = ("--num-cpus", "1", "--object-store-memory", "80000000", "--resources", resources)
    ray("stop", "--force")
    ray("start", "--head", "--port", "6399", "--include-dashboard=false", *common)
    for _ in range(N_MACHINES - 1):
        ray("start", "--address", "127.0.0.1:6399", *common)
    try:
        found = Cluster(settings, dsn, port)
        for n in range(N_TABLES):
            (own := tmp_path / f"c{n}").mkdir()
            file = write_campaign(own)
            file.write_text(file.read_text("utf-8").replace("id: town", f"id: town{n}"), "utf-8")
            found.glyphoxa("campaign", "load", str(file), "--yes")
        found.glyphoxa("cluster", "up", "--door", found.door)
        yield found
    finally:
        ray("stop", "--force")
        asyncio.run(postgres.drop(name))


@asynccontextmanager
async def a_page(cluster: Cluster, campaign: str, lines: list[str]) -> AsyncIterator[aiohttp.ClientSession]:
    """The browser of a player, who has opened their link."""
    [link] = [each.split()[-1] for each in lines if each.startswith("for Tamsin")]
    origin = {"Origin": cluster.door.rstrip("/")}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), headers=origin) as browser:
        await browser.get(link.split("#")[0])
        async with browser.post(f"{cluster.door}api/join", json={"token": link.split("#")[1]}) as joined:
            assert joined.status == 200, await joined.text()
        yield browser


async def say(cluster: Cluster, browser: aiohttp.ClientSession, text: str, line: str) -> None:
    """Say a line as the page does: try again until the table has it."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(10), browser.ws_connect(f"{cluster.door}ws", params=SEAT) as page:
                    await page.send_str(json.dumps({"say": text, "id": line}))
                    async for message in page:
                        told: dict[str, Any] = json.loads(message.data)
                        if told["type"] in ("utterance", "kept") and told["line"] == line:
                            return
            await asyncio.sleep(0.2)


def nodes_here() -> list[int]:
    """Return the processes of all nodes."""
    found = run(["pgrep", "-f", "ray::RayNode"], capture_output=True, text=True, check=False).stdout.split()
    return [int(pid) for pid in found]


async def test_tables_survive_the_loss_of_their_nodes(cluster: Cluster) -> None:
    campaigns = [f"town{n}" for n in range(N_TABLES)]
    lines = {each: cluster.glyphoxa("cluster", "place", each).splitlines() for each in campaigns}
    before = await cluster.leases()
    assert len({lease.node for lease in before.values()}) == N_MACHINES
    for campaign in campaigns:
        async with a_page(cluster, campaign, lines[campaign]) as browser:
            await say(cluster, browser, f"First line of {campaign}.", "f" * 16)
            os.kill(nodes_here()[0], signal.SIGKILL)
            await say(cluster, browser, f"Second line of {campaign}.", "s" * 16)
    for campaign in campaigns:
        assert await cluster.said(campaign) == [f"First line of {campaign}.", f"Second line of {campaign}."]
    after = await cluster.leases()
    assert {lease.campaign for lease in after.values() if lease.is_valid} == set(campaigns)
