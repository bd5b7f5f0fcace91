"""Evidence for and against words being a misheard name, in log-odds.

The similarity required depends on the alternative meaning of the words. "Crimjaw" is in no dictionary; "bard" is said
at every table; words that are a whole sentence are a name far more often than the same words in the middle of a
sentence; and a recogniser reports when it has guessed. Each of these adds to one sum; above 0 the words count as the
name.

The weights are those of a logistic regression (fitted at or before commit 592d5a9; the tool is gone) on the tuning
half of the spoken names, transcribed by a local recogniser, and on real table talk without any of the names. Set by
hand are those without such data: the bonus for nearby names, the penalty for large campaigns, and names made of
ordinary words. Ordinary words are also doubted less than fitted, because damaged speech is worse than a
misheard name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from glyphoxa.domain.heard import UNSURE, HeardWord
from glyphoxa.language.language_data import ORDINARY, Vocabulary
from glyphoxa.language.words import Word
from glyphoxa.names.gazetteer import SHORTEST, Similarity
from glyphoxa.names.naming import Name


class WordContext(Enum):
    """Position of the words in the text."""

    ALONE = "alone"
    """They are a whole sentence."""
    SET_OFF = "set off"
    """Punctuation on both sides, as around the name of an addressed person."""
    WITHIN = "within"


class Look(Enum):
    """The look of the words, independent of any name."""

    ODD = "in no dictionary"
    CAPITAL = "written as a name"
    ORDINARY = "ordinary words"


@dataclass(frozen=True, slots=True)
class Weights:
    """
    Attributes:
        bias: Intercept of the sum.
        sound: For `Similarity.sound`; likewise `edits` and `spelling`.
        margin: For the distance of the second-best name, if it is at least a fifth.
        same_sound: They share a phonetic code.
        capital: Relative to a word in no dictionary; likewise `ordinary`.
        edge: A stop word is first or last.
        stop_word: For each stop word, up to three.
        rarity: For an ordinary word that only the largest dictionaries list; proportional for others.
        short: For each letter that the name has less than seven.
        short_form: The name is only part of a person's name.
        missing_word: For each additional word of the name.
        unsure: Weights by upper limits of the recogniser's mean confidence.
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
    """Weight of each tenfold size of the campaign, relative to the data set."""


WEIGHTS = Weights()
SPELLED = 8.0
"""Log-odds of words that spell a name."""
_RAREST = 70
_NAMES = 150
_MAX_FOR_FEW_NAMES = 0.7


@dataclass(frozen=True, slots=True)
class Window:
    """Some adjacent words, independent of any name.

    Attributes:
        first: Index of the first word.
        last: Index of the last word, inclusive.
        rarity: Rarity of its most common word, as in `Vocabulary.rarity`.
        confidence: Mean of the recogniser's confidence over the letters; None if it reports none.
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
        """Whether only names with exactly this sound are candidates; any other match would be chance."""
        if self.placement is not WordContext.WITHIN or self.is_doubted:
            return False
        return self.look is Look.ORDINARY or self.stop_words > 0

    @property
    def is_doubted(self) -> bool:
        """Whether the recogniser was not sure."""
        return self.confidence is not None and self.confidence < UNSURE

    def log_odds(self, *, n_names: int) -> float:
        """Evidence for any name, before comparing with one."""
        its = WEIGHTS
        tenfolds = math.log10(max(n_names, 1) / _NAMES)
        odds = its.bias + min(_MAX_FOR_FEW_NAMES, its.each_tenfold * tenfolds)
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
    """
    Args:
        margin: How much lower the overall similarity of the second-best name is.
    """
    its = WEIGHTS
    return (
        its.sound * likeness.sound
        + its.edits * likeness.edits
        + its.spelling * likeness.spelling
        + its.same_sound * likeness.same_sound
        + its.margin * min(1.0, 5 * margin)
    )


def log_odds_of(name: Name, *, n_words: int, is_nearby: bool) -> float:
    """Evidence for a name, whatever was heard.

    Args:
        n_words: Number of words in the window.
        is_nearby: It belongs to somebody in the scene, or was said recently.
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
    """Weight of a match in the choice between overlapping ones: by explained letters, so that longer names win."""
    return (log_odds + 1) * len(name.joined)


_REMEMBERED = 8192


class Traits(NamedTuple):
    """Properties of a word.

    Attributes:
        is_doubted: The recogniser was not sure of it.
        is_fixed: It is part of a correctly spelled name.
        begins: It follows more than a space.
        rarity: See `Vocabulary.rarity`.
        confidence: The recogniser's; None if it reports none.
    """

    is_stop: bool
    is_odd: bool
    is_capital: bool
    is_doubted: bool
    is_fixed: bool
    begins: bool
    rarity: int
    confidence: float | None


