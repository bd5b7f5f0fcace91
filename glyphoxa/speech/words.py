"""The words of a transcript with their places in it, so that a span can be replaced and nothing else moves."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# Letters and digits with their combining accents; an apostrophe belongs to the word it stands in.
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f]|['’](?=[^\W_]))*")
_POSSESSIVE = re.compile(r"['’][sS]$")
_NO_LETTERS = re.compile(r"[\W_]+")
_GAP = re.compile(r"\s+|-")
_REMEMBERED = 8192
_SENTENCE_END = re.compile(r"[.!?…:\n\"“”»«]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text.

    Attributes:
        text: As it stands there, without a possessive ending.
        tail: The possessive ending ("'s") or nothing.
        folded: Only its letters and digits, in lower case, without accents; the possessive ending left out.
        start: Place of its first character.
        end: One past the last character, the possessive ending included.
        joins: Only a space or a hyphen stands between the word before and this one.
        opens: It begins a sentence, so that a capital letter says nothing.
    """

    text: str
    tail: str
    folded: str
    start: int
    end: int
    joins: bool
    opens: bool

    @property
    def full(self) -> str:
        """`folded` with the possessive ending: "dragons" for "Dragon's"."""
        return self.folded + fold(self.tail) if self.tail else self.folded

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()


def words(text: str) -> list[Word]:
    found: list[Word] = []
    end = 0
    for match in _WORD.finditer(text):
        stem, tail, folded = _parts(match.group())
        gap = text[end : match.start()]
        is_space = gap == " "
        found.append(
            Word(
                text=stem,
                tail=tail,
                folded=folded,
                start=match.start(),
                end=match.end(),
                joins=bool(found) and (is_space or _GAP.fullmatch(gap) is not None),
                opens=not found or (not is_space and _SENTENCE_END.search(gap) is not None),
            )
        )
        end = match.end()
    return found


@lru_cache(_REMEMBERED)
def _parts(raw: str) -> tuple[str, str, str]:
    """A word without its possessive ending, that ending, and the word folded."""
    possessive = _POSSESSIVE.search(raw)
    stem = raw[: possessive.start()] if possessive and possessive.start() else raw
    return stem, raw[len(stem) :], fold(stem)


def fold(text: str) -> str:
    """Only letters and digits, in lower case, without accents.

    >>> fold("Vex’Àhlia of Straße")
    'vexahliaofstrasse'
    """
    if text.isascii():
        return _NO_LETTERS.sub("", text.lower())
    bare = (char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))
    return _NO_LETTERS.sub("", "".join(bare))
