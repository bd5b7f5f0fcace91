"""Which words of a transcript spell a name, and whether their case and spaces are a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glyphoxa.speech.correction.evidence import SPELLED, weight_of
from glyphoxa.speech.correction.scheduling import Match
from glyphoxa.speech.language.words import Word
from glyphoxa.speech.names.gazetteer import Gazetteer, Name

_KINDS_OF_THINGS = frozenset(
    ("class", "concept", "creature", "item", "language", "monster", "people", "species", "spell")
)
"""Types whose names are common nouns too: a small letter ("a duergar") is no mistake."""


def spelled(spoken: Sequence[Word], gazetteer: Gazetteer) -> Iterator[Match]:
    """Every run of words that spells a name, or a form that was learned for one, whatever its case and spaces."""
    for first in range(len(spoken)):
        for last, name in gazetteer.spelled_from(spoken, first):
            window = spoken[first : last + 1]
            suffix, weight = _suffix(window, name), weight_of(SPELLED, name)
            if name.kind == "learned":
                yield Match(first, last, name, suffix, 1.0, weight, "learned", "confirmed before")
            else:
                keeps = not _may_respell(window, name, gazetteer)
                yield Match(first, last, name, suffix, 1.0, weight, reason="spelling", keeps=keeps)


def is_certain(window: Sequence[Word], name: Name) -> bool:
    """Whether words that spell a name are meant as it: ordinary words are when they are written so."""
    if not name.is_ordinary:
        return True
    if len(window) == 1 and window[0].opens:
        return False
    written = "".join(f"{word.text}{word.tail} " for word in window[:-1]) + window[-1].text
    return written in (name.text, f"{name.text}s")


def _may_respell(window: Sequence[Word], name: Name, gazetteer: Gazetteer) -> bool:
    """Whether other case or spaces than the name's are a mistake, and not just other words."""
    if name.is_ordinary or len(name.joined) < 3:
        return False
    vocabulary = gazetteer.vocabulary
    if name.entity_type in _KINDS_OF_THINGS and _folded_case(window) == name.text.casefold():
        return False
    if len(window) == len(name.words):
        return vocabulary.is_known or window[0].is_capital or len(window) > 1
    if any(word.folded in vocabulary.stop for word in window):
        return any(not vocabulary.is_ordinary(word.folded) for word in window)
    return len(name.joined) >= 6


def _folded_case(window: Sequence[Word]) -> str:
    return " ".join(word.text + word.tail for word in window).casefold()


def _suffix(window: Sequence[Word], name: Name) -> str:
    """The possessive or plural ending of words that spell a name."""
    stem = "".join(word.full for word in window[:-1])
    last = window[-1]
    if stem + last.full == name.joined:
        return ""
    return last.tail or ("s" if stem + last.folded != name.joined else "")
