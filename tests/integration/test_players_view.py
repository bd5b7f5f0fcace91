"""A whole evening, and not one byte of what the game master keeps for later in what a player or spectator is sent.

The table, its database, its pages and its desk are the real ones; ears and mouths are told what to hear and say.
"""

from __future__ import annotations

import asyncio
import errno
import html
import json
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote_plus

import httpx
import pytest
from fastapi.routing import APIRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import Degraded, MemoryChanged, TurnFinished
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import ConsentRegister, consent_text, consents_path
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.app import create_app
from glyphoxa.web.desk.frame import DeskFrame, ServedTable, add_pages
from glyphoxa.web.desk.live import add_desk
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Cause
from glyphoxa_pipelines.webrtc import WebRtcPeers
from tests.support.live_table import Evening, ToldEar, an_evening, settings_for, write_campaign
from tests.support.network import Network, a_network
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.web_table import served

Message = dict[str, Any]
ODD_BODIES = (b"", b"{", b"[]", b'{"player": "tamsin"}', b'{"token": "player.x.0..y"}', b"\xff\xfe", b"do=pause&npc=x")


@dataclass
class RecordingReader:
    """
    Attributes:
        got: Each text that was sent, in order.
        messages: Those of websockets, read.
    """

    name: str
    origin: str
    http: httpx.AsyncClient
    got: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def at(cls, origin: str, name: str) -> RecordingReader:
        http = httpx.AsyncClient(base_url=origin, timeout=DEADLINE_S, headers={"Origin": origin})
        return cls(name, origin, http)

    async def get(self, path: str) -> httpx.Response:
        return self._kept(await self.http.get(path))

    async def post(self, path: str, **content: Any) -> httpx.Response:
        """
        Args:
            content: Arguments of httpx: `json`, `data` of a form, or `content`.
        """
        return self._kept(await self.http.post(path, **content))

    async def joins(self, link: str) -> None:
        response = await self.post("/api/join", json={"token": link.partition("#")[2]})
        assert response.status_code == 200, response.text

    @asynccontextmanager
    async def opens(self, query: str) -> AsyncIterator[ClientConnection]:
        """A websocket that is read until the context ends; every message is kept."""
        async with self._connected(query) as socket:
            reading = asyncio.create_task(self._read(socket))
            try:
                yield socket
            finally:
                await socket.close()
                await reading

    async def looks_in(self, query: str) -> int:
        """Open a websocket and close it after its first message; return the status of the answer, or 101."""
        try:
            async with self._connected(query) as socket:
                while self._take(str(await socket.recv()))["type"] == "beat":
                    pass
        except InvalidStatus as refused:
            body = refused.response.body or b""
            self.got.append(f"{refused.response.headers}\n{body.decode()}")
            return refused.response.status_code
        return 101

    async def until(self, wanted: Callable[[Message], object], *, behind: int = 0) -> Message:
        """The first message that is `wanted`, of those behind so many."""
        async with asyncio.timeout(DEADLINE_S):
            while (found := next((each for each in self.messages[behind:] if wanted(each)), None)) is None:
                self._news.clear()
                await self._news.wait()
        return found

    def _connected(self, query: str) -> connect:
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        return connect(
            f"{self.origin.replace('http', 'ws', 1)}/ws?{query}",
            origin=self.origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": cookies} if cookies else {},
        )

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for text in socket:
                self._take(str(text))
        except ConnectionClosed:
            pass
        self.got.append(str(socket.close_reason))

    def _take(self, text: str) -> Message:
        self.got.append(text)
        message: Message = json.loads(text)
        self.messages.append(message)
        self._news.set()
        return message

    def _kept(self, response: httpx.Response) -> httpx.Response:
        self.got.append(f"{response.headers}\n{response.text}")
        return response


