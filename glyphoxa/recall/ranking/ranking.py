"""How much each turn of a view bears on a question: the signals, each with its weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.recall.lexical.talk_index import Seen
from glyphoxa.recall.question import Question
from glyphoxa.recall.ranking.several import APART
from glyphoxa.recall.ranking.signals import signals_of

Scores = NDArray[float32]

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "meaning": ("meaning", "meaning_before", "meaning_after", "meaning_answers", "meaning_near"),
    "neighbours": ("led_up", "meaning_before", "meaning_after", "meaning_near"),
    "answers": ("answers", "meaning_answers", "asks"),
    "scene": ("scene",),
    "speaker": ("speaker",),
    "traits": ("tells_time", "tells_number"),
    "time": ("time",),
    "several": (),
}
"""What can be left out together to see what it is worth, each with its signals."""

BY_WORDS: Final[Mapping[str, float]] = {
    "words": 5.0,
    "led_up": 3.5,
    "scene": 10.0,
    "speaker": 1.0,
    "asks": -1.0,
    "answers": 5.0,
    "tells_time": 2.5,
    "tells_number": 2.5,
    "time": 6.5,
}
BY_WORDS_AND_MEANING: Final[Mapping[str, float]] = {
    "words": 2.5,
    "led_up": 2.5,
    "scene": 14.0,
    "speaker": 1.2,
    "asks": -1.0,
    "answers": 2.5,
    "tells_time": 2.5,
    "tells_number": 2.5,
    "time": 6.5,
    "meaning": 3.0,
    "meaning_before": 0.2,
    "meaning_after": 0.6,
    "meaning_answers": 1.0,
    "meaning_near": 2.5,
}


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal counts; one that is not named counts nothing.

    Learnt by a listwise softmax (Cao et al., 2007) from five conversations of LoCoMo and, at three tenths of the
    weight, three evenings of Critical Role, and rounded; how that serves other talk is in `docs/recall-measured.md`.

    Attributes:
        apart: See `glyphoxa.recall.ranking.several`; 0: an answer may lie in one session as well as in many.
        by_words: While the question has no vector: it is not asked for on partial transcripts, or it is late.
    """

    by_words: Mapping[str, float] = field(default_factory=lambda: BY_WORDS)
    by_words_and_meaning: Mapping[str, float] = field(default_factory=lambda: BY_WORDS_AND_MEANING)
    apart: float = APART

    def without(self, stage: str) -> Weights:
        """The same with a stage of `STAGES` left out."""
        gone = STAGES[stage]
        return replace(
            self,
            by_words={name: weight for name, weight in self.by_words.items() if name not in gone},
            by_words_and_meaning={
                name: weight for name, weight in self.by_words_and_meaning.items() if name not in gone
            },
            apart=0.0 if stage == "several" else self.apart,
        )

    def with_second_hop(self, weight: float) -> Weights:
        """The same with `glyphoxa.recall.ranking.second_hop`, which has proved to add nothing to these signals."""
        return replace(
            self,
            by_words={**self.by_words, "second_hop": weight},
            by_words_and_meaning={**self.by_words_and_meaning, "second_hop": weight},
        )

    @property
    def has_second_hop(self) -> bool:
        return "second_hop" in self.by_words_and_meaning


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
    second_hop: Scores | None = None,
    weights: Weights = DEFAULT,
) -> Ranking:
    """
    Args:
        speakers: The numbers of those whom the question names.
        time: How much the time that the question tells speaks for each turn, 0 to 1; None if it tells none.
        second_hop: What the first hits lead to.
    """
    signals = signals_of(question, seen, speakers)
    if time is not None:
        signals["time"] = time
    if second_hop is not None:
        signals["second_hop"] = second_hop
    table = weights.by_words if seen.cosines is None else weights.by_words_and_meaning
    shares = {name: np.float32(weight) * signals[name] for name, weight in table.items() if name in signals}
    scores = np.zeros(len(seen), float32)
    for share in shares.values():
        scores += share
    return Ranking(scores, shares)
