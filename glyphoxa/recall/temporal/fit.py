"""How well each turn fits the time that a question tells.

A prior, not a filter: it fades outside of what was asked for, and faster before it than after it, as what happened is
told later and not earlier. Only where one session is asked for ("last session") nothing of the others fits. On five
conversations of LoCoMo half of this added to the fused score raises R@10 of the questions that name a date by 8 points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import float32, float64, int32, int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import StoryDays
from glyphoxa.recall.temporal.ask import Anchor, PlaceKind, SessionReference, TimeAsk
from glyphoxa.recall.temporal.days import TimeWindow
from glyphoxa.recall.temporal.words import Part, Relation

_TOLD_LATER: Final = 6.0
"""How much slower it fades after a span than before it."""
_STORY_FADES: Final = 0.1
"""Of the length of what was asked for. Two evenings are often one day of the story apart, and a day that was named is
one of them and not the other.
"""
_STORY_FADES_LEAST_DAYS: Final = 0.5
_STORY_FADES_OPEN_DAYS: Final = 3.0
_STORY_TOLD_LATER: Final = 2.0
_FAR: Final = 50.0
_OUTSIDE_PART: Final = 0.3
_NEAR_EVENT: Final = 10.0
"""Turns after which something said beside an event is still about it, more likely than not."""
_BESIDE_EVENT: Final = 3.0
_RECENT_SESSIONS: Final = 2
_MOST_ANCHORS: Final = 3
_TRUST_IN_SPAN: Final = 1.0
_TRUST_IN_PLACE: Final[Mapping[PlaceKind, float]] = {
    "session": 1.0,
    "first": 0.5,
    "latest": 0.3,
    "opening": 0.5,
    "recent": 0.2,
    "long_ago": 0.2,
    "whole": 0.0,
}
_TRUST_DURING, _TRUST_IN_EVENT = 0.1, 0.05
"""Measured like the above, as far as the questions there go: of 44 with an event, more trust than that loses."""


@dataclass(frozen=True, slots=True)
class PastSession:
    """
    Attributes:
        number: From 1: among all that were played, or among those the viewer was at; see
            `glyphoxa.recall.ranking.time_of_view.sessions_of`.
        first_ms: When its first turn was said, milliseconds since the Unix epoch.
        story: Its days of the story, as far as they are known.
        summary: As the viewer may know it; None if none is written.
    """

    number: int
    first_ms: int
    last_ms: int
    story: StoryDays | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """What was said, in the order in which it was said; arrays of one length n.

    Attributes:
        at_ms: Milliseconds since the Unix epoch.
        sessions: Which of the sessions a turn belongs to, from 0, never decreasing.
        as_of_evening_ms: The same as `at_ms` for a comparison with whole days; None if it is the same. See
            `glyphoxa.recall.temporal.evenings.as_of_its_evening`.
    """

    at_ms: NDArray[int64]
    sessions: NDArray[int32]
    as_of_evening_ms: NDArray[int64] | None = None

    def __len__(self) -> int:
        return len(self.at_ms)

    def of_session(self, index: int) -> slice:
        """The turns of one of the sessions."""
        first, end = np.searchsorted(self.sessions, (index, index + 1))
        return slice(int(first), int(end))


@dataclass(frozen=True, slots=True)
class Fit:
    """
    Attributes:
        scores: Of each turn, 0 to 1; float32, shape (n,).
        prior: The same for a ranking, shape (n,): each of the times counts by how far it has proved to tell where the
            answer is. A date tells it well; of an event the words find what is said of it, and its time adds little.
        is_exact: What does not fit is not meant.
        reason: For who looks: "asked about last session (session 11)".
    """

    scores: NDArray[float32]
    prior: NDArray[float32]
    is_exact: bool
    reason: str


def fit_in_time(
    ask: TimeAsk,
    sessions: Sequence[PastSession],
    turns: TurnTimes,
    *,
    current: int | None,
    anchors: Sequence[int] = (),
) -> Fit | None:
    """How well each turn fits; None if the question tells no time, or only an event that was not found.

    Of several times all must fit; story time and session time are two readings of one ("yesterday"), so either may.

    Args:
        current: Number of the session that is played; None between sessions: then the last one is "last session".
        anchors: Turns that tell of the event in `ask.anchor`, the likeliest first.
    """
    fits: list[NDArray[float32]] = []
    trust: list[float] = []
    resolved = ""
    if ask.window is not None or ask.story is not None:
        fits.append(_in_span(ask, sessions, turns))
        trust.append(_TRUST_IN_SPAN)
    if ask.place is not None and len(sessions):
        fits.append(_at_place(ask.place, sessions, turns, current))
        trust.append(_TRUST_IN_PLACE[ask.place.kind])
        if ask.place.kind == "session":
            resolved = f" (session {session_number(ask.place, sessions, current)})"
    if ask.anchor is not None and len(anchors):
        fits.append(_beside_event(ask.anchor, turns, anchors))
        trust.append(_TRUST_DURING if ask.anchor.relation == "during" else _TRUST_IN_EVENT)
    if not fits:
        return None
    is_exact = ask.place is not None and ask.place.is_exact
    prior = np.minimum(np.tensordot(np.array(trust, float32), np.array(fits), 1), float32(1.0))
    return Fit(np.minimum.reduce(fits), prior, is_exact, f"asked about {ask.words}{resolved}")


def session_number(place: SessionReference, sessions: Sequence[PastSession], current: int | None) -> int:
    """Of the session that is meant, whether there is one or not."""
    if place.number is not None:
        return place.number
    return _present(sessions, current) - (place.back or 0)


def _present(sessions: Sequence[PastSession], current: int | None) -> int:
    return max((session.number for session in sessions), default=0) + 1 if current is None else current


def _in_span(ask: TimeAsk, sessions: Sequence[PastSession], turns: TurnTimes) -> NDArray[float32]:
    scores = np.zeros(len(turns), float32)
    if ask.window is not None:
        by_evening = turns.as_of_evening_ms if ask.window.is_of_days else None
        scores = _in_window(ask.window, turns.at_ms if by_evening is None else by_evening)
    if ask.story is not None and len(sessions):
        of_sessions = np.array([_in_story(ask.story, session.story) for session in sessions], float32)
        scores = np.maximum(scores, of_sessions[turns.sessions])
    return scores


def _in_window(window: TimeWindow, at_ms: NDArray[int64]) -> NDArray[float32]:
    scores = np.ones(len(at_ms), float32)
    if window.from_ms is not None:
        scores *= _faded((window.from_ms - at_ms) / window.fades_ms)
    if window.until_ms is not None:
        scores *= _faded((at_ms - window.until_ms + 1) / (_TOLD_LATER * window.fades_ms))
    return scores


def _faded(distance: NDArray[float64]) -> NDArray[float32]:
    """1 up to 0, then falling by e for each 1. What is far is the same as what is further: numbers that are almost zero
    take ten times as long.
    """
    scores: NDArray[float32] = np.exp(-np.clip(distance.astype(float32), 0.0, _FAR))
    return scores


def _in_story(asked: StoryDays, session: StoryDays | None) -> float:
    if session is None:
        return 0.0
    first = -np.inf if session.first is None else session.first
    last = np.inf if session.last is None else session.last
    early = 0.0 if asked.first is None else max(0.0, asked.first - last)
    late = 0.0 if asked.last is None else max(0.0, first - asked.last)
    fades = _STORY_FADES_OPEN_DAYS
    if asked.first is not None and asked.last is not None:
        fades = max(_STORY_FADES_LEAST_DAYS, _STORY_FADES * (asked.last - asked.first + 1))
    return float(np.exp(-early / fades - late / (_STORY_TOLD_LATER * fades)))


def _at_place(
    place: SessionReference, sessions: Sequence[PastSession], turns: TurnTimes, current: int | None
) -> NDArray[float32]:
    numbers = np.array([session.number for session in sessions], float64)
    ago = np.maximum(_present(sessions, current) - numbers, 0.0)
    match place.kind:
        case "session":
            target = session_number(place, sessions, current)
            scores = _by_relation(numbers - target, place.relation)
            if place.part is not None and place.is_exact:
                of_turns: NDArray[float32] = scores.astype(float32)[turns.sessions]
                meant = np.flatnonzero(of_turns)
                of_turns[meant] = _in_part(place.part, len(meant))
                return of_turns
        case "recent":
            reach = place.back or _RECENT_SESSIONS
            scores = np.exp2(-np.maximum(ago - reach, 0.0) / reach)
        case "long_ago":
            scores = 1.0 - np.exp2(-ago)
        case "opening":
            scores = np.exp2(-(numbers - numbers.min()))
        case "first":
            return np.linspace(1.0, 0.0, len(turns), dtype=float32)
        case "latest":
            return np.linspace(0.0, 1.0, len(turns), dtype=float32)
        case "whole":
            return np.ones(len(turns), float32)
    found: NDArray[float32] = scores.astype(float32)[turns.sessions]
    return found


def _by_relation(later: NDArray[float64], relation: Relation) -> NDArray[float64]:
    """How well sessions fit that are by so many later than the one that is meant."""
    scores: NDArray[float64]
    match relation:
        case "during":
            scores = (later == 0).astype(float64)
        case "before":
            scores = np.exp2(-np.maximum(later + 1, 0.0))
        case "until":
            scores = np.exp2(-np.maximum(later, 0.0))
        case "after":
            scores = np.exp2(np.minimum(later - 1, 0.0))
        case "since":
            scores = np.exp2(np.minimum(later, 0.0))
    return scores


def _in_part(part: Part, n: int) -> NDArray[float32]:
    """1 in that third of the session, fading to its other end; shape (n,)."""
    at = np.linspace(0.0, 1.0, n, dtype=float32)
    outside: NDArray[float32]
    match part:
        case "beginning":
            outside = np.maximum(at - 1 / 3, 0.0) * 1.5
        case "end":
            outside = np.maximum(2 / 3 - at, 0.0) * 1.5
        case "middle":
            outside = np.maximum(np.abs(at - 0.5) - 1 / 6, 0.0) * 3
    scores: NDArray[float32] = 1.0 - (1.0 - _OUTSIDE_PART) * outside
    return scores


def _beside_event(anchor: Anchor, turns: TurnTimes, anchors: Sequence[int]) -> NDArray[float32]:
    """The best of what fits one of the turns that tell of it."""
    scores = np.zeros(len(turns), float32)
    later, earlier = _BESIDE.get(anchor.relation, 0.0), _BESIDE.get(_REVERSED[anchor.relation], 0.0)
    for at in anchors[:_MOST_ANCHORS]:
        np.maximum(scores[at:], later, out=scores[at:])
        np.maximum(scores[: at + 1], earlier, out=scores[: at + 1])
        of_session = turns.of_session(int(turns.sessions[at]))
        distance = np.arange(of_session.start, of_session.stop) - float(at)
        is_near = _faded(np.abs(distance) / np.where(distance * (later - earlier) < 0, _BESIDE_EVENT, _NEAR_EVENT))
        np.maximum(scores[of_session], is_near, out=scores[of_session])
    return scores


_BESIDE: Final[Mapping[Relation, float]] = {"after": 0.5, "since": 1.0}
"""How well all fits that comes after an event."""
_REVERSED: Final[Mapping[Relation, Relation]] = {
    "after": "before",
    "since": "until",
    "before": "after",
    "until": "since",
    "during": "during",
}
