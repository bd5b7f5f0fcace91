"""Facts found by the words of their text: "When does the gate close?" names nobody, and a town's description tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.domain.ids import FactId
from glyphoxa.recall.lexical.terms import Terms

LEAST_WORDS: Final = 3
"""A text: what is shorter is a value, and is asked for by its entity's name."""
_LEAST_SHARED: Final = 2
_LEAST_SHARE: Final = 0.6
"""Of the words of a question that say something."""
_MOST_ALIKE: Final = 2
"""Texts with the one word of a question: with more of them the word says too little."""
_MOST_LOOKED_AT: Final = 64


@dataclass(frozen=True, slots=True)
class WordedFact:
    """
    Attributes:
        words: The stems that it shares with the question.
    """

    id: FactId
    words: tuple[str, ...]


@dataclass(slots=True)
class WordedFacts:
    """An inverted index of texts.

    Args:
        terms: Of the language of texts and questions.
    """

    terms: Terms
    _having: dict[str, set[FactId]] = field(default_factory=dict)
    _of: dict[FactId, frozenset[str]] = field(default_factory=dict)

    def put(self, fact: FactId, text: str) -> None:
        """A fact with its text, in the place of the one it had. A short text is not found by its words."""
        self.drop(fact)
        if len(text.split()) < LEAST_WORDS:
            return
        stems = self._of[fact] = frozenset(self.terms.stems(text))
        for stem in stems:
            self._having.setdefault(stem, set()).add(fact)

    def drop(self, fact: FactId) -> None:
        """It is found no more; nothing where it never was."""
        for stem in self._of.pop(fact, ()):
            having = self._having[stem]
            having.discard(fact)
            if not having:
                del self._having[stem]

    def find(self, question: str, *, may_see: Callable[[FactId], bool], most: int) -> list[WordedFact]:
        """Facts that share enough words with a question, those with most of them first.

        Args:
            may_see: What it refuses neither is found nor keeps another one from being found.
        """
        asked = dict.fromkeys(self.terms.stems(question))
        shared: Counter[FactId] = Counter()
        for stem in asked:
            shared.update(self._having.get(stem, ()))
        if len(asked) == 1:
            few = [fact for fact in sorted(shared) if may_see(fact)] if len(shared) <= _MOST_LOOKED_AT else []
            return self._told(few if len(few) <= _MOST_ALIKE else [], asked)[:most]
        wanted = max(_LEAST_SHARED, _LEAST_SHARE * len(asked))
        ranked = sorted((fact for fact, n in shared.items() if n >= wanted), key=lambda fact: (-shared[fact], fact))
        return self._told((fact for fact in ranked[:_MOST_LOOKED_AT] if may_see(fact)), asked)[:most]

    def _told(self, facts: Iterable[FactId], asked: Iterable[str]) -> list[WordedFact]:
        return [WordedFact(fact, tuple(stem for stem in asked if stem in self._of[fact])) for fact in facts]
