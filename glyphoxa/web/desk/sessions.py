"""The desk's pages of what was said: sessions, lines and their corrections, turns, and rehearsed questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from glyphoxa.app.desk import Desk, SessionRecaps
from glyphoxa.app.table import rehearse
from glyphoxa.dm import turns as turn_told
from glyphoxa.dm.actions import actions_of, chosen
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.dm.timeline import Preview
from glyphoxa.dm.wording import escaped
from glyphoxa.dm.wrap_up import LineDecision
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.domain.turn_record import NO_PROMPT
from glyphoxa.language.facts import claim_in_words, visibility_in_words
from glyphoxa.transcript.ports import TalkFilter
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, Shown, number_in

PAGES: Final = Pages()
"""A session's id may hold slashes."""
_SESSION: Final = "/desk/sessions/{session:path}"


async def _opened(frame: DeskFrame, request: Request) -> tuple[Desk, SessionId, str]:
    """Return the desk, and the session of a page with its name, such as: session 2. Raises: NotFound: It is unknown."""
    desk, session = await frame.desk(), SessionId(request.path_params["session"])
    await desk.timeline.session(session)
    return desk, session, desk.resolver.session(session)


def _page_of(session: SessionId) -> str:
    return f"/desk/sessions/{quote(session, safe='')}"


def _line(text: str) -> int:
    """Raises: InvalidInput: It is no number of a line."""
    return number_in(text, "line", least=0)


# -- sessions

LINES_PER_PAGE: Final = 300
_MOST_FOUND: Final = 100
_LONGEST_SESSION: Final = 1_000_000


@PAGES.get("/desk/sessions", "sessions")
async def sessions(frame: DeskFrame, _: Request) -> Shown:
    """List sessions, the latest first."""
    desk = await frame.desk()
    numbered = [*enumerate(await desk.inspection.entries_per_session(desk.campaign), start=1)]
    return {"sessions": [(n, each, await desk.sessions.summary(each.id)) for n, each in reversed(numbered)]}


@PAGES.get(f"{_SESSION}/transcript.md")
async def markdown(frame: DeskFrame, request: Request) -> Response:
    """Return a session as Markdown: its summary and transcript, without retracted lines."""
    desk, wanted, name = await _opened(frame, request)
    kept = await desk.sessions.summary(wanted)
    lines = [f"# {name.capitalize()}", ""]
    if kept is not None:
        lines += [escaped(kept.text), ""]
    lines += [
        f"**{escaped(said.speaker_name)}:** {escaped(said.text)}"
        f"{f' (aside: {said.aside_in_words})' if said.aside else ''}  "
        for said in await desk.inspection.lines(desk.campaign, wanted, first=1, limit=_LONGEST_SESSION)
        if not said.is_retracted
    ]
    return PlainTextResponse(
        "\n".join(lines) + "\n",
        media_type="text/markdown; charset=utf-8",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(f'{wanted}.md')}"},
    )


@PAGES.get(f"{_SESSION}/recap", "recap")
async def recap(frame: DeskFrame, request: Request) -> Shown:
    source, (_, session, name) = frame.memory(), await _opened(frame, request)
    made = await SessionRecaps.of(source.store, source.campaign)
    said = await made.said(session)
    recaps = [
        ("For the players", await made.told(said, "players")),
        ("For you", await made.told(said, "dm")),
    ]
    return {"id": session, "name": name, "recaps": recaps}


@PAGES.get(f"{_SESSION}/wrap-up", "wrap_up")
async def wrap_up(frame: DeskFrame, request: Request) -> Shown:
    """Show what is worth keeping of a session, for decisions. While its table is open, more may follow."""
    desk, session, name = await _opened(frame, request)
    seen, called = await desk.wrap_up(session), desk.resolver.called
    groups = [
        (called(subject), [(each, claim_in_words(each.claim, desk.resolver)) for each in group])
        for subject, group in groupby(seen.proposals, key=lambda each: each.claim.subject)
    ]
    return {
        "id": session,
        "name": name,
        "is_open": session == frame.table.session,
        "groups": groups,
        "heard_by": lambda each: visibility_in_words(each.heard_by, desk.resolver),
        "names": sorted({each.entity.name for each in desk.seen}),
        "seen": seen,
    }


@PAGES.post(f"{_SESSION}/wrap-up")
async def decide_on_line(frame: DeskFrame, request: Request, form: Form) -> Done:
    """
    Args:
        form: `do`, the `number` of the proposal and what was `seen` of it; `words` or a name.

    Raises:
        InvalidInput: It is decided already, or cannot be decided so.
        ChangedMeanwhile: It is not as it was seen.
    """
    desk, session, _ = await _opened(frame, request)
    seen = form.get("seen", "")
    decision = LineDecision(form.get("do", ""), form.get("number", ""), form.get("words", ""))
    await desk.decide(session, [decision], seen=seen)
    return Done(f"decided: {seen}", f"{_page_of(session)}/wrap-up")


