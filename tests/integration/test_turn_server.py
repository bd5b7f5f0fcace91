"""The recipe `deploy/turnserver.conf` in a real coturn: sound, passwords, and addresses that it does not reach."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aioice.stun import TransactionFailed
from aioice.turn import TurnClientUdpProtocol
from aiortc import RTCIceServer

from glyphoxa.npc.table_interface import INPUT_RATE_HZ, IceServer
from glyphoxa.web.access.links import Entrance
from tests.support.patience import DEADLINE_S
from tests.support.turn_server import HERE, TurnServer, a_turn_server
from tests.support.web_client import Browser, Tone, a_site, next_of, pitch_hz
from tests.support.web_table import TAMSIN, TONE_HZ, TwinTable

MICROPHONE_HZ = 440


@asynccontextmanager
async def client_of(server: TurnServer, secret: str) -> AsyncIterator[TurnClientUdpProtocol]:
    """A client that knows a secret, and has no relay yet."""
    one = IceServer((server.udp,), secret).offered_to("tamsin", now_s=int(time.time()))
    address = (HERE, server.port)
    transport, client = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: TurnClientUdpProtocol(address, one.username, one.credential, lifetime=600, channel_refresh_time=500),
        remote_addr=address,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield client
    finally:
        transport.close()


@pytest.mark.parametrize("way", ["udp", "tls"])
async def test_sound_passes_both_ways_through_the_relay_alone(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, table = secrets.token_hex(16), TwinTable()
    async with a_turn_server(secret, tmp_path) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        ice_servers = (IceServer((server.tls if way == "tls" else server.udp,), secret),)
        async with a_site(table, entrance=Entrance(ice_servers=ice_servers)) as site, site.sits("tamsin") as socket:
            welcome = await next_of(socket, "welcome")
            (named,) = welcome["ice_servers"]
            relay = RTCIceServer(named["urls"], named["username"], named["credential"])
            browser = Browser(microphone=Tone(MICROPHONE_HZ), relay=relay)
            try:
                offer = await browser.offer()
                assert {line.split()[7] for line in offer.splitlines() if "a=candidate" in line} == {"relay"}
                await browser.accept(await site.offer("tamsin", offer, ticket=welcome["ticket"]))
                await browser.wait_until_connected()
                seat = table.seats[TAMSIN.id]
                await table.wait_until(lambda: len(seat.heard) > 2 * INPUT_RATE_HZ)
                assert pitch_hz(bytes(seat.heard[-INPUT_RATE_HZ:])) == pytest.approx(MICROPHONE_HZ, abs=15)
                table.say(TAMSIN.id, "Grimjaw, sing for us.")
                await browser.wait_until_loud()
                assert pitch_hz(bytes(browser.heard)) == pytest.approx(TONE_HZ, abs=15)
            finally:
                await browser.close()


async def test_client_with_another_secret_gets_no_relay(tmp_path: Path) -> None:
    async with a_turn_server("ours", tmp_path) as server, client_of(server, "theirs") as client:
        with pytest.raises(TransactionFailed, match="401"):
            await client.connect()


async def test_relay_reaches_no_private_address(tmp_path: Path) -> None:
    private = ("10.0.0.1", "100.64.0.1", "127.0.0.9", "169.254.169.254", "172.17.0.1", "192.168.1.1", "0.0.0.0")
    async with a_turn_server("ours", tmp_path) as server, client_of(server, "ours") as client:
        _, port = await client.connect()
        assert 49_160 <= port <= 49_359
        for n, address in enumerate(private):
            with pytest.raises(TransactionFailed, match="403"):
                await client.channel_bind(0x4000 + n, (address, 80))
        await client.channel_bind(0x5000, ("93.184.216.34", 80))
