"""`glyphoxa serve`: a table on a local page."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import socket
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from glyphoxa.bootstrap.closing import STEP_MS, within
from glyphoxa.bootstrap.playable import read_playable
from glyphoxa.cli import session_choice
from glyphoxa.cli.ending import Ending
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.npc.table import Table
from glyphoxa.observability import log

if TYPE_CHECKING:
    from glyphoxa.web.peer import Peers

GROUP = "glyphoxa.pipelines"
PAGES_MS = 8_000
"""Until every page has been told that the table closes, and has left its seat."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("serve", help="open a table on a local page: talk to the NPCs in a browser")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings (YAML); left out: local models")
    parser.add_argument("--campaign", type=Path, metavar="FILE", help="campaign file; wins over the settings")
    parser.add_argument("--host", metavar="ADDRESS", help="where to serve; default 127.0.0.1: this machine only")
    parser.add_argument("--port", type=int, metavar="N", help="default 7860; 0 takes any free one")
    session_choice.add_arguments(parser)
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a DNS name under which the page may be opened, besides localhost and addresses",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with Ending() as ending:
        settings = read_settings(options.config)
        if options.campaign is not None:
            settings = settings.model_copy(update={"campaign": options.campaign.absolute()})
        log.set_up(level=settings.logging.level, with_content=settings.logging.content)
        _need_web()
        from glyphoxa.web.serving import bind, url_of

        host = options.host or settings.server.host
        with bind(host, settings.server.port if options.port is None else options.port) as listener:
            campaign = None if settings.campaign is None else read_playable(settings.campaign, settings).campaign
            session = options.session
            if campaign is not None:
                session = session_choice.choose(
                    options,
                    campaign,
                    settings.data_directory,
                    now_ms=time.time_ns() // 1_000_000,
                    ask=_ask if sys.stdin.isatty() and sys.stdout.isatty() else None,
                    say=_say,
                )
            serving = _serve(
                settings,
                listener,
                url_of(listener),
                campaign=campaign,
                session=session,
                allowed_hosts=options.allow_host,
                ending=ending,
            )
            try:
                asyncio.run(serving)
            except asyncio.CancelledError:
                # Ctrl-C while the table was being opened; what was open is closed by now.
                return ending.code
    return 0


async def _serve(
    settings: Settings,
    listener: socket.socket,
    url: str,
    *,
    campaign: Campaign | None,
    session: str | None,
    allowed_hosts: list[str],
    ending: Ending,
) -> None:
    from glyphoxa.bootstrap.table import open_table
    from glyphoxa.web.app import create_app
    from glyphoxa.web.serving import Server, said_of_strangers

    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a server runs in a task")
    ending.act = task.cancel
    ending.attach()
    try:
        table = await open_table(settings, campaign=campaign, session_name=session, tell=_say)
    except asyncio.CancelledError:
        ending.closed(ending.code)  # what still loads in a thread is not waited for
        raise
    ending.last_words = table.write_last_words
    peers: Peers | None = None
    try:
        peers = _peers(table)
        await peers.start()
        server = Server(create_app(table, connect=peers.connect, allowed_hosts=allowed_hosts))
        stopping = asyncio.Event()
        ending.act = stopping.set
        serving = asyncio.create_task(server.listen(listener))
        listener.listen()  # whoever reads the next line and comes at once waits a moment, and is not refused
        for line in said_of_strangers(listener):
            _say(line)
        _say(f"{table.campaign.name} is open at {url}   (Ctrl-C closes the table)")
        await asyncio.wait((serving, asyncio.create_task(stopping.wait())), return_when=asyncio.FIRST_COMPLETED)
        _say("closing the table ... (Ctrl-C again ends it at once)")
        server.stop()
        await within(PAGES_MS, "the page", serving)
    finally:
        ending.act = _nothing
        ending.begin()
        if peers is not None:
            await within(STEP_MS, "the browsers' sound", peers.close())
        await table.close()
        ending.closed(0)


def _ask(line: str) -> str:
    return input(f"{line[:1].upper()}{line[1:]}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # a table is played, whether or not somebody reads what it says
        print(f"{line[:1].upper()}{line[1:]}", flush=True)


def _nothing() -> None: ...


def _peers(table: Table) -> Peers:
    """The transport for browsers: the pipeline that is installed as `webrtc`."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if "webrtc" not in found:
        raise NotFound(f"no pipeline 'webrtc' is installed: {did_you_mean('webrtc', found)}")
    peers: Peers = found["webrtc"].load()(table)
    return peers


def _need_web() -> None:
    """Raises: InvalidInput: The page's packages are not installed."""
    for module in ("fastapi", "uvicorn", "aiortc"):
        if importlib.util.find_spec(module) is None:
            raise InvalidInput(
                f"`glyphoxa serve` needs {module!r}, which is not installed: pip install 'glyphoxa[voice]'"
            )