def held_in(texts: list[str], secrets: tuple[str, ...]) -> dict[str, str]:
    """Which secrets a text contains, ignoring case, accents and escapes, with the words around each."""
    wanted = {secret: plain(secret) for secret in secrets}
    found: dict[str, str] = {}
    for text in texts:
        for form in _forms(text):
            for secret, sought in wanted.items():
                at = form.find(sought)
                if at >= 0:
                    found.setdefault(secret, form[max(0, at - 200) : at + 200])
    return found


def plain(text: str) -> str:
    """Without case, accents, and what stands between words."""
    bare = "".join(sign for sign in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(sign))
    return " ".join(bare.replace("-", " ").replace("_", " ").split())


def _forms(text: str) -> Iterator[str]:
    """Yield the text as it was sent, and with the escapes of HTML, URLs and JSON decoded."""
    yield plain(text)
    yield plain(html.unescape(text))
    yield plain(unquote_plus(text))
    yield plain(text.encode("ascii", "backslashreplace").decode("unicode_escape"))
    yield plain(" ".join(_strings(text)))


def _strings(text: str) -> Iterator[str]:
    """Those of a JSON text, or of the one behind the headers; a string may hold another text."""
    try:
        left = [json.loads(text.partition("\n")[2] if text.startswith("Headers(") else text)]
    except ValueError:
        return
    while left:
        match left.pop():
            case str(one):
                yield one
            case list(many):
                left += many
            case dict(named):
                left += [*named.keys(), *named.values()]


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
        """Post the form of a line's page."""
        await self.evening.table.kept()
        async with asyncio.timeout(DEADLINE_S):  # after a cut, each connection of the desk fails once
            page = await self.dm.get(f"/desk/lines/{utterance}")
            while "location" not in page.headers:
                page = await self.dm.get(f"/desk/lines/{utterance}")
        found = re.fullmatch(r"(.*/line)\?line=(\d+)", page.headers["location"])
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
    links = Links(table.campaign, data)
    text = consent_text(settings, language=table.campaign.language)
    consents = ConsentRegister(consents_path(data, table.campaign.id), text)
    entrance = Entrance(links, consents=consents)
    async with served(table, entrance=entrance, desk=evening.desk) as url:
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
            await invited("the game master", links.dm_link()),
            _routes_of(evening, DeskFrame(table, evening.desk, entrance)),
        )
        try:
            yield house
        finally:
            for reader in (*house.outsiders, house.dm):
                await reader.http.aclose()


def _routes_of(evening: Evening, desk: DeskFrame) -> tuple[tuple[str, str], ...]:
    """Return the routes of a server that nobody asks. Parameters of a path are filled with what players may know."""
    app = create_app(evening.table, connect=WebRtcPeers(evening.table).connect, entrance=desk.entrance)
    add_desk(app, desk)
    add_pages(ServedTable(app, desk, Settings(), None, (), ClosingStack()))
    found = [
        (method, re.sub(r"\{[^}]*\}", "grimjaw", route.path))
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in sorted(route.methods)
    ]
    return tuple(found)


TOWN, GRIMJAW, NETHRA = CampaignId("town"), NpcId("grimjaw"), NpcId("nethra")

HIDDEN_NAME, FOR_GRIMJAW, LATER_NAME = "Zhârothrix", "Velmorrath", "Quibbleworth"
DM_CORRECTION = f"I was born in the tower of {HIDDEN_NAME}."
DIRECTION = "Hint that the miller lies."
TOLD_TO_THE_DM = (
    HIDDEN_NAME,
    FOR_GRIMJAW,
    LATER_NAME,
    "The Ashen Sovereign",
    "Vault of Cinders",
    "fall-of-the-keep",
    "A trapdoor lies below the anvil.",
    "The gate is rigged with powder.",
    "The crown of the town is counterfeit.",
    "he sold his brother",
    "Nobody recalls the year of salt.",
    DM_CORRECTION,
    DIRECTION,
    "401 of https://llm.provider.example/v1",
)
TOLD_TO_NOBODY = ("hunter2-of-the-keeper", "sk-live-4711")
UNTIL_MET = "Nethra"
WHISPER = "Your pocket holds a cold coin."
RETRACTED = "The ring lies under the third flagstone."
PROVIDER = "401 of https://llm.provider.example/v1"
DISK = "/srv/cellar-of-the-keeper/spool"
ODD_MESSAGES = ("{", "[]", '{"say": ""}', '{"move": "fall"}', '{"say": "x", "id": "X"}', '{"say": "%s"}' % ("x" * 700))
OTHER_ENGINE = "no answer of wss://ear.provider.example/listen"