@PAGES.get(f"{_SESSION}/memory", "session_memory")
async def memory_page(frame: DeskFrame, request: Request) -> Shown:
    """Show what the game master and each NPC have in mind of a session."""
    desk, session, name = await _opened(frame, request)
    return {"id": session, "name": name, "views": await desk.session_views(session)}


@PAGES.get(f"{_SESSION}/line", "line")
async def line_page(frame: DeskFrame, request: Request) -> Shown:
    """Show a line with what was heard, and the facts that rest on it."""
    (desk, session, name), line = await _opened(frame, request), _line(request.query_params.get("line", ""))
    said = await _find_line(desk, session, line)
    return {
        "id": session,
        "name": name,
        "line": line,
        "said": said,
        "groups": {} if said.is_retracted else _groups(desk, await desk.timeline.preview_without(said)),
        "names": sorted({each.entity.name for each in desk.seen}),
        "players": () if said.speaker_name in {npc.name for npc in desk.resolver.npcs} else desk.resolver.players,
    }


@PAGES.get(f"{_SESSION}/back", "back")
async def rollback_page(frame: DeskFrame, request: Request) -> Shown:
    """Show what a rollback to a line would take away."""
    (desk, session, name), line = await _opened(frame, request), _line(request.query_params.get("line", ""))
    found = await desk.timeline.preview(session, line)
    groups = _groups(desk, found)
    return {"id": session, "name": name, "line": line, "n_lines": found.n_utterances, "groups": groups}


