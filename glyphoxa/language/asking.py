"""Whether a question asks for what somebody knows, remembers, was told or saw, and which names are in it.

It is asked with every question, and of words alone: what is found wrongly costs an NPC a shrug, what is missed lets a
small model invent. The patterns are in `data/LANGUAGE/questions.toml`; in a language without them every answer is
False.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from glyphoxa.language.lexicon import Lexicon, lexicon, primary_language
from glyphoxa.language.vocabulary import UNLISTED, Vocabulary, vocabulary_of
from glyphoxa.language.words import fold, words

_OPENS: Final = r"(?:[\w ]+, )?"
"""A call may stand before the question: "Grimjaw, why did ...?"."""


def asks_for_memory(question: str, *, language: str) -> bool:
    """Whether it asks what is remembered, or what nobody can know who was not told: also as a claim that waits for a
    yes, "You owe me three crowns, don't you?".
    """
    return _has(question, "memory", language) or _has(question, "claimed", language)


def asks_for_more(question: str, *, language: str) -> bool:
    """Whether it takes something for granted or asks for a yes or no: "Why did she ...?", "Is it true that ...?"."""
    return question.rstrip().endswith("?") and _begins(question, "more", language)


def asks_why(question: str, *, language: str) -> bool:
    """Whether it takes what it asks the reason or the beginning of for granted."""
    return _begins(question, "why", language)


def asks_of_acts(question: str, *, language: str) -> bool:
    """Whether it asks what somebody did, said or saw, which nobody knows of himself: "What did I tell you?", "Have you
    seen ...?".
    """
    return _has(question, "acts", language) or asks_of_perception(question, language=language)


def asks_of_perception(question: str, *, language: str) -> bool:
    """Whether it asks what the NPC saw, heard or found, or whom it met."""
    return _has(question, "perception", language)


def asks_of_the_past(question: str, *, language: str) -> bool:
    """Whether it takes something that was for granted, or asks for a yes or no of it."""
    return _begins(question, "was", language)


def wants_to_be_told(question: str, *, language: str) -> bool:
    """Whether it asks without a question mark: "Tell me of ..."."""
    return _has(question, "tell", language)


def speaks_of_the_asker(question: str, *, language: str) -> bool:
    """Whether it is about who asks it, which "Tell me ..." is not."""
    return _has(_pattern("tell_me", None).sub(" ", _plain(question)), "asker", language)


def names_in(question: str, *, language: str) -> list[str]:
    """What is written as a name within a sentence, in order.

    >>> names_in("What did Lady Ambrose say of the Tower of Ashur on Monday?", language="en")
    ['Lady Ambrose', 'Tower of Ashur']
    >>> names_in("Was hat Ritter Gottwin am Montag zu meinem Bruder gesagt?", language="de")
    ['Ritter Gottwin']
    """
    known = lexicon("questions", language)
    if not known:
        return []
    found = _among_nouns(question, language) if known.value("nouns_have_capitals") else _by_capitals(question, known)
    return list(dict.fromkeys(found))


def _has(question: str, kind: str, language: str) -> bool:
    return _pattern(kind, primary_language(language)).search(_plain(question)) is not None


def _begins(question: str, kind: str, language: str) -> bool:
    return _opening(kind, primary_language(language)).match(_plain(question)) is not None


@cache
def _pattern(kind: str, language: str | None) -> re.Pattern[str]:
    return lexicon("questions", language).pattern(kind)


@cache
def _opening(kind: str, language: str) -> re.Pattern[str]:
    return lexicon("questions", language).compile(rf"{_OPENS}{{{kind}}}\b")


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


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
    """Nouns have capitals too: a name is one that no dictionary lists, and that has no article. Adjectives have none:
    one that has a capital is part of a name ("die Rote Hand").
    """
    vocabulary, titles = vocabulary_of(language), lexicon("questions", language).words("name_titles")
    articles = _pattern("articles", primary_language(language))
    before, title, adjective = ".", "", ""
    for word in _WORD_OR_STOP.findall(question):
        is_begin = before in ".!?:" or not word[0].isupper()
        folded = fold(word)
        if title and word[0].isupper():
            yield f"{title} {word}"
        elif adjective and word[0].isupper():
            yield f"{adjective} {word}"
        elif not is_begin and word.casefold() not in titles and not articles.fullmatch(before.casefold()):
            listed = min(vocabulary.rarity(folded), vocabulary.proper.get(folded, UNLISTED))
            if listed == UNLISTED:
                yield word
        title = word if word.casefold() in titles and word[0].isupper() else ""
        adjective = word if not is_begin and _is_adjective(folded, vocabulary, language) else ""
        before = word


def _is_adjective(folded: str, vocabulary: Vocabulary, language: str) -> bool:
    """By its ending, and listed with a small letter but as no noun."""
    return (
        _pattern("adjective", primary_language(language)).fullmatch(folded) is not None
        and folded not in vocabulary.stop
        and vocabulary.rarity(folded) < UNLISTED
        and vocabulary.proper.get(folded, UNLISTED) == UNLISTED
    )


def speaks_of_the_past(text: str, *, language: str) -> bool:
    """Whether a text refers to something that was before. A language without phrases of its own has the English ones.

    Every partial transcript is asked, so that recall can start before the speaker has finished.
    """
    phrases = _phrases_of(primary_language(language))
    spoken = [word.full for word in words(text)]
    return any(
        tuple(spoken[at : at + len(parts)]) == parts
        for at, word in enumerate(spoken)
        for parts in phrases.get(word, ())
    )


@cache
def _phrases_of(language: str) -> Mapping[str, list[tuple[str, ...]]]:
    """By their first word."""
    phrases: dict[str, list[tuple[str, ...]]] = {}
    for phrase in (lexicon("questions", language) or lexicon("questions", "en")).words("past"):
        parts = tuple(word.full for word in words(phrase))
        phrases.setdefault(parts[0], []).append(parts)
    return phrases


@cache
def irregular_verbs(language: str) -> Mapping[str, str]:
    """Forms that a stemmer does not know, each with its verb: "What did I steal?" looks for "I stole an apple".

    Forms that are words of their own ("left", "wound") stand for the verb as well: the question and the talk have them
    alike.
    """
    verbs = (verb.split() for verb in lexicon("questions", language).words("irregular"))
    return {form: verb[0] for verb in verbs for form in verb[1:]}
