"""The seam over real-time audio: what the page needs from a transport, without knowing which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.npc.table import Seat
from glyphoxa.web.ice import OfferedServer


@dataclass(frozen=True, slots=True)
class Offer:
    """A browser's wish to connect.

    Attributes:
        sdp: Its session description. The first medium must be audio.
        remote_host: The address the request came from; browsers hide their own behind mDNS names.
        ice_servers: Which the answering side may ask for a way.
    """

    sdp: str
    remote_host: str
    ice_servers: tuple[OfferedServer, ...] = ()


class Peer(Protocol):
    """A connected browser: its microphone goes to the seat it was built with, the NPCs' voices go to it."""

    @property
    def answer_sdp(self) -> str: ...

    async def close(self) -> None:
        """Hang up. Closing twice does nothing."""
        ...


class ConnectPeer(Protocol):
    async def __call__(self, seat: Seat, offer: Offer, *, on_closed: Callable[[], None]) -> Peer:
        """Answer an offer. `on_closed` is called once if the other side goes away, not after `Peer.close`.

        Raises:
            InvalidInput: The offer cannot be read, or offers no audio.
        """
        ...


class Peers(Protocol):
    """A transport for one table, as its entry point builds it."""

    async def start(self) -> None:
        """Pay for slow imports now, so that the first connection does not."""
        ...

    @property
    def connect(self) -> ConnectPeer: ...

    async def close(self) -> None: ...
