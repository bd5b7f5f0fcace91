"""Whether something that an NPC has in mind is about what it is asked.

By words, in their shortest forms, of which the question and a line have one in common. Names, words that ask and words
of time are not counted: everything has them. Of what was said, meaning counts as well, in the language that the
embeddings were made for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.context.own_words import asks_what_it_said
from glyphoxa.context.relevance import NEAR
from glyphoxa.context.topic_words import TopicWords
from glyphoxa.domain.recalled import RecalledFact, RecalledSummary, RecalledTalk, RecalledUtterance
from glyphoxa.speech.language.asking import asks_of_acts, asks_of_perception, asks_of_the_past, speaks_of_the_asker

_EMBEDDED: Final = "en"
_WE: Final = re.compile(r"\b(?:we|our|us|wir|unser\w*|uns)\b")
_OF_ME: Final = re.compile(r"\b(?:about|of|to) me\b|\b(?:über|von|zu) m(?:ich|ir)\b")
_SWORN: Final = re.compile(r"promise|swor|vowed|versproch|geschwor")
_QUOTED: Final = re.compile(r"'([^']+)'")


@dataclass(frozen=True, slots=True)
class InMind:
    """What the prompt holds.

    Attributes:
        name: The NPC's.
        facts: What it knows that the question calls for.
        remembered: What was said before.
        talk: What was said in the talk that the prompt holds, the question aside, and what happened before it.
        beside: What it knows of itself, and where it is.
        asker: Who asks; empty if that is not known.
        is_known: Whether it has heard a name.
    """

    name: str
    facts: Sequence[RecalledFact]
    remembered: Sequence[RecalledTalk]
    talk: Sequence[str]
    beside: Sequence[str]
    is_known: Callable[[str], bool]
    asker: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        told = (line for one in self.remembered for line in (getattr(one, "speaker_name", ""), one.text))
        return (*(fact.text for fact in self.facts), *told, *self.talk, *self.beside)


def bears(asked: str, mind: InMind, names: Sequence[str], *, language: str) -> bool:
    """Whether something in the prompt is about what is asked, beyond whom it names."""
    if any("asks for" in fact.path for fact in mind.facts):
        return True
    said = [one for one in mind.remembered if not _is_anothers(one, asked, mind, language)]
    if any(isinstance(one, RecalledSummary) for one in said):
        return True
    named = (found for fact in mind.facts for found in _QUOTED.findall(fact.path))
    about = TopicWords(asked, language) - TopicWords(" ".join((*names, *named)), language)
    own = [one for one in said if _is_own(one, mind)]
    if asks_what_it_said(asked, language=language):
        if not _WE.search(asked.casefold()):
            said = own
        sworn = [line for line in mind.beside if _SWORN.search(line.casefold())]
        return (
            _is_near(about, said) or _is_in(about, (*mind.talk, *sworn)) or (not about and bool((*mind.talk, *sworn)))
        )
    acts = asks_of_acts(asked, language=language)
    is_open = not acts and not asks_of_the_past(asked, language=language)
    if is_open and not _OF_ME.search(asked.casefold()) and any(_names(one, names) for one in said):
        return True
    if not about:
        if asks_of_perception(asked, language=language):  # what others told is nothing that it saw
            return any(mind.name in fact.text for fact in mind.facts)
        of_facts = bool(mind.facts) and not speaks_of_the_asker(asked, language=language)
        return bool(said) or of_facts or (acts and bool(mind.talk))
    beside = () if acts else mind.beside
    return _is_near(about, said) or _is_in(about, (*(fact.text for fact in mind.facts), *mind.talk, *beside))


def _is_own(one: RecalledTalk, mind: InMind) -> bool:
    return isinstance(one, RecalledUtterance) and (one.is_own or one.speaker_name == mind.name)


def _names(one: RecalledTalk, names: Sequence[str]) -> bool:
    return any(name.split()[-1] in one.text for name in names)


def _is_anothers(one: RecalledTalk, asked: str, mind: InMind, language: str) -> bool:
    """Whether it is what somebody else said of himself, where the asker asks about himself alone."""
    if not mind.asker or isinstance(one, RecalledSummary) or _is_own(one, mind) or one.speaker_name == mind.asker:
        return False
    if _WE.search(asked.casefold()) or not speaks_of_the_asker(asked, language=language):
        return False
    tells_of_himself = speaks_of_the_asker(one.text, language=language)
    return tells_of_himself and not any(part in one.text for part in mind.asker.split())


def _is_in(about: TopicWords, lines: Iterable[str]) -> bool:
    return any(about.n_in(TopicWords(line, about.language)) for line in lines)


def _is_near(about: TopicWords, said: Sequence[RecalledTalk]) -> bool:
    if not about:
        return bool(said)
    return _is_in(about, (one.text for one in said)) or any(_means(one, about.language) for one in said)


def _means(one: RecalledTalk, language: str) -> bool:
    similarity = getattr(one, "similarity", None)
    return language == _EMBEDDED and similarity is not None and similarity >= NEAR
