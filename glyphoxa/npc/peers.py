"""The interface between a table and real-time audio transports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.npc.table import Seat


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
