"""Clients of the local page: one that reads and types, and one that speaks and hears as a browser does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtcconfiguration import RTCIceTransportPolicy
from av import AudioFrame, AudioResampler
from websockets.asyncio.client import ClientConnection, connect

from glyphoxa.npc.table_interface import INPUT_RATE_HZ
from tests.support.patience import DEADLINE_S
from tests.support.web_table import TwinTable, served

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
    async def sits(self, player: str, *, ticket: str = "", attempt: int = 0) -> AsyncIterator[ClientConnection]:
        url = f"ws://localhost:{self.port}/ws?player={player}&attempt={attempt}"
        url += f"&ticket={ticket}" if ticket else ""
        async with connect(url, origin=self.origin, open_timeout=DEADLINE_S) as socket:  # type: ignore[arg-type]
            yield socket

    async def offer(self, player: str, sdp: str, **more: str) -> httpx.Response:
        return await self.http.post("/api/offer", json={"player": player, "sdp": sdp, "type": "offer", **more})

    async def seat_state(self, player: str) -> bool:
        players = (await self.http.get("/api/table")).json()["players"]
        return bool({p["id"]: p["taken"] for p in players}[player])


@asynccontextmanager
async def a_site(table: TwinTable | None = None, **options: Any) -> AsyncIterator[Site]:
    """A served twin table. In the end everyone has left it and nothing listens to it any more.

    Args:
        options: Options of `served`.
    """
    table = table or TwinTable()
    async with served(table, **options) as url, httpx.AsyncClient(base_url=url, timeout=DEADLINE_S) as http:
        http.headers["Origin"] = url
        yield Site(table, url, http)
    await table.close()
    assert table.seats == {}
    assert table.sinks == []
    assert table.listeners == []


async def next_of(socket: ClientConnection, *kinds: str) -> dict[str, Any]:
    async with asyncio.timeout(DEADLINE_S):
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


class Speech(MediaStreamTrack):
    """A microphone into which somebody speaks once, in real time, after a second; then it is silent.

    Args:
        pcm: Mono s16le at `OPUS_RATE_HZ`.
    """

    kind = "audio"

    def __init__(self, pcm: bytes) -> None:
        super().__init__()
        self._samples = np.concatenate([np.zeros(OPUS_RATE_HZ, np.int16), np.frombuffer(pcm, np.int16)])
        self._n = 0
        self._began = 0.0

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        self._began = self._began or loop.time()
        n = OPUS_RATE_HZ // 50
        await asyncio.sleep(max(0.0, self._began + self._n / OPUS_RATE_HZ - loop.time()))
        samples = self._samples[self._n : self._n + n]
        frame = AudioFrame.from_ndarray(np.pad(samples, (0, n - samples.size))[None, :], layout="mono")
        frame.sample_rate, frame.pts = OPUS_RATE_HZ, self._n
        self._n += n
        return frame


class Browser:
    """A WebRTC client as our page is one: audio both ways, no STUN, all candidates in the offer.

    Args:
        relay: A TURN server, without which the client can reach nobody. None: it needs none.
    """

    def __init__(self, *, microphone: MediaStreamTrack | None = None, relay: RTCIceServer | None = None) -> None:
        policy = RTCIceTransportPolicy.ALL if relay is None else RTCIceTransportPolicy.RELAY
        servers = [] if relay is None else [relay]
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=servers, iceTransportPolicy=policy))
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
        async with asyncio.timeout(DEADLINE_S):
            await self._is_loud.wait()

    async def wait_until_connected(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self._is_connected.wait()

    async def wait_until_closed(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
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
    """Return the pitch of most moments of a sound: on a busy machine, it has gaps."""
    n = INPUT_RATE_HZ // 40
    samples = np.frombuffer(pcm, np.int16).astype(float)
    moments = samples[: samples.size // n * n].reshape(-1, n) * np.hanning(n)
    loudest = np.abs(moments).max(axis=1)
    steps_of_1_hz = np.abs(np.fft.rfft(moments[loudest > loudest.max() / 2], INPUT_RATE_HZ))
    return float(np.median(steps_of_1_hz.argmax(axis=1)))
