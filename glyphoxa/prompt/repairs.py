"""Add to a small model's prompt what the NPC does not know. A large model needs none of it.

A small model answers as if it knew, and overlooks lines of its prompt. If a question asks for what an NPC remembers,
was told or saw, and nothing in its prompt bears on that, the prompt says so in the form of a fact. A name that the NPC
has never heard is named as such. What the asker told the NPC about the question becomes an answer without a model, for
when the model's reply is rejected.

The decision uses words in their shortest forms. Names, question words and words of time do not count, because
everything contains them. For past utterances, meaning counts as well, in the language of the embeddings. English and
German.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from glyphoxa.domain.knowledge import RecalledFact, RecalledSummary, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.language.asking import AskKind, question_of
from glyphoxa.language.lexicon import any_of, lexicon, primary_language
from glyphoxa.language.new_names import names_in
from glyphoxa.language.text import Text, language_of
from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.language.words import fold
from glyphoxa.prompt.selection import NEAR, RELATED
from glyphoxa.prompt.wording import wording

_CONTENT: Final = lexicon("content")
_SHORTEST: Final = 3
_COMPOUND: Final = 5
"""Letters of a word that may be the end of another: "Kessel" in "Kupferkessel"."""


@cache
def _no_topic(language: str) -> frozenset[str]:
    """Return the stems of words of a language that carry no topic."""
    return Text.of(" ".join(_CONTENT.words("asks_or_times") | _CONTENT.words("vague"))).telling(language)


def topic_of(text: str, language: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's topic.

    Args:
        language: BCP 47 tag of the text.
    """
    stems = Text.of(text).telling(language)
    return frozenset(stem for stem in stems if len(stem) >= _SHORTEST and stem.isalpha()) - _no_topic(language)


def n_shared(about: frozenset[str], text: str, language: str) -> int:
    """Return how many of these stems another text has, also as the end of a longer one."""
    others = topic_of(text, language)
    return sum(stem in others or any(_is_part(stem, each) for each in others) for stem in about)


