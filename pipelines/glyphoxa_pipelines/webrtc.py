"""One browser's sound: its microphone to a seat, the NPCs' voices to its loudspeaker.

Each browser has a worker and a runner of its own. A runner never forgets a worker, so a shared one would grow with
every reload of a page; and a browser that falls takes nobody else along.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable

from aioice.ice import get_host_addresses
from loguru import logger
from pipecat.frames.frames import Frame, OutputAudioRawFrame, TTSStoppedFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.transports.base_transport import TransportParams
from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport
from pipecat.workers.runner import WorkerRunner

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import NpcSilent, TableEvent
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.table import INPUT_RATE_HZ, OUTPUT_RATE_HZ, Seat, Table
from glyphoxa.web.peer import Offer
from glyphoxa_processors.webrtc import Microphone

CONNECT_WITHIN_S = 20
MAX_QUEUED_FRAMES = 250
"""NPC sound that a browser may be behind (5 s of 20 ms). More means that it stopped listening."""

_MDNS_CANDIDATE = re.compile(r"^(a=candidate:\S+ \d+ \S+ \d+ )(\S+\.local)( .*)$", re.IGNORECASE)


def build(table: Table) -> WebRtcPeers:
    """The entry point: browsers at `table`."""
    return WebRtcPeers(table)


class WebRtcPeers:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._peers: set[WebRtcPeer] = set()

    async def start(self) -> None:
        """Load what pipecat and aiortc import on first use (0.3-2 s), which would otherwise delay ICE."""
        await asyncio.to_thread(_warm_up)

    async def connect(self, seat: Seat, offer: Offer, *, on_closed: Callable[[], None]) -> WebRtcPeer:
        """See `ConnectPeer`."""
        addresses = await asyncio.to_thread(_own_addresses)
        connection = await _answer(reveal_candidates(offer.sdp, offer.remote_host, own_addresses=addresses))
        peer = WebRtcPeer(self._table, seat, connection, on_closed=on_closed, forget=self._peers.discard)
        self._peers.add(peer)
        await peer.start()
        return peer

    async def close(self) -> None:
        await asyncio.gather(*(peer.close() for peer in list(self._peers)))


class WebRtcPeer:
    """See `Peer`."""

    def __init__(
        self,
        table: Table,
        seat: Seat,
        connection: SmallWebRTCConnection,
        *,
        on_closed: Callable[[], None],
        forget: Callable[[WebRtcPeer], None],
    ) -> None:
        self._table = table
        self._connection = connection
        self._on_closed = on_closed
        self._forget = forget
        self._is_closed = False
        # A browser without a microphone sends nothing: "no audio for 2 s" is not worth a warning then.
        if (track := connection.audio_input_track()) is not None:
            track.set_enabled(False)
        transport = SmallWebRTCTransport(
            connection,
            TransportParams(
                audio_in_enabled=True,
                audio_in_sample_rate=INPUT_RATE_HZ,
                audio_out_enabled=True,
                audio_out_sample_rate=OUTPUT_RATE_HZ,
                audio_out_10ms_chunks=2,
            ),
        )
        transport.add_event_handler("on_client_disconnected", self._on_disconnected)
        self._worker = PipelineWorker(
            Pipeline([transport.input(), Microphone(seat.hear), transport.output()]),
            params=PipelineParams(audio_in_sample_rate=INPUT_RATE_HZ, audio_out_sample_rate=OUTPUT_RATE_HZ),
            # A player may be silent for an hour; the default hangs up after five minutes.
            idle_timeout_secs=None,
            enable_rtvi=False,
            enable_turn_tracking=False,
        )
        self._runner = WorkerRunner(handle_sigint=False)
        self._tasks: list[asyncio.Task[None]] = []
        self._frames: asyncio.Queue[Frame] = asyncio.Queue(MAX_QUEUED_FRAMES)
        self._release: list[Callable[[], None]] = []

    @property
    def answer_sdp(self) -> str:
        return str(self._connection.pc.localDescription.sdp)

    async def start(self) -> None:
        await self._runner.add_workers(self._worker)
        self._tasks = [asyncio.create_task(self._runner.run()), asyncio.create_task(self._send())]
        self._release = [self._table.add_sink(self._on_voice), self._table.subscribe(self._on_event)]

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for release in self._release:
            release()
        await self._worker.cancel(reason="the browser left")
        running, sending = self._tasks
        sending.cancel()
        await self._runner.cancel()
        await asyncio.gather(running, sending, return_exceptions=True)
        await self._connection.disconnect()
        self._forget(self)

    def _on_voice(self, _: NpcId, pcm: bytes) -> None:
        self._offer_frame(OutputAudioRawFrame(audio=pcm, sample_rate=OUTPUT_RATE_HZ, num_channels=1))

    def _on_event(self, event: TableEvent) -> None:
        if isinstance(event, NpcSilent):
            # Plays what is left of a chunk that was not full; else it would open the next reply.
            self._offer_frame(TTSStoppedFrame())

    def _offer_frame(self, frame: Frame) -> None:
        if self._frames.full():
            self._frames.get_nowait()
        self._frames.put_nowait(frame)

    async def _send(self) -> None:
        while True:
            await self._worker.queue_frame(await self._frames.get())

    async def _on_disconnected(self, _transport: object, _client: object) -> None:
        if not self._is_closed:
            self._on_closed()


def reveal_candidates(sdp: str, remote_host: str, *, own_addresses: list[str]) -> str:
    """Replace mDNS names by addresses in an offer's candidates.

    A browser that has not been given the microphone hides its addresses behind names that only multicast can
    resolve, which many networks, and most containers, do not carry. But we know where the request came from: from
    `remote_host`, or, for a request over loopback, from an address of this machine.
    """
    try:
        addresses = own_addresses if ipaddress.ip_address(remote_host).is_loopback else [remote_host]
    except ValueError:
        return sdp
    lines: list[str] = []
    for line in sdp.splitlines():
        hidden = _MDNS_CANDIDATE.match(line)
        if hidden:
            lines += [f"{hidden[1]}{address}{hidden[3]}" for address in addresses]
        else:
            lines.append(line)
    return "\r\n".join(lines) + "\r\n"


async def _answer(sdp: str) -> SmallWebRTCConnection:
    media = [line for line in sdp.splitlines() if line.startswith("m=")]
    if not media or not media[0].startswith("m=audio"):
        raise InvalidInput(f"the offer's first medium must be audio, it is {media[0][:40] if media else 'missing'!r}")
    connection = SmallWebRTCConnection(connection_timeout_secs=CONNECT_WITHIN_S)
    try:
        await connection.initialize(sdp=sdp, type="offer")
    except Exception as error:  # aiortc's parser raises whatever the broken line leads to: ValueError, KeyError, ...
        await connection.disconnect()
        logger.info("an offer could not be read: {}", type(error).__name__)
        raise InvalidInput(f"the offer's SDP cannot be used ({type(error).__name__})") from error
    return connection


def _own_addresses() -> list[str]:
    return list(get_host_addresses(use_ipv4=True, use_ipv6=True))


def _warm_up() -> None:
    from aiortc.codecs import get_decoder, get_encoder
    from aiortc.rtcrtpparameters import RTCRtpCodecParameters
    from pipecat.audio.utils import create_stream_resampler

    opus = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48_000, channels=2, payloadType=96)
    get_encoder(opus)
    get_decoder(opus)
    create_stream_resampler()
