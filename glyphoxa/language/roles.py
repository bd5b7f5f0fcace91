"""Titles before a name, trades and roles: their words, and the NPCs of a campaign that have them.

The words are data: see `data/LANGUAGE/titles.toml` and `trades.toml`. Those of titles are folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.ids import NpcId
from glyphoxa.language.language_data import lexicon
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


# Trades: their names, and what people ask them for.

_TRADE_WORDS: Final = lexicon("trades")
_TRADE_NAMES: Final = _TRADE_WORDS.table("names")
_BUSINESS: Final = _TRADE_WORDS.table("business")
"""The names of each trade and the words of its business, of all languages."""
_FEMININE: Final = _TRADE_WORDS.words("feminine")
_MIN_PART: Final = 4
"""Minimum length of a word within a longer one: "smith" in "blacksmith"."""
_MIN_BEGINNING: Final = 4
_WORDS_REMEMBERED: Final = 8192
"""A partial transcript repeats the words of the one before it."""


@lru_cache(_WORDS_REMEMBERED)
def trades_of(noun: str) -> frozenset[str]:
    """Return the trades that a lower-case noun may name."""
    forms = {noun, _masculine(noun)}
    named = frozenset(trade for trade, names in _TRADE_NAMES.items() if forms & names)
    if named:
        return named
    parts = [(name, trade) for trade, names in _TRADE_NAMES.items() for name in names if len(name) > _MIN_PART]
    return frozenset(trade for name, trade in parts if any(form.endswith(name) for form in forms))


@lru_cache(_WORDS_REMEMBERED)
def is_business(word: str, trades: frozenset[str]) -> bool:
    """Return whether a lower-case word concerns one of the trades."""
    return any(
        word == stem or (len(stem) >= _MIN_BEGINNING and word.startswith(stem)) or word == f"{stem}s"
        for trade in trades
        for stem in _BUSINESS.get(trade, ())
    )


@lru_cache(_WORDS_REMEMBERED)
def is_called_by(noun: str, role: str) -> bool:
    """Return whether a noun may name somebody of that role; both in lower case, the role one word."""
    noun, role = _masculine(noun), _masculine(role)
    shorter, longer = sorted((noun, role), key=len)
    return (
        noun == role
        or (len(shorter) >= _MIN_PART and longer.endswith(shorter))
        or not trades_of(noun).isdisjoint(trades_of(role))
    )


def _masculine(noun: str) -> str:
    """Return the masculine form of a German role: "wirt" for "wirtin"."""
    ending = next((each for each in _FEMININE if noun.endswith(each)), "")
    return noun.removesuffix(ending) if len(noun) > _MIN_PART + 1 else noun


@dataclass(frozen=True, slots=True)
class CastMember:
    """An NPC's role and trades.

    Attributes:
        role: Its words in lower case: "captain of the guard"; "" for none.
        trades: Keys of its trades in `data/LANGUAGE/trades.toml`.
    """

    npc: NpcId
    name: str
    role: str = ""
    trades: frozenset[str] = frozenset()
    address_only: bool = False

    def is_called(self, noun: str) -> bool:
        """Return whether the role's last word may be meant by this lower-case noun."""
        return bool(self.role) and is_called_by(noun, self.role.split()[-1])

    def knows_about(self, words: Iterable[str]) -> int:
        """Count the lower-case words that concern its trades."""
        return sum(is_business(word, self.trades) for word in words)


@dataclass(frozen=True, slots=True)
class Cast:
    characters: Mapping[NpcId, CastMember] = field(default_factory=dict)

    def answers_uncalled(self, npc: NpcId) -> bool:
        character = self.characters.get(npc)
        return character is None or not character.address_only


def cast_of(campaign: Campaign) -> Cast:
    return Cast({npc.id: _character(npc) for npc in campaign.npcs})


def _character(npc: Npc) -> CastMember:
    role = npc.role.lower()
    trades = trades_of(role.split()[-1]) if role.strip() else frozenset[str]()
    return CastMember(npc.id, npc.name, role, trades, npc.address_only)
