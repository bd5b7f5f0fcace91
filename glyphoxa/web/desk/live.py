"""The desk's pages of the evening itself: the live page, the table, links and the palette. And the list of all pages.

Every page is a URL of its own and works without a script, but for the live one. Whatever is changed is posted, answered
with a redirect, and said in one line on the page that follows.
"""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, urlencode

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from glyphoxa.app.background import chronicle_log
from glyphoxa.app.desk import Desk
from glyphoxa.app.doctor import at_open_table
from glyphoxa.app.models import weights_for
from glyphoxa.app.scope import Scope
from glyphoxa.dm import turns as turn_told
from glyphoxa.dm.wording import backlog_in_words, reading_in_words
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import MemoryHealth
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.language.facts import entity_in_words, moment
from glyphoxa.language.words import fold
from glyphoxa.npc.commands import MAX_ROUNDS, ShowControls, command_of
from glyphoxa.npc.table_interface import Table
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.desk import review, sessions, world
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, Shown, scene_of, session_names

PAGES: Final = Pages()


def add_desk(app: FastAPI, frame: DeskFrame) -> None:
    """Put the desk on a page's server."""
    for pages in (PAGES, review.PAGES, sessions.PAGES, world.PAGES):
        frame.add(app, pages)


@PAGES.get("/desk", "live")
async def live(frame: DeskFrame, _: Request) -> Shown:
    played = frame.table.campaign
    return {
        "npcs": [{"id": npc.id, "name": npc.name} for npc in played.npcs],
        "players": [{"id": player.id, "name": player.name} for player in played.players],
        "scenes": [scene_of(scene, played) for scene in played.scenes],
        "in_force": await frame.table.obey(ShowControls()),
        "summary_rounds": frame.table.summary_rounds,
        "max_rounds": MAX_ROUNDS,
    }


@PAGES.get("/desk/table", "table")
async def table(frame: DeskFrame, _: Request) -> Shown:
    source = frame.memory()
    url = None if frame.entrance.links is None else frame.entrance.links.url
    return await table_page(source, await frame.desk(), frame.table, url)


@PAGES.get("/desk/find")
async def find(frame: DeskFrame, request: Request) -> Response:
    """Return pages for the palette, by name."""
    words = request.query_params.get("words", "")[:LONGEST]
    return JSONResponse({"found": await found_pages(await frame.desk(), words)})


@PAGES.get("/desk/links", "links")
async def links(frame: DeskFrame, _: Request) -> Shown:
    """Show the links of players and spectators, and who agreed to be heard, or withdrew it, at the campaign's seats.

    The game master's own link is made on the command line.
    """
    names = {player.id: player.name for player in frame.table.campaign.players}
    register = frame.entrance.consents
    agreed = [] if register is None else [each for each in register.current() if each.player in names]
    return {"links": frame.entrance.links, "register": register, "consents": agreed, "names": names}


@PAGES.get("/desk/links/{who}/qr.svg")
async def qr(frame: DeskFrame, request: Request) -> Response:
    import segno

    known = frame.links()
    drawn = io.BytesIO()
    segno.make(known.link(known.grant_named(request.path_params["who"])), error="l").save(drawn, kind="svg", scale=4)
    return Response(drawn.getvalue(), media_type="image/svg+xml")


@PAGES.post("/desk/command")
async def command(frame: DeskFrame, request: Request, form: Form) -> Response:
    """Obey a command of the live page, which shows the answer without reloading."""
    written = {name: value for name, value in form.items() if value}
    try:
        done = await frame.table.obey(command_of(written, frame.table.campaign))
    except GlyphoxaError as error:
        return JSONResponse({"error": {"code": "refused", "message": str(error)}}, status_code=400)
    in_force = await frame.table.obey(ShowControls())
    frame.record(AuditKind.COMMANDED, done)
    request.app.state.tell_in_force(in_force, done)
    return JSONResponse({"done": done, "in_force": in_force})


@PAGES.post("/desk/links")
async def revoke(frame: DeskFrame, _: Request, form: Form) -> Done:
    known = frame.links()
    grant = known.grant_named(form.get("who", ""))
    await asyncio.to_thread(known.revoke, grant)
    text = "existing links are revoked, and their users are disconnected"
    return Done(text, "/desk/links", kind=AuditKind.REVOKED, who=grant.key)


