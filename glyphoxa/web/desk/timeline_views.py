"""What the desk shows of going back: all that a rollback would take away, before it is done."""

from __future__ import annotations

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.domain.ids import SessionId
from glyphoxa.web.desk.views import Shown


async def preview(desk: Desk, session: SessionId, line: int) -> Shown:
    """
    Args:
        line: After which nothing would have been said or learned.

    Raises:
        NotFound: There is no such session.
        InvalidInput: It has no such line.
    """
    found = await desk.timeline.preview(session, line)
    words = desk.facts.words
    return {
        "id": session,
        "line": line,
        "n_lines": found.n_utterances,
        "groups": [
            {"title": title, "facts": [words(fact) for fact in facts]}
            for title, facts in (
                ("Would not be known any more", found.gone),
                ("Would be known otherwise", found.changed),
                ("Would be known again", found.back),
            )
            if facts
        ],
    }
