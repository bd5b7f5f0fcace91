"""Questions for what happened, or for its order: answered by sessions in their order and not by likeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.recalled import RecalledSummary, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.recall.index.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.question import RecallQuestion
from glyphoxa.recall.ranking.ranked import Ranked
from glyphoxa.recall.ranking.time_of_view import anchors_of, current_session, sessions_of, turns_of
from glyphoxa.recall.temporal.fit import Fit
from glyphoxa.recall.temporal.timeline import RankedTalk, TimelinePiece, timeline_of

MOST_SESSIONS = 8
"""Whose summaries are read for one question."""
_TOKENS_PER_LINE = 40
_SAID_CHARACTERS = 7
"""Of what a prompt has between who speaks and the words."""
_OWN_NAME_CHARACTERS = 3


def asks_for_recap(question: RecallQuestion) -> bool:
    return question.time.asks_for_recap or question.time.asks_for_order


def sessions_in_question(index: TalkIndex, seen: ViewSnapshot, fit: Fit | None) -> list[SessionId]:
    """Those whose summaries may answer, at most eight: the ones that fit the time best, the latest among equals."""
    starts = seen.columns.starts
    if not len(starts):
        return []
    worth = np.ones(len(starts)) if fit is None else np.maximum.reduceat(fit.scores, starts)
    order = np.lexsort((-np.arange(len(starts)), -worth))[:MOST_SESSIONS]
    return [index.said(int(seen.columns.rows[starts[at]])).session_id for at in order]


def recap(ranked: Ranked, summaries: Mapping[SessionId, str]) -> list[RecalledTalk]:
    """What happened, in its order; empty if nothing can be told.

    Args:
        summaries: As the viewer may know them.
    """
    question, index, viewer, seen = ranked.question, ranked.index, ranked.viewer, ranked.seen
    worth, lines = ranked.ranking.scores, ranked.query.limit

    def told(at: int) -> RecalledUtterance | None:
        return ranked.recalled(at) if ranked.may_be_told[at] and not ranked.is_the_question(at) else None

    def text_of(at: int) -> str:
        one = told(at)
        return "" if one is None else one.text

    def lead_of(at: int) -> int:
        said = index.said(int(seen.columns.rows[at]))
        name = _OWN_NAME_CHARACTERS if str(said.speaker_id) == viewer else len(said.speaker_name)
        return name + _SAID_CHARACTERS

    sessions = sessions_of(question, index, seen, summaries)
    pieces = timeline_of(
        question.time,
        sessions,
        RankedTalk(
            turns_of(question, seen),
            worth - worth.min(initial=0.0),
            text_of,
            lead_of,
            anchors=anchors_of(question, index, viewer, seen),
        ),
        current=current_session(sessions, now_ms=question.now_ms),
        budget_tokens=lines * _TOKENS_PER_LINE,
    )
    ids = [index.said(int(seen.columns.rows[at])).session_id for at in seen.columns.starts]
    by_number = {past.number: session for past, session in zip(sessions, ids, strict=True)}
    found: list[RecalledTalk] = []
    for piece in pieces:
        if piece.place is None:
            found.append(
                RecalledSummary(
                    by_number[piece.number],
                    piece.text,
                    piece.at_ms,
                    reason=f"summary of session {by_number[piece.number]}; {piece.reason}",
                )
            )
        elif (one := told(piece.place)) is not None:
            found.append(_because(one, piece))
    # Left out is what lies between: how it began and how it ended are what a recap is asked for.
    return (
        [found[at] for at in np.linspace(0, len(found) - 1, lines).round().astype(int)] if len(found) > lines else found
    )


def without_repeats(items: Sequence[RecalledTalk]) -> list[RecalledTalk]:
    """Each where it stands first. A turn is the same one whether all of it is told or its beginning."""
    found: dict[tuple[str, str], RecalledTalk] = {}
    for one in items:
        found.setdefault((one.source, one.utterance_id if isinstance(one, RecalledUtterance) else one.text), one)
    return list(found.values())


def _because(recalled: RecalledUtterance, piece: TimelinePiece) -> RecalledUtterance:
    return replace(
        recalled,
        text=piece.text,
        score=1.0,
        reason=f"witnessed in session {recalled.session_id}; {piece.reason}",
        signals={**recalled.signals, Signal.RECAP: 1.0},
    )
