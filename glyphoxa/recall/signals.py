"""Compute the signals of the ranking: arrays with one number for each turn.

They use words, meaning and the structure of a conversation: an answer is next to its question, a topic fills a scene,
and people mostly talk about themselves. All counts are taken in the view of the NPC that remembers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import float32, float64, int32, int64
from numpy.typing import NDArray

from glyphoxa.domain.calendar import StoryDays
from glyphoxa.domain.knowledge import Signal
from glyphoxa.recall.table_calendar import STILL_PLAYED_MS
from glyphoxa.recall.talk_index import TalkIndex, TermMatch, ViewSnapshot
from glyphoxa.recall.terms import RecallQuestion, Trait
from glyphoxa.recall.time_reader import Part, PlaceKind, Relation, SessionReference, TimeAsk

Values = NDArray[float32]
"""The values of one signal: a number for each turn."""
_K1, _B = 0.9, 0.2
"""Parameters of BM25. Utterances are short, and a longer one contains more, so length counts little."""
_SCENE_K1, _SCENE_B = 1.2, 0.75
SCENE_TURNS = 60
"""A session is cut into equal stretches of at most this length, which represent its scenes."""
SCALE = 20.0
"""A summed rarity: what four or five telling words weigh. The score of a question with many words is not scaled
down, because a turn that contains all of them is the surer hit."""
_LED_UP_TURNS = 2
_LEAST_TURNS, _LEAST_SCENES = 300, 10
"""A word is at least as rare as in this many turns: on the first evening, every word would be common."""
_TINY = 1e-6


def signals_of(question: RecallQuestion, seen: ViewSnapshot, speakers: frozenset[int]) -> dict[Signal, Values]:
    """Return the signals by name, each float32 of shape (n,). A signal that is 0 for all turns is omitted.

    - `words`: BM25.
    - `led_up`: share of the question in the turn and the two before it together, by rarity.
    - `scene`: BM25 of the surrounding stretch.
    - `speaker`: the question names the speaker.
    - `asks`: the turn is a question. `answers`: `words` of the question that it follows.
    - `tells_time`: it contains a time, if the question asks for one.

    With the question's vector there are also `meaning`, from 0 for the average turn to 1 for the nearest;
    `meaning_before` and `meaning_after`, that of the turn two before and of the next; `meaning_near`, the best of those
    at most eight away; and `meaning_answers`, that of the question that it follows. Word signals (`words`, `led_up`,
    `scene`, `answers`) are then scaled by how much of the question the transcript contains: see `said_at_best`.

    Args:
        speakers: Numbers of the speakers whom the question names.
    """
    hits = _hits_of(seen)
    led_up = _led_up(hits, seen)
    trust = 1.0 if seen.cosines is None else said_at_best(question, seen, led_up)
    scale = np.float32(trust / SCALE)
    words = _bm25(hits, seen) * scale
    asks = _has(seen, Trait.ASKS)
    follows = _shifted(asks, 1, seen)
    found = {
        Signal.WORDS: words,
        Signal.LED_UP: led_up * scale,
        Signal.SCENE: _of_scenes(hits, seen) * scale,
        Signal.ASKS: asks,
        Signal.ANSWERS: follows * _shifted(words, 1, seen),
    }
    if speakers:
        found[Signal.SPEAKER] = np.isin(seen.columns.speakers, list(speakers)).astype(float32)
    if not question.time.asks.isdisjoint(("when", "how_long")):
        found[Signal.TELLS_TIME] = _has(seen, Trait.TELLS_TIME)
    if seen.cosines is not None:
        meaning = _above_average(seen.cosines)
        found |= {
            Signal.MEANING: meaning,
            Signal.MEANING_BEFORE: _shifted(meaning, 2, seen),
            Signal.MEANING_AFTER: _shifted(meaning, -1, seen),
            Signal.MEANING_ANSWERS: follows * _shifted(meaning, 1, seen),
            Signal.MEANING_NEAR: _best_near(meaning, seen),
        }
    return found


def said_at_best(question: RecallQuestion, seen: ViewSnapshot, led_up: Values) -> float:
    """Return the largest share of the question that one turn and the two before it contain: by rarity, 0 to 1.

    A word that nobody said has the highest rarity. A question in other words than the answer shares only common words
    with any turn, and where those occur together is chance. On such questions R@10 rises by 5.3 points over the
    transcripts of the weights, by 2.2 over that of a table, and LoCoMo's own questions lose nothing that can be shown.
    """
    asked = sum(rarity(match, len(seen)) for match in seen.matches)
    asked += (len(question.terms) - len(seen.matches)) * rarity_of_unsaid(len(seen))
    return float(led_up.max(initial=0.0)) / asked if asked > 0 else 1.0


def by_words(seen: ViewSnapshot) -> Values:
    """BM25 (Robertson & Zaragoza, 2009) with frequencies and lengths of the view."""
    return _bm25(_hits_of(seen), seen)


@dataclass(frozen=True, slots=True)
class _Hits:
    """All matches in one array, so that shared work is done once for all of them.

    Attributes:
        matches: Which of the matches each hit belongs to.
        places: Turns, in no order.
        counts: How often the term occurs in the turn.
        rarities: Rarity of each match.
    """

    matches: NDArray[int64]
    places: NDArray[int64]
    counts: NDArray[float32]
    rarities: NDArray[float64]


def _hits_of(seen: ViewSnapshot) -> _Hits:
    found = seen.matches
    return _Hits(
        np.repeat(np.arange(len(found)), [len(match.places) for match in found]),
        np.concatenate([np.zeros(0, int64), *(match.places for match in found)]),
        np.concatenate([np.zeros(0, float32), *(match.counts for match in found)]),
        np.array([rarity(match, len(seen)) for match in found], float64),
    )


def rarity(match: TermMatch, n: int) -> float:
    """Return the inverse document frequency of a term in a view of n turns, as in BM25, above 0."""
    return _idf(len(match.places), max(n, _LEAST_TURNS))


def rarity_of_unsaid(n: int) -> float:
    """Return the rarity of a term that no turn of a view of n turns contains."""
    return _idf(0, max(n, _LEAST_TURNS))


def _idf(df: int, n: int) -> float:
    return float(np.log1p((n - df + 0.5) / (df + 0.5)))


def _bm25(hits: _Hits, seen: ViewSnapshot) -> Values:
    scores = np.zeros(len(seen), float32)
    norm = _K1 * (1 - _B + _B * seen.columns.lengths[hits.places] / max(seen.mean_length, 1.0))
    weights = hits.rarities.astype(float32)[hits.matches]
    np.add.at(scores, hits.places, weights * hits.counts * (_K1 + 1) / (hits.counts + norm))
    return scores


def _led_up(hits: _Hits, seen: ViewSnapshot) -> Values:
    """Sum the rarity of the terms that occur in a turn or the two before it in its session, each counted once."""
    n = len(seen)
    steps = np.zeros(n + 1)
    ends_of = np.append(seen.columns.starts[1:], n)
    # Each match has its own row of turns, one after the other.
    shift = hits.matches * (n + 1)
    begins = np.sort(hits.places + shift)
    ends = np.minimum(begins + (_LED_UP_TURNS + 1), ends_of[seen.columns.sessions[begins - shift]] + shift)
    # Where two matches overlap, the term counts once.
    begins[1:] = np.maximum(begins[1:], ends[:-1])
    reach = begins < ends
    weights = hits.rarities[hits.matches[reach]]
    np.add.at(steps, (begins - shift)[reach], weights)
    np.subtract.at(steps, (ends - shift)[reach], weights)
    return np.cumsum(steps[:n]).astype(float32)


def _of_scenes(hits: _Hits, seen: ViewSnapshot) -> Values:
    """Return BM25 of the scene of each turn."""
    n = len(seen)
    if not n:
        return np.zeros(0, float32)
    starts = _scene_starts(seen)
    n_turns = np.diff(np.append(starts, n))
    n_scenes, n_matches = len(starts), len(hits.rarities)
    lengths = np.add.reduceat(seen.columns.lengths, starts, dtype=float64)
    norm = _SCENE_K1 * (1 - _SCENE_B + _SCENE_B * lengths / max(float(lengths.mean()), 1.0))
    at = np.searchsorted(starts, hits.places, side="right") - 1
    counts = np.bincount(hits.matches * n_scenes + at, weights=hits.counts, minlength=n_matches * n_scenes)
    counts = counts.reshape(n_matches, n_scenes)
    idf = [_idf(df, max(n_scenes, _LEAST_SCENES)) for df in np.count_nonzero(counts, axis=1).tolist()]
    scores = (np.reshape(idf, (-1, 1)) * counts * (_SCENE_K1 + 1) / (counts + norm)).sum(axis=0)
    return np.repeat(scores.astype(float32), n_turns)


def _scene_starts(seen: ViewSnapshot) -> NDArray[int64]:
    """Return the first turn of each scene. The scenes of a session differ in length by one turn at most."""
    starts = seen.columns.starts
    lengths = np.diff(np.append(starts, len(seen)))
    parts = -(-lengths // SCENE_TURNS)
    of_session = np.repeat(np.arange(len(starts)), parts)
    part = np.arange(len(of_session)) - (np.cumsum(parts) - parts)[of_session]
    begins: NDArray[int64] = starts[of_session] - (-part * lengths[of_session] // parts[of_session])
    return begins


def _has(seen: ViewSnapshot, trait: Trait) -> Values:
    found: Values = ((seen.columns.traits & trait) != 0).astype(float32)
    return found


def _above_average(cosines: Values) -> Values:
    """Return 0 for the average turn, 1 for the best, 0 for one without a vector."""
    unknown = np.isnan(cosines)
    known = cosines[~unknown]
    if not len(known):
        return np.zeros_like(cosines)
    mean, best = float(known.mean()), float(known.max())
    spread: Values = (cosines - np.float32(mean)) / np.float32(max(best - mean, _TINY))
    spread[unknown] = 0
    return spread


def _shifted(values: Values, by: int, seen: ViewSnapshot) -> Values:
    """Return the value of the turn that many before (after, if negative) in the same session; 0 if there is none."""
    n, starts = len(values), seen.columns.starts
    found = np.zeros_like(values)
    if by > 0:
        found[by:] = values[:-by]
        without = (starts[:, None] + np.arange(by)).ravel()
        found[without[without < n]] = 0
    else:
        found[:by] = values[-by:]
        without = (starts[:, None] + np.arange(by, 0)).ravel()
        found[without[without >= 0]] = 0
    return found


def _best_near(values: Values, seen: ViewSnapshot) -> Values:
    """Return the best of the turns at most eight away in the same session."""
    before, after = values, values
    # 1 + 2 + 4 + 1 steps reach eight: four passes instead of eight.
    for step in (1, 2, 4, 1):
        before = np.maximum(before, _shifted(before, step, seen))
        after = np.maximum(after, _shifted(after, -step, seen))
    return np.maximum(before, after)


# -- time
#
# How well each turn fits the time in a question.
#
# This is a prior, not a filter. It fades outside the requested time, and faster before it than after it, because events
# are reported later and not earlier. Only a question about one session ("last session") excludes the others. On five
# conversations of LoCoMo, adding half of this to the score raises R@10 of questions with a date by 8 points.


_TOLD_LATER: Final = 6.0
"""It fades this much slower after a span than before it."""
_STORY_FADES: Final = 0.1
"""Share of the requested span. Two evenings are often one story day apart, and a named day is only one of them."""
_STORY_FADES_LEAST_DAYS: Final = 0.5
_STORY_FADES_OPEN_DAYS: Final = 3.0
_STORY_TOLD_LATER: Final = 2.0
_FAR: Final = 50.0
_OUTSIDE_PART: Final = 0.3
_PART_AT: Final[Mapping[Part, float]] = {"beginning": 1 / 6, "middle": 1 / 2, "end": 5 / 6}
_RECENT_SESSIONS: Final = 2
_TRUST: Final[Mapping[PlaceKind, float]] = {
    "session": 1.0,
    "first": 0.5,
    "latest": 0.3,
    "opening": 0.5,
    "recent": 0.2,
    "long_ago": 0.2,
    "whole": 0.0,
}


@dataclass(frozen=True, slots=True)
class PastSession:
    """
    Attributes:
        number: From 1; see `sessions_of`.
        last_ms: Time of its last turn, milliseconds since the Unix epoch.
        story: Its story days, as far as they are known.
    """

    number: int
    last_ms: int
    story: StoryDays | None = None


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """Turns in the order in which they were said; arrays of one length n.

    Attributes:
        at_ms: Milliseconds since the Unix epoch; for a question about whole days as of their evening.
        sessions: Session of each turn, from 0, never decreasing.
    """

    at_ms: NDArray[int64]
    sessions: NDArray[int32]

    def __len__(self) -> int:
        return len(self.at_ms)

    def of_session(self, index: int) -> slice:
        """Return the turns of one session."""
        first, end = np.searchsorted(self.sessions, (index, index + 1))
        return slice(int(first), int(end))


@dataclass(frozen=True, slots=True)
class Fit:
    """
    Attributes:
        scores: Fit of each turn, 0 to 1; float32, shape (n,).
        prior: The same for a ranking, shape (n,): each kind of time is weighted by how well it locates answers. A date
            locates them well.
        reason: For display: "asked about last session (session 11)".
    """

    scores: NDArray[float32]
    prior: NDArray[float32]
    reason: str


# -- over the turns of a view


def fit_of(question: RecallQuestion, index: TalkIndex, seen: ViewSnapshot) -> Fit | None:
    """Return how well each turn fits the requested time; None if the question contains no time."""
    if not question.time.tells_a_time or not len(seen):
        return None
    sessions = sessions_of(question, index, seen)
    current = current_session(sessions, now_ms=question.now_ms)
    at_ms, window = seen.columns.at_ms, question.time.window
    if window is not None and window.is_of_days:
        at_ms = question.times.as_of_its_evening(at_ms)
    return fit_in_time(question.time, sessions, TurnTimes(at_ms, seen.columns.sessions), current=current)


def sessions_of(question: RecallQuestion, index: TalkIndex, seen: ViewSnapshot) -> list[PastSession]:
    """Return the sessions of a view with at least one turn, in order.

    A question for a session by number, or for the last one, counts the table's sessions. Other questions count those
    that the viewer attended: "long ago" does not change with evenings that it does not know of.
    """
    place = question.time.place
    numbers = index.session_numbers() if place is None or place.kind == "session" else None
    columns = seen.columns
    ends_ms = np.maximum.reduceat(columns.at_ms, columns.starts).tolist()
    found = []
    for nth, (start, last_ms) in enumerate(zip(columns.starts.tolist(), ends_ms, strict=True), start=1):
        session = index.said(int(columns.rows[start])).session_id
        # A turn that was rolled back since the look-up has no number.
        number = nth if numbers is None else numbers.get(session, 0)
        story = question.times.campaign.sessions.get(session)
        found.append(PastSession(number, last_ms, story))
    return found


def current_session(sessions: list[PastSession], *, now_ms: int) -> int | None:
    """Return the number of the session being played; None between sessions.

    A session with a recent utterance is still being played, so "last session" is the one before it.
    """
    last = max(sessions, key=lambda session: session.number, default=None)
    return None if last is None or now_ms - last.last_ms > STILL_PLAYED_MS else last.number


# -- over turns and sessions


def fit_in_time(ask: TimeAsk, sessions: Sequence[PastSession], turns: TurnTimes, *, current: int | None) -> Fit | None:
    """Return how well each turn fits; None if the question contains no time.

    If there are several times, all must fit. Story time and session time are two readings of one ("yesterday"), so
    either may fit.

    Args:
        current: Number of the session being played; None between sessions: then the last one is "last session".
    """
    fits: list[tuple[float, NDArray[float32]]] = []
    resolved = ""
    if ask.window is not None or ask.story is not None:
        fits.append((1.0, _in_span(ask, sessions, turns)))
    if ask.place is not None and len(sessions):
        latest = max(session.number for session in sessions) + 1 if current is None else current
        meant = latest - (ask.place.back or 0) if ask.place.number is None else ask.place.number
        fits.append((_TRUST[ask.place.kind], _at_place(ask.place, sessions, turns, latest, meant)))
        resolved = f" (session {meant})" if ask.place.kind == "session" else ""
    if not fits:
        return None
    prior = np.minimum(sum(np.float32(trust) * scores for trust, scores in fits), float32(1.0))
    return Fit(np.minimum.reduce([scores for _, scores in fits]), prior, f"asked about {ask.words}{resolved}")


def _in_span(ask: TimeAsk, sessions: Sequence[PastSession], turns: TurnTimes) -> NDArray[float32]:
    scores, window = np.zeros(len(turns), float32), ask.window
    if window is not None:
        scores += 1
        if window.from_ms is not None:
            scores *= _faded((window.from_ms - turns.at_ms) / window.fades_ms)
        if window.until_ms is not None:
            scores *= _faded((turns.at_ms - window.until_ms + 1) / (_TOLD_LATER * window.fades_ms))
    if ask.story is not None and len(sessions):
        of_sessions = np.array([_in_story(ask.story, session.story) for session in sessions], float32)
        scores = np.maximum(scores, of_sessions[turns.sessions])
    return scores


def _faded(distance: NDArray[float64]) -> NDArray[float32]:
    """1 up to 0, then a decay by e for each 1.

    Far values are clipped, because numbers close to zero take ten times as long.
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
    place: SessionReference, sessions: Sequence[PastSession], turns: TurnTimes, latest: int, meant: int
) -> NDArray[float32]:
    """
    Args:
        latest: Number of the present session.
        meant: Number of the requested session, whether it exists or not.
    """
    numbers = np.array([session.number for session in sessions], float64)
    ago = np.maximum(latest - numbers, 0.0)
    match place.kind:
        case "session":
            scores = _by_relation(numbers - meant, place.relation)
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
    if place.part is not None and place.is_exact:
        there = np.flatnonzero(found)
        found[there] = _in_part(_PART_AT[place.part], len(there))
    return found


def _by_relation(later: NDArray[float64], relation: Relation) -> NDArray[float64]:
    """Return how well sessions fit that are this many after the requested one."""
    if relation == "during":
        same: NDArray[float64] = np.equal(later, 0).astype(float64)
        return same
    outside = {"before": later + 1, "until": later, "after": 1 - later, "since": -later}[relation]
    scores: NDArray[float64] = np.exp2(-np.maximum(outside, 0.0))
    return scores


def _in_part(middle: float, n: int) -> NDArray[float32]:
    """1 in that third of the session, fading to its further end; shape (n,)."""
    distance = np.abs(np.linspace(0.0, 1.0, n, dtype=float32) - middle)
    outside = np.maximum(distance - 1 / 6, 0.0) / (max(middle, 1 - middle) - 1 / 6)
    scores: NDArray[float32] = 1.0 - (1.0 - _OUTSIDE_PART) * outside
    return scores
