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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.context.selection import NEAR, RELATED, without_call
from glyphoxa.context.wording import wording
from glyphoxa.domain.knowledge import RecalledFact, RecalledSummary, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.language.asking import (
    IRREGULAR,
    asks_for_memory,
    asks_for_more,
    asks_of_acts,
    asks_of_perception,
    asks_of_the_past,
    asks_what_it_said,
    asks_why,
    names_in,
    speaks_of_the_asker,
    wants_to_be_told,
)
from glyphoxa.language.content import language_of, stem_of
from glyphoxa.language.lexicon import lexicon, primary_language
from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.language.words import fold, words

_CONTENT: Final = lexicon("content")
_SHORTEST: Final = 3
_COMPOUND: Final = 5
"""Letters of a word that may be the end of another: "Kessel" in "Kupferkessel"."""


_NO_TOPIC: Final = frozenset(stem_of(fold(word)) for word in _CONTENT.words("asks_or_times") | _CONTENT.words("vague"))


class TopicWords:
    """The stems of the words that carry a text's topic.

    Args:
        language: BCP 47 tag of the text.
    """

    def __init__(self, text: str, language: str) -> None:
        self.language = primary_language(language)
        stop, verbs = vocabulary_of(language).stop, IRREGULAR.get(self.language, {})
        folded = (word.folded for word in words(text))
        about = (verbs.get(each, each) for each in folded if len(each) >= _SHORTEST and each.isalpha())
        self._by_stem = {stem_of(word): word for word in about if word not in stop and stem_of(word) not in _NO_TOPIC}

    def __sub__(self, other: TopicWords) -> TopicWords:
        left = TopicWords("", self.language)
        left._by_stem = {stem: word for stem, word in self._by_stem.items() if stem not in other._by_stem}
        return left

    def __len__(self) -> int:
        return len(self._by_stem)

    def n_in(self, text: str) -> int:
        """Return how many of the words another text has, also as the end of a longer one."""
        others = TopicWords(text, self.language)._by_stem
        return sum(
            stem in others or any(_is_part(word, each) for each in others.values())
            for stem, word in self._by_stem.items()
        )


