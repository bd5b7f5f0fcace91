"""`glyphoxa serve`: a table on a local page."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import sys
import time
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from glyphoxa.actors.deadline import within
from glyphoxa.bootstrap.closing import STEP_MS
from glyphoxa.bootstrap.playable import read_playable
from glyphoxa.cli.ending import Ending
from glyphoxa.cli.metrics_port import bind_metrics, serving_metrics
from glyphoxa.cli.scope import (
    TO_OPEN,
    Terminal,
    campaign_argument,
    choose,
    file_or_stored,
    session_to_open,
)
from glyphoxa.cli.verb import Verb, argument, at_once
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import NotFound, Unavailable, did_you_mean
from glyphoxa.domain.events import SessionEnds
from glyphoxa.npc.table import Table
from glyphoxa.observability import log
from glyphoxa.providers.extras import PAGE_MODULES, need

if TYPE_CHECKING:
    from glyphoxa.cli.entrance import PageAddress
    from glyphoxa.web.sound import Peers

GROUP = "glyphoxa.pipelines"
PAGES_MS = 8_000
"""Until every page has been told that the table closes, and has left its seat."""


VERB = Verb(at_once)


@VERB.itself(
    argument("--config", type=Path, metavar="FILE", help="settings (YAML); left out: local models"),
    campaign_argument("--campaign", otherwise="else the file of the settings"),
    argument("--host", metavar="ADDRESS", help="where to serve; default 127.0.0.1: this machine only"),
    argument("--port", type=int, metavar="N", help="default 7860; 0 takes any free one"),
    TO_OPEN,
    argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a DNS name under which the page may be opened, besides localhost and addresses",
    ),
    argument("--open", dest="is_open", help="let everybody in who is on this machine, without a link, to try it alone"),
    argument("--public-url", metavar="URL", help="where players open the table, if a server with https is in front"),
    argument("--tls-cert", type=Path, metavar="FILE", help="serve over https with this certificate (PEM)"),
    argument("--tls-key", type=Path, metavar="FILE", help="the key of that certificate (PEM)"),
    argument("--tls-self-signed", help="serve over https with a certificate made here, of which browsers warn once"),
)
def run(options: argparse.Namespace) -> int:
    settings = read_settings(options.config)
    campaign = None
    if options.campaign is not None:
        settings, campaign = asyncio.run(_named(options.campaign, settings))
    if options.session is not None and (campaign is not None or settings.campaign is not None):
        options.session = asyncio.run(session_to_open(options.session, settings, campaign))
    with Ending() as ending:
        log.set_up(level=settings.logging.level, with_content=settings.logging.content, form=settings.logging.form)
        need(*PAGE_MODULES, by="`glyphoxa serve`", extra="voice")
        from glyphoxa.cli.entrance import address_of
        from glyphoxa.web.serving import bind

        host = options.host or settings.server.host
        with (
            bind(host, settings.server.port if options.port is None else options.port) as listener,
            bind_metrics(settings.observability) as metrics_listener,
        ):
            address = address_of(options, settings, listener)
            if settings.campaign is not None:
                campaign = read_playable(settings.campaign, settings).campaign
            session = options.session
            if campaign is not None:
                session = choose(
                    options,
                    campaign,
                    settings.data_directory,
                    now_ms=time.time_ns() // 1_000_000,
                    terminal=Terminal(_say, _ask if sys.stdin.isatty() and sys.stdout.isatty() else None),
                )
            serving = _serve(
                _Wished(settings, campaign, session, address),
                _Listeners(listener, metrics_listener),
                ending,
            )
            try:
                asyncio.run(serving)
            except asyncio.CancelledError:
                # Ctrl-C while the table was being opened; what was open is closed by now.
                return ending.code
    return 0


async def _named(wanted: str, settings: Settings) -> tuple[Settings, Campaign | None]:
    """The settings with the campaign's file, or without one and with what is stored of the campaign."""
    found = await file_or_stored(wanted, settings)
    if isinstance(found, Path):
        return settings.model_copy(update={"campaign": found.absolute()}), None
    return settings.model_copy(update={"campaign": None}), found


