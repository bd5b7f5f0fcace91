"""The server's own end asks the STUN server of the settings, a real one on this machine, and pages are told of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from aioice import stun
from aioice.ice import get_host_addresses

from glyphoxa.npc.table_interface import IceServer
from glyphoxa.web.access.links import Entrance
from tests.support.patience import DEADLINE_S
from tests.support.web_client import Browser, a_site, next_of

OUTSIDE = ("192.0.2.77", 40_000)
"""The address that the STUN server reports: one for documentation."""


class StunServer(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        request = stun.parse_message(data)
        answer = stun.Message(request.message_method, stun.Class.RESPONSE, transaction_id=request.transaction_id)
        answer.attributes["XOR-MAPPED-ADDRESS"] = OUTSIDE
        self._transport.sendto(bytes(answer), addr)
        self.asked.set()


@asynccontextmanager
async def a_stun_server() -> AsyncIterator[tuple[StunServer, str]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(StunServer, local_addr=("127.0.0.1", 0))
    try:
        yield server, f"stun:127.0.0.1:{transport.get_extra_info('sockname')[1]}"
    finally:
        transport.close()


async def test_the_table_asks_for_its_outside_address_and_tells_a_page_of_the_server() -> None:
    async with (
        a_stun_server() as (server, url),
        a_site(entrance=Entrance(ice_servers=(IceServer((url,)),))) as site,
    ):
        async with site.sits("tamsin") as socket:
            assert (await next_of(socket, "welcome"))["ice_servers"] == [{"urls": [url]}]
        browser = Browser()
        await browser.accept(await site.offer("bran", await browser.offer()))
        async with asyncio.timeout(DEADLINE_S):
            await server.asked.wait()
        await browser.close()


async def test_table_sends_to_the_candidates_of_the_medium_that_carries_all() -> None:
    loop = asyncio.get_running_loop()
    (here, *_) = get_host_addresses(use_ipv4=True, use_ipv6=False)
    outside, listener = await loop.create_datagram_endpoint(StunServer, local_addr=(here, 0))
    browser = Browser()
    try:
        head, audio, data = re.split("^(?=m=)", await browser.offer(), flags=re.MULTILINE)
        candidate = f"a=candidate:1 1 udp 1 {here} {outside.get_extra_info('sockname')[1]} typ host"
        audio = re.sub("^a=candidate:.*", candidate, audio, flags=re.MULTILINE)
        data = re.sub("^(a=candidate:.*) [0-9]+ typ", r"\1 9 typ", data, flags=re.MULTILINE)
        async with a_site() as site:
            await browser.accept(await site.offer("tamsin", head + audio + data))
            async with asyncio.timeout(DEADLINE_S):
                await listener.asked.wait()
    finally:
        await browser.close()
        outside.close()
