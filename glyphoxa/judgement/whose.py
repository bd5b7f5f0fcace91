"""Whose a thing is, and who said it: put right where a small model takes the question's "my" and "I" for its own.

Asked "What is my horse called?", it says "My horse is called Bramble." The words are right and the person is not, so
the sentence is put right and not thrown away. Only where the question itself says whose it is, and nothing that the NPC
knows of itself speaks of such a thing. English and German.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.judgement.reply import Asked
from glyphoxa.judgement.wordlists import ENGLISH, GERMAN, words

_YOURS: Final = re.compile(r"\b(?:your|yours|dein\w*|euer|eure\w*)\b", re.IGNORECASE)
_OWN_TOO: Final = "too also own than better worse auch ebenso eigen eigene eigenes eigener als besser"
_TOO: Final = frozenset(_OWN_TOO.split())
_NO_THING: Final = frozenset(("name", "names", "namen"))
"""Who answers with its own name has misread the question; with the other person it would say what is false."""
_MY: Final = re.compile(r"\b(my|mein(?:e|en|em|er|es)?)(?= \w)", re.IGNORECASE)
_DID_I: Final = re.compile(
    r"\b(?:did|have|had) i\b(?: \w+){0,2} (?:say|said|tell|told|mention|mentioned|promise|promised)\b"
    r"|\b(?:habe|hab|hatte) ich\b.*\b(?:gesagt|erzählt|erwähnt|versprochen)\b",
    re.IGNORECASE,
)
_TOLD: Final = re.compile(r"\bI((?: have| had|'ve)?) told you\b")
_SAID: Final = re.compile(r"\bI((?: have| had|'ve)?) (said|mentioned|promised)\b(?: you)?")
_WITHIN: Final = re.compile(r"(?<=[^.!?] )You(?=(?: have| had|'ve)? (?:told|said|mentioned|promised)\b)")
_GESAGT: Final = re.compile(r"\b(I|i)ch (habe|hatte)( dir)?(?=.*\b(?:gesagt|erzählt|erwähnt|versprochen)\b)")
_HAST: Final = {"habe": "hast", "hatte": "hattest"}


def with_its_owner(sentence: str, asked: Asked) -> str:
    """The sentence with the person that the question means.

    >>> with_its_owner("My horse is called Bramble.", Asked(question="What is my horse called?"))
    'Your horse is called Bramble.'
    >>> with_its_owner("I said that she limps.", Asked(question="What did I tell you of her?"))
    'You said that she limps.'
    """
    if _DID_I.search(asked.question):
        sentence = _said_by_the_asker(sentence)
    if _YOURS.search(asked.question) or not _TOO.isdisjoint(words(sentence)):
        return sentence
    # It may have a horse of its own, if it knows of one.
    own = set(words(" ".join((*asked.identity, *asked.facts))))
    theirs = {thing for found in _MY.finditer(asked.question) for thing in _behind(found)} - own - _NO_THING

    def turned(found: re.Match[str]) -> str:
        return _turned(found[1]) if not theirs.isdisjoint(_behind(found)) else found[0]

    return _MY.sub(turned, sentence)


def _behind(found: re.Match[str]) -> list[str]:
    """The words behind a "my": what it is about, with an adjective or without."""
    return [word for word in words(found.string[found.end() :])[:2] if word not in ENGLISH and word not in GERMAN]


def _turned(mine: str) -> str:
    yours = "your" if mine.casefold() == "my" else "dein" + mine[4:]
    return yours.capitalize() if mine[0].isupper() else yours


def _said_by_the_asker(sentence: str) -> str:
    sentence = _SAID.sub(r"You\1 \2", _TOLD.sub(r"You\1 told me", sentence))
    return _GESAGT.sub(_du_hast, _WITHIN.sub("you", sentence))


def _du_hast(found: re.Match[str]) -> str:
    you = "Du" if found[1] == "I" else "du"
    return f"{you} {_HAST[found[2]]}{' mir' if found[3] else ''}"
