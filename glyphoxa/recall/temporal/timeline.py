"""What happened, in order: for questions that similarity does not answer ("what happened last session", "what came
first"), for no turn says what order things were in.

A session is told by its summary. Where none is written its most telling turns stand for it, one from each stretch of
the session, so that its beginning and its end are both in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy import float32, int64
from numpy.typing import NDArray

from glyphoxa.recall.temporal.ask import SessionReference, TimeAsk
from glyphoxa.recall.temporal.fit import Fit, PastSession, TurnTimes, fit_in_time

LEAST_TOKENS: Final = 40
"""A session that gets less than that is left out: nothing can be told in it."""
_TURN_TOKENS: Final = 30
_IN_SCOPE: Final = 0.5
_LEAST_FIT: Final = 0.25
_TRIED: Final = 3
"""Of a stretch, until one is short enough."""
_ROUNDING: Final = 1e-6
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+")
_LAST_SESSION: Final = SessionReference("session", back=1)


@dataclass(frozen=True, slots=True)
class TimelinePiece:
    """One piece of a timeline.

    Attributes:
        number: Of the session.
        at_ms: When it was said; of a summary, when its session began.
        place: Of the turn; None for a summary.
        n_tokens: What it costs.
        reason: Why it is told: "asked about last session (session 11)".
    """

    number: int
    at_ms: int
    text: str
    place: int | None
    n_tokens: int
    reason: str


def estimated_tokens(text: str) -> int:
    """About four characters a token."""
    return len(text) // 4 + 1


@dataclass(frozen=True, slots=True)
class RankedTalk:
    """What may be told.

    Attributes:
        worth: How telling each turn is for the question, any scale from 0; shape (n,). For a recap how rare its words
            are, summed up, does better than their number or how central they are.
        text_of: A turn's words.
        lead_of: How many characters stand in front of them in a prompt: who says it.
        anchors: As in `fit_in_time`.
    """

    turns: TurnTimes
    worth: NDArray[float32]
    text_of: Callable[[int], str]
    lead_of: Callable[[int], int] = lambda _: 0
    count_tokens: Callable[[str], int] = estimated_tokens
    anchors: Sequence[int] = ()


def timeline_of(
    ask: TimeAsk,
    sessions: Sequence[PastSession],
    talk: RankedTalk,
    *,
    current: int | None,
    budget_tokens: int,
) -> list[TimelinePiece]:
    """The sessions that were asked about, in order, within the budget. Empty if the question asks for no recap and no
    order, if there is nothing to tell, or no room for it.

    Each session gets an equal share; what one leaves over goes to the next. If there are too many, those whose turns
    are worth most are told, of equals the latest. A recap without a time is one of the last session.

    Args:
        current: Number of the session that is played; None between sessions.
    """
    if not (ask.asks_for_recap or ask.asks_for_order) or not len(talk.turns):
        return []
    if not (ask.asks_for_order or ask.tells_a_time):
        ask = replace(ask, place=_LAST_SESSION, words="what happened")
    fit = fit_in_time(ask, sessions, talk.turns, current=current, anchors=talk.anchors)
    if fit is None and not ask.asks_for_order:
        return []  # what happened since something of which nobody spoke
    chosen = _chosen(_scope(fit, talk.turns), sessions, talk, most=budget_tokens // LEAST_TOKENS)
    reason = "asked about the order of things" if fit is None else fit.reason
    # Of a part of a session its summary does not tell.
    is_part = ask.place is not None and ask.place.part is not None
    told: list[TimelinePiece] = []
    left = budget_tokens
    for nth, index in enumerate(chosen):
        share = left // (len(chosen) - nth)
        pieces = [] if is_part else _summary(sessions[index], talk, share, reason)
        if not pieces:
            places = _meant(index, fit, talk.turns, part=is_part)
            pieces = _telling(sessions[index], places, talk, share, reason)
        left -= sum(piece.n_tokens for piece in pieces)
        told += pieces
    return told


def _scope(fit: Fit | None, turns: TurnTimes) -> list[int]:
    """Sessions of which a turn fits at least half as well as the best one does; all if no time was told.

    What does not fit by itself is not told as if it did: nothing was said last year in a campaign that began in May.
    """
    there = turns.sessions
    if fit is not None:
        there = there[fit.scores >= max(_LEAST_FIT, _IN_SCOPE * float(fit.scores.max()))]
    return [int(index) for index in there[np.r_[True, np.diff(there) > 0]]] if len(there) else []


def _chosen(scope: list[int], sessions: Sequence[PastSession], talk: RankedTalk, *, most: int) -> list[int]:
    if len(scope) > most:
        starts = np.flatnonzero(np.r_[True, np.diff(talk.turns.sessions) > 0])
        best = dict(zip(talk.turns.sessions[starts].tolist(), np.maximum.reduceat(talk.worth, starts), strict=True))
        scope = sorted(scope, key=lambda index: (best[index], sessions[index].number))[len(scope) - most :]
    return sorted(scope, key=lambda index: sessions[index].number)


def _summary(session: PastSession, talk: RankedTalk, share: int, reason: str) -> list[TimelinePiece]:
    text = _cut(session.summary or "", share, talk)
    return (
        [TimelinePiece(session.number, session.first_ms, text, None, talk.count_tokens(text), reason)] if text else []
    )


def _cut(text: str, share: int, talk: RankedTalk, *, n_lead: int = 0) -> str:
    """The sentences that there is room for, from the first on, behind so many characters."""
    kept, lead = "", " " * n_lead
    for sentence in _SENTENCE_END.split(text.strip()):
        longer = f"{kept} {sentence}".strip()
        if talk.count_tokens(lead + longer) > share:
            break
        kept = longer
    return kept


def _meant(index: int, fit: Fit | None, turns: TurnTimes, *, part: bool) -> NDArray[int64]:
    of_session = turns.of_session(index)
    places = np.arange(of_session.start, of_session.stop)
    if fit is None:
        return places
    scores = fit.scores[places]
    return places[scores >= (scores.max() - _ROUNDING if part else _ROUNDING)]


def _telling(
    session: PastSession, places: NDArray[int64], talk: RankedTalk, share: int, reason: str
) -> list[TimelinePiece]:
    """The best turn of each of as many stretches as there is room for, of equals the first.

    No stretch takes the room of the next: of a long turn only its first sentences are told. On three episodes of CRD3,
    with 600 tokens, that touches 31 % of what their recaps tell; with whole turns it was 5 %.
    """
    told: list[TimelinePiece] = []
    n_stretches = min(len(places), max(1, share // _TURN_TOKENS))
    for nth, stretch in enumerate(np.array_split(places, n_stretches) if n_stretches else ()):
        room = share // (n_stretches - nth)
        for place in stretch[np.argsort(-talk.worth[stretch], kind="stable")][:_TRIED]:
            n_lead = talk.lead_of(int(place))
            text = _cut(talk.text_of(int(place)), room, talk, n_lead=n_lead)
            if text:
                n_tokens = talk.count_tokens(" " * n_lead + text)
                told.append(
                    TimelinePiece(session.number, int(talk.turns.at_ms[place]), text, int(place), n_tokens, reason)
                )
                share -= n_tokens
                break
    return told
