"""The server behind `glyphoxa serve`: the page and its links, the desk, and how they close in order.

Needs the extra `voice`: `glyphoxa.cli.table` imports it once it knows that this is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import platform
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.deadline import STEP_MS, ClosingStack, within
from glyphoxa.adapters.certificates import Tls, fingerprint, given, self_signed
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app import engines
from glyphoxa.app.scope import Scope
from glyphoxa.app.table import OpenedTable, open_table
from glyphoxa.cli.scope import say
from glyphoxa.cli.upkeep import erase_old_before_opening
from glyphoxa.config.sections import IceServerSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.events import SessionEnds
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import IceServer, Peers, Table
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import (
    CONSENT_LANGUAGES,
    AuditKind,
    AuditLog,
    ConsentRegister,
    audit_path,
    consent_text,
    consents_path,
)
from glyphoxa.web.app import OwnLinesOfTable, create_app
from glyphoxa.web.desk.frame import DeskFrame, ServedTable, add_pages
from glyphoxa.web.desk.live import add_desk
from glyphoxa.web.serving import Server, is_of_this_machine, reached_hosts, url_of

PAGES_MS = 8_000
"""Until every page knows that the table closes, and has left its seat."""


class HowItEnds(Protocol):
    """Asks a table to close: the signals of its process (`glyphoxa.cli.ending`), or a node with several tables."""

    act: Callable[[], object]
    last_words: Callable[[], int]

    @property
    def code(self) -> int: ...
    def attach(self) -> None: ...
    def begin(self) -> None: ...
    def closed(self, code: int) -> None: ...


@dataclass(frozen=True, slots=True)
class TableServer:
    """The campaign and session to play, and where they are served.

    Attributes:
        campaign: None is the one of the settings.
        session: None is a new one.
        say: Receives lines for the operator, with everybody's links.
        on_open: Called when the page answers.
    """

    settings: Settings
    campaign: Campaign | None
    session: str | None
    address: PageAddress
    listener: socket.socket
    open_table: Callable[..., Awaitable[OpenedTable]] = open_table
    say: Callable[[str], None] = say
    on_open: Callable[[TableSession], None] = lambda _: None

    async def run(self, ending: HowItEnds) -> None:
        """Open the table, serve it until a signal or the game master ends the session, and close it."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a server runs in a task")
        ending.act = task.cancel
        ending.attach()
        began_s = time.monotonic()
        try:
            if self.campaign is not None:
                await erase_old_before_opening(self.settings, self.campaign.id)
            opened = await self.open_table(
                self.settings,
                campaign=self.campaign,
                session_name=self.session,
                tell=lambda line: self.say(f"{line}   (after {time.monotonic() - began_s:.1f} s)"),
            )
        except asyncio.CancelledError:
            ending.closed(ending.code)  # what still loads in a thread is not waited for
            raise
        table = opened.table
        ending.last_words = table.write_pending
        peers: Peers | None = None
        has_ended_well = False
        try:
            peers = engines.installed("webrtc")(table)
            await peers.start()
            with entrance_to(table.campaign, self.address, self.settings) as (entrance, invitations):
                page = create_app(
                    table, connect=peers.connect, entrance=entrance, remembered=_remembered(opened.store, table)
                )
                desk = None if opened.store is None else Scope(opened.store, self.settings, table.campaign.id)
                frame = DeskFrame(table, desk, entrance)
                add_desk(page, frame)
                server = Server(page, tls=self.address.tls, trusted_proxies=self.settings.server.trusted_proxies)
                stopping = asyncio.Event()
                ending.act = stopping.set
                table.subscribe(lambda event: stopping.set() if isinstance(event, SessionEnds) else None)
                for line in invitations:
                    self.say(line)
                async with ClosingStack() as stack:
                    add_pages(ServedTable(page, frame, self.settings, opened.store, opened.observers, stack))
                    serving = asyncio.create_task(server.listen(self.listener))
                    self.listener.listen()  # a browser that is faster than the server waits, and is not refused
                    self.on_open(table)
                    self.say(f"the game master's desk is at {self.address.here}desk")
                    self.say(f"{table.campaign.name} is open at {self.address.here}   (Ctrl-C closes the table)")
                    stopped = asyncio.create_task(stopping.wait())
                    await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
                if not stopping.is_set():
                    raise _ended_by_itself(serving)
                self.say("closing the table ... (Ctrl-C again ends it immediately)")
                server.stop()
                await within(PAGES_MS, "the page", serving)
            has_ended_well = True
        finally:
            ending.act = lambda: None
            ending.begin()
            if peers is not None:
                await within(STEP_MS, "the browsers' sound", peers.close())
            await table.close()
            ending.closed(0 if has_ended_well else ending.code)


