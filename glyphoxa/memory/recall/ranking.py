"""How much each turn of a view bears on a question: the signals, each with its weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.memory.recall.asked import Question
from glyphoxa.memory.recall.signals import signals_of
from glyphoxa.memory.recall.talk_index import Seen

Scores = NDArray[float32]

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "meaning": ("meaning", "meaning_*"),
    "neighbours": ("*_before", "*_before2", "*_after", "*_after2"),
    "answers": ("*_answers", "asks"),
    "sessions": ("*_session", "session"),
    "speaker": ("speaker",),
    "traits": ("tells_time", "tells_number"),
    "time": ("time",),
}
"""What can be left out to see what it is worth: signals by their names, `*` for `words`, `share` and `meaning`."""

BY_WORDS: Final[Mapping[str, float]] = {
    "words": 2.45,
    "share": 1.86,
    "session": 1.81,
    "speaker": 0.91,
    "asks": -1.09,
    "tells_time": 2.01,
    "tells_number": 1.32,
    "share_before": 1.09,
    "share_before2": 1.97,
    "share_after": 1.16,
    "share_after2": 0.56,
    "share_answers": 2.32,
    "share_session": 1.28,
    "time": 4.0,
}
BY_WORDS_AND_MEANING: Final[Mapping[str, float]] = {
    "words": 1.57,
    "share": 1.25,
    "session": 1.46,
    "speaker": 1.08,
    "asks": -1.15,
    "tells_time": 2.03,
    "tells_number": 1.38,
    "share_before": 0.92,
    "share_before2": 1.2,
    "share_after": 0.29,
    "share_after2": -0.13,
    "share_answers": 0.61,
    "share_session": 1.51,
    "meaning": 1.99,
    "meaning_before": -0.34,
    "meaning_before2": 0.26,
    "meaning_after": 0.48,
    "meaning_after2": 0.36,
    "meaning_answers": 1.54,
    "meaning_session": 1.26,
    "time": 4.0,
}


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts; one that is not named counts nothing.

    They are those of a listwise softmax (Cao et al., 2007) over the turns of five conversations of LoCoMo, in which one
    conversation was ranked by what was learnt from the four others.

    Attributes:
        by_words: While the question has no vector: it is not asked for on partial transcripts, or it is late.
    """

    by_words: Mapping[str, float] = field(default_factory=lambda: BY_WORDS)
    by_words_and_meaning: Mapping[str, float] = field(default_factory=lambda: BY_WORDS_AND_MEANING)

    def without(self, stage: str) -> Weights:
        """The same with a stage of `STAGES` left out."""
        gone = _signals_of_stage(stage)
        return replace(
            self,
            by_words={name: weight for name, weight in self.by_words.items() if name not in gone},
            by_words_and_meaning={
                name: weight for name, weight in self.by_words_and_meaning.items() if name not in gone
            },
        )


DEFAULT: Final = Weights()


@dataclass(frozen=True, slots=True)
class Ranking:
    """
    Attributes:
        scores: Shape (n,), higher is better.
        shares: What each score is made of, by signal, each of shape (n,): they add up to it.
    """

    scores: Scores
    shares: Mapping[str, Scores] = field(default_factory=dict)


def rank(
    question: Question,
    seen: Seen,
    *,
    speakers: frozenset[int] = frozenset(),
    time: Scores | None = None,
    weights: Weights = DEFAULT,
) -> Ranking:
    """
    Args:
        speakers: The numbers of those whom the question names.
        time: How much the time that the question tells speaks for each turn, 0 to 1; None if it tells none.
    """
    signals = signals_of(question, seen, speakers)
    if time is not None:
        signals["time"] = time
    table = weights.by_words if seen.cosines is None else weights.by_words_and_meaning
    shares = {name: np.float32(weight) * signals[name] for name, weight in table.items() if name in signals}
    scores: Scores = np.sum(list(shares.values()), axis=0, dtype=float32) if shares else np.zeros(len(seen), float32)
    return Ranking(scores, shares)


def _signals_of_stage(stage: str) -> set[str]:
    arms = ("words", "share", "meaning")
    gone = set()
    for pattern in STAGES[stage]:
        if pattern.startswith("*"):
            gone |= {arm + pattern[1:] for arm in arms}
        elif pattern.endswith("*"):
            gone |= {pattern[:-1] + end for end in _BESIDE}
        else:
            gone.add(pattern)
    return gone


_BESIDE: Final = ("before", "before2", "after", "after2", "answers", "session")
