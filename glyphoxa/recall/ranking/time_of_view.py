"""When it was that a question asks about, over the talk that one remembers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.recall.index.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.question import RecallQuestion
from glyphoxa.recall.ranking.signals import by_words
from glyphoxa.recall.temporal.evenings import STILL_PLAYED_MS
from glyphoxa.recall.temporal.fit import Fit, PastSession, TurnTimes, fit_in_time

_MOST_ANCHORS = 3
_SURE = 0.6
"""Of the best by words: a turn that is nearly as good may tell of the event as well."""


def turns_of(question: RecallQuestion, seen: ViewSnapshot) -> TurnTimes:
    at_ms, window = seen.columns.at_ms, question.time.window
    by_evening = question.times.as_of_its_evening(at_ms) if window is not None and window.is_of_days else None
    return TurnTimes(at_ms, seen.columns.sessions, by_evening)


def sessions_of(
    question: RecallQuestion, index: TalkIndex, seen: ViewSnapshot, summaries: Mapping[SessionId, str] | None = None
) -> list[PastSession]:
    """The sessions of a view in its order. They have the numbers of the table where one is asked for by its number or
    as the last one: who asks counts the evenings that were played. Otherwise those that the viewer was at are counted:
    "long ago" is no sooner because of evenings of which it knows nothing.

    Args:
        summaries: As the viewer may know them.
    """
    place = question.time.place
    numbers = index.session_numbers() if place is None or place.kind == "session" else None
    columns = seen.columns
    ends = [*(columns.starts[1:] - 1).tolist(), len(columns) - 1] if len(columns) else []
    found = []
    for nth, (start, end) in enumerate(zip(columns.starts.tolist(), ends, strict=True), start=1):
        session = index.said(int(columns.rows[start])).session_id
        summary = (summaries or {}).get(session)
        at_ms = columns.at_ms[start : end + 1]
        # What was rolled back since it was looked at has no number any more.
        number = nth if numbers is None else numbers.get(session, 0)
        story = question.times.sessions.get(session)
        found.append(PastSession(number, int(at_ms.min()), int(at_ms.max()), story, summary))
    return found


def current_session(sessions: list[PastSession], *, now_ms: int) -> int | None:
    """The number of the session that is being played; None between sessions. One in which something was said so
    recently goes on: "last session" is the one before it.
    """
    last = max(sessions, key=lambda session: session.number, default=None)
    if last is None or now_ms - last.last_ms > STILL_PLAYED_MS:
        return None
    return last.number


def fit_of(question: RecallQuestion, index: TalkIndex, viewer: Viewer, seen: ViewSnapshot) -> Fit | None:
    """How well each turn fits the time that is asked about; None if the question tells none."""
    if not question.time.tells_a_time or not len(seen):
        return None
    sessions = sessions_of(question, index, seen)
    current = current_session(sessions, now_ms=question.now_ms)
    anchors = anchors_of(question, index, viewer, seen)
    return fit_in_time(question.time, sessions, turns_of(question, seen), current=current, anchors=anchors)


def anchors_of(question: RecallQuestion, index: TalkIndex, viewer: Viewer, seen: ViewSnapshot) -> list[int]:
    """Turns that tell of the event by which the question tells its time, the likeliest first."""
    anchor = question.time.anchor
    if anchor is None:
        return []
    scores = by_words(index.look(viewer, index.terms.of_question(anchor.words)))
    best = np.argsort(-scores, kind="stable")[:_MOST_ANCHORS]
    # Talk may have grown since.
    return [int(at) for at in best if scores[at] > _SURE * scores[best[0]] and at < len(seen)]
