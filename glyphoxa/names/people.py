"""The people named in a text, and which of them are addressed ("Grimjaw, how is my blade?").

`glyphoxa.language.calls` decides who is addressed. This module finds where people are named:

- by a name or an alias;
- by the noun alone, if they are known by an article and a noun ("the captain"), where it is a form of address:
elsewhere
  it is any captain. If several are known by it, all are addressed, and those present may answer;
- by a word that only sounds like a name ("bard" for Bart), between punctuation, if nobody else is named;
- before words that are whispered or typed to one person: "(to Mira) ...".

All of it is linear in the text, because players may send any length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from glyphoxa.language.calls import CallKind, calls_in
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.words import Word, words
from glyphoxa.names.gazetteer import Gazetteer, Name
from glyphoxa.names.naming import ARTICLES
from glyphoxa.turns.address import AddresseeMention

_WORDS: Final = lexicon("calls")
_WHISPERED: Final = _WORDS.compile(
    r"^\s*(?:[(\[{*<]+\s*(?:{whisper}\W{0,3})?{whisper_to}\s+([^()\[\]{}*<>:]{1,60}?)\s*[)\]}*>:]"
    r"|{whisper}\s+{whisper_to}\s+(\S.{0,58}?)\s*:"
    r"|(?:/(?:w|whisper|msg|tell)\s+|@)(\S{1,60}))",
    flags=re.IGNORECASE,
)
"""(to Mira) ..., [whispers to Mira] ..., whisper to Mira: ..., /w Mira ..., @Mira ..."""
_TABLE_GROUP: Final = _WORDS.words("table_group")
_PLACE_ARTICLES: Final = _WORDS.words("place_articles")
_BEHIND_PLACE_PREPOSITION: Final = _WORDS.compile(r"^\W*{place_prepositions}\s*$", flags=re.IGNORECASE)
_PUNCTUATION: Final = re.compile(r"[,.!?;:…—–]")
_SHORTEST_SOUND_ALIKE: Final = 4


def is_person(name: Name) -> bool:
    return name.entity_type in ("npc", "player")


@dataclass(frozen=True, slots=True)
class _Place:
    """Words that name somebody, and the candidates."""

    name: str
    position: int
    start: int
    end: int
    meant: Sequence[Name]
    is_owner: bool = False
    is_role: bool = False


def mentions_of_people(
    text: str, names: Gazetteer, *, can_be_called: Callable[[Name], bool] = is_person
) -> tuple[AddresseeMention, ...]:
    """The people named in a text, in order, by their entities. The caller adds who plays them.

    Args:
        names: All names of the campaign: the name of a place does not address a person with the same word.
        can_be_called: Which people to find. Others are found only if they are clearly addressed.
    """
    spoken = words(text)
    mentions = names.mentions_in(spoken)
    found = [
        _Place(m.name.canonical, m.first, m.start, m.end, names.wanting(m.name), is_owner=bool(spoken[m.last].tail))
        for m in mentions
    ]
    taken = {at for m in mentions for at in range(m.first, m.last + 1)}
    places = sorted([*found, *_without_article(spoken, taken, names)], key=lambda place: place.start)
    calls = calls_in(text, places)
    people: list[AddresseeMention] = []
    is_anybody_listened_for = False
    for number, place in enumerate(places):
        is_called, is_sure = calls.of[number] in (CallKind.CALLED, CallKind.MEANT), number in calls.sure
        for name in place.meant:
            is_listened_for = can_be_called(name)
            if (place.is_role and not is_called) or not (is_listened_for or (is_sure and is_person(name))):
                continue
            is_anybody_listened_for = is_anybody_listened_for or is_listened_for
            people.append(
                AddresseeMention(
                    None,
                    name.canonical,
                    place.position,
                    is_called,
                    is_sure,
                    start=place.start,
                    end=place.end,
                    is_owner=place.is_owner,
                    is_role=place.is_role,
                    entity_id=name.entity_id,
                )
            )
    whispered = _whispered(text, people)
    if whispered is not None:
        return (whispered, *(each for each in people if each.position > whispered.position))
    if not is_anybody_listened_for:
        people += _sound_alikes(text, spoken, taken, names, can_be_called)
    return tuple(sorted(people, key=lambda person: person.position))


def _without_article(spoken: Sequence[Word], taken: set[int], names: Gazetteer) -> Iterator[_Place]:
    """Names with an article, without it, that overlap no other name."""
    beyond = 0
    for at in range(len(spoken)):
        joined, longest = "", None
        for last in range(at, min(at + names.widest, len(spoken))):
            if at < beyond or last in taken or (last > at and not spoken[last].joins):
                break
            if wanted := _with_article(joined + spoken[last].folded, names):
                longest = last, wanted
            joined += spoken[last].full
        if longest is not None:
            last, wanted = longest
            beyond = last + 1
            first, tail = spoken[at], spoken[last].tail
            yield _Place(first.text, at, first.start, spoken[last].end, wanted, is_owner=bool(tail), is_role=True)


def _with_article(joined: str, names: Gazetteer) -> Sequence[Name]:
    held = (names.by_joined.get(article + joined) for article in ARTICLES)
    return [
        name
        for first in held
        if first is not None
        for name in names.wanting(first)
        if name.words[0] in ARTICLES and name.kind in ("name", "alias")
    ]


def _whispered(text: str, people: Sequence[AddresseeMention]) -> AddresseeMention | None:
    """The person that the whole text is whispered or typed to."""
    found = _WHISPERED.match(text)
    if found is None:
        return None
    group = next(number for number in (1, 2, 3) if found[number] is not None)
    start, end = found.span(group)
    for person in people:
        if start <= person.start < end:
            return replace(person, is_vocative=True, is_sure=True, is_whispered=True)
    who = found[group].strip()
    if who.split()[-1].casefold() not in _TABLE_GROUP and _may_be_a_place(who, text[:start]):
        return None
    return AddresseeMention(None, who, 0, is_vocative=True, is_sure=True, is_whispered=True)


def _may_be_a_place(who: str, before: str) -> bool:
    """Whether it is a place, not a person: "(to the left) ...", "(an der Theke) ...", "(an Bord) ..."."""
    first, *others = who.split()
    is_name = (others or [first])[-1][0].isupper() and first.casefold() not in _PLACE_ARTICLES
    return not is_name or _BEHIND_PLACE_PREPOSITION.search(before) is not None


def _sound_alikes(
    text: str, spoken: Sequence[Word], taken: set[int], names: Gazetteer, can_be_called: Callable[[Name], bool]
) -> Iterator[AddresseeMention]:
    n = len(spoken)
    is_pause = [True, *(_is_pause(text, before, after) for before, after in pairwise(spoken)), True]
    for at, word in enumerate(spoken):
        if n == 1 or at in taken or len(word.folded) < _SHORTEST_SOUND_ALIKE or not (is_pause[at] and is_pause[at + 1]):
            continue
        if (name := _sounding_like(word.folded, names, can_be_called)) is not None:
            yield AddresseeMention(
                None, name.canonical, at, True, start=word.start, end=word.end, entity_id=name.entity_id
            )


def _is_pause(text: str, before: Word, after: Word) -> bool:
    return _PUNCTUATION.search(text, before.end, after.start) is not None


def _sounding_like(folded: str, names: Gazetteer, can_be_called: Callable[[Name], bool]) -> Name | None:
    for code in names.coder(folded) if names.coder is not None else ():
        for name in names.by_code.get(code, ()):
            if name.is_shared or not can_be_called(name):
                continue
            if name.joined[0] == folded[0] and abs(len(name.joined) - len(folded)) <= 1:
                return name
    return None