class Reader:
    """Reads transcripts of one language. Its cache never changes a result."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known_of = lru_cache(_REMEMBERED)(self._know)

    def read(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), fixed: Collection[int] = frozenset()
    ) -> Transcript:
        """
        Args:
            heard: Recogniser details for the words.
            fixed: Indices of words that are part of a correctly spelled name.
        """
        confidences = confidences_of(spoken, heard)
        traits = [
            self._traits(word, confidence, at in fixed)
            for at, (word, confidence) in enumerate(zip(spoken, confidences, strict=True))
        ]
        return Transcript(spoken, traits)

    def _traits(self, word: Word, confidence: float | None, is_fixed: bool) -> Traits:
        rarity, is_proper, is_odd = self._known_of(word.folded, word.full)
        is_capital = word.is_capital and len(word.folded) > 1
        is_free = not is_fixed and rarity > 0
        return Traits(
            is_stop=rarity == 0,
            is_odd=is_free and is_odd and (is_capital or self._vocabulary.is_known),
            # "little" is a name too, but only in capitals.
            is_capital=is_free and ((is_proper and rarity > ORDINARY) or (is_capital and not word.opens)),
            is_doubted=not is_fixed and confidence is not None and confidence < UNSURE,
            is_fixed=is_fixed,
            begins=not word.joins,
            rarity=rarity,
            confidence=confidence,
        )

    def _know(self, folded: str, full: str) -> tuple[int, bool, bool]:
        """Return its rarity, whether a dictionary lists it as a name, and whether no dictionary lists it."""
        vocabulary = self._vocabulary
        rarity = (
            min(vocabulary.rarity(folded), vocabulary.rarity(full)) if full != folded else vocabulary.rarity(folded)
        )
        is_proper = vocabulary.is_proper(folded)
        return rarity, is_proper, rarity > ORDINARY and not is_proper and len(folded) > 1


@dataclass(frozen=True, slots=True)
class Transcript:
    """The words with their properties."""

    spoken: Sequence[Word]
    traits: Sequence[Traits]

    def window(self, first: int, last: int) -> Window | None:
        """The window, or None for words that cannot be a name."""
        inside = self.traits[first : last + 1]
        if any(word.is_odd for word in inside):
            look = Look.ODD
        elif any(word.is_capital for word in inside):
            look = Look.CAPITAL
        elif all(word.is_fixed or word.is_stop for word in inside):
            return None
        else:
            look = Look.ORDINARY
        return Window(
            self._placement(first, last),
            look,
            first,
            last,
            starts_or_ends_with_stop_word=inside[0].is_stop or inside[-1].is_stop,
            stop_words=sum(word.is_stop for word in inside),
            rarity=min(word.rarity for word in inside),
            confidence=self.confidence(first, last),
        )

    def confidence(self, first: int, last: int) -> float | None:
        """Mean of the recogniser's confidence over the letters; None if it reports none."""
        if first == last:
            return self.traits[first].confidence
        told = [
            (len(word.folded), its.confidence)
            for word, its in zip(self.spoken[first : last + 1], self.traits[first : last + 1], strict=True)
            if its.confidence is not None
        ]
        return sum(letters * confidence for letters, confidence in told) / sum(n for n, _ in told) if told else None

    def _placement(self, first: int, last: int) -> WordContext:
        spoken, after = self.spoken, last + 1
        if spoken[first].opens and (after == len(spoken) or spoken[after].opens):
            return WordContext.ALONE
        is_set_off = self.traits[first].begins and (after == len(spoken) or self.traits[after].begins)
        return WordContext.SET_OFF if is_set_off else WordContext.WITHIN

    def worth_a_look(
        self, *, widest: int, longest: int, sounds_like_a_name: Callable[[str], bool]
    ) -> Iterator[tuple[int, int, str]]:
        """The windows that may be a name, as first word, last word and letters.

        Most windows of a sentence are ordinary words: skipping them takes nearly all of the time.

        Args:
            widest: Maximum number of words.
            longest: Maximum number of letters.
        """
        spoken, traits = self.spoken, self.traits
        n = len(spoken)
        begins = [its.begins for its in traits] + [True]
        loud_from = _next_of([its.is_odd or its.is_capital or its.is_doubted for its in traits])
        doubted_from = _next_of([its.is_doubted for its in traits])
        stop_from = _next_of([its.is_stop for its in traits])
        fixed_from = _next_of([its.is_fixed for its in traits])
        for first in range(n):
            starts_clause, next_loud, next_stop = begins[first], loud_from[first], stop_from[first]
            end = min(first + widest, n)
            if not starts_clause and next_loud >= end:
                # Ordinary words after a stop word or beside a name are no name.
                end = min(end, next_stop, fixed_from[first])
                if end - first < 2:
                    continue
            next_doubted, next_fixed = doubted_from[first], fixed_from[first]
            stem = ""
            for last in range(first, end):
                if last > first and not spoken[last].joins:
                    break
                word = spoken[last]
                joined = stem + word.folded
                if len(joined) > longest:
                    break
                stem += word.full
                if len(joined) < SHORTEST:
                    continue
                if (starts_clause and begins[last + 1]) or next_doubted <= last:
                    yield first, last, joined
                    continue
                is_loud, holds_stop_word = next_loud <= last, next_stop <= last
                if is_loud and not holds_stop_word:
                    yield first, last, joined
                    continue
                if next_fixed <= last:
                    continue
                if (is_loud or (last > first and not holds_stop_word)) and sounds_like_a_name(joined):
                    yield first, last, joined


def confidences_of(spoken: Sequence[Word], heard: Sequence[HeardWord]) -> list[float | None]:
    """Return the lowest confidence of the pieces of each spoken word. Both arguments in text order."""
    if not heard:
        return [None] * len(spoken)
    found: list[float | None] = []
    at = 0
    for word in spoken:
        while at < len(heard) and heard[at].end <= word.start:
            at += 1
        told: list[float] = []
        piece = at
        while piece < len(heard) and heard[piece].start < word.end:
            confidence = heard[piece].confidence
            if confidence is not None:
                told.append(confidence)
            piece += 1
        found.append(min(told, default=None))
    return found


def _next_of(marked: Sequence[bool]) -> list[int]:
    """Return the next marked index from each index on; the length if there is none."""
    n = len(marked)
    following = [n] * n
    found = n
    for at in range(n - 1, -1, -1):
        if marked[at]:
            found = at
        following[at] = found
    return following
