"""What a prompt says where memory is silent.

A small model that is asked about something answers as if it knew. So where a question asks for what an NPC remembers,
was told or saw, and nothing in its prompt bears on that, the prompt says so, in the form of a fact; and a name that the
NPC has never heard is named as such. Pure: what the prompt holds is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.context.bearing import InMind, bears
from glyphoxa.context.own_words import asks_what_it_said
from glyphoxa.context.relevance import without_call
from glyphoxa.context.wording import Wording, wording
from glyphoxa.judgement.languages import language_of
from glyphoxa.speech.language.asking import (
    asks_for_memory,
    asks_for_more,
    asks_of_the_past,
    asks_why,
    names_in,
    wants_to_be_told,
)
from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.speech.language.vocabulary import vocabulary_of
from glyphoxa.speech.language.words import fold

_MOST_NAMES: Final = 2
_BEGINNING: Final = 4
"""Letters of an adjective that stay in all its forms."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """
    Attributes:
        facts: Sentences to stand among the facts of the prompt.
        replies: What the NPC can say to that, of which one is enough. Empty where a model has to find the words.
    """

    facts: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


NOTHING_MISSING: Final = NotKnown()


def not_known(question: str, mind: InMind, *, language: str) -> NotKnown:
    """Nothing where something bears on the question.

    Args:
        language: The campaign's. A question in another one has names by the rules of its own, and what bears on it
            cannot be told from words that are not its: only a name that nobody has heard is said to be one.
    """
    words = wording(language)
    asked = without_call(question, mind.name)
    spoken = language_of(asked) or primary_language(language)
    is_foreign = spoken != primary_language(language)
    names = names_in(asked, language=spoken)
    said = asks_what_it_said(asked, language=language)
    remembers = said or asks_for_memory(asked, language=language)
    is_asked = asked.rstrip().endswith("?")
    unheard = [name for name in names if not _is_heard(name, mind.lines, language) and not mind.is_known(name)][
        :_MOST_NAMES
    ]
    if unheard and (remembers or is_asked):
        facts = tuple(words.unheard.format(name=mind.name, what=name) for name in unheard[:_MOST_NAMES])
        return NotKnown(facts, _of_name(words, unheard[0]))
    if is_foreign:
        return NOTHING_MISSING
    is_more = not remembers and asks_for_more(asked, language=language)
    if not (remembers or is_more) or bears(asked, mind, names, language=language):
        return NOTHING_MISSING
    if is_more and not mind.facts:
        is_story = asks_why(asked, language=language) or (names and asks_of_the_past(asked, language=language))
        return NotKnown((words.untold.format(name=mind.name),), words.knows_nothing) if is_story else NOTHING_MISSING
    line = words.untold if remembers and not said else words.unsaid if said else words.no_more
    replies = words.never_said if said else words.knows_nothing
    if not (said or is_asked or wants_to_be_told(asked, language=language)):
        replies = ()
    if is_more and not asks_of_the_past(asked, language=language):
        replies = ()
    return NotKnown((line.format(name=mind.name),), replies)


def _of_name(words: Wording, name: str) -> tuple[str, ...]:
    return tuple(line.format(what=name) for line in words.never_heard)


def _is_heard(name: str, lines: Sequence[str], language: str) -> bool:
    """Who speaks of Captain Hesper speaks of Hesper; a genitive is the same name. Where the last word is an ordinary
    one, it needs the first: who speaks of his hand does not speak of the Red Hand.
    """
    first, *_, last = name.split() if " " in name else ("", name)
    heard = "\n".join(lines)
    if not first:
        heard, last = heard.casefold(), last.casefold()
    is_there = any(form in heard for form in (last, last.removesuffix("s")))
    is_name = not first or not vocabulary_of(language).is_ordinary(fold(last))
    return is_there and (is_name or first[:_BEGINNING].casefold() in heard.casefold())
