"""How much each turn of a view bears on a question: the signals, each with its weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.recalled import Signal
from glyphoxa.recall.index.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.lexical.terms import SearchTerms
from glyphoxa.recall.question import RecallQuestion
from glyphoxa.recall.ranking.several import APART
from glyphoxa.recall.ranking.signals import signals_of

Scores = NDArray[float32]
ExtraSignal = Callable[[TalkIndex, Viewer, SearchTerms, ViewSnapshot], Scores]
"""A signal that is registered with the weights: one number for each turn of the snapshot."""

STAGES: Final[Mapping[str, tuple[Signal, ...]]] = {
    "meaning": (
        Signal.MEANING,
        Signal.MEANING_BEFORE,
        Signal.MEANING_AFTER,
        Signal.MEANING_ANSWERS,
        Signal.MEANING_NEAR,
    ),
    "neighbours": (Signal.LED_UP, Signal.MEANING_BEFORE, Signal.MEANING_AFTER, Signal.MEANING_NEAR),
    "answers": (Signal.ANSWERS, Signal.MEANING_ANSWERS, Signal.ASKS),
    "scene": (Signal.SCENE,),
    "speaker": (Signal.SPEAKER,),
    "traits": (Signal.TELLS_TIME, Signal.TELLS_NUMBER),
    "time": (Signal.TIME,),
    "several": (),
}
"""What can be left out together to see what it is worth, each with its signals."""

BY_WORDS: Final[Mapping[Signal, float]] = {
    Signal.WORDS: 5.0,
    Signal.LED_UP: 3.5,
    Signal.SCENE: 10.0,
    Signal.SPEAKER: 1.0,
    Signal.ASKS: -1.0,
    Signal.ANSWERS: 5.0,
    Signal.TELLS_TIME: 2.5,
    Signal.TELLS_NUMBER: 2.5,
    Signal.TIME: 6.5,
}
BY_WORDS_AND_MEANING: Final[Mapping[Signal, float]] = {
    Signal.WORDS: 2.5,
    Signal.LED_UP: 2.5,
    Signal.SCENE: 14.0,
    Signal.SPEAKER: 1.2,
    Signal.ASKS: -1.0,
    Signal.ANSWERS: 2.5,
    Signal.TELLS_TIME: 2.5,
    Signal.TELLS_NUMBER: 2.5,
    Signal.TIME: 6.5,
    Signal.MEANING: 3.0,
    Signal.MEANING_BEFORE: 0.2,
    Signal.MEANING_AFTER: 0.6,
    Signal.MEANING_ANSWERS: 1.0,
    Signal.MEANING_NEAR: 2.5,
}


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """What each signal counts; one that is not named counts nothing.

    Learnt by a listwise softmax (Cao et al., 2007) from five conversations of LoCoMo and, at three tenths of the
    weight, three evenings of Critical Role, and rounded; how that serves other talk is in `docs/recall-measured.md`.

    Attributes:
        apart: See `glyphoxa.recall.ranking.several`; 0: an answer may lie in one session as well as in many.
        by_words: While the question has no vector: it is not asked for on partial transcripts, or it is late.
        extra: Signals that are computed elsewhere, by the names that they have in the tables.
        min_cosine: With no word in common, less similar than this is not about the question. True hits are as low (at
            0.25 questions in other words lose 2.9 points of R@10); what is worth telling is decided after it.
    """

    by_words: Mapping[Signal, float] = field(default_factory=lambda: BY_WORDS)
    by_words_and_meaning: Mapping[Signal, float] = field(default_factory=lambda: BY_WORDS_AND_MEANING)
    apart: float = APART
    extra: Mapping[Signal, ExtraSignal] = field(default_factory=dict)
    min_cosine: float = 0.15

    def without(self, stage: str) -> RankingWeights:
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


DEFAULT: Final = RankingWeights()


@dataclass(frozen=True, slots=True)
class Ranking:
    """
    Attributes:
        scores: Shape (n,), higher is better.
        shares: What each score is made of, by signal, each of shape (n,): they add up to it.
    """

    scores: Scores
    shares: Mapping[Signal, Scores] = field(default_factory=dict)


def rank(
    question: RecallQuestion,
    seen: ViewSnapshot,
    *,
    speakers: frozenset[int] = frozenset(),
    also: Mapping[Signal, Scores] = MappingProxyType({}),
    weights: RankingWeights = DEFAULT,
) -> Ranking:
    """
    Args:
        speakers: The numbers of those whom the question names.
        also: What speaks for each turn beside, as computed for this question: the time that it tells, and
            `weights.extra`.
    """
    signals = signals_of(question, seen, speakers) | dict(also)
    table = weights.by_words if seen.cosines is None else weights.by_words_and_meaning
    shares = {name: np.float32(weight) * signals[name] for name, weight in table.items() if name in signals}
    scores = np.zeros(len(seen), float32)
    for share in shares.values():
        scores += share
    return Ranking(scores, shares)
