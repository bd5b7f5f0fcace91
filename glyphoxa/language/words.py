"""The words of a transcript with their positions, so that a span can be replaced without moving the rest.

A word is a run of letters and digits with their accents, plus a part attached by an apostrophe. Chinese and Japanese
use no spaces: there each Han or Hiragana character is a word, and so is a run of Katakana (used for foreign names);
such words count as separated by spaces. Thai and similar scripts are not segmented.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from glyphoxa.domain.heard import Correction, HeardWord
from glyphoxa.language.language_data import lexicon

# Marks that follow a letter: accents, vowel points and vowel signs, and the invisible ones that join
# or hyphenate. Python's \w matches only the letters.
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
"""Letters that an English keyboard lacks and that Unicode does not decompose."""
_GAP = re.compile("[\\s\u200e\u200f\u202a-\u202e\u2066-\u2069]*|[-‐‑־・·]")
_GAP_AFTER_ABBREVIATION = re.compile(r"\.\s*-?")
_ABBREVIATED = lexicon("titles").words("abbreviations")
_REMEMBERED = 8192
I_FORMS = frozenset(("i", "im", "ill", "id", "ive"))
_TEXTS_REMEMBERED = 64
_SENTENCE_END = re.compile(r"[.!?…:\n\"“”»«。！？]")


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: The word as written, without a possessive ending.
        tail: The possessive ending ("'s") or nothing.
        folded: Its letters and digits in lower case, without accents and possessive ending.
        full: `folded` with the possessive ending: "dragons" for "Dragon's".
        start: Position of its first character.
        end: One past the last character, including the possessive ending.
        joins: Only a space or a hyphen separates it from the previous word.
        opens: It begins a sentence, so that a capital letter means nothing.
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

    @property
    def is_named(self) -> bool:
        """Whether it is written like a name: with a capital inside a sentence. "I" and "I'm" are not."""
        return self.is_capital and not self.opens and self.folded not in I_FORMS


@lru_cache(_TEXTS_REMEMBERED)  # correction, spotting, address and recall process the same text in turn
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


def words_as_written(text: str) -> Iterator[str]:
    """Yield what `words` has as `text`, for callers that need nothing else: that takes a third of the time."""
    return (_parts(each)[0] for each in (_WORD if text.isascii() else _WORD_OF_ANY_SCRIPT).findall(text))


@lru_cache(_REMEMBERED)
def _parts(raw: str) -> tuple[str, str, str, str]:
    """The word without its possessive ending, that ending, the folded word, and folded with the ending."""
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
    # Decompose before and after, as case folding may compose and decompose characters.
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    # A combining class identifies an accent; the mark that turns "ka" into "ga" in Kana is not one.
    bare = "".join(char for char in apart if char in _VOICED or not unicodedata.combining(char))
    return _NO_LETTERS_NOR_MARKS.sub("", unicodedata.normalize("NFC", bare).translate(_UNMARKED))


def _is_abbreviation(word: Word, gap: str) -> bool:
    """Whether the full stop after it ends no sentence: "J. R. Thorne", "St. Cuthbert"."""
    if _GAP_AFTER_ABBREVIATION.fullmatch(gap) is None or word.tail or not word.is_capital:
        return False
    return word.folded in _ABBREVIATED or (len(word.text) == 1 and word.text != "I")


# Mapping positions between a raw text and its corrected version.
#
# A replacement has a span in the original text and the new text. Lists are in order and without overlap; an empty one
# (an insertion, a deletion) may touch another.


class Put(NamedTuple):
    """A replacement that is nothing else: `after` is put in place of a span."""

    start: int
    end: int
    after: str


Replacement: TypeAlias = Put | Correction


def applied(text: str, replacements: Iterable[Replacement], start: int = 0, end: int | None = None) -> str:
    """The text with the replacements applied; from `start` to `end` if it is a part with the replacements inside it."""
    pieces: list[str] = []
    for each in replacements:
        pieces += (text[start : each.start], each.after)
        start = each.end
    return "".join([*pieces, text[start:end]])


def leads_to(raw: str, corrections: Sequence[Correction], text: str) -> bool:
    """Whether the corrections are in order, match the raw text, and produce the text."""
    done = 0
    for each in corrections:
        if not done <= each.start <= each.end or raw[each.start : each.end] != each.before:
            return False
        done = each.end
    return applied(raw, corrections) == text


class Places:
    """Maps spans between the raw and the corrected text.

    Attributes:
        replaced: Start and end of each replacement in the corrected text.
    """

    def __init__(self, replacements: Sequence[Replacement]) -> None:
        self._raw = [(each.start, each.end) for each in replacements]
        self.replaced: list[tuple[int, int]] = []
        grown = 0
        for each in replacements:
            start = each.start + grown
            self.replaced.append((start, start + len(each.after)))
            grown += len(each.after) - (each.end - each.start)

    def in_text(self, start: int, end: int) -> tuple[int, int]:
        """The span of the corrected text for one of the raw text. It contains each replacement wholly or not at all."""
        return _span(start, end, self._raw, self.replaced)

    def in_raw(self, start: int, end: int) -> tuple[int, int]:
        """The span of the raw text for one of the corrected text, likewise."""
        return _span(start, end, self.replaced, self._raw)


def composed(raw: str, earlier: Sequence[Correction], later: Sequence[Correction]) -> tuple[Correction, ...]:
    """Combine two successive lists of corrections into one for the raw text.

    Args:
        later: Their spans refer to the text after `earlier`. One that overlaps earlier ones replaces them; the rest of
            the text those inserted stays.

    Returns:
        In order, without overlap. Insertions that were removed again are left out.
    """
    middle = applied(raw, earlier)
    places = Places(earlier)
    steps = [(each.start, each.end, (each, True)) for each in later]
    steps += ((*span, (each, False)) for span, each in zip(places.replaced, earlier, strict=True))
    merged: list[Correction] = []
    grown = 0  # length difference of intermediate and raw text up to here
    for start, end, group in _overlapping(steps):
        new = [each for each, is_new in group if is_new]
        old = [each for each, is_new in group if not is_new]
        after = applied(middle, new, start, end)
        raw_start = start - grown
        grown += sum(len(each.after) - (each.end - each.start) for each in old)
        raw_end = end - grown
        before = raw[raw_start:raw_end]
        if before == after:
            continue
        newest = (new or old)[0]
        if (newest.start, newest.end, newest.before, newest.after) != (raw_start, raw_end, before, after):
            newest = replace(newest, start=raw_start, end=raw_end, before=before, after=after)
        merged.append(newest)
    return tuple(merged)


_Held = TypeVar("_Held")


def _overlapping(spans: Iterable[tuple[int, int, _Held]]) -> list[tuple[int, int, list[_Held]]]:
    """Group what overlaps, directly or through each other. Returns the start and the end of each group, in order."""
    groups: list[tuple[int, int, list[_Held]]] = []
    for start, end, each in sorted(spans, key=lambda span: span[:2]):
        if groups and start < groups[-1][1]:
            first, last, held = groups.pop()
            groups.append((first, max(last, end), [*held, each]))
        else:
            groups.append((start, end, [each]))
    return groups


def _span(start: int, end: int, here: Sequence[tuple[int, int]], there: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """`here` and `there` are the positions of the same replacements in the two texts."""
    first = bisect_right(here, start, key=lambda span: span[1])
    beyond = bisect_left(here, end, key=lambda span: span[0])
    if first >= beyond:  # none is touched
        moved = there[first - 1][1] - here[first - 1][1] if first else 0
        return start + moved, end + moved
    # From the start of the first to the end of the last one, or further if the span is longer.
    before, behind = there[first][0] - here[first][0], there[beyond - 1][1] - here[beyond - 1][1]
    return min(start, here[first][0]) + before, max(end, here[beyond - 1][1]) + behind


# Recogniser details of each word, kept aligned while the text changes.


_SPACES = re.compile(r"\s+")
_STICKS = re.compile(r"[^\w\s]*")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as a service reports it, before its position in the transcript is known.

    Attributes:
        confidence: 0 to 1; None if the service reports none.
        from_ms: Relative to the start of the transcribed sound; None if unknown.
    """

    text: str
    confidence: float | None = None
    from_ms: int | None = None
    to_ms: int | None = None