def _is_part(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMPOUND and len(long) > len(short) and long.endswith(short)


_TOLD: Final = lexicon("told")
_WE: Final = _TOLD.compile(r"\b{we}\b")
_OF_ME: Final = _TOLD.compile(r"\b{of_me}\b")
_SWORN: Final = _TOLD.pattern("sworn")
_QUOTED: Final = re.compile(r"'([^']+)'")
_EMBEDDED: Final = "en"
_SHARED: Final = 2
_WISH: Final = _TOLD.pattern("wish")
_ASKED: Final = _TOLD.compile(r"\b{asked}\b")
_WISHED: Final = _TOLD.compile(r"\b{wished}\b")
_TO_THE_NPC: Final = _TOLD.compile(r"\b{to_the_npc}\b")
_OPENS: Final = _TOLD.compile(r"{opens}\b")
_YOURS: Final = _TOLD.value("yours")
_OURS: Final = re.compile(rf"\b(?:{any_of(_YOURS)})\b", re.IGNORECASE)
_MOST_NAMES: Final = 2
_BEGINNING: Final = 4
"""Letters of an adjective that stay in all its forms."""


@dataclass(frozen=True, slots=True)
class InMind:
    """Contents of the prompt.

    Attributes:
        name: The NPC's.
        facts: The known facts that the question calls for.
        remembered: Past utterances.
        talk: The lines in the prompt, without the question.
        beside: Its knowledge of itself, and its place.
        asker: The asker's name; empty if it is unknown.
        is_known: Returns whether it has heard a name.
        told: Summaries of what was said before the talk.
    """

    name: str
    facts: Sequence[RecalledFact]
    remembered: Sequence[RecalledTalk]
    talk: Sequence[str]
    beside: Sequence[str]
    is_known: Callable[[str], bool]
    asker: str = ""
    told: Sequence[str] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        said = (line for one in self.remembered for line in (getattr(one, "speaker_name", ""), one.text))
        return (*(fact.text for fact in self.facts), *said, *self.talk, *self.told, *self.beside)


@dataclass(frozen=True, slots=True)
class NotKnown:
    """The things that an NPC does not know about a question, in words.

    Attributes:
        facts: Sentences for the facts of the prompt.
        replies: Possible answers, of which one is enough. Empty if a model has to find the words.
    """

    facts: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


class PromptRepair:
    """Finds what a small model needs to be told for one question.

    Args:
        question: Without the words that call the NPC.
        language: The campaign's. The words of a question in another language cannot show what bears on it: only a name
            that nobody has heard is reported.
    """

    def __init__(self, question: str, mind: InMind, *, language: str) -> None:
        spoken = language_of(question) or primary_language(language)
        self._asked = question_of(question, spoken)
        self._mind = mind
        self._language = primary_language(language)
        self._is_foreign = spoken != self._language
        self._names = names_in(question, language=spoken)
        self._topic = topic_of(question, self._language)
        self._is_question = question.rstrip().endswith("?")

    # What the asker and others told the NPC.

    def said_then(self) -> tuple[str, ...]:
        """Return the answer to "What did I ask you last time?": the asker's own words; empty for another question.

        A small model would say them as its own.
        """
        if not (self._asked.has(AskKind.ACTS) and self._asked.has(AskKind.ASKER)):
            return ()
        of_then = [one.text for one in self._heard() if self._is_askers(one) and Signal.RECAP in one.signals]
        if _ASKED.search(self._asked.text.casefold()):
            of_then = [text for text in of_then if text.rstrip().endswith("?")]
        return (wording(self._language).you_said.format(what=of_then[-1].strip()),) if of_then else ()

    def told(self) -> tuple[str, ...]:
        """Return recalled lines that answer the question, worded as answers, the best first; empty if none does.

        A question about what the asker told the NPC of itself gets all such lines. Another one that no fact answers
        gets the best line, anybody's, which shares at least two words with it beside names. What others said of
        themselves is no answer to a question about the asker.
        """
        asked, mind = self._asked, self._mind
        if self._is_foreign or asked.has(AskKind.OWN_WORDS):
            return ()
        is_of_asker = asked.has(AskKind.ASKER)
        if is_of_asker and asked.has(AskKind.MEMORY):
            about = self._topic - topic_of(" ".join(_CONTENT.words("calls")), self._language)
            asks_for_a_wish = _WISHED.search(asked.text.casefold()) is not None
            own = [one for one in self._heard() if self._is_askers(one) and self._tells_of(one.text, about)]
            own = [one for one in own if asks_for_a_wish or not _WISH.search(one.text.casefold())]
            if own:
                return tuple(map(self._as_answer, own))
        about = self._about(())
        is_known = any(fact.is_asked or fact.similarity is not None for fact in mind.facts)
        if is_known or not self._is_question or len(about) < _SHARED:
            return ()
        telling = (one for one in self._heard() if self._is_askers(one) or not is_of_asker)
        best = next((one for one in telling if self._tells_of(one.text, about)), None)
        return () if best is None else (self._as_answer(best),)

    def _as_answer(self, one: RecalledUtterance) -> str:
        told, words = one.text.strip(), wording(self._language)
        if not self._is_askers(one):
            return words.they_said.format(who=one.speaker_name, what=told)
        if self._language != "en" or _TO_THE_NPC.search(told.casefold()):
            return words.you_said.format(what=told)
        if _OPENS.match(told):
            told = told[:1].lower() + told[1:]
        return words.you_told.format(what=_OURS.sub(_yours, told))

    def _heard(self) -> Iterator[RecalledUtterance]:
        lines = (one for one in self._mind.remembered if isinstance(one, RecalledUtterance))
        return (one for one in lines if one.speaker_name and not one.is_own)

    def _is_askers(self, one: RecalledUtterance) -> bool:
        return one.speaker_name == self._mind.asker

    # What the NPC does not know.

    def not_known(self) -> NotKnown:
        """Return what the NPC does not know, for the prompt; nothing if something bears on the question."""
        words, asked, mind = wording(self._language), self._asked, self._mind
        is_own = asked.has(AskKind.OWN_WORDS)
        remembers = is_own or asked.has(AskKind.MEMORY)
        unheard = [name for name in self._names if self._is_unheard(name)]
        if unheard and (remembers or self._is_question):
            facts = tuple(words.unheard.format(name=mind.name, what=name) for name in unheard[:_MOST_NAMES])
            return NotKnown(facts, tuple(line.format(what=unheard[0]) for line in words.never_heard))
        is_more = not remembers and asked.has(AskKind.MORE)
        if self._is_foreign or not (remembers or is_more) or self._bears():
            return NotKnown()
        of_the_past, is_empty = asked.has(AskKind.PAST_EVENT), is_more and not mind.facts
        if is_empty and not (asked.has(AskKind.WHY) or (self._names and of_the_past)):
            return NotKnown()
        line = words.unsaid if is_own else words.untold if remembers or is_empty else words.no_more
        may_be_said = is_own or self._is_question or asked.has(AskKind.TELL)
        if not may_be_said or (is_more and not of_the_past):
            return NotKnown((line.format(name=mind.name),))
        return NotKnown((line.format(name=mind.name),), words.never_said if is_own else words.knows_nothing)

    def _is_unheard(self, name: str) -> bool:
        if vocabulary_of(self._asked.language).is_common_knowledge(name):
            return False
        return not _is_heard(name, self._mind.lines, self._language) and not self._mind.is_known(name)

    def _bears(self) -> bool:
        """Return whether something in the prompt is about the question, beyond the names in it."""
        asked, mind = self._asked, self._mind
        said = [one for one in mind.remembered if not self._is_anothers(one)]
        if any(fact.is_asked for fact in mind.facts) or any(isinstance(one, RecalledSummary) for one in said):
            return True
        about = self._about(found for fact in mind.facts for found in _QUOTED.findall(fact.path))
        acts = asked.has(AskKind.ACTS)
        facts = [fact.text for fact in mind.facts]
        if asked.has(AskKind.OWN_WORDS):
            if not _WE.search(asked.text.casefold()):
                said = [one for one in said if one.is_own]
            words = (*mind.talk, *mind.told, *(line for line in mind.beside if _SWORN.search(line.casefold())))
            return self._is_near(about, said) or self._is_in(about, words) or (not about and bool(words))
        if not acts and any(fact.similarity is not None and not fact.is_named for fact in mind.facts):
            return True
        is_open = not acts and not asked.has(AskKind.PAST_EVENT)
        if is_open and not _OF_ME.search(asked.text.casefold()) and any(self._is_named_in(one) for one in said):
            return True
        if about:
            return self._is_near(about, said) or self._is_in(
                about, (*facts, *mind.talk, *mind.told, *(() if acts else mind.beside))
            )
        if asked.has(AskKind.PERCEPTION):  # what others said is not something that it saw
            return any(mind.name in text for text in (*facts, *mind.told))
        told: Sequence[str] = (*facts, *mind.told)
        if asked.has(AskKind.ASKER):
            told = [text for text in mind.told if any(name in text for name in (mind.asker, *self._names))]
        return bool(said or told) or (acts and bool(mind.talk))

    def _about(self, named: Iterable[str]) -> frozenset[str]:
        """Return the words of the question without names, also without these."""
        return self._topic - topic_of(" ".join((*self._names, *named)), self._language)

    def _is_named_in(self, one: RecalledTalk) -> bool:
        return any(name.split()[-1] in one.text for name in self._names)

    def _is_anothers(self, one: RecalledTalk) -> bool:
        """Return whether somebody else said it of himself, if the asker asks about himself alone."""
        asker, asked = self._mind.asker, self._asked
        if not asker or isinstance(one, RecalledSummary) or one.is_own or one.speaker_name == asker:
            return False
        if _WE.search(asked.text.casefold()) or not asked.has(AskKind.ASKER):
            return False
        tells_of_himself = question_of(one.text, asked.language).has(AskKind.ASKER)
        return tells_of_himself and not any(part in one.text for part in asker.split())

    def _is_in(self, about: frozenset[str], lines: Iterable[str]) -> bool:
        return any(n_shared(about, line, self._language) for line in lines)

    def _is_near(self, about: frozenset[str], said: Sequence[RecalledTalk]) -> bool:
        if not about:
            return bool(said)
        return self._is_in(about, (one.text for one in said)) or any(map(self._means, said))

    def _means(self, one: RecalledTalk) -> bool:
        if self._language != _EMBEDDED or not isinstance(one, RecalledUtterance) or one.similarity is None:
            return False
        answers_when = one.signals.get(Signal.TELLS_TIME, 0.0) > 0  # only if the question asks for a time
        return one.similarity >= (RELATED if answers_when else NEAR)

    def _tells_of(self, text: str, about: frozenset[str]) -> bool:
        """Return whether it states something about the question, and more than the question contains."""
        if text.rstrip().endswith("?"):
            return False
        shared = n_shared(about, text, self._language)
        return 0 < shared < len(topic_of(text, self._language)) and shared >= min(_SHARED, len(about))


def _yours(found: re.Match[str]) -> str:
    yours = str(_YOURS[found[0].casefold()])
    opens = found.string[: found.start()].rstrip().endswith((".", "!", "?"))
    return yours.capitalize() if opens else yours


def _is_heard(name: str, lines: Sequence[str], language: str) -> bool:
    """Return whether the lines name somebody or something, also by the last of several names or in the genitive.

    If the last word is an ordinary one, it needs the first: "his hand" is not the Red Hand.
    """
    first, *_, last = name.split() if " " in name else ("", name)
    heard = "\n".join(lines)
    if not first:
        heard, last = heard.casefold(), last.casefold()
    is_there = any(form in heard for form in (last, last.removesuffix("s")))
    is_name = not first or not vocabulary_of(language).is_ordinary(fold(last))
    return is_there and (is_name or first[:_BEGINNING].casefold() in heard.casefold())
