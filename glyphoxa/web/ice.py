"""STUN and TURN servers that browsers are given, with temporary credentials."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glyphoxa.config.sections import IceServerSettings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.table import OfferedServer

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
