"""Two homes behind routers: sound goes through a TURN server, a real one, when it can go no other way."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.web.access.links import Entrance
from glyphoxa.web.sound import IceServer
from tests.support.browser import Open, sit
from tests.support.patience import DEADLINE_S
from tests.support.programs import program
from tests.support.web_table import REPLY, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SPEECH = Path(__file__).parents[2] / "demo" / "players" / "greeting.wav"
# What a page is given in a network that lets nothing through but the relay: it may use no other way.
RELAY_ALONE = """
  const Direct = RTCPeerConnection;
  window.connections = [];
  window.RTCPeerConnection = function (configuration) {
    const one = new Direct({ ...configuration, iceTransportPolicy: 'relay' });
    window.connections.push(one);
    return one;
  };
"""
WAYS = """async () => {
  const found = [];
  for (const one of window.connections) {
    const all = [...(await one.getStats()).values()];
    for (const pair of all.filter(each => each.type === 'candidate-pair' && each.nominated)) {
      found.push(all.find(each => each.id === pair.localCandidateId).candidateType);
    }
  }
  return found;
}"""


@asynccontextmanager
async def a_turn_server(secret: str, place: Path) -> AsyncIterator[str]:
    """coturn on this machine. Yields its URL."""
    turnserver = program("turnserver", package="coturn")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = await asyncio.create_subprocess_exec(
        *(turnserver, "-n", "--listening-ip=127.0.0.1", f"--listening-port={port}", "--relay-ip=127.0.0.1"),
        *("--use-auth-secret", f"--static-auth-secret={secret}", "--realm=table.example", "--fingerprint"),
        *("--allow-loopback-peers", "--no-tls", "--no-dtls", "--no-tcp", "--no-cli"),
        *("--min-port=49160", "--max-port=49200", f"--pidfile={place / 'pid'}", f"--userdb={place / 'users'}"),
        *("--log-file=stdout", "--simple-log"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "HOME": str(place)},
    )
    assert running.stdout is not None
    read = asyncio.create_task(running.stdout.read())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not _is_bound(port):
                assert running.returncode is None, (await read).decode()
                await asyncio.sleep(0.02)
        yield f"turn:127.0.0.1:{port}?transport=udp"
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()
        await asyncio.gather(read, return_exceptions=True)


def _is_bound(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


async def test_who_can_reach_nothing_but_the_relay_is_heard_and_hears(
    table: TwinTable, opened: Open, tmp_path: Path
) -> None:
    secret = secrets.token_hex(16)
    async with a_turn_server(secret, tmp_path) as turn:
        entrance = Entrance(ice_servers=(IceServer((turn,), secret),))
        async with (
            served(table, entrance=entrance) as url,
            opened(url, flags={"speech": SPEECH, "again": True}) as page,
        ):
            await page.add_init_script(RELAY_ALONE)
            await page.reload()
            await sit(page, "tamsin")
            await page.click("#talk")
            await expect(page.locator(".said.partial.mine .words")).to_contain_text("Good evening")
            await expect(page.locator("#log .said.npc .words").first).to_have_text(REPLY)
            ways = await page.evaluate(WAYS)
            assert ways
            assert set(ways) == {"relay"}
