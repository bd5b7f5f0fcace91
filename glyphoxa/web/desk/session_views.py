"""What the desk shows of sessions: what was said, page by page, and what is kept of it."""

from __future__ import annotations

from typing import Final

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm.ports import CitedUtterance, Session
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import DM
from glyphoxa.transcript.api import TalkFilter
from glyphoxa.web.desk.views import Shown
from glyphoxa.world.api import moment, visibility_in_words

LINES_PER_PAGE: Final = 300
_MOST_FOUND: Final = 100
_LONGEST_SESSION: Final = 1_000_000


async def sessions(desk: Desk) -> list[Shown]:
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


async def session(desk: Desk, wanted: SessionId, line: str, words: str) -> Shown:
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


def _line(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"line {text!r}: the number of a line of the transcript is wanted")
    return int(text)
