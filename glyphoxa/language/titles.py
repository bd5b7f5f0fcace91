"""Titles before a name, in the languages of `data/LANGUAGE/titles.toml`. All words are folded."""

from __future__ import annotations

from typing import Final

from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.words import fold

_WORDS: Final = lexicon("titles")
_BY_KIND: Final = _WORDS.table("titles")
TITLES: Final = frozenset(map(fold, _WORDS.words("abbreviations").union(*_BY_KIND.values())))
KIN: Final = frozenset(map(fold, _BY_KIND["kin"]))
"""Titles that are also relatives: "my brother Odo" is called Odo."""
_SAME: Final = tuple(frozenset(map(fold, row.split())) for row in _WORDS.words("same"))
_AGES: Final = tuple(frozenset(map(fold, row.split())) for row in _WORDS.words("ages"))
_TOGETHER: Final = (*_SAME, *_AGES, *(frozenset(map(fold, row.split())) for row in _WORDS.words("together")))
AGES: Final = frozenset[str]().union(*_AGES)
OTHERS: Final = frozenset(map(fold, _WORDS.words("others")))
"""Words before a name that show that it is somebody else's."""
COURTESY: Final = frozenset(map(fold, _WORDS.words("courtesy")))
"""Titles that anybody may have."""

ARTICLES: Final = frozenset(map(fold, lexicon("names").words("articles")))


def same_titles(title: str) -> frozenset[str]:
    """Return the titles that are said for this one, itself included.

    >>> "doctor" in same_titles("dr")
    True
    """
    return frozenset((title,)).union(*(row for row in _SAME if title in row))


def may_be_one(title: str, other: str) -> bool:
    """Return whether one person may have both titles, trades or ages.

    >>> may_be_one("captain", "guard"), may_be_one("brother", "miller")
    (True, False)
    """
    both = {fold(title), fold(other)}
    return len(both) == 1 or any(both <= row for row in _TOGETHER)
