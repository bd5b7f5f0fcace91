"""One browser's sound: its microphone to a seat, the NPCs' voices to its loudspeaker. One graph a browser."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from aioice.ice import get_host_addresses
from loguru import logger
from pipecat.frames.frames import OutputAudioRawFrame, TTSStoppedFrame
from pipecat.transports.base_transport import TransportParams
from pipecat.transports.smallwebrtc.connection import IceServer, SmallWebRTCConnection
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport

from glyphoxa.actors.deadline import within
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.events import NpcSilent, TableEvent
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.table import INPUT_RATE_HZ, OUTPUT_RATE_HZ, Seat, Table
from glyphoxa.web.sound import Offer, OfferedServer
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.webrtc import BrowserMicrophone

CONNECT_WITHIN_MS = 20_000
HANG_UP_WITHIN_MS = 5_000
CLOSE_WITHIN_MS = 2 * HANG_UP_WITHIN_MS
"""Of a connection that is hung up, or else cut."""
MOST_MEDIA = 4
MOST_CANDIDATES = 64
_NEVER_S = 10**9
MAX_QUEUED_FRAMES = 250
"""NPC sound that a browser may be behind (5 s of 20 ms). More means that it stopped listening."""

_MDNS_CANDIDATE = re.compile(r"^(a=candidate:\S+ \d+ \S+ \d+ )(\S+\.local)( .*)$", re.IGNORECASE)


def build(table: Table) -> WebRtcPeers:
    """The entry point: browsers at `table`."""
    return WebRtcPeers(table)


class WebRtcPeers:
    """See `Peers`.

    Args:
        connect_within_ms: A browser whose sound has no path to here by then is given up.
    """

    def __init__(
        self,
        table: Table,
        *,
        connect_within_ms: int = CONNECT_WITHIN_MS,
        host: PipelineHost | None = None,
    ) -> None:
        self._table = table
        self._connect_within_ms = connect_within_ms
        self._host = host or PipelineHost()
        self._peers: set[WebRtcPeer] = set()

    async def start(self) -> None:
        """Load what aiortc imports on first use, which would otherwise delay ICE."""
        await asyncio.to_thread(_warm_up)

    async def connect(self, seat: Seat, offer: Offer, *, on_closed: Callable[[], None]) -> WebRtcPeer:
        """See `ConnectPeer`."""
        addresses = await asyncio.to_thread(_own_addresses)
        sdp = reveal_candidates(offer.sdp, offer.remote_host, own_addresses=addresses)
        connection = await _answer(sdp, offer.ice_servers)
        peer = WebRtcPeer(self._host, connection, on_closed=on_closed, forget=self._peers.discard)
        self._peers.add(peer)
        try:
            await peer.start(seat, self._table)
            peer.answer_sdp  # noqa: B018 - there is none when the offer was odd in a way that aiortc notices last
        except GlyphoxaError:
            await peer.close()
            raise
        except Exception as error:  # an odd offer shows only now that it is one
            await peer.close()
            raise InvalidInput(f"the offer's sound cannot be used ({type(error).__name__})") from error
        except BaseException:  # also of who is cancelled: no connection is left open
            await peer.close()
            raise
        peer.expect_sound(within_ms=self._connect_within_ms)
        return peer

    async def close(self) -> None:
        """In time, whatever a connection does."""
        closing = (within(CLOSE_WITHIN_MS, "a browser's sound", peer.close()) for peer in list(self._peers))
        await asyncio.gather(*closing)
        await within(HANG_UP_WITHIN_MS, "a browser's graph", self._host.close())


class WebRtcPeer:
    """See `Peer`."""

    def __init__(
        self,
        host: PipelineHost,
        connection: SmallWebRTCConnection,
        *,
        on_closed: Callable[[], None],
        forget: Callable[[WebRtcPeer], None],
    ) -> None:
        self._host = host
        self._connection = connection
        self._on_closed = on_closed
        self._forget = forget
        self._closing: asyncio.Task[None] | None = None
        self._release: list[Callable[[], None]] = []

    @property
    def answer_sdp(self) -> str:
        return str(self._connection.pc.localDescription.sdp)

    async def start(self, seat: Seat, table: Table) -> None:
        # A browser without a microphone sends nothing: "no audio for 2 s" is not worth a warning then.
        if (track := self._connection.audio_input_track()) is not None:
            track.set_enabled(False)
        transport = SmallWebRTCTransport(
            self._connection,
            TransportParams(
                audio_in_enabled=True,
                audio_in_sample_rate=INPUT_RATE_HZ,
                audio_out_enabled=True,
                audio_out_sample_rate=OUTPUT_RATE_HZ,
                audio_out_10ms_chunks=2,
            ),
        )
        transport.add_event_handler("on_client_disconnected", self._on_disconnected)
        line = await self._host.add(
            self._connection.pc_id,
            [transport.input(), BrowserMicrophone(seat.hear), transport.output()],
            on_error=lambda error: logger.warning("a browser's sound: {}", error),
            longest_queue=MAX_QUEUED_FRAMES,
        )

        def on_voice(_: NpcId, pcm: bytes) -> None:
            line.send(OutputAudioRawFrame(audio=pcm, sample_rate=OUTPUT_RATE_HZ, num_channels=1))

        def on_event(event: TableEvent) -> None:
            if isinstance(event, NpcSilent):
                # Plays what is left of a chunk that was not full; else it would open the next reply.
                line.send(TTSStoppedFrame())

        self._release = [table.add_sink(on_voice), table.subscribe(on_event)]

    def expect_sound(self, *, within_ms: int) -> None:
        """Give the browser up if there is no path for sound by then."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(within_ms / 1_000, self._give_up_unless_connected)
        self._release.append(timer.cancel)

    async def close(self) -> None:
        """See `Peer`. Returns in time, whatever the connection does."""
        if self._closing is None:
            self._forget(self)
            for release in self._release:
                release()
            # In a task of its own: aiortc never ends the second close of a connection whose first was cancelled.
            self._closing = asyncio.create_task(self._hang_up())
        await asyncio.wait({self._closing}, timeout=HANG_UP_WITHIN_MS / 1_000)
        if not self._closing.done():
            self._closing.cancel()
            logger.error("a browser's sound did not hang up in time: its sockets are closed all the same")
            await _cut(self._connection)
        elif not self._closing.cancelled():
            self._closing.result()

    async def _hang_up(self) -> None:
        try:
            await self._host.remove(self._connection.pc_id)
        finally:
            await self._connection.disconnect()

    def _give_up_unless_connected(self) -> None:
        if self._closing is None and self._connection.pc.connectionState != "connected":
            logger.info("a browser's sound found no path to here in time")
            self._on_closed()

    async def _on_disconnected(self, _transport: object, _client: object) -> None:
        if self._closing is None:
            self._on_closed()


