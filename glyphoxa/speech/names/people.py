"""Names that are called ("Grimjaw, how is my blade?") told from names that are talked about.

Recognisers set commas unreliably, so a comma is one sign among others: a name that opens a sentence is called
unless a verb in the third person follows; a name set off by punctuation on both sides, or right after a greeting,
is called; one after a preposition is not.

Somebody who is known by an article and a word ("the captain") is called without the article ("Captain, ..."). Such a
word is a name only where it is plainly called: mid-sentence it is any captain. Of several who are known so, all are
called, and whoever is there may answer.

All of it is linear in the text: what a player sends is as long as they like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.language.words import words
from glyphoxa.speech.names.gazetteer import Gazetteer, Name
from glyphoxa.speech.names.naming import ARTICLES
from glyphoxa.speech.names.vocatives import VocativeDetector

_TO = r"(?:to|an|zu)"
_BEFORE_A_PLACE = ARTICLES | {"dem", "den"}
_WHISPER = r"(?:whisper(?:s|ing)?|quietly|aside|private(?:ly)?|psst?|flüster(?:t|e|nd)?|leise)"
_WHISPERED = re.compile(
    rf"^\s*(?:[(\[{{*<]+\s*(?:{_WHISPER}\W{{0,3}})?{_TO}\s+([^()\[\]{{}}*<>:]{{1,60}}?)\s*[)\]}}*>:]"
    rf"|{_WHISPER}\s+{_TO}\s+(\S.{{0,58}}?)\s*:"
    r"|(?:/(?:w|whisper|msg|tell)\s+|@)(\S{1,60}))",
    re.IGNORECASE,
)
"""(to Mira) ..., [whispers to Mira] ..., whisper to Mira: ..., /w Mira ..., @Mira ..."""

_THOSE_AT_THE_TABLE = frozenset(
    {
        "dm",
        "gm",
        "sl",
        "all",
        "everyone",
        "everybody",
        "group",
        "party",
        "others",
        "table",
        "myself",
        "himself",
        "herself",
    }
    | {"alle", "allen", "gruppe", "runde", "anderen", "mich", "mir", "sich", "spielleiter", "spielleiterin"}
)


@dataclass(frozen=True, slots=True)
class PersonMention:
    """A person's name in a text.

    Attributes:
        entity_id: None for somebody who is whispered to, and whom the campaign does not know.
        position: Index of its first word.
        is_vocative: It is called, not talked about.
        is_sure: It is called beyond doubt.
        is_whispered: It says to whom all that was said is directed.
        is_owner: It says whose something is: "Mira's hat".
        start: Place of its first character; `end` is one past the last.
    """

    entity_id: EntityId | None
    name: str
    position: int
    is_vocative: bool
    is_sure: bool = False
    is_whispered: bool = False
    start: int = 0
    end: int = 0
    is_owner: bool = False


def is_person(name: Name) -> bool:
    return name.entity_type in ("npc", "player")


def mentions_of_people(
    text: str, names: Gazetteer, *, can_be_called: Callable[[Name], bool] = is_person
) -> tuple[PersonMention, ...]:
    """The people named in a text, in order.

    A word that only sounds like a name ("bard" for Bart) counts where a name would be called: at the start or the
    end of a sentence, set off by punctuation. The transcript itself is never changed by it.

    Args:
        names: All names of the campaign: what belongs to the name of a place calls nobody.
        can_be_called: Who is listened for. Of other persons only those are found who are called beyond doubt.
    """
    spoken = words(text)
    calling = VocativeDetector(text, spoken)
    mentions = names.mentions_in(spoken)
    taken = {at for m in mentions for at in range(m.first, m.last + 1)}
    calls: list[PersonMention] = []
    others: list[PersonMention] = []
    for m in mentions:
        is_vocative = calling.is_called(m.first, m.last, m.start, m.end)
        is_sure = is_vocative and calling.is_surely_called(m.first, m.last, followed_by_name=m.last + 1 in taken)
        for name in names.wanting(m.name):
            call = PersonMention(
                name.entity_id,
                name.canonical,
                m.first,
                is_vocative,
                is_sure,
                start=m.start,
                end=m.end,
                is_owner=bool(spoken[m.last].tail),
            )
            if can_be_called(name):
                calls.append(call)
            elif is_sure and is_person(name):
                others.append(call)
    calls += _roles(calling, taken, names, can_be_called)
    whispered = _whispered(text, calling, [*calls, *others])
    if whispered is not None:
        return (whispered, *(call for call in calls if call.position > whispered.position))
    if not calls:
        calls = list(_sound_alikes(calling, taken, names, can_be_called))
    return tuple(sorted((*calls, *others), key=lambda call: call.position))


def _roles(
    calling: VocativeDetector, taken: set[int], names: Gazetteer, can_be_called: Callable[[Name], bool]
) -> Iterator[PersonMention]:
    """Those who are known with an article and called without it."""
    spoken = calling.spoken
    beyond = 0
    for at in calling.where_may_call():
        if at < beyond:
            continue  # part of the one before
        found: tuple[int, Sequence[Name]] | None = None
        stem = ""
        for last in range(at, min(at + names.widest, len(spoken))):
            if last in taken or (last > at and not spoken[last].joins):
                break
            if calling.is_role_called(at, last) and (wanted := _with_article(stem + spoken[last].folded, names)):
                found = last, wanted
            stem += spoken[last].full
        if found is None:
            continue
        last, wanted = found
        is_sure = calling.is_surely_called(at, last, followed_by_name=last + 1 in taken)
        yield from (
            PersonMention(
                name.entity_id, name.canonical, at, True, is_sure, start=spoken[at].start, end=spoken[last].end
            )
            for name in wanted
            if can_be_called(name)
        )
        beyond = last + 1


def _with_article(joined: str, names: Gazetteer) -> Sequence[Name]:
    held = (names.by_joined.get(article + joined) for article in ARTICLES)
    return [
        name
        for first in held
        if first is not None
        for name in names.wanting(first)
        if name.words[0] in ARTICLES and name.kind in ("name", "alias")
    ]


def _whispered(text: str, calling: VocativeDetector, calls: Sequence[PersonMention]) -> PersonMention | None:
    found = _WHISPERED.match(text)
    if found is None:
        return None
    group = next(number for number in (1, 2, 3) if found[number] is not None)
    start, end = found.span(group)
    for call in calls:
        if start <= calling.spoken[call.position].start < end:
            return replace(call, is_vocative=True, is_sure=True, is_whispered=True)
    who = found[group].strip()
    last = who.split()[-1]
    if last.casefold() not in _THOSE_AT_THE_TABLE and _may_be_a_place(who, text[:start]):
        return None
    return PersonMention(None, who, 0, True, True, True)


def _may_be_a_place(who: str, before: str) -> bool:
    """Whether it says where, not whom: "(to the left) ...", "(an der Theke) ...", "(an Bord) ..."."""
    first, *others = who.split()
    is_name = (others or [first])[-1][0].isupper() and first.casefold() not in _BEFORE_A_PLACE
    return not is_name or re.search(r"^\W*an\s*$", before, re.IGNORECASE) is not None


def _sound_alikes(
    calling: VocativeDetector, taken: set[int], names: Gazetteer, can_be_called: Callable[[Name], bool]
) -> Iterator[PersonMention]:
    for at, word in enumerate(calling.spoken):
        if at in taken or len(word.folded) < 4 or not calling.stands_apart(at):
            continue
        name = _sounding_like(word.folded, names, can_be_called)
        if name is not None:
            yield PersonMention(name.entity_id, name.canonical, at, True, start=word.start, end=word.end)


def _sounding_like(folded: str, names: Gazetteer, can_be_called: Callable[[Name], bool]) -> Name | None:
    for code in names.coder(folded) if names.coder is not None else ():
        for name in names.by_code.get(code, ()):
            if name.is_shared or not can_be_called(name):
                continue
            if name.joined[0] == folded[0] and abs(len(name.joined) - len(folded)) <= 1:
                return name
    return None
