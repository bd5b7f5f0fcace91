"""Decide which utterances are worth remembering: the gate, and the backstop that repeats its decision later.

The worker creates a `SalienceJudge` for a session, passes it the last `CONTEXT` lines with `judge_all` and ignores the
verdicts, then passes new lines in order. A judge that read those lines decides as one that read the whole session.
Every few turns it passes recent lines to `backstop`, which also sees what was said after each of them, and keeps what
that returns in addition. `Line.vector` is optional, of the embedding model that the weights were fitted with.
`benchmarks/README.md` describes the data for the weights.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.chronicle.consent import asks_to_forget
from glyphoxa.chronicle.new_names import NameFinder
from glyphoxa.chronicle.statements import NameSpan, facts_in, relations_in, sentences_of
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.language.words import words
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.turns.address import marked_out_of_character, out_of_character

THRESHOLD: Final = 0.2
"""Utterances with at least this score are kept. Set low, because an unneeded line costs little."""
CONTEXT: Final = 20
"""Number of lines before a line that its score depends on."""
AFTERWARDS: Final = 20
"""Number of lines after a line that the backstop looks at."""
_WORDS: Final = lexicon("chronicle")


def _sign(template: str) -> re.Pattern[str]:
    return _WORDS.compile(template, flags=re.IGNORECASE)


_SIGNS: Final[Mapping[str, re.Pattern[str]]] = {
    "the future": _sign(r"{future}\b"),
    "the past": _sign(r"{past}\b"),
    "a thing": _sign(r"{things}\b"),
    "people": _sign(r"{people}\b"),
    "knowledge": _sign(r"{knowledge}\b"),
    "the game": _sign(r"\b{game}\b|^\W*\d+\W*$"),
    "the players' world": _sign(r"\b{real_world}\b"),
    "a sound": re.compile(r"\(\w[^)]*\)"),
    "quoted speech": re.compile(r"[\"“„]"),
    "the first person": _sign(r"\b{first_person}\b"),
    "the second person": _sign(r"\b{second_person}\b"),
}
"""Features found by a pattern."""


@dataclass(frozen=True, slots=True)
class Line:
    """An utterance to judge.

    Attributes:
        vector: Its embedding, of unit length; None: decide by the other features.
    """

    text: str
    speaker: str = ""
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Salience:
    """The salience of an utterance.

    Attributes:
        score: 0 to 1.
        why: The strongest features in favour, or against if it is not kept.
        asks_to_forget: The speaker wants it not to be remembered. It is never kept.
    """

    score: float
    is_kept: bool
    why: tuple[str, ...]
    asks_to_forget: bool = False


WEIGHTS: Final[Mapping[str, float]] = {
    "always": -3.83,
    "length": 0.46,
    "very short": -0.09,
    "short": -0.26,
    "long": 0.13,
    "content words": 0.28,
    "new words": 0.6,
    "a statement": 0.23,
    "only questions": -0.82,
    "a known name": 0.3,
    "a new name": -0.2,
    "a relation": 0.91,
    "a promise or plan": 1.11,
    "a discovery or state": 0.95,
    "something changes hands": 1.11,
    "the future": 0.02,
    "the past": 0.55,
    "a thing": 0.61,
    "people": 0.2,
    "knowledge": 0.26,
    "the game": -1.18,
    "the players' world": -0.88,
    "a sound": -0.21,
    "quoted speech": 0.61,
    "the first person": 0.05,
    "the second person": -0.07,
}
"""Fitted to the tuning half of `benchmarks/data/salience` at or before commit 592d5a9; the tool is gone."""


class SalienceJudge:
    """Scores the utterances of one session, in order.

    Args:
        language: BCP 47 tag.
        names: Known names.
        threshold: A lower one keeps more.
    """

    def __init__(
        self,
        language: str,
        names: Gazetteer | None = None,
        *,
        threshold: float = THRESHOLD,
        weights: Mapping[str, float] = WEIGHTS,
    ) -> None:
        self._language = language
        self._vocabulary = vocabulary_of(language)
        self._finder = NameFinder(language)
        self._names = names
        self._threshold = threshold
        self._weights = weights
        self._lately: deque[frozenset[str]] = deque(maxlen=CONTEXT)

    def judge_all(self, lines: Sequence[Line]) -> list[Salience]:
        """Score the next lines of the session, in order."""
        return [self.judge(line.text, speaker=line.speaker, vector=line.vector) for line in lines]

    def backstop(self, lines: Sequence[Line], *, first: int = 0) -> list[int]:
        """Return the indices of lines to keep, now that it is known what was said after them.

        Does not change what `judge` remembers.

        Args:
            lines: Consecutive lines of a session, the latest last.
            first: Index of the first line to decide on. The lines before it are its context.
        """
        again = SalienceJudge(self._language, self._names, threshold=self._threshold, weights=self._weights)
        judged = again.judge_all(lines)
        return [index for index, each in enumerate(judged) if index >= first and each.is_kept]

    def judge(self, text: str, *, speaker: str = "", vector: Sequence[float] | None = None) -> Salience:
        signs = self.signs(text)
        weighed = {sign: value * self._weights.get(sign, 0.0) for sign, value in signs.items()}
        score = 1 / (1 + math.exp(-sum(weighed.values())))
        forget = asks_to_forget(text)
        is_kept = score >= self._threshold and not forget
        told = sorted((sign for sign in weighed if sign != "always"), key=lambda sign: -weighed[sign])
        return Salience(
            score,
            is_kept,
            tuple(sign for sign in (told[:3] if is_kept else told[:-4:-1]) if (weighed[sign] > 0) == is_kept),
            forget,
        )

    def signs(self, text: str) -> dict[str, float]:
        """Return the utterance's features, and note its words as said."""
        spoken = words(text)
        telling = frozenset(
            word.folded for word in spoken if self._vocabulary.rarity(word.folded) > 0 and len(word.folded) > 2
        )
        known = frozenset[str]().union(*self._lately) if self._lately else frozenset()
        self._lately.append(telling)
        mentions = () if self._names is None else self._names.mentions(text)
        taken = [(each.start, each.end) for each in mentions]
        new = list(self._finder.names_in(text, taken=taken, nobody=()))
        spans = [NameSpan(each.name.entity_id, each.start, each.end) for each in mentions]
        spans += [NameSpan(each.text, each.start, each.end) for each in new]
        sentences = list(sentences_of(text, sorted(spans, key=lambda span: span.start)))
        told = [sentence for sentence in sentences if sentence.may_tell and not sentence.is_denied]
        facts = {fact.about for sentence in sentences for fact in facts_in(sentence)}
        related = any(relations_in(sentence) for sentence in sentences)
        is_aside = marked_out_of_character(text) or out_of_character(text) is not None
        fresh = len(telling - known)
        found = {sign: float(pattern.search(text) is not None) for sign, pattern in _SIGNS.items()}
        found["the players' world"] = max(found["the players' world"], float(is_aside))
        return {
            "always": 1.0,
            "length": math.log1p(len(spoken)),
            "very short": float(len(spoken) <= 3),
            "short": float(len(spoken) <= 6),
            "long": float(len(spoken) >= 25),
            "content words": math.log1p(len(telling)),
            "new words": math.log1p(fresh),
            "a statement": float(bool(told)),
            "only questions": float(bool(sentences) and all(each.is_question for each in sentences)),
            "a known name": float(bool(mentions)),
            "a new name": float(min(len(new), 3)),
            "a relation": float(related),
            "a promise or plan": float(bool(facts & {"promise", "plan", "decision"})),
            "a discovery or state": float(bool(facts & {"discovery", "status", "occupation", "past", "wish"})),
            "something changes hands": float(bool(facts & {"gave", "bought", "sold", "took", "lost", "price"})),
            **found,
        }
