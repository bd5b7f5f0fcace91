"""Words that stand in any sentence of English or German, and say nothing of what it is about."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import Stemmer

_ENGLISH: Final = (
    "the and you your yours are is was were have has had not what where who how why when this that these those i my "
    "me mine we our us they them their he she his her its it of to for from with would could should can can't will "
    "won't do does did don't didn't about there here which but as at by if than then some any no yes nothing never "
    "know tell me let i'm i've it's that's be been an a in on or so am well very much more many out up come go"
)
ENGLISH: Final = frozenset(_ENGLISH.split())
_GERMAN: Final = (
    "der die das den dem des ein eine einen einem einer und ist sind war waren nicht nichts ich du mich dich mir "
    "dir er sie es wir ihr euch uns ihnen mein meine meinen dein deine deinen euer eure sein seine was wer wie wo "
    "warum wann wenn aber oder auch noch nur schon hier dort da mit von vom zu zum zur im in an am auf für über "
    "aus bei nach kann kannst könnt können habe hast hat habt haben hatte bin bist seid weiß weißt wisst kein keine "
    "keinen ja nein doch mal so dass ob als um will willst wollt gibt geht sag sagt man sehr viel mehr etwas "
    "wurde wurden wird werden worden würde sich unser unsere diese dieser diesen dieses jetzt schon immer gern"
)
GERMAN: Final = frozenset(_GERMAN.split())
_NEGATIONS: Final = (
    "no not never none nobody nothing nor neither cannot can't don't didn't won't isn't wasn't haven't hasn't "
    "wouldn't nein nicht nichts nie niemals niemand kein keine keinen keinem keiner weder"
)
NEGATIONS: Final = frozenset(_NEGATIONS.split())
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_STEM: Final = 6
_STEMMERS: Final = (Stemmer.Stemmer("english"), Stemmer.Stemmer("german"))
"""One behind the other: which language a word is of is not asked."""
_CACHE: Final = 20_000
_SHORTEST: Final = 3


def words(text: str) -> list[str]:
    """Casefolded, with a straight apostrophe."""
    return [found.casefold().replace("’", "'") for found in _WORD.findall(text)]


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that say something: "sewed" and "sews" are one, and so are "poisonous" and "poison"."""
    return frozenset(
        _stem(word.removesuffix("'s"))
        for word in words(text)
        if len(word) >= _SHORTEST and word not in ENGLISH and word not in GERMAN and word not in NEGATIONS
    )


@lru_cache(_CACHE)
def _stem(word: str) -> str:
    for stemmer in _STEMMERS:
        word = stemmer.stemWord(word)
    return word[:_STEM]
