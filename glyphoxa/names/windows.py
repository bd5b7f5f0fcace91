"""The words of one transcript, what is known of each, and which runs of them may be a misheard name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from glyphoxa.domain.heard import UNSURE, HeardWord
from glyphoxa.language.vocabulary import ORDINARY, Vocabulary
from glyphoxa.language.words import Word
from glyphoxa.names.evidence import Look, Window, WordContext

SHORTEST = 4
"""Letters of the shortest run that is looked at: less is like too much."""
_REMEMBERED = 8192


class Traits(NamedTuple):
    """What is known of a word.

    Attributes:
        is_doubted: The recogniser was not sure of it.
        is_fixed: It is part of a name that is spelled right.
        begins: More than a space stands before it.
        rarity: See `Vocabulary.rarity`.
        confidence: The recogniser's; None when it tells none.
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
    """Reads transcripts of one language. What it remembers of words never changes an answer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known_of = lru_cache(_REMEMBERED)(self._know)

    def read(
        self, spoken: Sequence[Word], heard: Sequence[HeardWord] = (), fixed: Collection[int] = frozenset()
    ) -> Transcript:
        """Args:
        heard: What the recogniser knows of the words.
        fixed: The words, by place, that are part of a name and spelled right.
        """
        confidences = _confidences(spoken, heard)
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
        """Its rarity, whether it is a name that a dictionary lists, and whether no dictionary does."""
        vocabulary = self._vocabulary
        rarity = (
            min(vocabulary.rarity(folded), vocabulary.rarity(full)) if full != folded else vocabulary.rarity(folded)
        )
        is_proper = vocabulary.is_proper(folded)
        return rarity, is_proper, rarity > ORDINARY and not is_proper and len(folded) > 1


@dataclass(frozen=True, slots=True)
class Transcript:
    """The words, and what is known of each."""

    spoken: Sequence[Word]
    traits: Sequence[Traits]

    def window(self, first: int, last: int) -> Window | None:
        """None for words that are nobody's name, however they sound."""
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
        """The recogniser's, a mean over the letters; None where it tells nothing."""
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

        Most windows of a sentence are ordinary words within it: nearly all of the time goes into passing them over.

        Args:
            widest: Words of the widest; `longest`: letters of the longest.
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
                # Ordinary words: behind a stop word, or beside a name, they are none.
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


def _confidences(spoken: Sequence[Word], heard: Sequence[HeardWord]) -> list[float | None]:
    """Of each spoken word, the recogniser's in the least certain piece of it. Both in the order of the text."""
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
    """For each place, the first marked one from there on; the number of places where there is none."""
    n = len(marked)
    following = [n] * n
    found = n
    for at in range(n - 1, -1, -1):
        if marked[at]:
            found = at
        following[at] = found
    return following
