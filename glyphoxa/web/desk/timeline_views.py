"""What the desk shows before talk is changed: all that a rollback, or other words for a line, would take away."""

from __future__ import annotations

from glyphoxa.adapters.postgres.world.inspection import InspectedUtterance
from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm.timeline import Preview
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import SessionId
from glyphoxa.web.desk.views import Shown
from glyphoxa.world.api import moment


async def preview(desk: Desk, session: SessionId, line: int) -> Shown:
    """
    Args:
        line: After which nothing would have been said or learned.

    Raises:
        NotFound: There is no such session.
        InvalidInput: It has no such line.
    """
    found = await desk.timeline.preview(session, line)
    return {"id": session, "line": line, "n_lines": found.n_utterances, "groups": _groups(desk, found)}


async def one_line(desk: Desk, session: SessionId, line: int) -> Shown:
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
