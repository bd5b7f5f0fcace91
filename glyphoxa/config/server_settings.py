"""The page of `glyphoxa serve`: where it is reached, and by which way its sound."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from glyphoxa.config.sections import KeyVariable, Section

IceUrl = Annotated[str, Field(pattern=r"^(stuns?|turns?):[^\s/?#]+(\?transport=(udp|tcp))?$")]


class IceServerSettings(Section):
    """
    Attributes:
        urls: Such as `stun:stun.example:3478` or `turn:turn.example:3478?transport=udp`.
        secret_env: Of a TURN server, the environment variable with the secret that it shares with us (coturn's
            `static-auth-secret`). Each player is given a password made of it, which is good for a day.
    """

    urls: Annotated[tuple[IceUrl, ...], Field(min_length=1)]
    secret_env: KeyVariable = None


def _network(text: str) -> str:
    ip_network(text)
    return text


Proxy = Annotated[str, AfterValidator(_network)]
"""An address or a network."""


class ServerSettings(Section):
    """The page of `glyphoxa serve`.

    Attributes:
        host: The address to serve on; the default is reachable from this machine only.
        port: 0 takes any free one.
        public_url: Where players open the table, if not at that address: that of a server with https in front,
            `https://table.example/`.
        tls_cert: A certificate with its chain (PEM); the page is then served over https.
        tls_key: Its private key (PEM).
        tls_self_signed: Serve over https with a certificate that is made here and kept in the data directory. Browsers
            warn of it once.
        trusted_proxies: Addresses or networks (`10.0.0.0/8`) of servers with https in front. What they say of who asks
            is believed (`X-Forwarded-For`); of nobody else.
        ice_servers: STUN and TURN servers, by which browsers behind routers find a way to the table's sound. Without
            any, sound reaches this machine's own network, and whoever can reach this machine's address directly.
        close_after_minutes: The session ends, and the table closes, when nobody has sat at it for so long. Left out:
            never.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 7860
    public_url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]+/?$")] | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_self_signed: bool = False
    trusted_proxies: tuple[Proxy, ...] = ("127.0.0.1", "::1")
    ice_servers: tuple[IceServerSettings, ...] = ()
    close_after_minutes: Annotated[int, Field(ge=1)] | None = None


def server_from(base: Path, settings: ServerSettings) -> ServerSettings:
    """With paths that count from the settings file's folder."""
    files = {"tls_cert": settings.tls_cert, "tls_key": settings.tls_key}
    return settings.model_copy(
        update={name: None if path is None else base / path.expanduser() for name, path in files.items()}
    )


def server_contradictions(settings: ServerSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Values that are fine alone and wrong together, each with its place."""
    for n, server in enumerate(settings.ice_servers):
        if server.secret_env is None and any(url.startswith("turn") for url in server.urls):
            yield ("server", "ice_servers", n), "a TURN server lets nobody in without a password: set secret_env"
