"""What a prompt says where memory is silent.

A small model that is asked about something answers as if it knew. So where a question asks for what an NPC remembers,
was told or saw, and nothing in its prompt bears on that, the prompt says so, in the form of a fact; and a name that the
NPC has never heard is named as such. Pure: what the prompt holds is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.context.own_words import asks_what_it_said
from glyphoxa.context.relevance import telling_words, without_call
from glyphoxa.context.wording import wording
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.speech.language.asking import asks_for_memory, asks_for_more, asks_why, names_in, speaks_of_the_asker

_MOST_NAMES: Final = 2
_ENGLISH: Final = "happe recal remem heard menti promi spoke talke where which whose true"
_GERMAN: Final = (
    "weiss kenns erinn gesag erzäh gehör geseh getro wohin woher welch warum wisst noch über habe hast etwas"
)
_OF_PERSONS: Final = "mein meine meinen meine deine euer unser unsere nicht stimm"
_ASKING: Final = frozenset(f"{_ENGLISH} {_GERMAN} {_OF_PERSONS}".split())
"""Beginnings of words that ask, and say nothing of what for."""


@dataclass(frozen=True, slots=True)
class InMind:
    """What the prompt holds.

    Attributes:
        name: The NPC's.
        facts: What it knows that the question calls for.
        remembered: What was said, with who said it.
        beside: What it knows of itself, where it is, and the talk that the prompt holds, the question aside.
        is_known: Whether it has heard a name.
    """

    name: str
    facts: Sequence[RecalledFact]
    remembered: Sequence[str]
    beside: Sequence[str]
    is_known: Callable[[str], bool]

    @property
    def lines(self) -> tuple[str, ...]:
        return (*(fact.text for fact in self.facts), *self.remembered, *self.beside)


def not_known(question: str, mind: InMind, *, language: str) -> tuple[str, ...]:
    """Sentences to stand among the facts of the prompt; none where something bears on the question."""
    words = wording(language)
    asked = without_call(question, mind.name)
    heard = "\n".join(mind.lines).casefold()
    names = names_in(asked, language=language)
    said = asks_what_it_said(asked, language=language)
    remembers = said or asks_for_memory(asked, language=language)
    unheard = [name for name in names if not _is_heard(name, heard) and not mind.is_known(name)]
    if unheard and (remembers or asked.rstrip().endswith("?")):
        return tuple(words.unheard.format(name=mind.name, what=name) for name in unheard[:_MOST_NAMES])
    is_more = not remembers and asks_for_more(asked, language=language)
    if not (remembers or is_more) or _bears(asked, mind, names, language):
        return ()
    if is_more and not mind.facts:
        return (words.untold.format(name=mind.name),) if asks_why(asked, language=language) else ()
    line = words.untold if remembers and not said else words.unsaid if said else words.no_more
    return (line.format(name=mind.name),)


def _is_heard(name: str, heard: str) -> bool:
    """Who speaks of Captain Hesper speaks of Hesper; a genitive is the same name."""
    last = name.casefold().split()[-1]
    return last in heard or (last.endswith("s") and last[:-1] in heard)


def _bears(asked: str, mind: InMind, names: Sequence[str], language: str) -> bool:
    """Whether something in the prompt is about what is asked, beyond whom it names."""
    if mind.remembered or any("asks for" in fact.path for fact in mind.facts):
        return True
    of_names = telling_words(" ".join((*names, mind.name)))
    about = telling_words(asked) - of_names - _ASKING
    if not about:
        return bool(mind.facts) and not speaks_of_the_asker(asked, language=language)
    return any(about & telling_words(line) for line in mind.lines)
