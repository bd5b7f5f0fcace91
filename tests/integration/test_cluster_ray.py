"""A real Ray cluster on this machine: tables placed on nodes, played through the door, and reopened when nodes die."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from subprocess import run
from typing import Any

import aiohttp
import pytest
import yaml

from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins.cluster.directory import Directory, Lease
from tests.support.live_table import write_campaign
from tests.support.network import over_tcp
from tests.support.patience import DEADLINE_S, until
from tests.support.postgres import TestServer
from tests.support.proof import proof_only

pytestmark = proof_only

BIN = Path(sys.executable).parent
N_MACHINES, PER_MACHINE = 3, 6
NETWORK, HERE, THERE = "glyphoxa-test", "10.213.77.1", "10.213.77.2"
HEAD_PORT = "6399"
LONG_S = "36000"
SEAT_OF = {"ticket": "abcdefghijklmnopqrstuvwxy", "attempt": "1"}
OPEN_TABLES = """
import json, sys
from contextlib import suppress
from glyphoxa.plugins.cluster.ray_nodes import connect, invitations
connect(sys.argv[1])
for node in sys.argv[2].split(","):
    for campaign in sys.argv[3].split(","):
        with suppress(Exception):
            print(json.dumps([campaign, node, invitations(node, campaign)]))