class SoundConnection(SmallWebRTCConnection):
    """A connection without pictures: looking for them in an offer that has none logs a warning each time."""

    def video_input_track(self) -> None:
        return None

    def screen_video_input_track(self) -> None:
        return None


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


def check_offer(sdp: str) -> None:
    """Whether an offer has the shape that the page's has. What its lines mean, aiortc finds out.

    Raises:
        InvalidInput: It has not.
    """
    lines = sdp.splitlines()
    media = [line for line in lines if line.startswith("m=")]
    if not media or media[0].split()[0] != "m=audio":
        raise InvalidInput(f"the offer's first medium must be audio, it is {media[0][:40] if media else 'missing'!r}")
    if len(media) > MOST_MEDIA:
        raise InvalidInput(f"the offer has {len(media)} media; at most {MOST_MEDIA} are taken")
    n_candidates = sum(line.startswith("a=candidate:") for line in lines)
    if n_candidates > MOST_CANDIDATES:
        raise InvalidInput(f"the offer has {n_candidates} candidates; at most {MOST_CANDIDATES} are taken")
    if not any(line.startswith("a=fingerprint:") for line in lines):
        raise InvalidInput("the offer has no a=fingerprint: without it nobody knows whom the sound comes from")


async def _answer(sdp: str, ice_servers: Sequence[OfferedServer]) -> SmallWebRTCConnection:
    check_offer(sdp)
    servers = [IceServer(list(each.urls), each.username, each.credential) for each in ice_servers]
    # Its own deadline cancels the close that it began, half done, and what is left never closes.
    connection = SoundConnection(servers, connection_timeout_secs=_NEVER_S)
    try:
        await connection.initialize(sdp=sdp, type="offer")
    except Exception as error:  # aiortc's parser raises whatever the broken line leads to: ValueError, KeyError, ...
        await _disconnect_what_there_is(connection)
        logger.info("an offer could not be read: {}", type(error).__name__)
        raise InvalidInput(f"the offer's SDP cannot be used ({type(error).__name__})") from error
    except BaseException:  # likewise
        await _disconnect_what_there_is(connection)
        raise
    return connection


async def _disconnect_what_there_is(connection: SmallWebRTCConnection) -> None:
    """End a connection that was only half made; aiortc stumbles over the half that is missing."""
    try:
        async with asyncio.timeout(HANG_UP_WITHIN_MS / 1_000):
            await connection.disconnect()
    except Exception as error:  # whatever it stumbles over
        logger.debug("a connection that was half made did not end cleanly: {}", type(error).__name__)
        await _cut(connection)


async def _cut(connection: SmallWebRTCConnection) -> None:
    """Close the sockets of a connection that does not close by itself."""
    transports = {transceiver.receiver.transport for transceiver in connection.pc.getTransceivers()}
    if connection.pc.sctp is not None:
        transports.add(connection.pc.sctp.transport)
    for transport in transports:
        with suppress(Exception):
            async with asyncio.timeout(HANG_UP_WITHIN_MS / 1_000):
                await transport.transport.stop()


def _own_addresses() -> list[str]:
    return list(get_host_addresses(use_ipv4=True, use_ipv6=True))


def _warm_up() -> None:
    from aiortc.codecs import get_decoder, get_encoder
    from aiortc.rtcrtpparameters import RTCRtpCodecParameters

    opus = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48_000, channels=2, payloadType=96)
    get_encoder(opus)
    get_decoder(opus)
