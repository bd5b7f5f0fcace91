"""Whether a sentence refers to the past (English and German).

Every partial transcript is asked, so that recall can start before the speaker has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.speech.language.words import words

_PAST: Mapping[str, tuple[str, ...]] = {
    "en": (
        "ago", "anymore", "back then", "before today", "called back", "did i tell", "did we", "did you ever",
        "earlier", "forget", "forgot", "forgotten", "i told you", "in the past", "last evening", "last month",
        "last night", "last session", "last time", "last week", "last year", "long ago", "once told",
        "previous", "previously", "promised", "recall", "recently", "remember", "remembered", "remembers", "remind",
        "reminds", "since then", "that time", "the other day", "the other night", "these days", "used to",
        "we met", "we spoke", "we talked", "what happened", "when i was", "when we were", "yesterday", "you mentioned",
        "you promised", "you said", "you told",
    ),
    "de": (
        "damals", "darüber gesprochen", "erinnere", "erinnern", "erinnerst", "erinnert", "früher", "gestern",
        "hast du gesagt", "hattest du gesagt", "kürzlich", "letzte nacht", "letzte woche", "letztens", "letztes jahr",
        "letztes mal", "letzten monat", "letzten abend", "neulich", "seinerzeit", "seit damals", "vergessen",
        "versprochen", "vor einem jahr", "vor einer woche", "vor jahren", "vor kurzem", "vor langer zeit", "vor tagen",
        "vor wochen", "voriges mal", "vorher", "vorhin", "vorige woche", "weißt du noch", "wisst ihr noch",
        "was ist passiert", "wir uns getroffen",
    ),
}  # fmt: skip


def speaks_of_the_past(text: str, *, language: str) -> bool:
    """Whether a text refers to something that was before."""
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
    for phrase in _PAST.get(language, _PAST["en"]):
        parts = tuple(word.full for word in words(phrase))
        phrases.setdefault(parts[0], []).append(parts)
    return phrases
