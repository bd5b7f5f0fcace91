"""The interface to real-time audio transports, and the STUN and TURN servers that browsers are given."""

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

CREDENTIALS_VALID_S = 24 * 3_600
"""Longer than any session."""


@dataclass(frozen=True, slots=True)
class IceServer:
    """
    Attributes:
        secret: Shared with a TURN server; empty if the server requires no password.
    """

    urls: tuple[str, ...]
    secret: str = ""


@dataclass(frozen=True, slots=True)
class OfferedServer:
    """A STUN or TURN server with temporary credentials for one peer.

    Attributes:
        username: Empty if the server requires none; so is `credential`.
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
        InvalidInput: An environment variable with a secret is not set.
    """
    servers = []
    for server in settings:
        secret = "" if server.secret_env is None else environ.get(server.secret_env, "")
        if server.secret_env is not None and not secret:
            raise InvalidInput(
                f"server.ice_servers: {server.secret_env} is not set; set it to the TURN server's secret"
            )
        servers.append(IceServer(server.urls, secret))
    return tuple(servers)


def with_credentials(servers: Sequence[IceServer], *, user: str, now_s: int) -> tuple[OfferedServer, ...]:
    """Return the servers with temporary credentials for one user.

    A TURN server with a shared secret takes a username that contains its expiry (Unix time), and its HMAC-SHA1 as the
    password (draft-uberti-behave-turn-rest-00, implemented by coturn).
    """
    username = f"{now_s + CREDENTIALS_VALID_S}:{user}"
    offered = []
    for server in servers:
        digest = hmac.digest(server.secret.encode(), username.encode(), hashlib.sha1)
        named = (username, base64.b64encode(digest).decode()) if server.secret else ()
        offered.append(OfferedServer(server.urls, *named))
    return tuple(offered)


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
