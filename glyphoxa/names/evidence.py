"""What speaks for some words being a misheard name, and what against, in log-odds.

Whether a likeness is enough depends on what the words would be otherwise. "Crimjaw" is in no dictionary; "bard" is
said at every table; words that stand alone between two full stops are a name far more often than the same words in
the middle of a sentence; and a recogniser knows when it has guessed. Each of these adds to one sum; above 0 the
words are taken for the name.

The weights are those of a logistic regression (fitted at or before commit 592d5a9; the tool is gone) on the tuning
half of the spoken names, heard by a local recogniser, and on real table talk that holds none of the names. Set by
hand are those that no such data has: what being near is worth, what a large campaign costs, and names made of
ordinary words; and ordinary words are doubted less readily than was fitted, as damage to speech is worse than a
garble that stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from glyphoxa.domain.heard import UNSURE
from glyphoxa.names.index import Similarity
from glyphoxa.names.naming import Name


class WordContext(Enum):
    """What stands around the words."""

    ALONE = "alone"
    """They are a whole sentence."""
    SET_OFF = "set off"
    """Punctuation on both sides, as around somebody's name who is called."""
    WITHIN = "within"


class Look(Enum):
    """What the words look like before any name is thought of."""

    ODD = "in no dictionary"
    CAPITAL = "written as a name"
    ORDINARY = "ordinary words"


@dataclass(frozen=True, slots=True)
class Weights:
    """Attributes:
    bias: The sum that everything starts from.
    sound: Of `Similarity.sound`; so are `edits` and `spelling` of theirs.
    margin: Of how much less alike the next name is, once that is a fifth or more.
    same_sound: They have a phonetic code in common.
    capital: Against a word in no dictionary; so is `ordinary`.
    edge: A stop word stands first or last.
    stop_word: For each of them, up to three.
    rarity: Of an ordinary word that only the largest dictionaries list; in proportion for others.
    short: For each letter that the name has less than seven.
    short_form: The name is only part of somebody's name.
    missing_word: For each word that the name has more.
    unsure: By the recogniser's mean confidence: below each of these, its weight.
    sure: Its confidence is 0.95 or more.
    """

    bias: float = -8.5
    sound: float = 6.7
    edits: float = 3.4
    spelling: float = 1.3
    margin: float = 2.5
    same_sound: float = 1.8
    set_off: float = -4.2
    within: float = -5.3
    capital: float = -0.1
    ordinary: float = -2.0
    several: float = 1.0
    edge: float = -1.3
    ordinary_within: float = 0.7
    stop_word: float = -0.6
    rarity: float = 0.8
    short: float = -0.6
    short_form: float = -3.4
    missing_word: float = -1.1
    unsure: tuple[tuple[float, float], ...] = ((0.30, 5.6), (0.45, 4.1), (0.60, 3.0), (0.75, 2.2))
    sure: float = -1.1
    nearby: float = 1.0
    ordinary_name: float = -1.5
    each_tenfold: float = -1.4
    """When the campaign has ten times as many names as the set the weights come from."""


WEIGHTS = Weights()
SPELLED = 8.0
"""Log-odds of words that spell a name."""
_RAREST = 70
_NAMES = 150
_MOST_FOR_FEW_NAMES = 0.7


@dataclass(frozen=True, slots=True)
class Window:
    """Some adjacent words, before any name is thought of.

    Attributes:
        first: Index of the first word.
        last: Index of the last word, inclusive.
        rarity: Of its most common word, as in `Vocabulary.rarity`.
        confidence: The recogniser's, a mean over the letters; None when it tells none.
    """

    placement: WordContext
    look: Look
    first: int
    last: int
    starts_or_ends_with_stop_word: bool
    stop_words: int
    rarity: int
    confidence: float | None

    @property
    def n_words(self) -> int:
        return self.last - self.first + 1

    @property
    def only_same_sound(self) -> bool:
        """Only names that sound exactly so come into question; any other would be chance."""
        if self.placement is not WordContext.WITHIN or self.is_doubted:
            return False
        return self.look is Look.ORDINARY or self.stop_words > 0

    @property
    def is_doubted(self) -> bool:
        """The recogniser itself was not sure."""
        return self.confidence is not None and self.confidence < UNSURE

    def log_odds(self, *, n_names: int) -> float:
        """What speaks for it being a name, whichever, before its likeness to one."""
        its = WEIGHTS
        tenfolds = math.log10(max(n_names, 1) / _NAMES)
        odds = its.bias + min(_MOST_FOR_FEW_NAMES, its.each_tenfold * tenfolds)
        if self.placement is WordContext.SET_OFF:
            odds += its.set_off
        elif self.placement is WordContext.WITHIN:
            odds += its.within
        if self.look is Look.CAPITAL:
            odds += its.capital
        elif self.look is Look.ORDINARY:
            odds += its.ordinary + its.rarity * min(self.rarity, _RAREST) / _RAREST
            odds += its.ordinary_within * (self.placement is WordContext.WITHIN)
        odds += its.several * (self.n_words > 1) + its.edge * self.starts_or_ends_with_stop_word
        odds += its.stop_word * min(3, self.stop_words)
        if self.confidence is not None:
            odds += its.sure if self.confidence >= 0.95 else self._doubt(self.confidence)
        return odds

    @staticmethod
    def _doubt(confidence: float) -> float:
        return next((weight for limit, weight in WEIGHTS.unsure if confidence < limit), 0.0)


def log_odds_of_similarity(likeness: Similarity, *, margin: float) -> float:
    """Args:
    margin: How much less alike, overall, the next name is.
    """
    its = WEIGHTS
    return (
        its.sound * likeness.sound
        + its.edits * likeness.edits
        + its.spelling * likeness.spelling
        + its.same_sound * likeness.same_sound
        + its.margin * min(1.0, 5 * margin)
    )


def best_possible() -> float:
    """What a likeness can add at most: a window that needs more need not be compared with any name."""
    return log_odds_of_similarity(Similarity(1.0, 1.0, 1.0, same_sound=True), margin=1.0)


def log_odds_of(name: Name, *, n_words: int, is_nearby: bool) -> float:
    """What speaks for a name, whatever was heard.

    Args:
        n_words: Of the window.
        is_nearby: It belongs to somebody in the scene, or was said lately.
    """
    its = WEIGHTS
    return (
        its.short * max(0, 7 - len(name.joined))
        + its.short_form * (name.kind == "short")
        + its.missing_word * max(0, len(name.words) - n_words)
        + its.ordinary_name * name.is_ordinary
        + its.nearby * is_nearby
    )


def probability(log_odds: float) -> float:
    """0 to 1."""
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, log_odds))))


def weight_of(log_odds: float, name: Name) -> float:
    """What a match is worth beside others: by letters explained, so a long name rather than a short one inside it."""
    return (log_odds + 1) * len(name.joined)