@pytest.fixture
async def network(dsn: str) -> AsyncIterator[Network]:
    async with a_network(dsn) as network:
        network.dsn = network.dsn.replace("@", f":{TOLD_TO_NOBODY[0]}@", 1)
        yield network


@pytest.fixture
def settings(tmp_path: Path, network: Network, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr("glyphoxa.app.memory.OPEN_MS", 2_000)
    monkeypatch.setattr("glyphoxa.transcript.delivery._FIRST_PAUSE_MS", 5)
    monkeypatch.setattr("glyphoxa.transcript.delivery._LONGEST_PAUSE_MS", 20)
    monkeypatch.setenv("OPENAI_API_KEY", TOLD_TO_NOBODY[1])
    campaign = write_campaign(
        tmp_path,
        more=[
            {"name": "Nethra", "type": "npc"},
            {"name": HIDDEN_NAME, "type": "npc", "hidden": True, "aliases": ["The Ashen Sovereign"]},
            {"name": FOR_GRIMJAW, "type": "location", "known_by": ["Grimjaw"]},
            {"name": "Vault of Cinders", "type": "location", "hidden": True},
        ],
        npcs=[
            {"entity": "Grimjaw", "persona": "You are Grimjaw. In secret: he sold his brother.", "voice": "heart"},
            {"entity": "Nethra", "persona": "You are Nethra.", "voice": "heart"},
        ],
        secrets=[{"text": "The crown of the town is counterfeit.", "known_by": ["Grimjaw"]}],
        scenes=[
            {
                "id": "forge",
                "location": "The Cold Forge",
                "npcs": ["Grimjaw"],
                "description": "A trapdoor lies below the anvil.",
                "read_aloud": "Embers glow.",
            },
            {
                "id": "fall-of-the-keep",
                "location": "Vault of Cinders",
                "npcs": ["Grimjaw", "Nethra"],
                "description": "The gate is rigged with powder.",
            },
        ],
        campaign={"id": "town", "name": "The Town", "language": "en", "bible": "Nobody recalls the year of salt."},
    )
    settings = settings_for(campaign, network.dsn, tmp_path / "data")
    patient = {"recall_deadline_ms": DEADLINE_MS}
    return settings.model_copy(update={"context": settings.context.model_copy(update=patient)})


async def said(house: GuardedHouse, ear: ToldEar, raw: str, *, meant: str = "") -> Utterance:
    """Heard at the table, kept, and answered or not. The log has the name that was `meant`."""
    text = ear.say(raw, unsure="sharothrix Sharothrix")
    assert meant in text, text
    kept = await house.evening.kept(raw)
    await house.evening.until(
        lambda: [e for e in house.evening.told if isinstance(e, TurnFinished) and e.turn.text == text]
    )
    return kept


async def typed(reader: RecordingReader, socket: Any, text: str, line: str) -> None:
    await socket.send(json.dumps({"say": text, "id": line}))
    await reader.until(lambda m: m["type"] in ("utterance", "error") and m.get("line") == line)


async def names_are_put_right(house: GuardedHouse, ear: ToldEar) -> None:
    evening, desk = house.evening, house.evening.desk
    assert desk is not None
    await said(house, ear, "Grimjaw, who is sharothrix?", meant=HIDDEN_NAME)
    await said(house, ear, "Grimjaw, where is vel morrath?", meant=FOR_GRIMJAW)
    changed = evening.names_change()
    added = EntityAdded(EntityId("later"), "npc", LATER_NAME, visibility=HIDDEN)
    await desk.store.world.commit(TOWN, [added], Cause("dm", at_ms=1))
    async with asyncio.timeout(DEADLINE_S):
        await changed.wait()
    await said(house, ear, "Grimjaw, do you know quibble worth?", meant=LATER_NAME)
    await said(house, ear, "Sharothrix, come here!", meant=HIDDEN_NAME)


async def things_fail(house: GuardedHouse, ear: ToldEar, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    evening = house.evening
    evening.mouths[GRIMJAW].fails_with = PROVIDER
    await said(house, ear, "Grimjaw, what do you make of it?")
    evening.table.room.npcs[NETHRA].mailbox.post(object())  # type: ignore[arg-type]
    await house.dm.until(lambda m: m["type"] == "degraded" and m["npc"] == "Nethra")
    await house.tamsin.until(lambda m: m["type"] == "degraded" and m["npc"] is None)
    full = OSError(errno.ENOSPC, "No space left on device", DISK)

    def refuse(*_: object) -> NoReturn:
        raise full

    with monkeypatch.context() as disk:
        disk.setattr("glyphoxa.transcript.spool.os.fsync", refuse)
        ear.say("Grimjaw, is the fire out?")
        await evening.until(lambda: [e for e in evening.told if isinstance(e, Degraded) and "No space" in e.what])
    network.cut()
    await said(house, ear, "Grimjaw, did you hear that?")
    await evening.until(lambda: evening.table.health.state == "degraded")
    for reader in (*house.outsiders, house.dm):
        for path in ("/healthz", "/readyz", "/api/table", "/desk/world", "/desk/table"):
            await reader.get(path)
    network.well()
    await evening.until(
        lambda: [e for e in evening.told if isinstance(e, MemoryChanged)][-1:] and evening.table.health.state == "ok"
    )


async def the_master_acts(house: GuardedHouse, ear: ToldEar, tamsins: Any) -> None:
    evening = house.evening
    await house.command(do="direct", npc="grimjaw", text=DIRECTION, turns="3")
    await house.command(do="whisper", player="tamsin", text=WHISPER)
    await house.tamsin.until(lambda m: m["type"] == "whisper" and m["text"] == WHISPER)
    await house.command(do="say", npc="grimjaw", text="Mind the step.")
    await house.command(do="pause")
    await house.tamsin.until(lambda m: m["type"] == "paused" and m["is_paused"])
    await typed(house.tamsin, tamsins, "Is anybody there?", "tamsins0line0while0paused")
    await house.command(do="resume")
    gone = await said(house, ear, RETRACTED)
    await house.put_right(gone.id, do="retract")
    await house.tamsin.until(lambda m: m["type"] == "retracted" and m["id"] == gone.id)
    wrong = await said(house, ear, "I was born in the tower over there.")
    await house.put_right(wrong.id, do="correct", text=DM_CORRECTION)
    await house.tamsin.until(lambda m: m["type"] == "revised" and m["id"] == wrong.id)
    await evening.table.wait_until_quiet()


async def the_master_reads(house: GuardedHouse) -> None:
    """Read the desk's pages about the evening."""
    for path in (
        "/desk",
        "/desk/world",
        "/desk/secrets",
        "/desk/campaign.yaml",
        "/desk/sessions/evening/transcript.md",
        "/desk/ask?npc=grimjaw&player=tamsin&say=Who+are+you",
    ):
        assert (await house.dm.get(path)).status_code == 200, path
    for event in list(house.evening.told):
        if isinstance(event, TurnFinished):
            await house.dm.get(f"/desk/turns/{event.turn.id}")


async def an_evening_is_played(house: GuardedHouse, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    evening, tamsin, bran = house.evening, house.tamsin, house.bran
    seat = "player=tamsin&ticket=tamsins-own-ticket"
    async with tamsin.opens(f"{seat}&attempt=1") as socket, house.watcher.opens("watch=1"), house.dm.opens("watch=1"):
        welcome = await tamsin.until(lambda m: m["type"] == "welcome")
        agrees = {"player": "tamsin", "agrees": True, "text": welcome["consent"]["text"]}
        assert (await tamsin.post("/api/consent", json=agrees)).status_code == 200
        ear = await evening.ear()
        await typed(tamsin, socket, "Good evening, Grimjaw.", "tamsins0first0line")
        for odd in ODD_MESSAGES:
            await socket.send(odd)
        await names_are_put_right(house, ear)
        await things_fail(house, ear, network, monkeypatch)
        for reader in house.outsiders:
            await house.tries_everything(reader)
        await the_master_acts(house, ear, socket)
        assert not held_in(tamsin.got + bran.got + house.watcher.got, (UNTIL_MET,))
        # A reload takes the seat over; a break gives it free.
        async with tamsin.opens(f"{seat}&attempt=2"):
            await tamsin.until(lambda m: m["type"] == "welcome", behind=len(tamsin.messages))
    with monkeypatch.context() as away:

        async def refuse(*_: object) -> NoReturn:
            raise Unavailable(OTHER_ENGINE)

        away.setattr(evening.table, "seat", refuse)
        await bran.looks_in("player=bran")
        assert bran.messages[-1]["type"] == "refused"
    async with tamsin.opens(f"{seat}&attempt=3"), bran.opens("player=bran"), house.dm.opens("watch=1") as masters:
        await bran.until(lambda m: m["type"] == "welcome")
        await masters.send(json.dumps({"move": "fall-of-the-keep"}))
        await bran.until(lambda m: m["type"] == "scene" and m["scene"]["location"] == "")
        ear = await evening.ear(evening.table.campaign.players[1])
        await said(house, ear, "Nethra, have you seen sharothrix?", meant=HIDDEN_NAME)
        await the_master_reads(house)


async def test_nothing_that_is_kept_for_later_is_in_a_byte_that_a_player_or_spectator_is_sent(
    settings: Settings, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening, a_guarded_house(evening, settings) as house:
        await an_evening_is_played(house, network, monkeypatch)
        late = [house.bran]
        for reader in (house.tamsin, house.bran, house.watcher):
            assert held_in(reader.got, TOLD_TO_THE_DM + TOLD_TO_NOBODY + (OTHER_ENGINE, DISK)) == {}, reader.name
        assert held_in(house.stranger.got, (*TOLD_TO_THE_DM, "Grimjaw, ")) == {}
        assert held_in(house.bran.got + house.watcher.got, (WHISPER,)) == {}
        for reader in late:
            assert held_in(reader.got, (RETRACTED,)) == {}, reader.name
        # Whoever looks for what is nowhere finds nothing: the game master was sent all of it.
        assert held_in(house.dm.got, (*TOLD_TO_THE_DM, UNTIL_MET)).keys() == {*TOLD_TO_THE_DM, UNTIL_MET}
        assert held_in(house.dm.got, TOLD_TO_NOBODY) == {}
        assert held_in(house.tamsin.got, (WHISPER, RETRACTED)).keys() == {WHISPER, RETRACTED}

    # The evening goes on after a restart; then after one with the database away, which nobody can ask what is hidden.
    monkeypatch.setattr("glyphoxa.app.memory.FLUSH_MS", 100)
    for is_away in (False, True):
        if is_away:
            network.cut()
        async with an_evening(settings, monkeypatch) as evening, a_guarded_house(evening, settings) as house:
            for reader, query in ((house.tamsin, "player=tamsin"), (house.watcher, "watch=1")):
                assert await reader.looks_in(query) == 101
                assert any("sharothrix" in json.dumps(each) for each in reader.messages[-1]["history"])
                assert held_in(reader.got, (*TOLD_TO_THE_DM, *TOLD_TO_NOBODY, WHISPER)) == {}, is_away
                assert is_away or held_in(reader.got, (RETRACTED,)) == {}
            network.well()
