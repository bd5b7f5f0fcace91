"""The form of a player's line: whether it asks for something, and what kind of question it is.

Every question is classified, using words only. A false positive costs an NPC a shrug; a miss lets a small model invent.
The patterns are data: see `data/LANGUAGE/asking.toml`. In a language without them, every answer is no, except for the
kinds that are looked for in English then.

Whether a text asks for anything at all, a fitted model decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Final

from glyphoxa.language.calls import tokens_of
from glyphoxa.language.fitted import letters_of, shipped_regressions
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.text import Text


class AskKind(Enum):
    """A kind of question. The value is the key of its patterns.

    Attributes:
        MEMORY: It asks for a memory, or something nobody can know without being told. Includes claims that expect a
            confirmation: "You owe me three crowns, don't you?".
        ACTS: It asks what somebody did, said or saw: "What did I tell you?".
        PAST: It refers to the past. Checked for every partial transcript, so that recall can start before the speaker
            has finished.
        ASKER: It is about the asker. "Tell me ..." alone is not.
        NPC: It says "you".
        NPC_FIRST: It says "you" before anything about the asker: "You sold me the map.", not "I sold you the map.".
        HOW_RELATED: It asks how two entities are related: "How is Orla related to the smith?", not "Who is Orla?".
        OWN_WORDS: It asks an NPC about its own words ("What did you promise me?", "You said six crowns!"), not about
            what others told it or what it has to say now.
        PROMISE: It has a word for a promise or an agreement.
    """

    MEMORY = "memory"
    ACTS = "acts"
    PAST = "refers_to_past"
    ASKER = "asker"
    NPC = "you"
    NPC_FIRST = "you_first"
    HOW_RELATED = "how_related"
    OWN_WORDS = "own_words"
    PROMISE = "promise"


_ELSE_ENGLISH: Final = frozenset((AskKind.PAST, AskKind.NPC, AskKind.NPC_FIRST, AskKind.HOW_RELATED))
"""Looked for in English in a language without patterns."""


class QuestionLine:
    """A line of a player, and what it asks for. See `question_of`."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self._plain = Text.of(text).plain.casefold()
        self._found: dict[AskKind, bool] = {}

    def has(self, kind: AskKind) -> bool:
        """Return whether it is of a kind. Each kind is looked for once."""
        if kind not in self._found:
            self._found[kind] = _pattern(kind, self.language).search(self._plain) is not None
        return self._found[kind]

    @cached_property
    def is_remark(self) -> bool:
        """Whether it asks for nothing and does not speak of the NPC: "We will dive tomorrow."."""
        return only_states(self.text) and not self.has(AskKind.NPC_FIRST)


@lru_cache(256)
def question_of(text: str, language: str) -> QuestionLine:
    """Return a line as a question; the same object for the same line.

    Args:
        language: BCP 47 tag.

    >>> question_of("You sold me the map.", "en").has(AskKind.NPC_FIRST)
    True
    >>> question_of("I will bring you the map.", "en").has(AskKind.NPC_FIRST)
    False
    """
    return QuestionLine(text, language)


def looks_for_own_words(query: str, *, name: str, language: str) -> bool:
    """Return whether an NPC's model searches for the NPC's own words: "what I promised Hanna", "Korvald promised".

    Args:
        name: The NPC's name; empty if unknown.
    """
    of, text = lexicon("asking", language), Text.of(query).plain.casefold()
    if not of:
        return False
    if name:
        text = re.sub(rf"\b{re.escape(Text.of(name).plain.casefold())}\b", of.value("addressed"), text)
    for said, instead in of.value("as_another_says"):
        text = re.sub(said, instead, text)
    asked = QuestionLine(text, language)
    return asked.has(AskKind.PROMISE) or asked.has(AskKind.OWN_WORDS)


@cache
def _pattern(kind: AskKind, language: str) -> re.Pattern[str]:
    of = lexicon("asking", language)
    if not of and kind in _ELSE_ENGLISH:
        of = lexicon("asking", "en")
    return of.pattern(kind.value)


# Whether a text asks for something.


@lru_cache(1024)  # a partial transcript repeats the sentences of the one before it
def _asks(text: str) -> tuple[bool, bool]:
    """Return whether a text asks for anything, and whether it does nothing else.

    By a fitted model, because a recogniser may leave out the question mark. Its weights, `asks.npz`, are written by
    `python -m benchmarks.address_fit`.
    """
    anything, only = shipped_regressions(__package__, "asks").log_odds(ask_signs(text))
    return bool(anything > 0), bool(only > 0)


def ask_signs(text: str) -> Iterator[str]:
    """Yield the signs of whether a text asks."""
    words = ("<", *(token.text for token in tokens_of(text)), ">")
    yield from words
    yield from (f"~{part}" for word in words[1:-1] for part in letters_of(word))
    yield from (f"{one} {two}" for one, two in pairwise(words))


def only_states(text: str) -> bool:
    """Return whether a text asks for nothing: it has no question, request, order or greeting.

    >>> only_states("Rusk, we will dive tomorrow."), only_states("Rusk, tell me of the dive"), only_states("Rusk?")
    (True, False, False)
    """
    return len(Text.of(text).words) >= _SHORTEST_STATEMENT and not _asks(text)[0]


def only_asks(text: str) -> bool:
    """Return whether a text is nothing but questions.

    >>> only_asks("do you know where he lives"), only_asks("My brother lives at the mill.")
    (True, False)
    """
    return _asks(text)[1]


_SHORTEST_STATEMENT: Final = 3
"""Words. A shorter text refers to what was said before: "Too dear."."""
