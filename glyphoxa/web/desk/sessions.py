"""The desk's pages of what was said: sessions, lines and their corrections, turns, and rehearsed questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from glyphoxa.adapters.postgres.world.inspection import InspectedUtterance
from glyphoxa.desk import Desk, DeskSource
from glyphoxa.dm import turns as turn_told
from glyphoxa.dm.ports import CitedUtterance, Session
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.dm.timeline import Preview
from glyphoxa.dm.turns import composed_shown
from glyphoxa.dm.turns import short as short_turn
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.npc.table import Table
from glyphoxa.transcript.ports import TalkFilter
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.desk.frame import DeskFrame, Page, Shown, form_of, see_other
from glyphoxa.world.wording import moment, visibility_in_words


class SessionPages:
    """Sessions, and the way back to a line of one. A session's id may hold slashes."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {
            "/desk/lines/{utterance}": self.by_utterance,
            "/desk/sessions": self.sessions,
            "/desk/sessions/{session:path}/transcript.md": self.markdown,
            "/desk/sessions/{session:path}/recap": self.recap,
            "/desk/sessions/{session:path}/line": self.line,
            "/desk/sessions/{session:path}/back": self.back,
            "/desk/sessions/{session:path}": self.session,
        }
        self.posted = {
            "/desk/sessions/{session:path}/line": self.put_right,
            "/desk/sessions/{session:path}/back": self.roll_back,
            "/desk/sessions/{session:path}": self.summarise,
        }

    async def sessions(self, request: Request) -> Response:
        return self._frame.page("sessions", request, sessions=await sessions_shown(await self._frame.desk()))

    async def session(self, request: Request) -> Response:
        asked, session = request.query_params, _session(request)
        desk = await self._frame.desk()
        shown = await session_page(desk, session, asked.get("line", ""), asked.get("words", "").strip())
        return self._frame.page("session", request, **shown)

    async def recap(self, request: Request) -> Response:
        source, session = self._frame.memory(), _session(request)
        await session_page(await self._frame.desk(), session, "", "")
        recaps = [
            ("For the players", await source.recap(session, "players")),
            ("For you", await source.recap(session, "dm")),
        ]
        return self._frame.page("recap", request, id=session, recaps=recaps)

    async def markdown(self, request: Request) -> Response:
        text = await transcript_as_markdown(await self._frame.desk(), _session(request))
        name = f"{_session(request)}.md"
        return PlainTextResponse(
            text,
            media_type="text/markdown; charset=utf-8",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
        )

    async def summarise(self, request: Request) -> Response:
        session = _session(request)
        await summarise(await self._frame.desk(), session, (await form_of(request)).get("summary", ""))
        return see_other("", f"/desk/sessions/{quote(session, safe='')}", "the summary is kept")

    async def by_utterance(self, request: Request) -> Response:
        """To the page of a line that is known by its utterance's id alone, as the live page knows it."""
        desk, wanted = await self._frame.desk(), UtteranceId(request.path_params["utterance"])
        said = await desk.inspection.said(desk.campaign, wanted)
        if said is None:
            raise NotFound("this line is not in the database (yet): try again in a moment")
        return RedirectResponse(f"/desk/sessions/{quote(said.session_id, safe='')}/line?line={said.ordinal}")

    async def line(self, request: Request) -> Response:
        line = _line(request.query_params.get("line", ""))
        shown = await line_page(await self._frame.desk(), _session(request), line)
        return self._frame.page("line", request, **shown)

    async def put_right(self, request: Request) -> Response:
        session, form, desk = _session(request), await form_of(request), await self._frame.desk()
        line, what = _line(form.get("line", "")), form.get("do", "")
        said = (await find_line(desk, session, line)).said
        match what:
            case "correct":
                await desk.timeline.correct(said, form.get("text", ""))
            case "retract":
                await desk.timeline.retract(said)
            case _:
                raise InvalidInput(f"a line cannot be changed by {what!r}: correct, or retract")
        done = f"line {line} of {session} is {what}ed"
        self._frame.record(AuditKind.DECIDED, done)
        return see_other(f"/desk/sessions/{quote(session, safe='')}?line={line}", "/desk/sessions", done)

    async def back(self, request: Request) -> Response:
        desk, line = await self._frame.desk(), _line(request.query_params.get("line", ""))
        return self._frame.page("back", request, **await rollback_page(desk, _session(request), line))

    async def roll_back(self, request: Request) -> Response:
        session, line = _session(request), _line((await form_of(request)).get("line", ""))
        desk = await self._frame.desk()
        event = await desk.timeline.rollback(session, line)
        done = f"back to line {line} of {session}" if event else "nothing was learned or said behind that line"
        self._frame.record(AuditKind.DECIDED, done)
        return see_other("", f"/desk/sessions/{quote(session, safe='')}", done)


