"""The way of sound: the seam over real-time audio transports, and the STUN and TURN servers between homes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.config.sections import IceServerSettings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.table import Seat
from glyphoxa.web.events import Json

GOOD_FOR_S = 24 * 3_600
"""A session is over by then."""


@dataclass(frozen=True, slots=True)
class IceServer:
    """
    Attributes:
        secret: Shared with a TURN server; empty for one that asks for no password.
    """

    urls: tuple[str, ...]
    secret: str = ""


@dataclass(frozen=True, slots=True)
class OfferedServer:
    """A STUN or TURN server as one peer may use it for a while.

    Attributes:
        username: Empty where none is asked for; so is `credential`.
    """

    urls: tuple[str, ...]
    username: str = ""
    credential: str = ""

    def as_json(self) -> Json:
        """Return the server as an `RTCIceServer` of a browser."""
        named = {"username": self.username, "credential": self.credential} if self.username else {}
        return {"urls": list(self.urls), **named}


def servers_of(settings: Sequence[IceServerSettings], environ: Mapping[str, str] = os.environ) -> tuple[IceServer, ...]:
    """
    Raises:
        InvalidInput: A variable that holds a secret is not set.
    """
    servers = []
    for each in settings:
        secret = "" if each.secret_env is None else environ.get(each.secret_env, "")
        if each.secret_env is not None and not secret:
            raise InvalidInput(f"server.ice_servers: {each.secret_env} is not set; it holds the TURN server's secret")
        servers.append(IceServer(each.urls, secret))
    return tuple(servers)


def offered(servers: Sequence[IceServer], *, user: str, now_s: int) -> tuple[OfferedServer, ...]:
    """With passwords for one user, as TURN servers with a shared secret take them: the name is until when it is good
    (Unix time), the password its HMAC-SHA1 (draft-uberti-behave-turn-rest-00, which coturn follows).
    """
    shown = []
    for server in servers:
        if not server.secret:
            shown.append(OfferedServer(server.urls))
            continue
        username = f"{now_s + GOOD_FOR_S}:{user}"
        digest = hmac.digest(server.secret.encode(), username.encode(), hashlib.sha1)
        shown.append(OfferedServer(server.urls, username, base64.b64encode(digest).decode()))
    return tuple(shown)


@dataclass(frozen=True, slots=True)
class Offer:
    """A browser's offer to connect.

    Attributes:
        sdp: Its session description. The first medium must be audio.
        remote_host: The address the request came from; browsers hide their own behind mDNS names.
        ice_servers: Which the answering side may ask for a way.
    """

    sdp: str
    remote_host: str
    ice_servers: tuple[OfferedServer, ...] = ()


class Peer(Protocol):
    """A connected browser: its microphone feeds its seat, and it plays the NPCs' voices."""

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
        """Import slow modules now, so that the first connection does not wait."""
        ...

    @property
    def connect(self) -> ConnectPeer: ...

    async def close(self) -> None: ...
