"""WebRTC sound of browsers: microphone to seat, NPC voices to loudspeaker. One graph for each browser."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from aioice.ice import get_host_addresses
from loguru import logger
from pipecat.frames.frames import Frame, InputAudioRawFrame, OutputAudioRawFrame, TTSStoppedFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.transports.base_transport import TransportParams
from pipecat.transports.smallwebrtc.connection import IceServer, SmallWebRTCConnection
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport

from glyphoxa.actors.deadline import within
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.events import NpcSilent, TableEvent
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, OUTPUT_RATE_HZ, Offer, Seat, Table
from glyphoxa_pipelines.host import PipelineHost

CONNECT_WITHIN_MS = 20_000
HANG_UP_WITHIN_MS = 5_000
CLOSE_WITHIN_MS = 2 * HANG_UP_WITHIN_MS
"""Time for a connection to hang up or be cut."""
MAX_MEDIA = 4
MAX_CANDIDATES = 64
_NEVER_S = 10**9

_MDNS_CANDIDATE = re.compile(r"^(a=candidate:\S+ \d+ \S+ \d+ )(\S+\.local)( .*)$", re.IGNORECASE)
_MEDIUM = re.compile(r"^(?=m=)", re.MULTILINE)
_CANDIDATE = re.compile(r"^a=candidate:.*\n", re.MULTILINE)


class WebRtcPeers:
    """Implements `Peers`. Entry point `webrtc`.

    Args:
        connect_within_ms: Time for a browser to establish a sound connection.
    """

    def __init__(self, table: Table, *, connect_within_ms: int = CONNECT_WITHIN_MS) -> None:
        self._table = table
        self._connect_within_ms = connect_within_ms
        self._host = PipelineHost()
        self._peers: set[WebRtcPeer] = set()

    async def start(self) -> None:
        """Preload what aiortc imports on first use, which would delay ICE."""
        await asyncio.to_thread(_warm_up)

    async def connect(self, seat: Seat, offer: Offer, *, on_closed: Callable[[], None]) -> WebRtcPeer:
        """See `ConnectPeer`."""
        addresses = await asyncio.to_thread(get_host_addresses, use_ipv4=True, use_ipv6=True)
        sdp = reveal_candidates(offer.sdp, offer.remote_host, own_addresses=addresses)
        check_offer(sdp)
        servers = [IceServer(list(each.urls), each.username, each.credential) for each in offer.ice_servers]
        # Its own deadline would cancel a close halfway, and the rest would stay open.
        connection = SoundConnection(servers, connection_timeout_secs=_NEVER_S)
        peer = WebRtcPeer(self._host, connection, on_closed=on_closed, forget=self._peers.discard)
        self._peers.add(peer)
        try:
            await connection.initialize(sdp=bundle_candidates(sdp), type="offer")
            await peer.start(seat, self._table)
            peer.answer_sdp  # noqa: B018 - raises for invalid offers that aiortc detects late
        except BaseException as error:  # including cancellation: leave no connection open
            with suppress(Exception):  # aiortc may fail to close a partly created connection
                await peer.close()
            if isinstance(error, GlyphoxaError) or not isinstance(error, Exception):
                raise
            # aiortc raises many types for an invalid offer: ValueError, KeyError, ...
            logger.info("an audio offer is invalid: {}", type(error).__name__)
            raise InvalidInput(f"the audio offer is invalid ({type(error).__name__})") from error
        peer.expect_sound(within_ms=self._connect_within_ms)
        return peer

    async def close(self) -> None:
        """Close all peers, with deadlines."""
        closing = (within(CLOSE_WITHIN_MS, "a browser's audio", peer.close()) for peer in list(self._peers))
        await asyncio.gather(*closing)
        await within(HANG_UP_WITHIN_MS, "a browser's graph", self._host.close())


@dataclass(slots=True, eq=False)
class WebRtcPeer:
    """Implements `Peer`."""

    host: PipelineHost
    connection: SmallWebRTCConnection
    on_closed: Callable[[], None]
    forget: Callable[[WebRtcPeer], None]
    _closing: asyncio.Task[None] | None = None
    _release: list[Callable[[], None]] = field(default_factory=list)

    @property
    def answer_sdp(self) -> str:
        return str(self.connection.pc.localDescription.sdp)

    async def start(self, seat: Seat, table: Table) -> None:
        if (track := self.connection.audio_input_track()) is not None:
            track.set_enabled(False)  # else it warns while a browser sends nothing
        transport = SmallWebRTCTransport(
            self.connection,
            TransportParams(
                # A browser without a microphone has no track of its own.
                audio_in_enabled=any(each.receiver.track is not None for each in self.connection.pc.getTransceivers()),
                audio_in_sample_rate=INPUT_RATE_HZ,
                audio_out_enabled=True,
                audio_out_sample_rate=OUTPUT_RATE_HZ,
                audio_out_10ms_chunks=2,
            ),
        )
        transport.add_event_handler("on_client_disconnected", self._on_disconnected)
        line = await self.host.add(
            self.connection.pc_id,
            [transport.input(), BrowserMicrophone(seat.hear), transport.output()],
            on_error=lambda error: logger.warning("browser audio: {}", error),
        )

        def on_voice(_: NpcId, pcm: bytes) -> None:
            line.send(OutputAudioRawFrame(audio=pcm, sample_rate=OUTPUT_RATE_HZ, num_channels=1))

        def on_event(event: TableEvent) -> None:
            if isinstance(event, NpcSilent):
                # Play a remaining partial chunk now; otherwise it would start the next reply.
                line.send(TTSStoppedFrame())

        self._release = [table.add_sink(on_voice), table.subscribe(on_event)]

    def expect_sound(self, *, within_ms: int) -> None:
        """Give up the browser if it has no sound connection by then."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(within_ms / 1_000, self._give_up_unless_connected)
        self._release.append(timer.cancel)

    async def close(self) -> None:
        """Implements `Peer`. Returns in time even if the connection hangs."""
        if self._closing is None:
            self.forget(self)
            for release in self._release:
                release()
            # In its own task: after a cancelled close, aiortc's second close never ends.
            self._closing = asyncio.create_task(self._hang_up())
        await asyncio.wait({self._closing}, timeout=HANG_UP_WITHIN_MS / 1_000)
        if not self._closing.done():
            self._closing.cancel()
            logger.error("browser audio did not hang up in time; its sockets are closed now")
            await _cut(self.connection)
        elif not self._closing.cancelled():
            self._closing.result()

    async def _hang_up(self) -> None:
        try:
            await self.host.remove(self.connection.pc_id)
        finally:
            try:
                await self.connection.disconnect()
            except Exception as error:  # whatever aiortc raises
                logger.debug("a browser's connection did not close cleanly: {}", type(error).__name__)
                await _cut(self.connection)
                raise

    def _give_up_unless_connected(self) -> None:
        if self._closing is None and self.connection.pc.connectionState != "connected":
            logger.info("a browser could not establish an audio connection in time")
            self.on_closed()

    async def _on_disconnected(self, _transport: object, _client: object) -> None:
        if self._closing is None:
            self.on_closed()


