"""How much each turn of a view bears on a question: words, meaning, and the structure of talk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.memory.recall.talk_index import Seen

Scores = NDArray[float32]


@dataclass(frozen=True, slots=True)
class Weights:
    """
    Attributes:
        k1, b: Of BM25 (Robertson & Zaragoza, 2009).
        lexical: Share of words against meaning, each spread from 0 to 1 (convex fusion, C-55).
        near, next_to_near: What a turn gets of its neighbours' scores, one and two turns away in the same session.
        session: What it gets of its session's best.
        speaker: For a turn of somebody whom the question names.
    """

    k1: float = 1.2
    b: float = 0.75
    lexical: float = 0.5
    near: float = 0.35
    next_to_near: float = 0.15
    session: float = 0.3
    speaker: float = 0.3


DEFAULT = Weights()


@dataclass(frozen=True, slots=True)
class Ranking:
    """
    Attributes:
        scores: Shape (n,), higher is better; 0 where nothing speaks for a turn.
        signals: What each score is made of, by name, each of shape (n,).
    """

    scores: Scores
    signals: Mapping[str, Scores] = field(default_factory=dict)


def rank(seen: Seen, *, speakers: frozenset[int] = frozenset(), weights: Weights = DEFAULT) -> Ranking:
    """
    Args:
        speakers: The numbers of those whom the question names.
    """
    words = _spread(bm25(seen, weights))
    signals = {"words": words}
    base = words
    if seen.cosines is not None:
        meaning = _spread(np.nan_to_num(np.maximum(seen.cosines, 0.0)))
        signals["meaning"] = meaning
        base = weights.lexical * words + (1 - weights.lexical) * meaning
    around = _around(base, seen, weights)
    session = weights.session * _of_session(base, seen)
    speaker = weights.speaker * base * np.isin(seen.columns.speakers, list(speakers))
    signals |= {"neighbours": around, "session": session, "speaker": speaker}
    return Ranking(base + around + session + speaker, signals)


def bm25(seen: Seen, weights: Weights = DEFAULT) -> Scores:
    """Shape (n,). Frequencies and lengths are those of the view."""
    n = len(seen.columns)
    scores = np.zeros(n, float32)
    if not n:
        return scores
    norm = weights.k1 * (1 - weights.b + weights.b * seen.columns.lengths / max(seen.mean_length, 1.0))
    for match in seen.matches:
        df = len(match.places)
        idf = np.log1p((n - df + 0.5) / (df + 0.5))
        scores[match.places] += idf * match.counts * (weights.k1 + 1) / (match.counts + norm[match.places])
    return scores


def _spread(scores: Scores) -> Scores:
    high = scores.max(initial=0.0)
    return scores / high if high > 0 else scores


def _around(base: Scores, seen: Seen, weights: Weights) -> Scores:
    found = np.zeros_like(base)
    sessions = seen.columns.sessions
    for distance, weight in ((1, weights.near), (2, weights.next_to_near)):
        same = sessions[distance:] == sessions[:-distance]
        found[distance:] += weight * base[:-distance] * same
        found[:-distance] += weight * base[distance:] * same
    return found


def _of_session(base: Scores, seen: Seen) -> Scores:
    if not len(base):
        return base
    best = np.maximum.reduceat(base, seen.columns.starts)
    found: Scores = best[seen.columns.sessions]
    return found
