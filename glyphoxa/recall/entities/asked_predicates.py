"""Which relation or attribute a question asks for: "who owns", "where is", "whose daughter".

Words of asking by language, and for everything else that a campaign calls its relations and attributes, their own
words ("What is Marek's occupation?", "Who is he sworn to?" for SWORN_TO). The words of names say nothing: nobody asks
for an owner who asks about "Owner's CircuitBreaker". Without the words of a language only the own words count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, Literal

from glyphoxa.speech.language.phonetics import primary_language
from glyphoxa.speech.language.vocabulary import vocabulary_of
from glyphoxa.speech.language.words import words

Side = Literal["subject", "object", "either"]
"""Where in the claim the one stands that the question names: of who owns the inn, the inn is the object."""

SHORT_ASK: Final = 12
"""A factual question has no more words; what is longer says more than it asks."""

_OWNER: Final = ("OWNS", "owner")
_PLACE: Final = ("LOCATED_AT", "location", "whereabouts")
_SIDES: Final = ("ALLIED_WITH", "MEMBER_OF", "EMPLOYED_BY", "allegiance", "loyalty")
_ASKING: Final[Mapping[str, Mapping[str, tuple[Side, tuple[str, ...]]]]] = {
    "en": {
        "who owns|who owned|owner|whose|owned by": ("object", _OWNER),
        "own|owns|possess|possesses": ("either", _OWNER),
        "belong|belongs": ("either", (*_OWNER, "MEMBER_OF")),
        "where|whereabouts|located|which place": ("subject", _PLACE),
        "member|join|joined|part of": ("either", ("MEMBER_OF",)),
        "members|who belongs to": ("object", ("MEMBER_OF",)),
        "allegiance|loyal|whose side|on which side": ("either", _SIDES),
        "ally|allies|allied|alliance|friends with": ("either", ("ALLIED_WITH",)),
        "enemy|enemies|hostile|foe|foes|rival|rivals": ("either", ("HOSTILE_TO",)),
        "work for|works for|working for|serve|serves|employed|hired": ("either", ("EMPLOYED_BY", "employer")),
        "employer|boss": ("subject", ("EMPLOYED_BY", "employer")),
        "employs|who works for|who serves": ("object", ("EMPLOYED_BY",)),
        "father|mother|parent|parents": ("subject", ("CHILD_OF", "parents", "father", "mother")),
        "child|children|son|sons|daughter|daughters|kids": ("object", ("CHILD_OF", "children")),
        "child of|son of|daughter of|whose child|whose son|whose daughter": ("either", ("CHILD_OF",)),
        "took part|take part|taken part|participated|who fought": ("either", ("PARTICIPATED_IN",)),
        "needs help|quest|who gave": ("either", ("QUEST_GIVER",)),
        "who knows|knows": ("either", ("KNOWS",)),
    },
    "de": {
        "wem gehört|besitzer|besitzerin|eigentümer|eigentümerin|wessen": ("object", _OWNER),
        "besitzt": ("either", _OWNER),
        "gehört|gehören": ("either", (*_OWNER, "MEMBER_OF")),
        "wo|wohin|welchem ort": ("subject", _PLACE),
        "mitglied|gehört an|angehört|beigetreten": ("either", ("MEMBER_OF",)),
        "mitglieder": ("object", ("MEMBER_OF",)),
        "treu|loyal|wessen seite|welcher seite": ("either", _SIDES),
        "verbündet|verbündete|verbündeten|verbündeter|bündnis": ("either", ("ALLIED_WITH",)),
        "feind|feinde|feinden|feindlich|verfeindet|gegner": ("either", ("HOSTILE_TO",)),
        "arbeitet für|arbeitest du für|dient|angestellt": ("either", ("EMPLOYED_BY", "employer")),
        "arbeitgeber|chef|dienstherr": ("subject", ("EMPLOYED_BY", "employer")),
        "wer arbeitet für|wer dient": ("object", ("EMPLOYED_BY",)),
        "vater|mutter|eltern": ("subject", ("CHILD_OF", "parents", "father", "mother")),
        "kind|kinder|sohn|söhne|tochter|töchter": ("object", ("CHILD_OF", "children")),
        "kind von|sohn von|tochter von|wessen sohn|wessen tochter": ("either", ("CHILD_OF",)),
        "teilgenommen|beteiligt": ("either", ("PARTICIPATED_IN",)),
        "auftrag|auftraggeber|braucht hilfe": ("either", ("QUEST_GIVER",)),
        "wer kennt|kennt": ("either", ("KNOWS",)),
    },
}


@dataclass(frozen=True, slots=True)
class AskedPredicates:
    """What of somebody is asked.

    Attributes:
        sides: The predicates that are asked for, in capitals, each with the place of the one who is named.
        is_short: It asks, and says little beside.
    """

    sides: Mapping[str, Side]
    is_short: bool

    def side_of(self, predicate: str) -> Side | None:
        return self.sides.get(predicate.upper())


def asked_predicates(
    question: str, *, names: Iterable[str], predicates: Iterable[str], language: str = "en"
) -> AskedPredicates:
    """
    Args:
        names: Of those whom the question names: their words are not words of asking.
        predicates: All that could be asked for.
    """
    spoken = words(question)
    heard = _without_names([word.full for word in spoken], names)
    sides: dict[str, Side] = {}
    phrases = _phrases_of(primary_language(language))
    at = 0
    while at < len(heard):
        length, side, asked = _longest_at(heard, at, phrases)
        sides.update({each.upper(): side for each in asked if each.upper() not in sides})
        at += length
    for predicate in predicates:
        own = _own_words(predicate, language)
        if predicate.upper() not in sides and own and own <= set(heard):
            sides[predicate.upper()] = "either"
    return AskedPredicates(sides, _words_said(heard) <= SHORT_ASK)


_Phrases = Mapping[str, Sequence[tuple[tuple[str, ...], Side, tuple[str, ...]]]]
_BREAK: Final = ""
"""Stands where a name was."""


def _longest_at(heard: Sequence[str], at: int, phrases: _Phrases) -> tuple[int, Side, tuple[str, ...]]:
    for parts, side, asked in phrases.get(heard[at], ()):
        if tuple(heard[at : at + len(parts)]) == parts:
            return len(parts), side, asked
    return 1, "either", ()


@cache
def _phrases_of(language: str) -> _Phrases:
    """By their first word, the longest first."""
    phrases: dict[str, list[tuple[tuple[str, ...], Side, tuple[str, ...]]]] = {}
    for listed, (side, predicates) in _ASKING.get(language, {}).items():
        for phrase in listed.split("|"):
            parts = tuple(word.full for word in words(phrase))
            phrases.setdefault(parts[0], []).append((parts, side, predicates))
    for same_start in phrases.values():
        same_start.sort(key=lambda each: -len(each[0]))
    return phrases


def _without_names(heard: Sequence[str], names: Iterable[str]) -> list[str]:
    left = list(heard)
    for name in sorted(names, key=len, reverse=True):
        parts = [word.full for word in words(name)]
        at = 0
        while parts and at + len(parts) <= len(left):
            window = left[at : at + len(parts)]
            if window == parts or (window[:-1] == parts[:-1] and window[-1] == parts[-1] + "s"):
                left[at : at + len(parts)] = [_BREAK]
            at += 1
    return left


def _words_said(heard: Sequence[str]) -> int:
    return sum(word != _BREAK for word in heard)


@lru_cache(4096)
def _own_words(predicate: str, language: str) -> frozenset[str]:
    """Of SWORN_TO, "sworn"."""
    stop = vocabulary_of(language).stop
    spelled = words(predicate.replace("_", " "))
    return frozenset(word.full for word in spelled if word.full not in stop)
