"""The words of a transcript with their places in it, so that a span can be replaced and nothing else moves.

A word is a run of letters and digits with their accents, and what an apostrophe ties to it. Chinese and Japanese
set no spaces: there each Han or Hiragana sign is a word, and a run of Katakana (in which foreign names are
written); that such words follow each other without a gap counts as a space. Thai and its neighbours are not cut.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

# Signs that follow a letter and are none: accents, vowel points and vowel signs, and the invisible ones that join
# or hyphenate. Python's \w knows only the letters.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic
    "\u0900-\u0963\u0966-\u0dff"  # the scripts of India
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e"
    "\u1dc0-\u1dff\u20d0-\u20dc\u3099\u309a\u00ad\u200c\u200d\u2060"
)
_SIGNS = "\u3005\u3041-\u3096\u309d-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_VOICED = "\u3099\u309a"

_WORD = re.compile(r"[^\W_](?:[^\W_]|'(?=[^\W_]))*")
_WORD_OF_ANY_SCRIPT = re.compile(
    rf"[{_SIGNS}][{_VOICED}]?|[{_KATAKANA}{_VOICED}]+"
    rf"|[^\W_{_SIGNS}{_KATAKANA}](?:[^\W_{_SIGNS}{_KATAKANA}]|[{_MARKS}]|['’‘](?=[^\W_]))*"
)
_POSSESSIVE = re.compile(r"['’‘ʼ][sS]$")
_NO_LETTERS = re.compile(r"[\W_]+")
_NO_LETTERS_NOR_MARKS = re.compile(rf"(?:[^\w{_MARKS}]|[_\u00ad\u200c\u200d\u2060ʼʻˈ])+")
_UNMARKED = str.maketrans(
    {"ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "đ": "d", "ħ": "h", "ı": "i", "ŋ": "ng"}
)
"""Letters that an English keyboard has not, and that Unicode does not take apart."""
_GAP = re.compile("[\\s\u200e\u200f\u202a-\u202e\u2066-\u2069]*|[-‐‑־・·]")
_GAP_AFTER_ABBREVIATION = re.compile(r"\.\s*-?")
_ABBREVIATED = frozenset(("capt", "dr", "fr", "hr", "lt", "mr", "mrs", "ms", "prof", "sgt", "st"))
_REMEMBERED = 8192
_TEXTS_REMEMBERED = 64
_SENTENCE_END = re.compile(r"[.!?…:\n\"“”»«。！？]")


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: As it stands there, without a possessive ending.
        tail: The possessive ending ("'s") or nothing.
        folded: Only its letters and digits, in lower case, without accents; the possessive ending left out.
        full: `folded` with the possessive ending: "dragons" for "Dragon's".
        start: Place of its first character.
        end: One past the last character, the possessive ending included.
        joins: Only a space or a hyphen stands between the word before and this one.
        opens: It begins a sentence, so that a capital letter says nothing.
    """

    text: str
    tail: str
    folded: str
    full: str
    start: int
    end: int
    joins: bool
    opens: bool

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()


@lru_cache(_TEXTS_REMEMBERED)  # correction, spotting, address and recall ask for those of one text after the other
def words(text: str) -> tuple[Word, ...]:
    """The words of a text, in order."""
    found: list[Word] = []
    end = 0
    for match in (_WORD if text.isascii() else _WORD_OF_ANY_SCRIPT).finditer(text):
        start = match.start()
        if text[end:start] == " " and found:
            joins, opens = True, False
        else:
            gap = text[end:start]
            goes_on = bool(found) and gap[:1] == "." and _is_abbreviation(found[-1], gap)
            joins = goes_on or (bool(found) and _GAP.fullmatch(gap) is not None)
            opens = not found or (not goes_on and _SENTENCE_END.search(gap) is not None)
        end = match.end()
        found.append(Word(*_parts(match.group()), start, end, joins, opens))
    return tuple(found)


@lru_cache(_REMEMBERED)
def _parts(raw: str) -> tuple[str, str, str, str]:
    """A word without its possessive ending, that ending, the word folded, and folded with the ending."""
    possessive = _POSSESSIVE.search(raw)
    stem = raw[: possessive.start()] if possessive and possessive.start() else raw
    tail = raw[len(stem) :]
    folded = fold(stem)
    return stem, tail, folded, folded + fold(tail)


def fold(text: str) -> str:
    """Only letters and digits, in lower case, without accents.

    >>> fold("Vex’Àhlia of Straße")
    'vexahliaofstrasse'
    """
    if text.isascii():
        return _NO_LETTERS.sub("", text.lower())
    # Taken apart before and after, as folding the case may put together and the other way round.
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    # A combining class tells an accent; the mark that makes "ka" a "ga" in Kana is no accent.
    bare = "".join(char for char in apart if char in _VOICED or not unicodedata.combining(char))
    return _NO_LETTERS_NOR_MARKS.sub("", unicodedata.normalize("NFC", bare).translate(_UNMARKED))


def _is_abbreviation(word: Word, gap: str) -> bool:
    """The full stop after it ends no sentence: "J. R. Thorne", "St. Cuthbert"."""
    if _GAP_AFTER_ABBREVIATION.fullmatch(gap) is None or word.tail or not word.is_capital:
        return False
    return word.folded in _ABBREVIATED or (len(word.text) == 1 and word.text != "I")
