"""How the table of `glyphoxa serve` is entered: over which address, by which links."""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.web.access.consent import CONSENT_LANGUAGES, ConsentRegister, consent_text
from glyphoxa.web.access.entrance import Entrance, InvitedOnly
from glyphoxa.web.access.links import Links, links_of
from glyphoxa.web.access.records import AuditKind, AuditLog, audit_path, consents_path
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.serving import is_of_this_machine, own_address, reached_at, url_of
from glyphoxa.web.sound import IceServer, servers_of
from glyphoxa.web.tls import Tls, fingerprint, given, self_signed


@dataclass(frozen=True, slots=True)
class PageAddress:
    """
    Attributes:
        here: The page's URL on this machine.
        players: The one for players: as the settings name it, else on other machines, else `here`.
        is_alone: Whether nobody but this machine can reach it.
        is_open: Whether nobody needs a link.
        hosts: DNS names under which the page may be opened, besides localhost.
    """

    here: str
    players: str
    is_alone: bool
    is_open: bool
    hosts: tuple[str, ...]
    tls: Tls | None = None
    ice_servers: tuple[IceServer, ...] = ()


def address_of(options: argparse.Namespace, settings: Settings, listener: socket.socket) -> PageAddress:
    """
    Raises:
        InvalidInput: The table would be open to more than this machine, or there is something wrong with the https.
    """
    wanted = settings.server
    public = options.public_url or wanted.public_url
    if public is not None and urlsplit(public).scheme not in ("http", "https"):
        raise InvalidInput(f"--public-url {public!r} is no URL; valid: https://table.example/")
    is_alone = is_of_this_machine(listener)
    if options.is_open and (not is_alone or public is not None):
        raise InvalidInput("--open lets everybody in without a link: it is for --host 127.0.0.1 alone")
    hosts = [*options.allow_host, *([name] if public is not None and (name := urlsplit(public).hostname) else [])]
    tls = given(options.tls_cert or wanted.tls_cert, options.tls_key or wanted.tls_key)
    if tls is None and (options.tls_self_signed or wanted.tls_self_signed):
        own = own_address(listener.family)
        tls = self_signed(settings.data_directory / "tls", [*hosts, *([own] if own else [])])
    scheme = "http" if tls is None else "https"
    here = url_of(listener, scheme=scheme)
    players = public or reached_at(listener, scheme=scheme) or here
    ice_servers = servers_of(wanted.ice_servers)
    return PageAddress(here, f"{players.rstrip('/')}/", is_alone, options.is_open, tuple(hosts), tls, ice_servers)


@contextmanager
def entrance_to(
    campaign: Campaign, address: PageAddress, settings: Settings
) -> Iterator[tuple[Entrance, Links | None, list[str]]]:
    """
    Yields: The entrance, its links unless nobody needs one, and what whoever runs the table is told of it, in lines.

    Raises:
        InvalidInput: Links cannot be kept in the data directory.
    """
    hosts = address.hosts
    text = consent_text(settings, language=campaign.language)
    others = [consent_text(settings, language=each) for each in CONSENT_LANGUAGES]
    consents = ConsentRegister(consents_path(settings.data_directory, campaign.id), text, others=others)
    if address.is_open:
        yield Entrance(allowed_hosts=hosts, ice_servers=address.ice_servers, consents=consents), None, []
        return
    links = links_of(campaign, settings.data_directory)
    links.served_at(address.players)
    log = AuditLog(audit_path(settings.data_directory, campaign.id))
    log.record(AuditKind.OPENED, what=address.players)
    try:
        entrance = Entrance(
            InvitedOnly(campaign, links.register),
            allowed_hosts=hosts,
            ice_servers=address.ice_servers,
            is_secure=address.players.startswith("https:"),
            record=log.record,
            consents=consents,
        )
        yield entrance, links, [*invitation_lines(links), *_warnings(address)]
    finally:
        log.record(AuditKind.CLOSED)
        log.close()


def invitation_lines(links: Links) -> list[str]:
    """One link for each who may come."""
    named = [(f"{name}", Grant(Role.PLAYER, player)) for player, name in links.players.items()]
    named.append(("whoever only reads along", Grant(Role.SPECTATOR)))
    return [
        f"for you, the game master, once: {links.dm_link(now_s=int(time.time()))}",
        *(f"for {name}: {links.link(grant)}" for name, grant in named),
        "send each player their own link and nobody else's; `glyphoxa invite` shows, renews and revokes them",
    ]


def _warnings(address: PageAddress) -> list[str]:
    if address.players.startswith("https:"):
        if address.tls is None:
            return []
        return [f"the certificate's fingerprint (SHA-256) is {fingerprint(address.tls)}"]
    if address.is_alone:
        return []
    return [
        "WARNING: browsers give the microphone only to localhost and to https pages. At another machine players can "
        "listen and type; to let them talk, use --tls-self-signed, --tls-cert, or a server with https in front",
    ]
