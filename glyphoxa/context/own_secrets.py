"""Which of its own secrets an NPC has in mind for a question.

A model that reads a secret tells it sooner or later. So one is in a prompt only where the talk comes to it: by a word
it is told with, or by who or what it is about. There it is needed: an NPC that does not know what it hides invents
something. A word that the NPC's place or trade has anyway comes to no secret: a guard with a secret at the gate is
asked when the gate closes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.recall.terms import NAME, Terms

MOST_KEPT: Final = 2
_FOLLOWS: Final = 2
"""Words of a question that may say too little by itself."""
_FEW: Final = 3
"""Of all its words, with at least one that says something: "Are you sure?"."""
_ENGLISH: Final = "it its that this these those he him his she her they them their there then"
_GERMAN: Final = "es er ihn ihm sein sie ihr ihnen dort davon dafür damit darüber daran dabei"
_REFERS: Final = frozenset(f"{_ENGLISH} {_GERMAN}".split())
"""What points at something that was said before."""


@dataclass(frozen=True, slots=True)
class OwnSecret:
    """
    Attributes:
        told: The secret, as it is told to nobody but the NPC.
        words: What it is told with, and the names of whom and what it speaks of; see `words_of`.
    """

    told: RecalledFact
    words: Set[str]


def touched(
    secrets: Sequence[OwnSecret],
    question: str,
    *,
    just_heard: str,
    terms: Terms,
    own_names: Set[str],
) -> list[RecalledFact]:
    """The secrets that a question comes to, or the talk just before it; those with most of their words in it first.

    Args:
        question: Nothing is touched by an empty one.
        just_heard: Counts where the question goes on with it.
        own_names: The words that the NPC is called by: they are in every question, and in most of its secrets.
    """
    if not question or not secrets:
        return []
    asked = words_of(question, terms) - own_names
    if _goes_on(question, len(asked)):
        asked |= words_of(just_heard, terms) - own_names
    found = [(len(asked & one.words), one.told) for one in secrets]
    found.sort(key=lambda each: -each[0])
    return [told for n_shared, told in found if n_shared][:MOST_KEPT]


def _goes_on(question: str, n_told: int) -> bool:
    """Whether it goes on with what was said before: "And who paid for it?" does, "Has my brother been here?" does not.

    Args:
        n_told: Words of it that say something.
    """
    spoken = re.findall(r"\w+", question.casefold())
    if n_told > _FOLLOWS:
        return False
    return len(spoken) < _FEW or (len(spoken) == _FEW and n_told > 0) or not _REFERS.isdisjoint(spoken)


def without(secrets: Sequence[OwnSecret], loose: Set[str]) -> list[OwnSecret]:
    """The secrets, each without these words, unless it has no others.

    Args:
        loose: Of what the NPC may tell everybody of itself and of where it is.
    """
    return [replace(one, words=(one.words - loose) or one.words) for one in secrets]


def words_of(text: str, terms: Terms) -> frozenset[str]:
    """With no name told from a word: a recogniser writes both as it likes."""
    return frozenset(stem.removeprefix(NAME) for stem in terms.stems(text))