def _session(request: Request) -> SessionId:
    return SessionId(request.path_params["session"])


def _line(text: str) -> int:
    """Raises: InvalidInput: It is no number of a line."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"line {text!r}: the number of a line of the transcript is wanted")
    return int(text)


# -- sessions

LINES_PER_PAGE: Final = 300
_MOST_FOUND: Final = 100
_LONGEST_SESSION: Final = 1_000_000


async def sessions_shown(desk: Desk) -> list[Shown]:
    """The latest first."""
    found = await desk.inspection.entries_per_session(desk.campaign)
    desks = _session_desk(desk)
    shown = []
    for each in reversed(found):
        kept = await desks.summary(each.id)
        shown.append(
            {
                "id": each.id,
                "began": moment(each.started_ms),
                "n": each.n_entries,
                "summary": "" if kept is None else kept.text,
            }
        )
    return shown


async def session_page(desk: Desk, wanted: SessionId, line: str, words: str) -> Shown:
    """One page of what was said, or what is like some words.

    Args:
        line: One that the page holds; empty: the last.
        words: Of which a line has one; empty: no line is looked for.

    Raises:
        NotFound: Nothing was said in such a session.
        InvalidInput: `line` is no number.
    """
    here, before, after = await _between(desk, wanted)
    n_pages = max(1, -(-here.last_ordinal // LINES_PER_PAGE))
    at = min(n_pages, max(1, -(-_line(line) // LINES_PER_PAGE))) if line else n_pages
    first = (at - 1) * LINES_PER_PAGE + 1
    kept = await _session_desk(desk).summary(wanted)
    return {
        "id": wanted,
        "lines": await _found(desk, wanted, words) if words else await _lines(desk, wanted, first),
        "words": words,
        "at": at,
        "n_pages": n_pages,
        "per_page": LINES_PER_PAGE,
        "summary": "" if kept is None else kept.text,
        "known_to": "" if kept is None else visibility_in_words(kept.visibility, desk.resolver),
        "before": before,
        "after": after,
    }


async def _between(desk: Desk, wanted: SessionId) -> tuple[Session, SessionId | None, SessionId | None]:
    """A session, the one before and the one after.

    Raises:
        NotFound: There is no such session.
    """
    found = await desk.inspection.sessions(desk.campaign)
    ids = [each.id for each in found]
    if wanted not in ids:
        raise NotFound(f"no session {wanted!r} in campaign {desk.campaign!r}: {did_you_mean(wanted, ids)}")
    at = ids.index(wanted)
    return found[at], ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None


async def _lines(desk: Desk, wanted: SessionId, first: int, n: int = LINES_PER_PAGE) -> list[Shown]:
    found = await desk.inspection.lines(desk.campaign, wanted, first=first, limit=n)
    return [_shown(each.said, each.raw_text) for each in found]


async def _found(desk: Desk, wanted: SessionId, words: str) -> list[Shown]:
    """In order; not what was retracted."""
    filtered = TalkFilter(words, match="all", session=wanted, limit=_MOST_FOUND)
    found = await desk.talk.search(desk.campaign, DM, filtered)
    return [
        {
            "ordinal": each.ordinal,
            "when": moment(each.utterance.at_ms),
            "who": each.utterance.speaker_name,
            "text": each.utterance.text,
            "raw": "",
            "is_retracted": False,
        }
        for each in sorted(found, key=lambda each: each.ordinal)
    ]


def _shown(said: CitedUtterance, raw_text: str) -> Shown:
    return {
        "ordinal": said.ordinal,
        "when": moment(said.at_ms),
        "who": said.speaker_name,
        "text": said.text,
        "raw": raw_text if raw_text != said.text else "",
        "is_retracted": said.is_retracted,
    }


async def transcript_as_markdown(desk: Desk, wanted: SessionId) -> str:
    """A session to keep elsewhere: its summary and what was said, without what was retracted.

    Raises:
        NotFound: Nothing was said in such a session.
    """
    await _between(desk, wanted)
    kept = await _session_desk(desk).summary(wanted)
    lines = [f"# Session {wanted}", ""]
    if kept is not None:
        lines += [_escaped(kept.text), ""]
    lines += [
        f"**{_escaped(line['who'])}:** {_escaped(line['text'])}  "
        for line in await _lines(desk, wanted, 1, _LONGEST_SESSION)
        if not line["is_retracted"]
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """As text in Markdown, in one line."""
    return "".join(f"\\{each}" if each in r"\`*_{}[]<>#|" else each for each in " ".join(text.split()))


async def summarise(desk: Desk, wanted: SessionId, text: str) -> None:
    """Keep the game master's words of a session, for the NPCs that heard any of it.

    Raises:
        NotFound: Nothing was said in such a session.
    """
    await _between(desk, wanted)
    heard = TalkFilter("", session=wanted, limit=1)
    npcs = [npc.id for npc in desk.resolver.npcs]
    known_by = [npc for npc in npcs if await desk.talk.search(desk.campaign, npc, heard)]
    await _session_desk(desk).summarise(wanted, text, known_by)


def _session_desk(desk: Desk) -> SessionDesk:
    return SessionDesk(desk.campaign, desk.facts.world, desk.inspection, desk.facts.now_ms)


# -- one line, and what rests on it


async def rollback_page(desk: Desk, session: SessionId, line: int) -> Shown:
    """
    Args:
        line: After which nothing would have been said or learned.

    Raises:
        NotFound: There is no such session.
        InvalidInput: It has no such line.
    """
    found = await desk.timeline.preview(session, line)
    return {"id": session, "line": line, "n_lines": found.n_utterances, "groups": _groups(desk, found)}


async def line_page(desk: Desk, session: SessionId, line: int) -> Shown:
    """A line with what was heard, and what rests on it.

    Raises:
        NotFound: There is no such line.
    """
    found = await find_line(desk, session, line)
    said = found.said
    return {
        "id": session,
        "line": line,
        "who": said.speaker_name,
        "text": said.text,
        "raw": found.raw_text,
        "when": moment(said.at_ms),
        "is_retracted": said.is_retracted,
        "groups": [] if said.is_retracted else _groups(desk, await desk.timeline.preview_without(said)),
        "names": sorted({each.entity.name for each in desk.seen}),
    }


async def find_line(desk: Desk, session: SessionId, line: int) -> InspectedUtterance:
    """
    Raises:
        NotFound: There is no such line.
    """
    found = await desk.inspection.lines(desk.campaign, session, first=line, limit=1)
    if not found or found[0].said.ordinal != line:
        raise NotFound(f"session {session!r} has no line {line}")
    return found[0]


def _groups(desk: Desk, found: Preview) -> list[Shown]:
    return [
        {"title": title, "facts": [desk.facts.words(fact) for fact in facts]}
        for title, facts in (
            ("Would not be known any more", found.gone),
            ("Would be known otherwise", found.changed),
            ("Would be known again", found.back),
        )
        if facts
    ]


MOST_TURNS: Final = 50
LONGEST: Final = 500
"""Characters of a question."""
_SOMEBODY: Final = Player(PlayerId("guest"), "Somebody")


class TurnPages:
    """The turns of the table, one of them, and a question that nobody has asked yet."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {"/desk/turns": self.turns, "/desk/turns/{turn}": self.turn, "/desk/ask": self.ask}
        self.posted: dict[str, Page] = {}

    async def turns(self, request: Request) -> Response:
        return self._frame.page("turns", request, turns=await turns_shown(await self._frame.desk()))

    async def turn(self, request: Request) -> Response:
        return self._frame.page(
            "turn", request, **await turn_page(await self._frame.desk(), request.path_params["turn"])
        )

    async def ask(self, request: Request) -> Response:
        shown = await ask_page(self._frame.memory(), self._frame.table, request.query_params)
        return self._frame.page("ask", request, **shown)