# -- the page of the table

MOST_TURNS: Final = 200
"""Most turns of this session; the latest are shown."""
_HEIGHT: Final = 120
_BAR: Final = 5


async def table_page(source: Scope, desk: Desk, at: Table, players_url: str | None) -> Shown:
    """
    Args:
        players_url: The address for players; None: the table is open on this machine only.
    """
    turns = await desk.turns.latest(session=at.session, limit=MOST_TURNS)
    progress = await chronicle_log(source.store).progress(source.campaign)
    models = await asyncio.to_thread(lambda: [*weights_for(source.settings).status()])
    return {
        "scene": at.scene.id,
        "is_paused": at.is_paused,
        "memory": memory_in_words(at.health),
        "checks": await asyncio.to_thread(at_open_table, source.settings, at.campaign, players_url=players_url),
        "models": [each for each in models if each.state != "missing"],
        "reading": [(each, reading_in_words(each)) for each in progress],
        "backlog": backlog_in_words(progress),
        "pace": pace(list(reversed(turns))),
    }


def memory_in_words(health: MemoryHealth) -> str:
    """Describe the state of long-term memory in a sentence."""
    match health.state:
        case "ok":
            return f"The database is available. Utterances still to be stored in it: {health.waiting}."
        case "degraded":
            since = "" if health.since_ms is None else f" since {moment(health.since_ms)}"
            kept = f"Utterances kept on disk until then: {health.waiting}"
            return f"The database is unavailable{since}: {health.why}. {kept}."
        case "off":
            return "This table has no long-term memory."


def pace(turns: Sequence[TurnRecord]) -> Shown:
    """Summarise the time from the end of speech to the first word of the answer, turn by turn.

    Args:
        turns: The oldest first.
    """
    timed = [(each, ms) for each in turns if (ms := each.first_audio_ms) is not None]
    times = [ms for _, ms in timed]
    longest = max(times, default=1) or 1
    return {
        "n": len(turns),
        "n_timed": len(timed),
        "median": _seconds(np.percentile(times, 50) if times else None),
        "most": _seconds(np.percentile(times, 95) if times else None),
        "outcomes": Counter(map(turn_told.outcome, turns)).most_common(),
        "width": max(1, len(timed)) * (_BAR + 1),
        "height": _HEIGHT,
        "bars": [
            {
                "x": n * (_BAR + 1),
                "y": _HEIGHT - round(_HEIGHT * ms / longest),
                "width": _BAR,
                "height": max(1, round(_HEIGHT * ms / longest)),
                "id": each.id,
                "what": f"{each.speaker_name}: {_seconds(ms)}",
            }
            for n, (each, ms) in enumerate(timed)
        ],
        "longest": _seconds(longest),
    }


def _seconds(ms: float | None) -> str:
    return "unknown" if ms is None else f"{ms / 1000:.2f} s"


# -- the palette

LONGEST: Final = 200
MOST_FOUND: Final = 12


async def found_pages(desk: Desk, words: str) -> list[Shown]:
    """Return pages, the best first: names that begin with the text, then names that contain it.

    Args:
        words: A part of a name; empty: nothing is found.
    """
    wanted = fold(words.strip())
    if not wanted:
        return []
    ranked: list[tuple[int, str, Shown]] = []
    for npc in desk.resolver.npcs:
        title = f"What {npc.name} knows"
        _rank(ranked, wanted, (npc.name,), title, "/desk/knowledge?" + urlencode({"npc": npc.id}))
    for each in desk.seen:
        entity = each.entity
        url = f"/desk/world/{quote(entity.id, safe='')}"
        _rank(ranked, wanted, entity.names, entity_in_words(entity), url)
    for session, name in session_names(desk).items():
        title, url = f"{name.capitalize()} ({session})", f"/desk/sessions/{quote(session, safe='')}"
        _rank(ranked, wanted, (session, name), title, url)
    return [shown for _, _, shown in sorted(ranked, key=lambda each: each[:2])[:MOST_FOUND]]


def _rank(ranked: list[tuple[int, str, Shown]], wanted: str, called: tuple[str, ...], title: str, url: str) -> None:
    places = [at for each in called if (at := fold(each).find(wanted)) >= 0]
    if places:
        ranked.append((0 if min(places) == 0 else 1, title, {"title": title, "url": url}))
