"""Questions for what happened, or for its order: answered by sessions in their order and not by likeness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.turn import Recalled
from glyphoxa.recall.lexical.talk_index import Seen, TalkIndex
from glyphoxa.recall.question import Question
from glyphoxa.recall.temporal.fit import Fit
from glyphoxa.recall.temporal.in_view import anchors_of, current_session, sessions_of, turns_of
from glyphoxa.recall.temporal.timeline import Talk, Told, timeline_of

RECAP = "recap"
"""The signal of a turn that is told because it happened then, like the question or not."""
MOST_SESSIONS = 8
"""Whose summaries are read for one question."""
_TOKENS_PER_LINE = 40


def asks_for_recap(question: Question) -> bool:
    return question.time.asks_for_recap or question.time.asks_for_order


def sessions_in_question(index: TalkIndex, seen: Seen, fit: Fit | None) -> list[SessionId]:
    """Those whose summaries may answer, at most eight: the ones that fit the time best, the latest among equals."""
    starts = seen.columns.starts
    if not len(starts):
        return []
    worth = np.ones(len(starts)) if fit is None else np.maximum.reduceat(fit.scores, starts)
    order = np.lexsort((-np.arange(len(starts)), -worth))[:MOST_SESSIONS]
    return [index.said(int(seen.columns.rows[starts[at]])).session_id for at in order]


def recap(
    question: Question,
    index: TalkIndex,
    viewer: Viewer,
    seen: Seen,
    worth: NDArray[float32],
    summaries: Mapping[SessionId, str],
    *,
    told: Callable[[int], Recalled | None],
    lines: int,
    now_ms: int,
) -> list[Recalled]:
    """What happened, in its order; empty if nothing can be told.

    Args:
        worth: How much each turn bears on the question.
        summaries: As the viewer may know them.
        told: A turn as it is recalled, by its place; None: it may not be told.
        lines: At most so many.
    """

    def text_of(at: int) -> str:
        one = told(at)
        return "" if one is None else one.text

    sessions = sessions_of(question, index, seen, summaries)
    pieces = timeline_of(
        question.time,
        sessions,
        Talk(turns_of(question, seen), worth - worth.min(initial=0.0), text_of),
        current=current_session(sessions, now_ms=now_ms),
        budget_tokens=lines * _TOKENS_PER_LINE,
        anchors=anchors_of(question, index, viewer, seen),
    )
    ids = [index.said(int(seen.columns.rows[at])).session_id for at in seen.columns.starts]
    by_number = {past.number: session for past, session in zip(sessions, ids, strict=True)}
    found: list[Recalled] = []
    for piece in pieces:
        if piece.place is None:
            found.append(
                Recalled(
                    text=piece.text,
                    source="summary",
                    session_id=by_number[piece.number],
                    reason=f"summary of session {by_number[piece.number]}; {piece.reason}",
                    at_ms=piece.at_ms,
                )
            )
        elif (one := told(piece.place)) is not None:
            found.append(_because(one, piece))
    # Left out is what lies between: how it began and how it ended are what a recap is asked for.
    return (
        [found[at] for at in np.linspace(0, len(found) - 1, lines).round().astype(int)] if len(found) > lines else found
    )


def without_repeats(items: Sequence[Recalled]) -> list[Recalled]:
    """Each where it stands first. A turn is the same one whether all of it is told or its beginning."""
    found: dict[tuple[str, str], Recalled] = {}
    for one in items:
        found.setdefault((one.source, one.utterance_id or one.text), one)
    return list(found.values())


def _because(recalled: Recalled, piece: Told) -> Recalled:
    return replace(
        recalled,
        text=piece.text,
        score=1.0,
        reason=f"witnessed in session {recalled.session_id}; {piece.reason}",
        signals={**recalled.signals, RECAP: 1.0},
    )
