"""How far a session was read by the chronicle, in words."""

from __future__ import annotations

from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.world.api import moment


def reading_in_words(session: SessionProgress) -> str:
    """Whether all was read, and what stands in the way."""
    if session.error is None:
        state = "unread talk" if session.has_news else "up to date"
        if session.refused is None:
            return state
        return f"{state}; {session.n_refused} not believed, the last one: {session.refused}"
    if session.is_dead:
        return f"given up after {session.attempts} tries: {session.error}"
    again = "" if session.retry_at_ms is None else f", again at {moment(session.retry_at_ms)}"
    return f"failed{again}: {session.error}"