"""


@dataclass
class Cluster:
    """The machines of a cluster, each with a disk of its own, the command line, and the door."""

    settings: Path
    dsn: str
    port: int
    campaigns: list[str]
    address: str = "127.0.0.1"

    @property
    def door(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def glyphoxa(self, *arguments: str) -> str:
        return command(BIN / "glyphoxa", *arguments, "--config", self.settings)

    def start(self, machine: int) -> None:
        """Start a machine; the first has the head of Ray. The last has a network of its own, if there is one."""
        is_apart = self.address == HERE and machine == N_MACHINES - 1
        within = ("ip", "netns", "exec", NETWORK) if is_apart else ()
        head = ("--head", "--port", HEAD_PORT, "--include-dashboard=false")
        resources = json.dumps({"glyphoxa_tables": PER_MACHINE, "glyphoxa_readers": 1})
        common = ("--num-cpus", "1", "--object-store-memory", "80000000", "--resources", resources)
        where = head if machine == 0 else ("--address", f"{self.address}:{HEAD_PORT}")
        own = ("--node-ip-address", THERE if is_apart else self.address)
        command(*within, BIN / "ray", "start", *where, *own, *common, GLYPHOXA_DATA=str(self.disk(machine)))

    def disk(self, machine: int) -> Path:
        return self.settings.parent / f"disk{machine}"

    def processes(self, machine: int) -> dict[int, str]:
        """Return the command line of each process of a machine: those with its disk, and what they have started."""
        mark = f"GLYPHOXA_DATA={self.disk(machine)}".encode()
        lines = [line.split(None, 2) for line in command("ps", "-eo", "pid=,ppid=,args=").splitlines()]
        found: dict[int, str] = {}
        for pid, parent, args in sorted(lines, key=lambda line: int(line[0])):
            with suppress(OSError):
                if int(parent) in found or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found[int(pid)] = args
        return found

    def kill(self, machine: int, named: str = "") -> None:
        """End the processes of a machine whose command line contains this, as a crash would."""
        for pid, args in self.processes(machine).items():
            if named in args:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def machine_of(self, node: str) -> int:
        """Return the machine with a node: the one with the directories of its tables."""
        tables = {each.campaign for each in asyncio.run(self.leases()).values() if each.node == node}
        return next(n for n in range(N_MACHINES) if any((self.disk(n) / "tables" / each).is_dir() for each in tables))

    def open_tables(self) -> list[tuple[str, str, list[str]]]:
        """Return campaign, node and links of each open table, as the nodes say; one could be open on two nodes."""
        nodes = ",".join(asyncio.run(self.nodes()))
        named = (f"{self.address}:{HEAD_PORT}", nodes, ",".join(self.campaigns))
        return sorted(map(json.loads, command(sys.executable, "-c", OPEN_TABLES, *named).splitlines()))

    async def place(self) -> None:
        """Place all tables, and wait until they are open."""
        async with open_store(self.dsn) as store, asyncio.timeout(DEADLINE_S):
            directory = Directory(store.database, lease_ms=4_000)
            for campaign in map(CampaignId, self.campaigns):
                while True:
                    if (await directory.place(campaign)).url:
                        break
                    await asyncio.sleep(0.2)

    async def load(self) -> None:
        async with open_store(self.dsn) as store:
            for campaign in self.campaigns:
                file = write_campaign(self.settings.parent)
                file.write_text(file.read_text("utf-8").replace("id: town", f"id: {campaign}"), "utf-8")
                await store.campaigns.load(read_campaign(file).campaign)

    async def nodes(self) -> list[str]:
        async with open_store(self.dsn) as store:
            return [each.name for each in await Directory(store.database, lease_ms=4_000).nodes()]

    async def leases(self) -> dict[str, Lease]:
        async with open_store(self.dsn) as store:
            return {each.campaign: each for each in await Directory(store.database, lease_ms=4_000).leases()}

    async def transcript(self, campaign: str) -> list[str]:
        async with open_store(self.dsn) as store, store.database.use(CampaignId(campaign)) as connection:
            rows = await connection.fetch("SELECT raw_text FROM session_entries WHERE npc_id = '' ORDER BY timestamp")
        return [row["raw_text"] for row in rows]


def command(*arguments: object, **environ: str) -> str:
    keys = {"RAY_USAGE_STATS_ENABLED": "0", "OPENAI_API_KEY": "x", "DEEPGRAM_API_KEY": "x"}
    keys |= {"RAY_gcs_rpc_server_reconnect_timeout_s": LONG_S}
    done = run(
        [*map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env=os.environ | keys | environ,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def a_cluster(
    postgres: TestServer, tmp_path: Path, *, tables: int, readers: int = 0, address: str = "127.0.0.1"
) -> Iterator[Cluster]:
    """Three machines, as far as Ray knows, with one node each; a node holds up to six tables."""
    name = asyncio.run(postgres.create())
    settings = tmp_path / "glyphoxa.yaml"
    stack = ExitStack()
    dsn = stack.enter_context(over_tcp(postgres.server.dsn(name), address))
    cluster = Cluster(settings, dsn, 7_893, [f"town{n}" for n in range(tables)], address)
    document = {
        "providers": {
            "stt": {"name": "deepgram-nova"},
            "llm": {"name": "openai"},
            "tts": {"name": "openai"},
            "embeddings": {"name": "none"},
        },
        "memory": {"postgres_dsn": cluster.dsn},
        "cluster": {"door_port": cluster.port, "tables_per_node": PER_MACHINE, "readers": readers},
    }
    settings.write_text(yaml.safe_dump(document), "utf-8")
    command(BIN / "ray", "stop", "--force")
    try:
        for machine in range(N_MACHINES):
            cluster.start(machine)
        asyncio.run(cluster.load())
        cluster.glyphoxa("cluster", "up", "--door", cluster.door, "--ray", f"{address}:{HEAD_PORT}")
        asyncio.run(cluster.place())
        yield cluster
    finally:
        command(BIN / "ray", "stop", "--force")
        stack.close()
        asyncio.run(postgres.drop(name))


@dataclass
class Page:
    """The browser of a player, who says line after line.

    Attributes:
        sent: Texts that the table has confirmed, in order.
        confirmed_s: When each was confirmed.
    """

    cluster: Cluster
    campaign: str
    browser: aiohttp.ClientSession
    player: str = "tamsin"
    sent: list[str] = field(default_factory=list)
    confirmed_s: list[float] = field(default_factory=list)

    async def say(self) -> None:
        """Say a line as the page does: try again until the table has it."""
        number = len(self.sent)
        text, line = f"Line {number} of {self.player} at {self.campaign}.", f"{self.player:x<12}{number:04}"
        async with asyncio.timeout(DEADLINE_S):
            while len(self.sent) == number:
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with asyncio.timeout(10):
                        await self._send(text, line)
                await asyncio.sleep(0.2)

    async def _send(self, text: str, line: str) -> None:
        seat = SEAT_OF | {"player": self.player}
        async with self.browser.ws_connect(f"{self.cluster.door}ws", params=seat) as page:
            await page.send_str(json.dumps({"say": text, "id": line}))
            async for message in page:
                event: dict[str, Any] = json.loads(message.data)
                if event["type"] == "error":
                    return  # too many lines in a short time, or the table is closing
                if event["type"] in ("utterance", "kept") and event["line"] == line:
                    self.sent.append(text)
                    self.confirmed_s.append(time.monotonic())
                    return


@asynccontextmanager
async def a_page(cluster: Cluster, campaign: str, lines: list[str], player: str = "Tamsin") -> AsyncIterator[Page]:
    """The page of a player, who has opened their link."""
    [link] = [each.split()[-1] for each in lines if each.startswith(f"for {player}")]
    origin = {"Origin": cluster.door.rstrip("/")}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), headers=origin) as browser:
        await browser.get(link.split("#")[0])
        async with browser.post(f"{cluster.door}api/join", json={"token": link.split("#")[1]}) as joined:
            assert joined.status == 200, await joined.text()
        yield Page(cluster, campaign, browser, player.lower())


async def talk(page: Page, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await page.say()
        await asyncio.sleep(1)


async def more_lines(pages: list[Page], lines: int) -> None:
    """Wait until every page has had this many more lines confirmed."""
    wanted = {page.campaign: len(page.sent) + lines for page in pages}
    await until(lambda: all(len(page.sent) >= wanted[page.campaign] for page in pages))


def report(title: str, pages: list[Page], since_s: float) -> None:
    """Print for each table how long after an incident its first line was confirmed."""
    sys.stdout.write(f"\n{title}; load {os.getloadavg()[0]:.1f}\n")
    for page in pages:
        first_s = min(at_s for at_s in page.confirmed_s if at_s > since_s) - since_s
        sys.stdout.write(f"  {page.campaign}: first line after {first_s:.1f} s, {len(page.sent)} lines\n")


async def until_stored(cluster: Cluster, pages: list[Page]) -> None:
    """Wait until the transcript log has what was confirmed, each line once and in order."""
    for page in pages:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                stored = await cluster.transcript(page.campaign)
                if [text for text in stored if f" {page.player} " in text] == page.sent:
                    break
                await asyncio.sleep(1)


async def until_read(cluster: Cluster) -> None:
    """Wait until all lines of all tables have been read."""
    async with open_store(cluster.dsn) as store, asyncio.timeout(DEADLINE_S):
        log = PostgresChronicleLog(store.database, store.world)
        for campaign in map(CampaignId, cluster.campaigns):
            while True:
                if not any(each.has_news for each in await log.progress(campaign)):
                    break
                await asyncio.sleep(0.5)


def test_readers_read_what_is_said_and_are_started_again(postgres: TestServer, tmp_path: Path) -> None:
    with a_cluster(postgres, tmp_path, tables=2, readers=2) as cluster:

        async def play() -> None:
            async with AsyncExitStack() as stack:
                tables = await asyncio.to_thread(cluster.open_tables)
                pages = [await stack.enter_async_context(a_page(cluster, name, links)) for name, _, links in tables]
                for _ in range(2):
                    await asyncio.gather(*(page.say() for page in pages))
                    await until_stored(cluster, pages)
                    await until_read(cluster)
                    for machine in range(N_MACHINES):
                        await asyncio.to_thread(cluster.kill, machine, "ray::RayReader")

        asyncio.run(play())


def test_tables_survive_the_loss_of_a_node(postgres: TestServer, tmp_path: Path) -> None:
    with a_cluster(postgres, tmp_path, tables=12) as cluster:
        links = {campaign: links for campaign, _, links in cluster.open_tables()}
        before = asyncio.run(cluster.leases())
        assert len({lease.node for lease in before.values()}) == N_MACHINES
        lost = before["town0"].node
        machine = cluster.machine_of(lost)

        async def play() -> None:
            async with AsyncExitStack() as stack:
                pages = [await stack.enter_async_context(a_page(cluster, *each)) for each in links.items()]
                stop = asyncio.Event()
                talking = [asyncio.create_task(talk(page, stop)) for page in pages]
                await more_lines(pages, 2)
                at_s = time.monotonic()
                cluster.kill(machine, "ray::RayNode")
                await more_lines(pages, 2)
                stop.set()
                await asyncio.gather(*talking)
                moved = [page for page in pages if before[page.campaign].node == lost]
                report("a node was killed: its tables", moved, at_s)
                report("the others", [page for page in pages if page not in moved], at_s)
                await until_stored(cluster, pages)

        asyncio.run(play())
        after = asyncio.run(cluster.leases())
        assert set(after) == set(before)
        for campaign, lease in after.items():
            is_moved = before[campaign].node == lost
            assert (lease.node != before[campaign].node, lease.epoch > before[campaign].epoch) == (is_moved, is_moved)
        assert [campaign for campaign, *_ in cluster.open_tables()] == sorted(cluster.campaigns)


def test_tables_play_on_without_the_head_of_ray(postgres: TestServer, tmp_path: Path) -> None:
    with a_cluster(postgres, tmp_path, tables=N_MACHINES) as cluster:
        links = {campaign: links for campaign, _, links in cluster.open_tables()}
        before = asyncio.run(cluster.leases())
        played_on = next(campaign for campaign in links if cluster.machine_of(before[campaign].node) != 0)

        async def play() -> None:
            async with AsyncExitStack() as stack:
                pages = [await stack.enter_async_context(a_page(cluster, *each)) for each in links.items()]
                await asyncio.gather(*(page.say() for page in pages))
                await until_stored(cluster, pages)  # this disk is lost with its machine
                at_s = time.monotonic()
                await asyncio.to_thread(cluster.kill, 0)  # the first machine, with the head and its node
                stop = asyncio.Event()
                talking = [asyncio.create_task(talk(page, stop)) for page in pages]
                await more_lines(pages, 4)
                newcomer = await stack.enter_async_context(a_page(cluster, played_on, links[played_on], "Bran"))
                await newcomer.say()
                stop.set()
                await asyncio.gather(*talking)
                report("the machine with the head was lost", pages, at_s)
                await until_stored(cluster, [*pages, newcomer])

        asyncio.run(play())
        after = asyncio.run(cluster.leases())
        assert all(lease.is_valid for lease in after.values())
        assert (set(after), after[played_on].epoch) == (set(before), before[played_on].epoch)


@pytest.fixture
def another_network() -> Iterator[None]:
    """A network namespace with one machine, joined to this one by a cable."""
    if os.geteuid() != 0 or which("ip") is None:
        pytest.skip("needs root and ip, for a network namespace")
    ip("netns", "add", NETWORK)
    try:
        ip("link", "add", "gx-here", "type", "veth", "peer", "gx-there", "netns", NETWORK)
        ip("addr", "add", f"{HERE}/30", "dev", "gx-here")
        ip("-n", NETWORK, "addr", "add", f"{THERE}/30", "dev", "gx-there")
        ip("-n", NETWORK, "link", "set", "gx-there", "up")
        ip("-n", NETWORK, "link", "set", "lo", "up")
        ip("link", "set", "gx-here", "up")
        yield
    finally:
        ip("netns", "del", NETWORK)


def ip(*arguments: str) -> None:
    command("ip", *arguments)


def within_network(run_there: Callable[[], None]) -> None:
    """Run in a thread that is in the other network."""
    with Path(f"/var/run/netns/{NETWORK}").open("rb") as namespace:
        assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0
    run_there()


@pytest.mark.usefixtures("another_network")
def test_a_machine_that_is_cut_off_closes_its_tables(postgres: TestServer, tmp_path: Path) -> None:
    with a_cluster(postgres, tmp_path, tables=N_MACHINES, address=HERE) as cluster:
        links = {campaign: links for campaign, _, links in cluster.open_tables()}
        before = asyncio.run(cluster.leases())
        cut_off = next(each for each in links if cluster.machine_of(before[each].node) == N_MACHINES - 1)
        pages: list[Page] = []
        stop = threading.Event()

        async def play_there() -> None:
            """Talk at the cut-off table, through the door of its machine."""
            async with a_page(cluster, cut_off, links[cut_off]) as page:
                pages.append(page)
                ended = asyncio.Event()
                talking = asyncio.create_task(talk(page, ended))
                await asyncio.to_thread(stop.wait)
                ended.set()
                await talking

        async def play_here(at_s: float) -> None:
            async with a_page(cluster, cut_off, links[cut_off], "Bran") as page:
                await page.say()
                report("a machine was cut off", [page], at_s)
                n_there = len(pages[0].sent)
                for _ in range(3):
                    await page.say()
                assert len(pages[0].sent) == n_there  # no line has gone to a second table
                ip("link", "set", "gx-here", "up")
                await more_lines(pages, 1)
                stop.set()
                await until_stored(cluster, [page, *pages])

        there = threading.Thread(target=within_network, args=(lambda: asyncio.run(play_there()),))
        there.start()
        try:
            asyncio.run(until(lambda: bool(pages and pages[0].sent)))
            ip("link", "set", "gx-here", "down")
            asyncio.run(play_here(time.monotonic()))
        finally:
            stop.set()
            there.join()
        after = asyncio.run(cluster.leases())
        assert after[cut_off].node != before[cut_off].node
        assert [campaign for campaign, *_ in cluster.open_tables()] == sorted(cluster.campaigns)
