"""A live table that is served by invitation, and its four readers: two players, one who reads along, the game master.

Each keeps every byte that was sent to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi.routing import APIRoute

from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.web.access.consent import ConsentRegister, consent_text
from glyphoxa.web.access.links import Entrance, InvitedOnly, links_of
from glyphoxa.web.access.records import consents_path
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.app import create_app
from glyphoxa.web.desk.frame import DeskParts
from glyphoxa.web.desk.live import add_desk
from glyphoxa_pipelines.webrtc import build
from tests.support.live_table import Evening
from tests.support.recording_reader import RecordingReader
from tests.support.web_table import served

ODD_BODIES = (b"", b"{", b"[]", b'{"player": "tamsin"}', b'{"token": "player.x.0..y"}', b"\xff\xfe", b"do=pause&npc=x")


@dataclass
class GuardedHouse:
    """
    Attributes:
        tamsin: A player.
        bran: Another one.
        watcher: Reads along.
        stranger: Has no link.
        routes: Each method and path of the server.
    """

    evening: Evening
    tamsin: RecordingReader
    bran: RecordingReader
    watcher: RecordingReader
    stranger: RecordingReader
    dm: RecordingReader
    routes: tuple[tuple[str, str], ...]

    @property
    def outsiders(self) -> tuple[RecordingReader, ...]:
        """Everybody but the game master."""
        return self.tamsin, self.bran, self.watcher, self.stranger

    async def command(self, **told: str) -> None:
        """From the game master's live page."""
        answer = await self.dm.post("/desk/command", data=told)
        assert answer.status_code == 200, answer.text

    async def put_right(self, utterance: UtteranceId, **form: str) -> None:
        """What the page of a line posts."""
        await self.evening.table.kept()
        page = (await self.dm.get(f"/desk/lines/{utterance}")).headers["location"]
        found = re.fullmatch(r"(.*/line)\?line=(\d+)", page)
        assert found is not None
        answer = await self.dm.post(found[1], data={"line": found[2], **form})
        assert answer.status_code == 303, answer.text

    async def tries_everything(self, reader: RecordingReader) -> None:
        """Every route, with what it cannot use."""
        for method, path in self.routes:
            if method == "GET":
                await reader.get(path)
                continue
            for body in ODD_BODIES:
                await reader.post(path, content=body)
        await reader.post("/api/offer", json={"player": "tamsin", "sdp": "v=0", "type": "offer"})
        await reader.post("/api/consent", json={"player": "bran", "agrees": True, "text": "0"})
        await reader.post("/api/table", headers={"Origin": "http://evil.example"})
        for path in ("/nothing", "/static/nothing.js", "/desk/nothing", "/api/../etc/passwd"):
            await reader.get(path)
        for query in ("player=nobody", "player=bran&ticket=x", "", "watch=1&player=tamsin"):
            await reader.looks_in(query)


@asynccontextmanager
async def a_guarded_house(evening: Evening, settings: Settings) -> AsyncIterator[GuardedHouse]:
    """The table as `glyphoxa serve` serves it, and who has come in by their links. Nobody sits yet."""
    table, data = evening.table, settings.data_directory
    links = links_of(table.campaign, data)
    text = consent_text(settings, language=table.campaign.language)
    consents = ConsentRegister(consents_path(data, table.campaign.id), text)
    entrance = Entrance(InvitedOnly(table.campaign, links.register), consents=consents)
    async with served(table, entrance=entrance, desk=evening.desk, links=links) as url:
        links.served_at(f"{url}/")

        async def invited(name: str, link: str) -> RecordingReader:
            reader = RecordingReader.at(url, name)
            await reader.joins(link)
            return reader

        first, second, *_ = table.campaign.players
        house = GuardedHouse(
            evening,
            await invited(first.name, links.link(Grant(Role.PLAYER, first.id))),
            await invited(second.name, links.link(Grant(Role.PLAYER, second.id))),
            await invited("the spectator", links.link(Grant(Role.SPECTATOR))),
            RecordingReader.at(url, "a stranger"),
            await invited("the game master", links.dm_link(now_s=int(time.time()))),
            _routes_of(evening, DeskParts(table, evening.desk, entrance, links)),
        )
        try:
            yield house
        finally:
            for reader in (*house.outsiders, house.dm):
                await reader.http.aclose()


def _routes_of(evening: Evening, desk: DeskParts) -> tuple[tuple[str, str], ...]:
    """Of a server that nobody asks. What a path leaves open is filled with what players may know."""
    app = create_app(evening.table, connect=build(evening.table).connect, entrance=desk.entrance)
    add_desk(app, desk)
    found = [
        (method, re.sub(r"\{[^}]*\}", "grimjaw", route.path))
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in sorted(route.methods)
    ]
    return tuple(found)
