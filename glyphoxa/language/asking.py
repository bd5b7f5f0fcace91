"""Classify a question and find the names in it.

Every question is checked, using words only. A false positive costs an NPC a shrug; a miss lets a small model invent.
The patterns are data: see `data/LANGUAGE/asking.toml`. In a language without them, every answer is no unless a function
says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from glyphoxa.language.lexicon import Lexicon, languages, lexicon, primary_language
from glyphoxa.language.sentence_form import only_states
from glyphoxa.language.titles import TITLES
from glyphoxa.language.vocabulary import UNLISTED, Vocabulary, vocabulary_of
from glyphoxa.language.words import fold


def asks_for_memory(question: str, *, language: str) -> bool:
    """Return whether it asks for a memory, or something nobody can know without being told.

    Includes claims that expect a confirmation: "You owe me three crowns, don't you?".
    """
    return _has("memory", question, language) or _has("claimed", question, language)


def asks_for_more(question: str, *, language: str) -> bool:
    """Return whether it has a presupposition or is a yes/no question: "Why did she ...?", "Is it true ...?"."""
    return question.rstrip().endswith("?") and _begins("more", question, language)


def asks_why(question: str, *, language: str) -> bool:
    """Return whether it presupposes a fact and asks for its reason or beginning."""
    return _begins("why", question, language)


def asks_of_acts(question: str, *, language: str) -> bool:
    """Return whether it asks what somebody did, said or saw: "What did I tell you?"."""
    return _has("acts", question, language) or asks_of_perception(question, language=language)


def asks_of_perception(question: str, *, language: str) -> bool:
    """Return whether it asks what the NPC saw, heard or found, or whom it met."""
    return _has("perception", question, language)


def asks_of_the_past(question: str, *, language: str) -> bool:
    """Return whether it presupposes a past event, or asks whether one happened."""
    return _begins("past", question, language)


def speaks_of_the_past(text: str, *, language: str) -> bool:
    """Return whether it refers to the past; uses English for a language without patterns.

    Checked for every partial transcript, so that recall can start before the speaker has finished.
    """
    return _has("refers_to_past", text, _known(language))


def wants_to_be_told(question: str, *, language: str) -> bool:
    """Return whether it asks without a question mark: "Tell me of ..."."""
    return _has("tell", question, language)


def wants_several(question: str, *, language: str) -> bool:
    """Return whether it asks for several things.

    >>> wants_several("Which cities has Joren seen?", language="en")
    True
    """
    return _has("several", question, language)


def speaks_of_the_asker(question: str, *, language: str) -> bool:
    """Return whether it is about the asker. "Tell me ..." alone is not."""
    asked = _pattern("tell_me", primary_language(language)).sub(" ", _plain(question))
    return _has("asker", asked, language)


def speaks_to_the_npc(question: str, *, language: str) -> bool:
    """Return whether it says "you"; uses English for a language without patterns."""
    return _has("you", question, _known(language))


def speaks_of_the_npc(text: str, *, language: str) -> bool:
    """Return whether it says "you" before anything about the asker; uses English as `speaks_to_the_npc` does.

    >>> speaks_of_the_npc("You sold me the map.", language="en")
    True
    >>> speaks_of_the_npc("I will bring you the map.", language="en")
    False
    """
    known, plain = primary_language(_known(language)), _plain(text)
    to, of_asker = _pattern("you", known).search(plain), _pattern("asker", known).search(plain)
    return to is not None and (of_asker is None or to.start() < of_asker.start())


def remarks(text: str, *, language: str) -> bool:
    """Return whether it asks for nothing and does not speak of the NPC: "We will dive tomorrow."."""
    return only_states(text) and not speaks_of_the_npc(text, language=language)


def asks_how_related(question: str, *, language: str) -> bool:
    """Return whether it asks how two entities are related; uses English for a language without patterns.

    >>> asks_how_related("How is Orla related to the smith?", language="en")
    True
    >>> asks_how_related("Who is Orla?", language="en")
    False
    """
    return _has("how_related", question, _known(language))


def asks_what_it_said(question: str, *, language: str) -> bool:
    """Return whether an NPC is asked about its own words ("What did you promise me?", "You said six crowns!").

    Excludes what others told it and what it has to say now.
    """
    done_to_it = lexicon("asking", language).words("done_to_you")
    said = _pattern("you_said", primary_language(language)).finditer(_plain(question))
    return any(match[1] not in done_to_it for match in said) or _has("own_words", question, language)


def looks_for_own_words(query: str, *, name: str, language: str) -> bool:
    """Return whether an NPC's model searches for the NPC's own words: "what I promised Hanna", "Korvald promised".

    Args:
        name: The NPC's name; empty if unknown.
    """
    of, text = lexicon("asking", language), _plain(query)
    if not of:
        return False
    if name:
        text = re.sub(rf"\b{re.escape(_plain(name))}\b", of.value("addressed"), text)
    for said, instead in of.value("as_another_says"):
        text = re.sub(said, instead, text)
    return of.compile(r"\b{promise}\b").search(text) is not None or asks_what_it_said(text, language=language)


def _known(language: str) -> str:
    return language if lexicon("asking", language) else "en"


def _has(kind: str, text: str, language: str) -> bool:
    return _pattern(kind, primary_language(language)).search(_plain(text)) is not None


def _begins(kind: str, text: str, language: str) -> bool:
    return _pattern(kind, primary_language(language)).match(_plain(text)) is not None


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str]:
    return lexicon("asking", language).pattern(kind)


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


# Names within a sentence.


def names_in(question: str, *, language: str) -> list[str]:
    """Return the names written within a sentence, in order.

    >>> names_in("What did Lady Ambrose say of the Tower of Ashur on Monday?", language="en")
    ['Lady Ambrose', 'Tower of Ashur']
    >>> names_in("Was hat Ritter Gottwin am Montag zu meinem Bruder gesagt?", language="de")
    ['Ritter Gottwin']
    """
    known = lexicon("asking", language)
    if not known:
        return []
    found = _among_nouns(question, language) if known.value("nouns_have_capitals") else _by_capitals(question, known)
    return list(dict.fromkeys(found))


def _by_capitals(question: str, known: Lexicon) -> Iterator[str]:
    no_names = known.words("no_names")
    for found in _capitals(known).finditer(question):
        name = re.sub(r"['’]s?$", "", found.group())
        if name.casefold() not in no_names:
            yield name


@cache
def _capitals(known: Lexicon) -> re.Pattern[str]:
    return known.compile(r"(?<=[a-z,;:'’] )[A-Z][\w'’]+(?: {name_joints}?[A-Z][\w'’]+)*(?<!['’]s)")


_WORD_OR_STOP: Final = re.compile(r"[^\W\d_]+|[.!?:]")


def _among_nouns(question: str, language: str) -> Iterator[str]:
    """Find names where nouns are capitalised too: words in no dictionary, without an article.

    A capitalised adjective is part of a name ("die Rote Hand").
    """
    vocabulary = vocabulary_of(language)
    articles = _pattern("with_article", primary_language(language))
    before, title, adjective = ".", "", ""
    for word in _WORD_OR_STOP.findall(question):
        is_begin = before in ".!?:" or not word[0].isupper()
        folded = fold(word)
        if title and word[0].isupper():
            yield f"{title} {word}"
        elif adjective and word[0].isupper():
            yield f"{adjective} {word}"
        elif not is_begin and folded not in TITLES and not articles.fullmatch(before.casefold()):
            listed = min(vocabulary.rarity(folded), vocabulary.proper.get(folded, UNLISTED))
            if listed == UNLISTED:
                yield word
        title = word if folded in TITLES and word[0].isupper() else ""
        adjective = word if not is_begin and _is_adjective(folded, vocabulary, language) else ""
        before = word


def _is_adjective(folded: str, vocabulary: Vocabulary, language: str) -> bool:
    """Recognised by its ending, and listed in lower case only."""
    return (
        _pattern("adjective", primary_language(language)).fullmatch(folded) is not None
        and folded not in vocabulary.stop
        and vocabulary.rarity(folded) < UNLISTED
        and vocabulary.proper.get(folded, UNLISTED) == UNLISTED
    )


def _forms(language: str) -> Mapping[str, str]:
    verbs = (verb.split() for verb in lexicon("asking", language).words("irregular"))
    return {form: base for base, *forms in verbs for form in forms}


IRREGULAR: Final[Mapping[str, Mapping[str, str]]] = {language: _forms(language) for language in languages()}
"""Irregular forms that a stemmer misses, by language, each with its verb ("stole": "steal").

Forms that are also other words ("left", "wound", "bore", "found") map to the verb too: question and transcript are
treated the same.
"""
