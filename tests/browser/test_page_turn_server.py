"""Two homes behind routers: sound goes through a TURN server, a real one, when it can go no other way."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.npc.table_interface import IceServer
from glyphoxa.web.access.links import Entrance
from tests.support.browser import Open, sit
from tests.support.turn_server import a_turn_server
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


async def test_who_can_reach_nothing_but_the_relay_is_heard_and_hears(
    table: TwinTable, opened: Open, tmp_path: Path
) -> None:
    secret = secrets.token_hex(16)
    async with a_turn_server(secret, tmp_path) as turn:
        entrance = Entrance(ice_servers=(IceServer((turn.udp,), secret),))
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
