"""The local page's server, with a table that needs no models."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame, AudioResampler
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from glyphoxa.cli.main import main
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.events import Degraded
from glyphoxa.npc.table import INPUT_RATE_HZ
from glyphoxa.web.app import MAX_OFFER_BYTES, create_app
from glyphoxa.web.guard import is_allowed_host, is_same_origin
from glyphoxa.web.serving import Interrupts, bind, url_of
from glyphoxa_pipelines.webrtc import build, reveal_candidates
from tests.support.web_table import BRAN, GRIMJAW, REPLY, SECRET, TAMSIN, TONE_HZ, TwinTable, served

WITHIN_S = 20
OPUS_RATE_HZ = 48_000


@dataclass
class Site:
    """A served table and what a browser would do there."""

    table: TwinTable
    origin: str
    http: httpx.AsyncClient

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    @asynccontextmanager
    async def sits(self, player: str, *, ticket: str = "") -> AsyncIterator[ClientConnection]:
        url = f"ws://localhost:{self.port}/ws?player={player}" + (f"&ticket={ticket}" if ticket else "")
        async with connect(url, origin=self.origin) as socket:  # type: ignore[arg-type]
            yield socket

    async def offer(self, player: str, sdp: str, **more: str) -> httpx.Response:
        return await self.http.post("/api/offer", json={"player": player, "sdp": sdp, "type": "offer", **more})

    async def seat_state(self, player: str) -> bool:
        players = (await self.http.get("/api/table")).json()["players"]
        return bool({p["id"]: p["taken"] for p in players}[player])


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    table = TwinTable()
    async with served(table) as url, httpx.AsyncClient(base_url=url) as http:
        http.headers["Origin"] = url
        yield Site(table, url, http)
    await table.close()
    assert table.seats == {}
    assert table.sinks == []
    assert table.listeners == []


async def next_of(socket: ClientConnection, *kinds: str) -> dict[str, Any]:
    async with asyncio.timeout(WITHIN_S):
        while True:
            message: dict[str, Any] = json.loads(await socket.recv())
            if message["type"] in kinds:
                return message


class Tone(MediaStreamTrack):
    """A microphone in which a tone sounds, in real time."""

    kind = "audio"

    def __init__(self, hz: int) -> None:
        super().__init__()
        self._hz = hz
        self._n = 0
        self._began = 0.0

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        self._began = self._began or loop.time()
        n = OPUS_RATE_HZ // 50
        await asyncio.sleep(max(0.0, self._began + self._n / OPUS_RATE_HZ - loop.time()))
        at = np.arange(self._n, self._n + n)
        samples = (9_000 * np.sin(2 * np.pi * self._hz * at / OPUS_RATE_HZ)).astype(np.int16)
        frame = AudioFrame.from_ndarray(samples[None, :], layout="mono")
        frame.sample_rate, frame.pts = OPUS_RATE_HZ, self._n
        self._n += n
        return frame


class Browser:
    """A WebRTC client as our page is one: audio both ways, no STUN, all candidates in the offer."""

    def __init__(self, *, microphone: MediaStreamTrack | None = None) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.connection.addTransceiver(microphone or "audio", direction="sendrecv")
        self.connection.createDataChannel("glyphoxa")
        self.heard = bytearray()
        self._is_loud = asyncio.Event()
        self._is_connected = asyncio.Event()
        self._is_closed = asyncio.Event()
        self._listening: list[asyncio.Task[None]] = []
        self.connection.on("track", lambda track: self._listening.append(asyncio.create_task(self._listen(track))))
        self.connection.on("connectionstatechange", self._on_state)

    async def offer(self) -> str:
        await self.connection.setLocalDescription(await self.connection.createOffer())
        return self.connection.localDescription.sdp

    async def accept(self, response: httpx.Response) -> str:
        assert response.status_code == 200, response.text
        answer = response.json()
        await self.connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))
        return str(answer["ticket"])

    async def wait_until_loud(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            await self._is_loud.wait()

    async def wait_until_connected(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            await self._is_connected.wait()

    async def wait_until_closed(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            await self._is_closed.wait()

    async def close(self) -> None:
        await self.connection.close()
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)

    def _on_state(self) -> None:
        if self.connection.connectionState == "connected":
            self._is_connected.set()
        elif self.connection.connectionState in ("closed", "failed"):
            self._is_closed.set()

    async def _listen(self, track: MediaStreamTrack) -> None:
        resampler = AudioResampler("s16", "mono", INPUT_RATE_HZ)
        with suppress(MediaStreamError):
            while True:
                for frame in resampler.resample(await track.recv()):
                    pcm = frame.to_ndarray().astype(np.int16)
                    if self.heard or np.abs(pcm.astype(int)).max() > 2_000:
                        self.heard += pcm.tobytes()
                    if len(self.heard) >= INPUT_RATE_HZ:  # half a second
                        self._is_loud.set()


def pitch_hz(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, np.int16).astype(float)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(samples.size)))
    return float(np.fft.rfftfreq(samples.size, 1 / INPUT_RATE_HZ)[spectrum.argmax()])


# What anybody may ask


async def test_the_page_and_all_it_needs_come_from_the_server_itself(site: Site) -> None:
    page = await site.http.get("/")
    assert page.status_code == 200
    assert "http://" not in page.text
    assert "https://" not in page.text
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    for asset in ("app.css", "icon.svg", "js/main.js", "js/voice.js"):
        response = await site.http.get(f"/static/{asset}")
        assert response.status_code == 200
        assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_file_outside_the_page_cannot_be_read(site: Site) -> None:
    assert (await site.http.get("/static/..%2fapp.py")).status_code == 404
    assert (await site.http.get("/static/nothing.js")).status_code == 404


async def test_the_table_tells_its_campaign_scene_players_and_npcs(site: Site) -> None:
    table = (await site.http.get("/api/table")).json()
    assert table["campaign"]["name"] == "The Lamps of Thornwick"
    assert table["scene"]["location"] == "The Cold Forge"
    assert [(p["id"], p["taken"]) for p in table["players"]] == [("tamsin", False), ("bran", False)]
    assert [n["name"] for n in table["npcs"]] == ["Grimjaw", "Odwina Vell"]


async def test_a_running_table_is_ready(site: Site) -> None:
    assert (await site.http.get("/readyz")).json() == {"ready": True, "session": "evening-1"}


async def test_a_table_that_is_not_open_yet_is_not_ready() -> None:
    table = TwinTable()
    transport = httpx.ASGITransport(create_app(table, connect=build(table).connect))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.get("/readyz")).status_code == 503


# Sitting down and leaving


async def test_a_player_who_sits_down_is_welcomed_and_shown_to_everyone(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        welcome = await next_of(tamsin, "welcome")
        assert welcome["player"] == {"id": "tamsin", "name": "Tamsin"}
        async with site.sits("bran"):
            seats = await next_of(tamsin, "seats")
            assert all(player["taken"] for player in seats["players"])


async def test_a_seat_that_is_taken_is_refused_and_the_free_ones_are_named(site: Site) -> None:
    async with site.sits("tamsin") as first, site.sits("tamsin") as second:
        await next_of(first, "welcome")
        refused = await next_of(second, "refused")
        assert refused["code"] == "seat_taken"
        assert "free seats: bran" in refused["message"]
        with pytest.raises(ConnectionClosed):
            await second.recv()
        assert second.close_code == 4409


@pytest.mark.parametrize("player", ["tamsim", ""])
async def test_a_player_the_campaign_does_not_know_is_refused_with_the_valid_ones(site: Site, player: str) -> None:
    async with site.sits(player) as socket:
        refused = await next_of(socket, "refused")
    assert refused["code"] == "not_found"
    assert "tamsin" in refused["message"]
    response = await site.offer(player or "nobody", "v=0")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


async def test_closing_the_page_frees_the_seat(site: Site) -> None:
    async with site.sits("bran") as bran:
        await next_of(bran, "welcome")
        async with site.sits("tamsin") as tamsin:
            await next_of(tamsin, "welcome")
            await next_of(bran, "seats")
        left = await next_of(bran, "seats")
        assert [p["taken"] for p in left["players"]] == [False, True]
    async with site.sits("tamsin") as again:
        await next_of(again, "welcome")


async def test_a_page_that_comes_back_takes_over_its_seat_and_gets_what_was_said(site: Site) -> None:
    async with site.sits("tamsin") as lost:
        ticket = (await next_of(lost, "welcome"))["ticket"]
        await lost.send(json.dumps({"say": "Good evening."}))
        await next_of(lost, "turn")
        async with site.sits("tamsin", ticket=ticket) as back:
            welcome = await next_of(back, "welcome")
            said = [m["spans"][0]["text"] for m in welcome["history"] if m["type"] == "utterance"]
            assert said == ["Good evening.", REPLY]
            with pytest.raises(ConnectionClosed):
                await next_of(lost, "nothing more")
            assert lost.close_code == 4410
            assert site.table.seats.keys() == {TAMSIN.id}


async def test_a_foreign_ticket_does_not_open_a_taken_seat(site: Site) -> None:
    async with site.sits("tamsin") as tamsin, site.sits("bran") as bran:
        await next_of(tamsin, "welcome")
        ticket = (await next_of(bran, "welcome"))["ticket"]
        async with site.sits("tamsin", ticket=ticket) as thief:
            assert (await next_of(thief, "refused"))["code"] == "seat_taken"


# What is said and shown


async def test_typed_words_are_answered_and_everyone_reads_both(site: Site) -> None:
    async with site.sits("tamsin") as tamsin, site.sits("bran") as bran:
        await next_of(bran, "welcome")
        await next_of(tamsin, "welcome")
        await tamsin.send(json.dumps({"say": "  Grimjaw, is it done?  "}))
        asked = await next_of(bran, "utterance")
        assert asked["speaker"] == {"id": "tamsin", "name": "Tamsin", "kind": "player"}
        assert asked["spans"] == [{"text": "Grimjaw, is it done?"}]
        speaks = await next_of(bran, "npc_speaks")
        assert (speaks["npc"], speaks["text"]) == (GRIMJAW.id, REPLY)
        assert (await next_of(bran, "npc_silent"))["npc"] == GRIMJAW.id
        turn = await next_of(bran, "turn")
        assert turn["outcome"] == "answered"
        assert turn["first_audio_ms"] == 1_180
        assert [bar["stage"] for bar in turn["bars"]][-1] == "first_audio"
        assert sum(bar["to_ms"] - bar["from_ms"] for bar in turn["bars"]) == 1_180


async def test_what_only_an_npc_knows_is_never_sent_to_a_page(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        await tamsin.send(json.dumps({"say": "What do you hide, Grimjaw?"}))
        while (message := await next_of(tamsin, "welcome", "utterance", "npc_speaks", "turn"))["type"] != "turn":
            assert SECRET not in json.dumps(message)
        assert SECRET not in json.dumps(message)
        assert message["recalled"] == 1


async def test_a_scene_change_reaches_every_page(site: Site) -> None:
    async with site.sits("tamsin") as tamsin, site.sits("bran") as bran:
        await next_of(bran, "welcome")
        await tamsin.send(json.dumps({"move": "inn-night"}))
        assert (await next_of(bran, "scene"))["scene"]["location"] == "The Drowned Lantern"


async def test_a_table_that_lost_something_says_so(site: Site) -> None:
    async with site.sits("tamsin") as tamsin:
        await next_of(tamsin, "welcome")
        site.table.tell(Degraded("long-term memory is away", at_ms=1))
        assert (await next_of(tamsin, "degraded"))["what"] == "long-term memory is away"


@pytest.mark.parametrize(
    "message",
    [
        "not json",
        "[]",
        "{}",
        '{"say": ""}',
        '{"say": "   "}',
        '{"say": 3}',
        '{"shout": "hello"}',
        '{"say": "a", "move": "inn-night"}',
        json.dumps({"say": "a" * 601}),
        '{"move": "nowhere"}',
        b"\x00\x01",
    ],
)
async def test_a_message_that_makes_no_sense_is_answered_and_the_page_stays(site: Site, message: str | bytes) -> None:
    async with site.sits("tamsin") as tamsin:
        await tamsin.send(message)
        assert (await next_of(tamsin, "error"))["message"]
        await tamsin.send('{"say": "Still here."}')
        await next_of(tamsin, "utterance")
        assert site.table.said == [(TAMSIN.id, "Still here.")]


# Sound


async def test_what_a_microphone_hears_reaches_the_seat_at_16_khz(site: Site) -> None:
    browser = Browser(microphone=Tone(440))
    try:
        await browser.accept(await site.offer("tamsin", await browser.offer()))
        seat = site.table.seats[TAMSIN.id]
        await site.table.wait_until(lambda: len(seat.heard) > 2 * INPUT_RATE_HZ)
        assert pitch_hz(bytes(seat.heard[-INPUT_RATE_HZ:])) == pytest.approx(440, abs=5)
    finally:
        await browser.close()


async def test_everyone_hears_the_npc_that_answers_one_of_them(site: Site) -> None:
    listeners = [Browser(), Browser()]
    try:
        for player, browser in zip(("tamsin", "bran"), listeners, strict=True):
            await browser.accept(await site.offer(player, await browser.offer()))
        for browser in listeners:
            await browser.wait_until_connected()
        site.table.say(BRAN.id, "Grimjaw, sing for us.")
        for browser in listeners:
            await browser.wait_until_loud()
            assert pitch_hz(bytes(browser.heard)) == pytest.approx(TONE_HZ, abs=5)
    finally:
        for browser in listeners:
            await browser.close()


async def test_nobody_hears_their_own_voice_or_another_players(site: Site) -> None:
    speaker, listener = Browser(microphone=Tone(440)), Browser()
    try:
        await speaker.accept(await site.offer("tamsin", await speaker.offer()))
        await listener.accept(await site.offer("bran", await listener.offer()))
        await site.table.wait_until(lambda: len(site.table.seats[TAMSIN.id].heard) > 2 * INPUT_RATE_HZ)
        assert not speaker.heard
        assert not listener.heard
    finally:
        await speaker.close()
        await listener.close()


async def test_a_peer_that_hangs_up_frees_a_seat_held_by_it_alone(site: Site) -> None:
    browser = Browser()
    await browser.accept(await site.offer("tamsin", await browser.offer()))
    assert await site.seat_state("tamsin")
    await browser.wait_until_connected()
    await browser.close()
    await site.table.wait_until(lambda: not site.table.seats)
    assert not await site.seat_state("tamsin")


async def test_a_page_connects_its_sound_with_its_ticket_and_again_when_it_broke(site: Site) -> None:
    first, second = Browser(), Browser()
    try:
        async with site.sits("tamsin") as tamsin:
            ticket = (await next_of(tamsin, "welcome"))["ticket"]
            await first.accept(await site.offer("tamsin", await first.offer(), ticket=ticket))
            await first.wait_until_connected()
            await second.accept(await site.offer("tamsin", await second.offer(), ticket=ticket))
            await second.wait_until_connected()
            await first.wait_until_closed()
            site.table.say(TAMSIN.id, "Grimjaw?")
            await second.wait_until_loud()
            assert len(site.table.sinks) == 1
        await second.wait_until_closed()
        await site.table.wait_until(lambda: not site.table.seats)
    finally:
        await first.close()
        await second.close()


async def test_sound_for_a_seat_somebody_else_sits_on_is_refused(site: Site) -> None:
    browser = Browser()
    try:
        async with site.sits("tamsin") as tamsin:
            await next_of(tamsin, "welcome")
            sdp = await browser.offer()
            for more in ({}, {"ticket": "stolen"}):
                response = await site.offer("tamsin", sdp, **more)
                assert response.status_code == 409
                assert response.json()["error"]["code"] == "seat_taken"
    finally:
        await browser.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b'{"player": "tamsin"}', 422),
        (b'{"player": "tamsin", "sdp": "v=0", "type": "answer"}', 422),
        (b'{"player": "tamsin", "sdp": "v=0", "type": "offer", "x": 1}', 422),
        (b'{"player": 7, "sdp": "v=0", "type": "offer"}', 422),
        (b'{"player": "tamsin", "sdp": "v=0", "type": "offer"}', 400),
        (b'{"player": "tamsin", "sdp": "m=video 9 X 96", "type": "offer"}', 400),
        (b'{"player": "tamsin", "sdp": "m=audio 9 UDP/TLS/RTP/SAVPF", "type": "offer"}', 400),
        (b'{"player": "tamsin", "sdp": "v=0\\r\\nm=audio x y z\\r\\na=rtpmap:q", "type": "offer"}', 400),
        (b" " * (MAX_OFFER_BYTES + 1), 413),
    ],
)
async def test_an_offer_that_cannot_be_used_is_refused_and_leaves_the_seat_free(
    site: Site, body: bytes, status: int
) -> None:
    response = await site.http.post("/api/offer", content=body)
    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]
    assert site.table.seats == {}


# Strangers


async def test_a_page_of_another_site_can_neither_connect_nor_listen(site: Site) -> None:
    for origin in ({"Origin": "http://evil.example"}, {"Origin": f"http://localhost:{site.port + 1}"}, {"Origin": ""}):
        response = await site.http.post("/api/offer", json={}, headers=origin)
        assert response.status_code == 403
    for strange in ("http://evil.example", None):
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(f"ws://localhost:{site.port}/ws?player=tamsin", origin=strange):  # type: ignore[arg-type]
                pass


async def test_a_rebound_name_is_not_served(site: Site) -> None:
    headers = {"Host": f"evil.example:{site.port}", "Origin": f"http://evil.example:{site.port}"}
    assert (await site.http.get("/api/table", headers=headers)).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:8080", "192.168.4.2:80", "table.lan:80"])
def test_hosts_that_no_stranger_can_point_here_are_served(host: str) -> None:
    assert is_allowed_host(host, allowed={"table.lan"})


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[oops"])
def test_other_hosts_are_not_served(host: str) -> None:
    assert not is_allowed_host(host, allowed={"table.lan"})


def test_an_origin_is_ours_only_when_scheme_host_and_port_are() -> None:
    assert is_same_origin("http://localhost:80", "localhost:80")
    assert not is_same_origin("file://localhost:80", "localhost:80")
    assert not is_same_origin("null", "localhost:80")
    assert not is_same_origin("http://localhost", "localhost:80")


# Serving


def test_a_port_in_use_is_named_with_the_way_out() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=rf"port {port} on 127.0.0.1 is in use; .*--port"):
            bind("127.0.0.1", port)


def test_a_table_on_a_taken_port_is_one_line_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"glyphoxa: port {port} on 127.0.0.1 is in use; choose another with --port (0 takes any free one)"
    ]


async def test_a_signal_does_what_the_phase_says_and_cuts_nothing_short() -> None:
    done: list[str] = []
    happened = asyncio.Event()

    def act(name: str) -> None:
        done.append(name)
        happened.set()

    with Interrupts() as interrupts:
        for number, phase in ((signal.SIGINT, "loading"), (signal.SIGTERM, "serving"), (signal.SIGINT, "closing")):
            happened.clear()
            interrupts.act = partial(act, phase)
            signal.raise_signal(number)
            await happened.wait()
    assert done == ["loading", "serving", "closing"]


async def test_a_server_that_is_stopped_tells_its_pages_and_frees_their_seats() -> None:
    table = TwinTable()
    async with served(table) as url:
        socket = await connect(f"{url.replace('http', 'ws')}/ws?player=tamsin", origin=url)  # type: ignore[arg-type]
        await next_of(socket, "welcome")
    with pytest.raises(ConnectionClosed):
        await next_of(socket, "nothing more")
    assert table.seats == {}
    await table.close()


@pytest.mark.parametrize(("host", "port"), [("not a host", 0), ("127.0.0.1", 70_000), ("203.0.113.9", 0)])
def test_an_address_that_cannot_be_served_is_refused(host: str, port: int) -> None:
    with pytest.raises(InvalidInput):
        bind(host, port)


def test_the_printed_address_is_one_a_browser_gives_the_microphone_to() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert url_of(listener) == f"http://localhost:{listener.getsockname()[1]}/"


def test_hidden_candidates_are_replaced_by_where_the_request_came_from() -> None:
    hidden = "a=candidate:1 1 udp 2113937151 9f0c.local 50000 typ host generation 0"
    sdp = f"v=0\r\n{hidden}\r\na=mid:0\r\n"
    assert "udp 2113937151 192.0.2.7 50000 typ host" in reveal_candidates(sdp, "192.0.2.7", own_addresses=["10.1.1.1"])
    on_this_machine = reveal_candidates(sdp, "127.0.0.1", own_addresses=["10.1.1.1", "fd00::2"])
    assert on_this_machine.count("50000 typ host") == 2
    assert ".local" not in on_this_machine
    assert reveal_candidates(sdp, "", own_addresses=[]) == sdp