class SoundConnection(SmallWebRTCConnection):
    """A connection without video. The base class logs a warning if an offer has no video."""

    def video_input_track(self) -> None:
        return None

    def screen_video_input_track(self) -> None:
        return None


def reveal_candidates(sdp: str, remote_host: str, *, own_addresses: list[str]) -> str:
    """Replace mDNS names by addresses in an offer's candidates.

    Without microphone permission a browser hides its addresses behind mDNS names, which many networks and most
    containers cannot resolve. The request itself shows the address: `remote_host`, or for a request over loopback an
    address of this machine.
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


def bundle_candidates(sdp: str) -> str:
    """Give all media of a bundle the candidates of the first one, through which a browser sends all of them.

    aiortc uses those of the last medium. Behind a router they lead nowhere.
    """
    head, *media = _MEDIUM.split(sdp)
    candidates = "".join(_CANDIDATE.findall(media[0])) if media else ""
    if "a=group:BUNDLE" not in head or not candidates:
        return sdp
    return "".join([head, media[0], *(_CANDIDATE.sub("", medium) + candidates for medium in media[1:])])


def check_offer(sdp: str) -> None:
    """Check the shape of an offer. aiortc checks the content of its lines.

    Raises:
        InvalidInput: The page would not send such an offer.
    """
    lines = sdp.splitlines()
    media = [line for line in lines if line.startswith("m=")]
    if not media or media[0].split()[0] != "m=audio":
        raise InvalidInput(f"the offer's first medium must be audio, not {media[0][:40] if media else 'missing'!r}")
    if len(media) > MAX_MEDIA:
        raise InvalidInput(f"the offer has {len(media)} media; the maximum is {MAX_MEDIA}")
    n_candidates = sum(line.startswith("a=candidate:") for line in lines)
    if n_candidates > MAX_CANDIDATES:
        raise InvalidInput(f"the offer has {n_candidates} candidates; the maximum is {MAX_CANDIDATES}")
    if not any(line.startswith("a=fingerprint:") for line in lines):
        raise InvalidInput("the offer has no a=fingerprint, which is needed to authenticate the sender")


async def _cut(connection: SmallWebRTCConnection) -> None:
    """Close the sockets of a connection that does not close itself."""
    transports = {transceiver.receiver.transport for transceiver in connection.pc.getTransceivers()}
    if connection.pc.sctp is not None:
        transports.add(connection.pc.sctp.transport)
    for transport in transports:
        with suppress(Exception):
            async with asyncio.timeout(HANG_UP_WITHIN_MS / 1_000):
                await transport.transport.stop()


def _warm_up() -> None:
    from aiortc.codecs import get_decoder, get_encoder
    from aiortc.rtcrtpparameters import RTCRtpCodecParameters

    opus = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48_000, channels=2, payloadType=96)
    get_encoder(opus)
    get_decoder(opus)


class BrowserMicrophone(FrameProcessor):
    """Passes one browser's sound to its seat. The sound goes no further, so players do not hear themselves."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        super().__init__()
        self._hear = hear

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self._hear(frame.audio)
        else:
            await self.push_frame(frame, direction)
