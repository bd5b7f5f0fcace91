"""What speaks for a turn, each thing by itself: arrays of one number a turn, most of them from 0 to 1.

By words, by meaning, and by the structure of talk: an answer stands beside its question, what is spoken of fills a
session, and who is asked about has mostly told it themselves. All is counted in the view of the one who remembers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.memory.recall.asked import Question
from glyphoxa.memory.recall.talk_index import Seen
from glyphoxa.memory.recall.traits import Trait

Signal = NDArray[float32]
_K1 = 0.9
_SESSION_K1, _SESSION_B = 1.2, 0.75
_TINY = 1e-6


def signals_of(question: Question, seen: Seen, speakers: frozenset[int]) -> dict[str, Signal]:
    """Every signal by its name, each float32 of shape (n,).

    `words` (BM25), `share` (how much of what the question says stands in the turn, by rarity) and, if the question has
    a vector, `meaning`; `..._before`, `_before2`, `_after`, `_after2`: the same of the turns beside it in its session,
    `..._answers`: of the question that it follows, `..._session`: the best of its session. `session`: the whole session
    as one text; `speaker`: it was said by somebody whom the question names; `asks`: it is a question itself;
    `tells_time`, `tells_number`: it says when or how many where that is asked.

    Args:
        speakers: Numbers of those whom the question names.
    """
    n = len(seen.columns)
    found: dict[str, Signal] = {}
    found["words"], found["share"] = by_words(seen)
    found["session"] = _of_whole_sessions(seen)
    found["speaker"] = np.isin(seen.columns.speakers, list(speakers)).astype(float32)
    asks = _has(seen, Trait.ASKS)
    found["asks"] = asks
    zeros = np.zeros(n, float32)
    time = question.time
    found["tells_time"] = _has(seen, Trait.TELLS_TIME) if time.asks_for_time or time.asks_how_long else zeros
    counts = time.asks_how_often or time.asks_how_long
    found["tells_number"] = _has(seen, Trait.TELLS_NUMBER) if counts else zeros
    spread = ["share"]
    if seen.cosines is not None:
        found["meaning"] = _above_average(seen.cosines)
        spread.append("meaning")
    for name in spread:
        found |= _beside(name, found[name], asks, seen)
    return found


def by_words(seen: Seen) -> tuple[Signal, Signal]:
    """BM25 as a share of the best (without regard to length: an utterance is short, and a long one tells more; k1 0.9),
    and the share of the question's weight that is met.
    """
    n = len(seen.columns)
    scores, met = np.zeros(n, float32), np.zeros(n, float32)
    whole = 0.0
    for match in seen.matches:
        df = len(match.places)
        idf = np.log1p((n - df + 0.5) / (df + 0.5))
        whole += idf
        scores[match.places] += idf * match.counts * (_K1 + 1) / (match.counts + _K1)
        met[match.places] += idf
    return _of_best(scores), met / max(whole, _TINY)


def _of_whole_sessions(seen: Seen) -> Signal:
    sessions, starts = seen.columns.sessions, seen.columns.starts
    n = len(starts)
    if not n:
        return np.zeros(0, float32)
    lengths = np.add.reduceat(seen.columns.lengths, starts)
    norm = _SESSION_K1 * (1 - _SESSION_B + _SESSION_B * lengths / max(float(lengths.mean()), 1.0))
    scores = np.zeros(n)
    for match in seen.matches:
        counts = np.bincount(sessions[match.places], weights=match.counts, minlength=n)
        df = np.count_nonzero(counts)
        scores += np.log1p((n - df + 0.5) / (df + 0.5)) * counts * (_SESSION_K1 + 1) / (counts + norm)
    found: Signal = _of_best(scores.astype(float32))[sessions]
    return found


def _has(seen: Seen, trait: Trait) -> Signal:
    found: Signal = ((seen.traits & trait) != 0).astype(float32)
    return found


def _above_average(cosines: Signal) -> Signal:
    """0 for the average turn, 1 for the best; 0 for one without a vector."""
    known = ~np.isnan(cosines)
    if not known.any():
        return np.zeros_like(cosines)
    mean, best = float(cosines[known].mean()), float(cosines[known].max())
    spread: Signal = np.where(known, (cosines - mean) / max(best - mean, _TINY), 0).astype(float32)
    return spread


def _of_best(scores: Signal) -> Signal:
    best = np.float32(scores.max(initial=0.0))
    spread: Signal = scores / best if best > 0 else scores
    return spread


def _beside(name: str, values: Signal, asks: Signal, seen: Seen) -> Mapping[str, Signal]:
    sessions = seen.columns.sessions
    found: dict[str, Signal] = {}
    for distance, suffix in ((1, ""), (2, "2")):
        before, after = np.zeros_like(values), np.zeros_like(values)
        same = sessions[distance:] == sessions[:-distance]
        before[distance:] = values[:-distance] * same
        after[:-distance] = values[distance:] * same
        found |= {f"{name}_before{suffix}": before, f"{name}_after{suffix}": after}
    previous_asks = np.zeros_like(asks)
    previous_asks[1:] = asks[:-1]
    found[f"{name}_answers"] = previous_asks * found[f"{name}_before"]
    if len(values):
        best: Signal = np.maximum.reduceat(values, seen.columns.starts)
        found[f"{name}_session"] = best[sessions]
    else:
        found[f"{name}_session"] = values
    return found
