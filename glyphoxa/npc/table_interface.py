"""The interface of a table for transports, the demo and benchmarks, and that of transports of real-time audio."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.events import MemoryHealth, TableEvent
from glyphoxa.domain.heard import EarEvent, Utterance
from glyphoxa.domain.ids import LineId, NpcId, PlayerId, SceneId, SessionId
from glyphoxa.npc.commands import SessionCommand

OUTPUT_RATE_HZ = 24_000
INPUT_RATE_HZ = 16_000
CREDENTIALS_VALID_S = 24 * 3_600
"""Credentials for a TURN server last longer than any session."""

AudioSink = Callable[[NpcId, bytes], None]
"""Receives an NPC's speech: 24 kHz mono s16le, paced in real time. Must return at once."""


class Ear(Protocol):
    """Listens to one player and reports `EarEvent`s to the listener it was built with."""

    async def start(self) -> None: ...

    def hear(self, pcm: bytes) -> None:
        """Take sound of the player's microphone: 16 kHz mono s16le, any length, in real time. Returns at once."""
        ...

    async def close(self) -> None: ...


EarListener = Callable[[EarEvent], None]


class Seat(Protocol):
    """A player's place at the table."""

    @property
    def player(self) -> Player: ...

    def hear(self, pcm: bytes) -> None:
        """See `Ear.hear`."""
        ...

    async def leave(self) -> None: ...


class Table(Protocol):
    """A running session: players sit down, NPCs answer, and everything said is stored."""

    @property
    def campaign(self) -> Campaign: ...

    @property
    def session(self) -> SessionId: ...

    @property
    def scene(self) -> Scene: ...

    @property
    def health(self) -> MemoryHealth:
        """The current state of long-term memory."""
        ...

    @property
    def earlier(self) -> Sequence[Utterance]:
        """Return the utterances of this session before a restart that may be shown, oldest first."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether the DM has paused the table: nothing is heard, answered or stored."""
        ...

    @property
    def summary_rounds(self) -> int:
        """Rounds between two summaries, as in force."""
        ...

    def may_show(self, text: str) -> bool:
        """Return whether a text contains only public names, so that players may read it."""
        ...

    def subscribe(self, listener: Callable[[TableEvent], None]) -> Callable[[], None]:
        """Receive all events, in order. Returns a function that unsubscribes."""
        ...

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        """Receive the NPCs' speech. Returns a function that removes the sink."""
        ...

    async def seat(self, player: Player) -> Seat:
        """Seat a player with their own ear.

        Raises:
            InvalidInput: The seat is taken.
        """
        ...

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        """Take typed words. They are corrected, addressed, answered and stored like speech.

        Args:
            line: The page's id of this line. It is said once, however often it is sent, even across a restart.

        Returns: False if this line is on disk already. Otherwise an `UtteranceKept` event follows.

        Raises:
            InvalidInput: The table is paused.
        """
        ...

    async def move(self, scene: SceneId) -> None:
        """Change the scene. From now on only its NPCs hear what is said.

        Raises:
            NotFound: The campaign has no such scene.
        """
        ...

    async def obey(self, command: SessionCommand) -> str:
        """Perform a command of the DM. Returns a report.

        Raises:
            InvalidInput: It is impossible. Nothing was done.
        """
        ...

    async def wait_until_quiet(self) -> None:
        """Wait until nobody speaks and no answer is in progress."""
        ...

    async def kept(self) -> int:
        """Return how many utterances of this session the log (memory level 1) has, after sending pending ones.

        Without a reachable long-term memory: how many of the latest utterances are on disk.
        """
        ...

    async def close(self) -> None:
        """End the session. No utterance is lost, and no task or process remains."""
        ...


@dataclass(frozen=True, slots=True)
class OfferedServer:
    """A STUN or TURN server with temporary credentials for one peer.

    Attributes:
        username: Empty if the server requires none; so is `credential`.
    """

    urls: tuple[str, ...]
    username: str = ""
    credential: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the server as an `RTCIceServer` of a browser."""
        named = {"username": self.username, "credential": self.credential} if self.username else {}
        return {"urls": list(self.urls), **named}


@dataclass(frozen=True, slots=True)
class IceServer:
    """A STUN or TURN server for browsers.

    Attributes:
        secret: Shared with a TURN server; empty if the server requires no password.
    """

    urls: tuple[str, ...]
    secret: str = ""

    def offered_to(self, user: str, *, now_s: int) -> OfferedServer:
        """Return the server with temporary credentials for one user.

        A TURN server with a shared secret takes a username that contains its expiry (Unix time), and its HMAC-SHA1 as
        the password (draft-uberti-behave-turn-rest-00, implemented by coturn).
        """
        if not self.secret:
            return OfferedServer(self.urls)
        username = f"{now_s + CREDENTIALS_VALID_S}:{user}"
        digest = hmac.digest(self.secret.encode(), username.encode(), hashlib.sha1)
        return OfferedServer(self.urls, username, base64.b64encode(digest).decode())


@dataclass(frozen=True, slots=True)
class Offer:
    """A browser's offer to connect.

    Attributes:
        sdp: Its session description. The first medium must be audio.
        remote_host: The address of the request; browsers replace theirs by mDNS names.
        ice_servers: Servers that the answering side may use.
    """

    sdp: str
    remote_host: str
    ice_servers: tuple[OfferedServer, ...] = ()


class Peer(Protocol):
    """A connected browser: the seat hears its microphone, and it plays the NPCs' voices."""

    @property
    def answer_sdp(self) -> str: ...

    async def close(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class ConnectPeer(Protocol):
    async def __call__(self, seat: Seat, offer: Offer, *, on_closed: Callable[[], None]) -> Peer:
        """Answer an offer. `on_closed` is called once if the browser closes the connection, not after `Peer.close`.

        Raises:
            InvalidInput: The offer is malformed, or contains no audio.
        """
        ...


class Peers(Protocol):
    """A transport for one table."""

    async def start(self) -> None:
        """Import slow modules now, so that the first connection does not wait."""
        ...

    @property
    def connect(self) -> ConnectPeer: ...

    async def close(self) -> None: ...