async def turns_shown(desk: Desk) -> list[Shown]:
    """The latest first."""
    return [_turn(desk, each) for each in await desk.turns.latest(limit=MOST_TURNS)]


def _turn(desk: Desk, turn: TurnRecord) -> Shown:
    return {
        "id": turn.id,
        "short": short_turn(turn.id),
        "when": turn_told.when(turn),
        "speaker": turn.speaker_name,
        "text": turn.text,
        "npc": "" if turn.npc_id is None else desk.resolver.person(turn.npc_id),
        "reply": turn.reply_heard,
        "outcome": turn_told.outcome(turn),
        "why": turn.address_reason,
    }


async def turn_page(desk: Desk, wanted: str) -> Shown:
    """
    Raises:
        NotFound: There is no such turn.
    """
    record = await desk.turns.find(wanted)
    explained = await desk.turns.explain(record)
    told: Sequence[tuple[str, int]] = [
        (line.text, line.depth) for line in turn_told.told(explained, desk.resolver, desk.days.calendar)
    ]
    return {"turn": _turn(desk, record), "told": told, "prompt": record.prompt_text}


async def ask_page(source: DeskSource, table: Table, asked: Mapping[str, str]) -> Shown:
    """
    Args:
        asked: `npc`, `player` and what is said, `say`; without that nothing is asked.

    Raises:
        InvalidInput: There is no such NPC or player, or the question is too long.
        Unavailable: The database is away.
    """
    campaign, line = table.campaign, asked.get("say", "").strip()
    npcs = {each.id: each.name for each in campaign.npcs}
    players = {each.id: each for each in campaign.players} or {_SOMEBODY.id: _SOMEBODY}
    npc = NpcId(_one_of(npcs, asked.get("npc", ""), "NPC"))
    player = players[PlayerId(_one_of(players, asked.get("player", ""), "player"))]
    if len(line) > LONGEST:
        raise InvalidInput(f"the question has {len(line)} characters; at most {LONGEST} are asked")
    composed = await source.rehearse(table, npc, player, line) if line else None
    return {
        "npcs": [{"id": each, "name": name} for each, name in npcs.items()],
        "players": [{"id": each.id, "name": each.name} for each in players.values()],
        "npc": npc,
        "npc_name": npcs[npc],
        "player": player.id,
        "say": line,
        "longest": LONGEST,
        "told": [] if composed is None else [(each.text, each.depth) for each in composed_shown(composed)],
        "prompt": "" if composed is None else composed.text,
    }


def _one_of(
    known: Mapping[str, object] | Mapping[NpcId, str] | Mapping[PlayerId, Player], wanted: str, what: str
) -> str:
    """The first if none is wanted."""
    names = [str(each) for each in known]
    if not wanted and names:
        return names[0]
    if wanted not in names:
        raise InvalidInput(f"no {what} {wanted!r} at this table: {did_you_mean(wanted, names)}")
    return wanted