def _ended_by_itself(serving: asyncio.Task[None]) -> Unavailable:
    error = serving.exception()
    why = f": {error or type(error).__name__}" if error is not None else ""
    return Unavailable(f"the page's server stopped{why}; the table is closed")


def _remembered(store: Store | None, table: Table) -> OwnLinesOfTable | None:
    if store is None:
        return None
    inspection = PostgresInspection(store.database)
    return OwnLinesOfTable(table.campaign.id, table.session, inspection, store.world, now_ms)


# Address and links


@dataclass(frozen=True, slots=True)
class PageAddress:
    """
    Attributes:
        here: The page's URL on this machine.
        players: The URL for players: that of the settings, else the one on the network, else `here`.
        remarks: Lines for the operator on how others reach it.
        is_open: Whether no link is needed.
        hosts: DNS names of the page, besides localhost.
    """

    here: str
    players: str
    remarks: tuple[str, ...]
    is_open: bool
    hosts: tuple[str, ...]
    tls: Tls | None = None
    ice_servers: tuple[IceServer, ...] = ()


def address_of(options: argparse.Namespace, settings: Settings, listener: socket.socket) -> PageAddress:
    """
    Raises:
        InvalidInput: `--open` with more than this machine, or a mistake in the https options.
    """
    wanted = settings.server
    public = options.public_url or wanted.public_url
    if public is not None and urlsplit(public).scheme not in ("http", "https"):
        raise InvalidInput(f"--public-url {public!r} is not a URL; valid: https://table.example/")
    is_alone = is_of_this_machine(listener)
    if options.is_open and (not is_alone or public is not None):
        raise InvalidInput("--open admits everybody without a link: use it only with --host 127.0.0.1")
    hosts = [*options.allow_host, *([name] if public is not None and (name := urlsplit(public).hostname) else [])]
    reached = reached_hosts(listener)
    tls = given(options.tls_cert or wanted.tls_cert, options.tls_key or wanted.tls_key)
    if tls is None and (options.tls_self_signed or wanted.tls_self_signed):
        tls = self_signed(settings.data_directory / "tls", [*hosts, *reached[:1]])
    scheme = "http" if tls is None else "https"
    here = url_of(listener, scheme=scheme)
    urls = [url_of(listener, scheme=scheme, host=host) for host in reached]
    players = public or next(iter(urls), here)
    remarks = () if public is not None or is_alone else tuple(_on_network(urls))
    ice_servers = servers_of(wanted.ice_servers)
    return PageAddress(here, f"{players.rstrip('/')}/", remarks, options.is_open, tuple(hosts), tls, ice_servers)


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


def _on_network(urls: Sequence[str]) -> Iterator[str]:
    """Yield what the operator of a table on the network should know of its addresses."""
    if not urls:
        yield "no other machine can reach this one: it has no address on a network"
    if urls[1:]:
        yield f"if a player cannot open a link, try other addresses of this machine: {', '.join(urls[1:])}"
    if "microsoft" in platform.release():
        yield "this is WSL: others reach it only with networkingMode=mirrored in .wslconfig; see docs/first-evening.md"


@contextlib.contextmanager
def entrance_to(campaign: Campaign, address: PageAddress, settings: Settings) -> Iterator[tuple[Entrance, list[str]]]:
    """
    Yields: The entrance, and lines for the operator.

    Raises:
        InvalidInput: Links cannot be kept in the data directory.
    """
    tables = [player.name for player in campaign.players if player.table]
    text, *others = (
        consent_text(settings, language=each, tables=tables) for each in (campaign.language, *CONSENT_LANGUAGES)
    )
    consents = ConsentRegister(consents_path(settings.data_directory, campaign.id), text, others=others)
    entrance = Entrance(allowed_hosts=address.hosts, ice_servers=address.ice_servers, consents=consents)
    if address.is_open:
        yield entrance, []
        return
    links = Links(campaign, settings.data_directory)
    links.served_at(address.players)
    log = AuditLog(audit_path(settings.data_directory, campaign.id))
    log.record(AuditKind.OPENED, what=address.players)
    try:
        is_secure = address.players.startswith("https:")
        lines = [*invitation_lines(links), *address.remarks]
        if address.tls is not None:
            lines.append(f"the certificate's fingerprint (SHA-256) is {fingerprint(address.tls)}")
        if links.remark:
            lines.append(links.remark)
        yield replace(entrance, links=links, is_secure=is_secure, record=log.record), lines
    finally:
        log.record(AuditKind.CLOSED)
        log.close()


def invitation_lines(links: Links) -> list[str]:
    """Return a line with a link for each person who may enter."""
    named = ((links.players[each.player] if each.player else "spectators", each) for each in links.lasting)
    return [
        f"for you, the game master (works once): {links.dm_link()}",
        *(f"for {name}: {links.link(grant)}" for name, grant in named),
        "send each player only their own link; `glyphoxa table invite` shows, renews and revokes them",
    ]
