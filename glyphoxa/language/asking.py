"""Classify a question.

Every question is checked, using words only. A false positive costs an NPC a shrug; a miss lets a small model invent.
The patterns are data: see `data/LANGUAGE/asking.toml`. In a language without them, every answer is no, except for the
kinds that are looked for in English then.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, cached_property, lru_cache
from typing import Final

from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.sentence_form import only_states
from glyphoxa.language.text import Text


class AskKind(Enum):
    """A kind of question. The value is the key of its patterns.

    Attributes:
        MEMORY: It asks for a memory, or something nobody can know without being told. Includes claims that expect a
            confirmation: "You owe me three crowns, don't you?".
        MORE: It has a presupposition or is a yes/no question: "Why did she ...?", "Is it true ...?".
        WHY: It presupposes a fact and asks for its reason or beginning.
        ACTS: It asks what somebody did, said or saw: "What did I tell you?".
        PERCEPTION: It asks what the NPC saw, heard or found, or whom it met.
        PAST_EVENT: It presupposes a past event, or asks whether one happened.
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
    MORE = "more"
    WHY = "why"
    ACTS = "acts"
    PERCEPTION = "perception"
    PAST_EVENT = "past"
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