@PAGES.get(_SESSION, "session")
async def session_page(frame: DeskFrame, request: Request) -> Shown:
    """Show one page of a transcript: with `line`, else the last; or the lines that contain `words`."""
    (desk, wanted, name), asked = await _opened(frame, request), request.query_params
    line, words = asked.get("line", ""), asked.get("words", "").strip()
    here = await desk.timeline.session(wanted)
    n_pages = max(1, -(-here.session.last_ordinal // LINES_PER_PAGE))
    at = min(n_pages, max(1, -(-_line(line) // LINES_PER_PAGE))) if line else n_pages
    first = (at - 1) * LINES_PER_PAGE + 1
    kept = await desk.sessions.summary(wanted)
    return {
        "id": wanted,
        "name": name,
        "title": here.session.title,
        "lines": await _found(desk, wanted, words)
        if words
        else await desk.inspection.lines(desk.campaign, wanted, first=first, limit=LINES_PER_PAGE),
        "words": words,
        "at": at,
        "n_pages": n_pages,
        "per_page": LINES_PER_PAGE,
        "summary": "" if kept is None else kept.text,
        "known_to": "" if kept is None else visibility_in_words(kept.visibility, desk.resolver),
        "threads": await desk.store.atoms.open_threads(desk.campaign, wanted),
        "before": next(reversed(here.earlier), None),
        "after": next(iter(here.later), None),
    }


@PAGES.get("/desk/lines/{utterance}")
async def by_utterance(frame: DeskFrame, request: Request) -> Response:
    """Redirect to the page of a line that the live page knows by its utterance's id."""
    desk, wanted = await frame.desk(), UtteranceId(request.path_params["utterance"])
    said = await desk.inspection.said(desk.campaign, wanted)
    if said is None:
        raise NotFound("this line is not in the database yet; try again in a moment")
    return RedirectResponse(f"{_page_of(said.session_id)}/line?line={said.ordinal}")


@PAGES.post(f"{_SESSION}/line")
async def change_line(frame: DeskFrame, request: Request, form: Form) -> Done:
    desk, session, name = await _opened(frame, request)
    line, what = _line(form.get("line", "")), form.get("do", "")
    said, action = await _find_line(desk, session, line), chosen(what, actions_of("form", ""), "action on a line")
    await action.run(desk, {**form, "utterance": said.utterance_id})
    return Done(f"line {line} of {name} is {what}ed", f"{_page_of(session)}?line={line}")


@PAGES.post(f"{_SESSION}/back")
async def roll_back(frame: DeskFrame, request: Request, form: Form) -> Done:
    (desk, session, name), line = await _opened(frame, request), _line(form.get("line", ""))
    event = await desk.timeline.rollback(session, line)
    done = f"rolled back to line {line} of {name}" if event else "nothing was said or learned after that line"
    return Done(done, _page_of(session))


@PAGES.post(_SESSION)
async def change(frame: DeskFrame, request: Request, form: Form) -> Done:
    """Do an action on a session, or store the game master's summary, for the NPCs that heard any of it."""
    desk, session, _ = await _opened(frame, request)
    if form.get("do"):
        action = chosen(form["do"], actions_of("form", "sessions"), "action on a session")
        done = await action.run(desk, {**form, "session": session})
        return Done("; ".join(desk.in_words(done)), _page_of(session))
    known_by = await desk.sessions.heard_by(session, [npc.id for npc in desk.resolver.npcs])
    await desk.sessions.summarise(session, form.get("summary", ""), known_by)
    return Done("the summary is saved", _page_of(session))


async def _found(desk: Desk, wanted: SessionId, words: str) -> Sequence[CitedUtterance]:
    """Return lines that contain the words, in order, without retracted ones."""
    filtered = TalkFilter(words, match="all", session=wanted, limit=_MOST_FOUND)
    found = await desk.store.talk_search.search(desk.campaign, DM, filtered)
    said = [(each.ordinal, each.utterance) for each in sorted(found, key=lambda each: each.ordinal)]
    return [
        CitedUtterance(
            one.id, one.session_id, n, one.speaker_name, one.text, one.at_ms, False, False, one.aside, one.text
        )
        for n, one in said
    ]


async def _find_line(desk: Desk, session: SessionId, line: int) -> CitedUtterance:
    """
    Raises:
        NotFound: There is no such line.
    """
    found = await desk.inspection.lines(desk.campaign, session, first=line, limit=1)
    if not found or found[0].ordinal != line:
        raise NotFound(f"session {session!r} has no line {line}")
    return found[0]


def _groups(desk: Desk, found: Preview) -> Mapping[str, Sequence[str]]:
    return {title.capitalize(): [*map(desk.facts.words, facts)] for title, facts in found.facts.items()}


MOST_TURNS: Final = 50
LONGEST: Final = 500
"""Characters of a question."""
_SOMEBODY: Final = Player(PlayerId("guest"), "Somebody")


@PAGES.get("/desk/turns", "turns")
async def turns(frame: DeskFrame, _: Request) -> Shown:
    """List turns, the latest first."""
    desk = await frame.desk()
    latest = await desk.turns.latest(limit=MOST_TURNS)
    return {
        "turns": latest,
        "told": turn_told,
        "person": desk.resolver.person,
        "judged": await desk.turns.judged(latest),
    }


@PAGES.get("/desk/turns/{turn}", "turn")
async def turn_page(frame: DeskFrame, request: Request) -> Shown:
    """Raises: NotFound: There is no such turn."""
    desk = await frame.desk()
    record = await desk.turns.find(request.path_params["turn"])
    explained = await desk.turns.explain(record)
    npc = "" if record.npc_id is None else desk.resolver.person(record.npc_id)
    return {"short": turn_told.short(record.id), "npc": npc, "told": explained.told(), "prompt": record.prompt.text}


@PAGES.get("/desk/ask", "ask")
async def ask_page(frame: DeskFrame, request: Request) -> Shown:
    """Show what an `npc` would have in mind if a `player` said `say`; without `say` nothing is asked.

    Raises:
        InvalidInput: There is no such NPC or player, or the question is too long.
        Unavailable: The database is away.
    """
    source, asked, campaign = frame.memory(), request.query_params, frame.table.campaign
    line = asked.get("say", "").strip()
    npcs = {each.id: each.name for each in campaign.npcs}
    players = {each.id: each for each in campaign.players} or {_SOMEBODY.id: _SOMEBODY}
    npc = NpcId(_one_of([*npcs], asked.get("npc", ""), "NPC"))
    player = players[PlayerId(_one_of([*players], asked.get("player", ""), "player"))]
    if len(line) > LONGEST:
        raise InvalidInput(f"the question may have at most {LONGEST} characters; this one has {len(line)}")
    prompt, told = NO_PROMPT, []
    if line:
        prompt = (await rehearse(source, frame.table, npc, player, line)).assembled
        desk = await frame.desk()
        explained = await desk.turns.explain_prompt(prompt, npc)
        told = [*explained.told()]
    return {
        "npcs": [{"id": each, "name": name} for each, name in npcs.items()],
        "players": [{"id": each.id, "name": each.name} for each in players.values()],
        "npc": npc,
        "npc_name": npcs[npc],
        "player": player.id,
        "say": line,
        "longest": LONGEST,
        "told": told,
        "prompt": prompt.text,
    }


def _one_of(names: Sequence[str], wanted: str, what: str) -> str:
    """Return the wanted id; the first if none is wanted."""
    if not wanted and names:
        return names[0]
    if wanted not in names:
        raise InvalidInput(f"no {what} {wanted!r} at this table: {did_you_mean(wanted, names)}")
    return wanted