def _is_part(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMPOUND and len(long) > len(short) and long.endswith(short)


_TOLD: Final = lexicon("told")
_WE: Final = _TOLD.compile(r"\b{we}\b")
_OF_ME: Final = _TOLD.compile(r"\b{of_me}\b")
_SWORN: Final = _TOLD.pattern("sworn")
_QUOTED: Final = re.compile(r"'([^']+)'")
_EMBEDDED: Final = "en"


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
        aliases: Other names that it is called by.
        told: Summaries of what was said before the talk.
    """

    name: str
    facts: Sequence[RecalledFact]
    remembered: Sequence[RecalledTalk]
    talk: Sequence[str]
    beside: Sequence[str]
    is_known: Callable[[str], bool]
    asker: str = ""
    aliases: Sequence[str] = ()
    told: Sequence[str] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        said = (line for one in self.remembered for line in (getattr(one, "speaker_name", ""), one.text))
        return (*(fact.text for fact in self.facts), *said, *self.talk, *self.told, *self.beside)


def bears(asked: str, mind: InMind, names: Sequence[str], *, language: str) -> bool:
    """Return whether something in the prompt is about the question, beyond the names in it."""
    if any(fact.is_asked for fact in mind.facts):
        return True
    said = [one for one in mind.remembered if not _is_anothers(one, asked, mind, language)]
    if any(isinstance(one, RecalledSummary) for one in said):
        return True
    named = (found for fact in mind.facts for found in _QUOTED.findall(fact.path))
    about = TopicWords(asked, language) - TopicWords(" ".join((*names, *named)), language)
    if asks_what_it_said(asked, language=language):
        if not _WE.search(asked.casefold()):
            said = [one for one in said if _is_own(one, mind)]
        words = (*mind.talk, *mind.told, *(line for line in mind.beside if _SWORN.search(line.casefold())))
        return _is_near(about, said) or _is_in(about, words) or (not about and bool(words))
    acts = asks_of_acts(asked, language=language)
    if not acts and any(fact.similarity is not None and not fact.is_named for fact in mind.facts):
        return True
    is_open = not acts and not asks_of_the_past(asked, language=language)
    if is_open and not _OF_ME.search(asked.casefold()) and any(_names(one, names) for one in said):
        return True
    if not about:
        if asks_of_perception(asked, language=language):  # what others said is not something that it saw
            return any(mind.name in text for text in (*(fact.text for fact in mind.facts), *mind.told))
        if speaks_of_the_asker(asked, language=language):
            return bool(said) or any(mind.asker in text for text in mind.told) or (acts and bool(mind.talk))
        return bool(said or mind.facts or mind.told) or (acts and bool(mind.talk))
    beside = () if acts else mind.beside
    return _is_near(about, said) or _is_in(
        about, (*(fact.text for fact in mind.facts), *mind.talk, *mind.told, *beside)
    )


def _is_own(one: RecalledTalk, mind: InMind) -> bool:
    return isinstance(one, RecalledUtterance) and (one.is_own or one.speaker_name == mind.name)


def _names(one: RecalledTalk, names: Sequence[str]) -> bool:
    return any(name.split()[-1] in one.text for name in names)


def _is_anothers(one: RecalledTalk, asked: str, mind: InMind, language: str) -> bool:
    """Return whether somebody else said it of himself, if the asker asks about himself alone."""
    if not mind.asker or isinstance(one, RecalledSummary) or _is_own(one, mind) or one.speaker_name == mind.asker:
        return False
    if _WE.search(asked.casefold()) or not speaks_of_the_asker(asked, language=language):
        return False
    tells_of_himself = speaks_of_the_asker(one.text, language=language)
    return tells_of_himself and not any(part in one.text for part in mind.asker.split())


def _is_in(about: TopicWords, lines: Iterable[str]) -> bool:
    return any(about.n_in(line) for line in lines)


def _is_near(about: TopicWords, said: Sequence[RecalledTalk]) -> bool:
    if not about:
        return bool(said)
    return _is_in(about, (one.text for one in said)) or any(_means(one, about.language) for one in said)


def _means(one: RecalledTalk, language: str) -> bool:
    if language != _EMBEDDED or not isinstance(one, RecalledUtterance) or one.similarity is None:
        return False
    answers_when = one.signals.get(Signal.TELLS_TIME, 0.0) > 0  # only if the question asks for a time
    return one.similarity >= (RELATED if answers_when else NEAR)


# What the asker told the NPC.

_SHARED: Final = 2
_WISH: Final = _TOLD.pattern("wish")
_ASKED: Final = _TOLD.compile(r"\b{asked}\b")
_WISHED: Final = _TOLD.compile(r"\b{wished}\b")
_TO_THE_NPC: Final = _TOLD.compile(r"\b{to_the_npc}\b")
_OPENS: Final = _TOLD.compile(r"{opens}\b")
_YOURS: Final = _TOLD.value("yours")
_OURS: Final = re.compile(rf"\b(?:{'|'.join(sorted(_YOURS, key=len, reverse=True))})\b", re.IGNORECASE)


def told_before(question: str, said: Sequence[RecalledTalk], asker: str, *, language: str) -> tuple[str, ...]:
    """Return sentences with which the NPC answers from what the asker told it, the best first.

    Empty if the question is not about what the asker said of itself.

    Args:
        said: Recalled utterances for the question.
        asker: The asker's name; empty if it is unknown.
        language: The campaign's.
    """
    spoken = language_of(question) or primary_language(language)
    if not asker or spoken != primary_language(language) or asks_what_it_said(question, language=spoken):
        return ()
    if not (asks_for_memory(question, language=spoken) and speaks_of_the_asker(question, language=spoken)):
        return ()
    about = TopicWords(question, spoken) - TopicWords(" ".join(_CONTENT.words("calls")), spoken)
    asks_for_a_wish = _WISHED.search(question.casefold()) is not None
    return tuple(
        _as_answer(one.text, spoken)
        for one in said
        if isinstance(one, RecalledUtterance)
        and one.speaker_name == asker
        and _tells_of(one.text, about)
        and (asks_for_a_wish or not _WISH.search(one.text.casefold()))
    )


def heard_before(question: str, said: Sequence[RecalledTalk], asker: str, *, language: str) -> tuple[str, ...]:
    """Return the recalled line that answers a question, worded as an answer; empty if none does.

    Unlike `told_before`, the line may be anybody's and about anything, so it shares at least two words with the
    question beside names. What others said of themselves is no answer to a question about the asker.

    Args:
        said: Recalled utterances for the question, the best first.
        asker: The asker's name; empty if it is unknown.
        language: The campaign's.
    """
    spoken = language_of(question) or primary_language(language)
    is_asked = question.rstrip().endswith("?") and not asks_what_it_said(question, language=spoken)
    if not is_asked or spoken != primary_language(language):
        return ()
    about = TopicWords(question, spoken) - TopicWords(" ".join(names_in(question, language=spoken)), spoken)
    is_of_asker = speaks_of_the_asker(question, language=spoken)
    for one in said:
        if not isinstance(one, RecalledUtterance) or one.is_own or not one.speaker_name:
            continue
        of_others = one.speaker_name != asker
        if len(about) < _SHARED or not _tells_of(one.text, about) or (of_others and is_of_asker):
            continue
        if not of_others:
            return (_as_answer(one.text, spoken),)
        return (wording(language).they_said.format(who=one.speaker_name, what=one.text.strip()),)
    return ()


def said_then(question: str, said: Sequence[RecalledTalk], asker: str, *, language: str) -> tuple[str, ...]:
    """Return the answer to "What did I ask you last time?": the asker's own words; empty for another question.

    A small model would say them as its own.

    Args:
        said: Recalled lines of that time.
        asker: The asker's name; empty if it is unknown.
        language: The campaign's.
    """
    if not (asks_of_acts(question, language=language) and speaks_of_the_asker(question, language=language)):
        return ()
    of_then = [
        one.text
        for one in said
        if isinstance(one, RecalledUtterance) and one.speaker_name == asker and Signal.RECAP in one.signals
    ]
    if _ASKED.search(question.casefold()):
        of_then = [text for text in of_then if text.rstrip().endswith("?")]
    return (wording(language).you_said.format(what=of_then[-1].strip()),) if of_then else ()


def _tells_of(text: str, about: TopicWords) -> bool:
    """Return whether it states something about the question, and more than the question contains."""
    if text.rstrip().endswith("?"):
        return False
    shared = about.n_in(text)
    return 0 < shared < len(TopicWords(text, about.language)) and shared >= min(_SHARED, len(about))


def _as_answer(text: str, language: str) -> str:
    told = text.strip()
    if language != "en" or _TO_THE_NPC.search(told.casefold()):
        return wording(language).you_said.format(what=told)
    if _OPENS.match(told) and not told.startswith("I"):
        told = told[:1].lower() + told[1:]
    return wording(language).you_told.format(what=_OURS.sub(_yours, told))


def _yours(found: re.Match[str]) -> str:
    yours = str(_YOURS[found[0].casefold()])
    opens = found.string[: found.start()].rstrip().endswith((".", "!", "?"))
    return yours.capitalize() if opens else yours


# What the NPC does not know.

_MOST_NAMES: Final = 2
_BEGINNING: Final = 4
"""Letters of an adjective that stay in all its forms."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """
    Attributes:
        facts: Sentences for the facts of the prompt.
        replies: Possible answers, of which one is enough. Empty if a model has to find the words.
    """

    facts: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


NOTHING_MISSING: Final = NotKnown()


def not_known(question: str, mind: InMind, *, language: str) -> NotKnown:
    """Return what the NPC does not know, for the prompt; nothing if something bears on the question.

    Args:
        language: The campaign's. A question in another language has its own rules for names, and its words cannot show
            what bears on it: only a name that nobody has heard is reported.
    """
    words = wording(language)
    asked = without_call(question, mind.name, mind.aliases)
    spoken = language_of(asked) or primary_language(language)
    names = names_in(asked, language=spoken)
    said = asks_what_it_said(asked, language=language)
    remembers = said or asks_for_memory(asked, language=language)
    is_asked = asked.rstrip().endswith("?")
    known_to_all = vocabulary_of(spoken).is_common_knowledge
    strange = [name for name in names if not known_to_all(name) and not _is_heard(name, mind.lines, language)]
    unheard = [name for name in strange if not mind.is_known(name)]
    if unheard and (remembers or is_asked):
        facts = tuple(words.unheard.format(name=mind.name, what=name) for name in unheard[:_MOST_NAMES])
        return NotKnown(facts, tuple(line.format(what=unheard[0]) for line in words.never_heard))
    if spoken != primary_language(language):
        return NOTHING_MISSING
    is_more = not remembers and asks_for_more(asked, language=language)
    if not (remembers or is_more) or bears(asked, mind, names, language=language):
        return NOTHING_MISSING
    of_the_past = asks_of_the_past(asked, language=language)
    if is_more and not mind.facts:
        is_story = asks_why(asked, language=language) or (names and of_the_past)
        return NotKnown((words.untold.format(name=mind.name),), words.knows_nothing) if is_story else NOTHING_MISSING
    line = words.unsaid if said else words.untold if remembers else words.no_more
    replies = words.never_said if said else words.knows_nothing
    needs_a_model = not (said or is_asked or wants_to_be_told(asked, language=language))
    if needs_a_model or (is_more and not of_the_past):
        replies = ()
    return NotKnown((line.format(name=mind.name),), replies)


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