def placed(text: str, spoken: Iterable[SpokenWord]) -> tuple[HeardWord, ...]:
    """Positions of the words in their transcript. Missing words are skipped.

    >>> placed("Who is Grimjaw?", [SpokenWord("who", 0.9), SpokenWord("grimjaw", 0.4)])[1]
    HeardWord(start=7, end=15, confidence=0.4, from_ms=None, to_ms=None)
    """
    found: list[HeardWord] = []
    done = 0
    for word in spoken:
        # Letters whose lower-case form is longer ("İ") would shift positions in a folded text.
        match = re.compile(re.escape(word.text.strip()), re.IGNORECASE).search(text, done)
        if match is None or match.start() == match.end():
            continue
        sticking = _STICKS.match(text, match.end())
        done = sticking.end() if sticking else match.end()
        found.append(HeardWord(match.start(), done, word.confidence, word.from_ms, word.to_ms))
    return tuple(found)


def words_of_text(words: Sequence[HeardWord], corrections: Sequence[Correction]) -> tuple[HeardWord, ...]:
    """The words of a corrected text, derived from those of the raw text and the replacements.

    The words of an inserted name share the start, the end and the lowest confidence of the words it replaced; all
    others keep their own. A replacement of words without recogniser details has none.

    Args:
        words: Words of the raw text, in order, without overlap.
        corrections: Likewise.

    Returns:
        Positions in the corrected text, in order, without overlap.
    """
    places = Places(corrections)
    moved: list[HeardWord] = []
    spans: list[tuple[int, int, HeardWord | Correction]] = [(each.start, each.end, each) for each in words]
    spans += ((each.start, each.end, each) for each in corrections)
    for begin, beyond, group in _overlapping(spans):
        start, end = places.in_text(begin, beyond)
        spoken = [each for each in group if isinstance(each, HeardWord)]
        replaced = [each for each in group if isinstance(each, Correction)]
        if not replaced:
            moved += (word.moved(places=start - begin) for word in spoken)
        elif spoken:
            moved += _run(spoken, replaced, start, end, places)
    return tuple(moved)


def _run(
    words: Sequence[HeardWord], replaced: Sequence[Correction], start: int, end: int, places: Places
) -> list[HeardWord]:
    """Their corrected text, split at spaces inside inserted text: elsewhere it has none."""
    spaces: list[tuple[int, int]] = []
    for correction in replaced:
        at, _ = places.in_text(correction.start, correction.end)
        spaces += ((at + space.start(), at + space.end()) for space in _SPACES.finditer(correction.after))
    edges = [start, *(place for space in spaces for place in space), end]
    known = [word.confidence for word in words if word.confidence is not None]
    begins = [word.from_ms for word in words if word.from_ms is not None]
    ends = [word.to_ms for word in words if word.to_ms is not None]
    return [
        HeardWord(first, last, min(known, default=None), min(begins, default=None), max(ends, default=None))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        if first < last
    ]