@dataclass(frozen=True, slots=True)
class _Wished:
    """What is to be played, and who may look."""

    settings: Settings
    campaign: Campaign | None
    session: str | None
    address: PageAddress


@dataclass(frozen=True, slots=True)
class _Listeners:
    """
    Attributes:
        metrics: None where nobody asked for figures.
    """

    page: socket.socket
    metrics: socket.socket | None


async def _serve(wished: _Wished, listeners: _Listeners, ending: Ending) -> None:
    from glyphoxa.bootstrap.observers import make_observers
    from glyphoxa.bootstrap.table import open_with_desk
    from glyphoxa.cli.entrance import entrance_to
    from glyphoxa.cli.retention import erase_old_before_opening
    from glyphoxa.web.app import create_app
    from glyphoxa.web.desk.frame import DeskParts
    from glyphoxa.web.desk.live import add_desk
    from glyphoxa.web.serving import Server

    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a server runs in a task")
    ending.act = task.cancel
    ending.attach()
    watch = _Stopwatch()
    listener = listeners.page
    observers = make_observers(wished.settings.observability)
    try:
        if wished.campaign is not None:
            await erase_old_before_opening(wished.settings, wished.campaign.id)
        opened = await open_with_desk(
            wished.settings,
            campaign=wished.campaign,
            session_name=wished.session,
            tell=watch.say,
            observers=observers,
        )
    except asyncio.CancelledError:
        ending.closed(ending.code)  # what still loads in a thread is not waited for
        raise
    table = opened.table
    ending.last_words = table.write_last_words
    peers: Peers | None = None
    has_ended_well = False
    try:
        peers = _peers(table)
        await peers.start()
        with entrance_to(table.campaign, wished.address, wished.settings) as (entrance, links, invitations):
            page = create_app(table, connect=peers.connect, entrance=entrance)
            add_desk(page, DeskParts(table, opened.desk, entrance, links))
            server = Server(page, tls=wished.address.tls, trusted_proxies=wished.settings.server.trusted_proxies)
            stopping = asyncio.Event()
            ending.act = stopping.set
            table.subscribe(lambda event: stopping.set() if isinstance(event, SessionEnds) else None)
            serving = asyncio.create_task(server.listen(listener))
            listener.listen()  # whoever reads the next line and comes at once waits a moment, and is not refused
            for line in invitations:
                _say(line)
            async with serving_metrics(page, observers, listeners.metrics) as figures:
                if figures is not None:
                    _say(f"figures for Prometheus are at {figures}")
                _say(f"the game master's desk is at {wished.address.here}desk")
                _say(f"{table.campaign.name} is open at {wished.address.here}   (Ctrl-C closes the table)")
                stopped = asyncio.create_task(stopping.wait())
                await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not stopping.is_set():
                raise _ended_by_itself(serving)
            _say("closing the table ... (Ctrl-C again ends it at once)")
            server.stop()
            await within(PAGES_MS, "the page", serving)
        has_ended_well = True
    finally:
        ending.act = _nothing
        ending.begin()
        if peers is not None:
            await within(STEP_MS, "the browsers' sound", peers.close())
        await table.close()
        await within(STEP_MS, "the last traces", observers.close())
        ending.closed(0 if has_ended_well else ending.code)


def _ask(line: str) -> str:
    return input(f"{line[:1].upper()}{line[1:]}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # a table is played, whether or not somebody reads what it says
        print(f"{line[:1].upper()}{line[1:]}", flush=True)


class _Stopwatch:
    """Opening takes from a second to minutes: each line says how long it has taken so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, line: str) -> None:
        _say(f"{line}   (after {time.monotonic() - self._began:.1f} s)")


def _ended_by_itself(serving: asyncio.Task[None]) -> Unavailable:
    error = serving.exception()
    why = f": {error or type(error).__name__}" if error is not None else ""
    return Unavailable(f"the page's server ended by itself{why}; the table is closed")


def _nothing() -> None: ...


def _peers(table: Table) -> Peers:
    """The transport for browsers: the pipeline that is installed as `webrtc`."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if "webrtc" not in found:
        raise NotFound(f"no pipeline 'webrtc' is installed: {did_you_mean('webrtc', found)}")
    peers: Peers = found["webrtc"].load()(table)
    return peers
