"""Understand a line: the people named in it, and which of them are addressed.

It is done once for each text, beside the correction of its names. Everything that decides about the line reads the
result. `glyphoxa.language.calls` decides who is addressed ("Grimjaw, how is my blade?"). This module finds where people
are named:

- by a name or an alias;
- by the noun alone, if they are known by an article and a noun ("the captain"), where it is a form of address:
  elsewhere it is any captain. If several are known by it, all are addressed, and those present may answer;
- by a word that only sounds like a name ("bard" for Bart), between punctuation, if nobody else is named;
- before words that are whispered or typed to one person: "(to Mira) ...".

All of it is linear in the text, because players may send any length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Self

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId, NpcId, PlayerId
from glyphoxa.language.calls import NamedPlace, Token, calls_in, tokens_of
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.roles import ARTICLES, TITLES, CastMember, cast_of, same_titles, trades_of
from glyphoxa.language.table_talk import marked_out_of_character, out_of_character
from glyphoxa.language.words import Word, fold, words
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry, parts_of, titles_of

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
_WITHIN: Final = frozenset(map(fold, lexicon("names").words("within")))
_ARTICLES: Final = tuple(ARTICLES)
_SHORTEST_SOUND_ALIKE: Final = 4
NOT_CALLED: Final = -10.0
CERTAIN: Final = 10.0
_CLEARLY: Final = 2.0
"""Log odds that somebody is called. Somebody whom nobody plays must be called clearly."""


@dataclass(frozen=True, slots=True)
class AddresseeMention:
    """A name in what was said.

    Attributes:
        npc: The NPC; None for a player, or for somebody whom nobody plays.
        position: Index of its first word.
        called: Log odds that it is addressed, not talked about; see `glyphoxa.language.calls`.
        is_whispered: It names the addressee of the whole text: "(to Mira) ...".
        is_role: A word for a trade instead of a name: "smith".
        is_guess: It only sounds like the name.
        player: The player, if it is a player's name.
        start: Offset of its first character in the text; `end` is one past the last.
    """

    npc: NpcId | None
    name: str
    position: int
    called: float = NOT_CALLED
    is_whispered: bool = False
    player: PlayerId | None = None
    start: int = 0
    end: int = 0
    is_role: bool = False
    is_guess: bool = False

    @property
    def is_called(self) -> bool:
        """Whether it is addressed rather than talked about."""
        return self.called > 0


@dataclass(frozen=True, slots=True)
class Understood:
    """Result of reading a line: who is named and called in it.

    Attributes:
        mentions: The people named in it, in order. Those who share a name have the same position.
        tokens: Its words, with the names replaced by what they are.
        is_marked: It is marked as out of character.
        topic: Its real-world topic in words; None if it may be part of the story.
    """

    text: str
    mentions: tuple[AddresseeMention, ...]
    tokens: tuple[Token, ...]
    is_marked: bool
    topic: str | None

    @classmethod
    def of(cls, text: str, mentions: Sequence[AddresseeMention] = (), tokens: Sequence[Token] | None = None) -> Self:
        """Add the rest to the mentions in a text.

        Args:
            tokens: The words with the names, if names were found.
        """
        words = tokens_of(text) if tokens is None else tuple(tokens)
        return cls(text, tuple(mentions), words, marked_out_of_character(text), out_of_character(text))

    @property
    def calls_somebody(self) -> bool:
        """Whether it calls somebody by name or role."""
        return any(mention.is_called for mention in self.mentions)


class CallForms:
    """How those at a table may be called, beside their names in the gazetteer.

    Args:
        listed: Those who can be called.
        roles: The roles by entity.

    Attributes:
        names: All names of the campaign: the name of a place does not call a person with the same word.
        parts: Parts of their names ("van den Berg"), by their folded letters.
        nouns: All who are known by an article and this noun ("the captain").
        ranks: Titles within their names and words of their roles ("captain"), which are only heard where they call.
        people: Those who can be called. Others are found only if they are clearly addressed.
        cast: The NPCs in play; by the last word of their role somebody may also be mentioned.
    """

    def __init__(self, names: Gazetteer, listed: Sequence[Entry], roles: Mapping[EntityId, CastMember]) -> None:
        self.names: Final = names
        self.nouns: Final = _nouns(names)
        self.people: Final = frozenset(entry.entity_id for entry in listed)
        self.cast: Final = {one.entity_id: (roles[one.entity_id], one) for one in listed if one.entity_id in roles}
        self.parts: Final = self._by_form((part, entry) for entry in listed for part in _parts(entry))
        ranks = ((rank, entry) for entry in listed for rank in _ranks(entry, roles.get(entry.entity_id)))
        self.ranks: Final = self._by_form((same, entry) for rank, entry in ranks for same in same_titles(fold(rank)))

    def _by_form(self, forms: Iterable[tuple[str, Entry]]) -> Mapping[str, Sequence[Entry]]:
        found: dict[str, dict[EntityId, Entry]] = {}
        for form, entry in forms:
            found.setdefault(fold(form), {})[entry.entity_id] = entry
        stop = self.names.vocabulary.stop
        return {form: list(held.values()) for form, held in found.items() if len(form) > 1 and form not in stop}

    @classmethod
    def at_table(cls, campaign: Campaign, names: Gazetteer) -> Self:
        """Return the forms of the NPCs in play and the players."""
        characters = cast_of(campaign).characters
        cast = {npc.entity_id: characters[npc.id] for npc in campaign.npcs}
        people = [entry for entry in names.entries if entry.entity_id in cast or entry.entity_type == "player"]
        return cls(names, people, cast)

    def own(self) -> Iterator[tuple[Entry, Sequence[str]]]:
        """Yield each NPC with the names, parts of names, titles and words of its role that call nobody else."""
        for member, entry in self.cast.values():
            forms = {fold(name): name for name in (entry.name, *entry.aliases) if self._is_own(name, entry)}
            for text in _parts(entry):
                if self.parts.get(fold(text)) == [entry]:
                    forms.setdefault(fold(text), text)
            for text in _ranks(entry, member):
                if self.ranks.get(fold(text)) == [entry]:
                    forms.setdefault(fold(text), text)
            yield entry, tuple(forms.values())

    def _is_own(self, name: str, entry: Entry) -> bool:
        known = self.names.by_joined.get(fold(name))
        return known is not None and {each.entity_id for each in self.names.wanting(known)} == {entry.entity_id}


def _parts(entry: Entry) -> Iterator[str]:
    """Yield the parts of a person's names: not of "the captain", who is any captain elsewhere."""
    for name in (entry.name, *entry.aliases):
        if fold(name.split(maxsplit=1)[0]) not in ARTICLES:
            yield from parts_of(name)


def _nouns(names: Gazetteer) -> Mapping[str, Sequence[Entry]]:
    found: dict[str, list[Entry]] = {}
    for joined, holder in names.by_joined.items():
        for name in names.wanting(holder) if joined.startswith(_ARTICLES) else ():
            entry = names.entry(name.entity_id)
            if entry is not None and name.words[0] in ARTICLES and name.kind in ("name", "alias"):
                found.setdefault(joined.removeprefix(name.words[0]), []).append(entry)
    return found


def _ranks(entry: Entry, member: CastMember | None) -> Iterator[str]:
    """Yield the titles in a person's names, their role, and its nouns: "captain" of "old captain of the guard"."""
    for name in (entry.name, *entry.aliases):
        yield from titles_of(name)
    role = member.role.split() if member is not None else []
    if len(role) > 1:
        yield " ".join(role)
    for word, following in pairwise((*role, "")):
        if not following or fold(following) in _WITHIN or fold(word) in TITLES or trades_of(word):
            yield word


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlace(NamedPlace):
    """Words that name somebody, and the candidates.

    Attributes:
        first: Index of its first word; `last` of its last.
        is_trade: It is the last word of a role, or a trade of nobody here.
    """

    first: int
    last: int
    meant: Sequence[Entry]
    is_trade: bool = False


def understand(text: str, forms: CallForms) -> Understood:
    """Return the people named in a text and who is called."""
    places = places_in(text, forms)
    called = calls_in(text, places)
    people = [one for place, odds in zip(places, called, strict=True) for one in _mentions(place, odds, forms)]
    whispered = _whispered(text, people)
    if whispered is not None:
        people = [whispered, *(each for each in people if each.position > whispered.position)]
    return Understood.of(text, people, tokens_of(text, places))


def places_in(text: str, forms: CallForms) -> list[AddressPlace]:
    """Return where people are named in a text, in order."""
    spoken = words(text)
    places = _places(spoken, forms) or list(_sound_alikes(spoken, forms))
    is_ordinary = forms.names.vocabulary.is_ordinary
    plain = (all(is_ordinary(word.full) for word in spoken[place.first : place.last + 1]) for place in places)
    return [replace(place, is_ordinary=each) for place, each in zip(places, plain, strict=True)]


def _mentions(place: AddressPlace, called: float, forms: CallForms) -> Iterator[AddresseeMention]:
    """Yield a mention of each person that a place may mean."""
    mention = AddresseeMention(
        None,
        place.name,
        place.first,
        called,
        start=place.start,
        end=place.end,
        is_role=place.is_role,
        is_guess=place.is_guess,
    )
    if place.is_trade and not place.meant:
        yield mention  # who calls a guard does not mean the innkeeper
    for entry in place.meant:
        is_person = entry.entity_type in ("npc", "player")
        if entry.entity_id not in forms.people and not (called > _CLEARLY and is_person):
            continue
        member, _ = forms.cast.get(entry.entity_id, (None, entry))
        yield replace(
            mention,
            npc=member.npc if member is not None else None,
            name=member.name if member is not None else entry.name,
            player=PlayerId(entry.entity_id) if entry.entity_type == "player" else None,
        )


def _places(spoken: Sequence[Word], forms: CallForms) -> list[AddressPlace]:
    """The places of names and roles, without overlap: the longest from left to right."""
    named = {mention.first: mention for mention in forms.names.mentions_in(spoken)}
    ends = {at: mention.last for mention in named.values() for at in range(mention.first, mention.last + 1)}
    found: list[AddressPlace] = []
    at = 0
    while at < len(spoken):
        mention, place = named.get(at), _longest_form(spoken, at, ends, forms)
        if mention is not None and (place is None or place.last <= mention.last):
            wanting = (forms.names.entry(name.entity_id) for name in forms.names.wanting(mention.name))
            meant = [entry for entry in wanting if entry is not None]
            place = _place(spoken, at, mention.last, meant, name=mention.name.canonical)
        if place is None:
            at += 1
            continue
        at = place.last + 1
        found.append(place)
    return found


def _place(
    spoken: Sequence[Word], first: int, last: int, meant: Sequence[Entry], *, name: str = "", **is_: bool
) -> AddressPlace:
    start, end = spoken[first].start, spoken[last].end
    return AddressPlace(
        name=name or spoken[first].text,
        start=start,
        end=end,
        is_player=bool(meant) and all(entry.entity_type == "player" for entry in meant),
        is_owner=bool(spoken[last].tail),
        is_nobody=all(entry.entity_type not in ("npc", "player") for entry in meant),
        first=first,
        last=last,
        meant=meant,
        **is_,
    )


def _longest_form(spoken: Sequence[Word], first: int, ends: Mapping[int, int], forms: CallForms) -> AddressPlace | None:
    """The longest part of a name, title or role from this word that cuts no name."""
    longest: AddressPlace | None = None
    joined = ""
    for last in range(first, min(first + forms.names.widest, len(spoken))):
        word = spoken[last]
        if last > first and not word.joins:
            break
        if ends.get(last, last) == last and (place := _form(spoken, first, last, joined + word.folded, forms)):
            longest = place
        joined += word.full
    return longest


def _form(spoken: Sequence[Word], first: int, last: int, joined: str, forms: CallForms) -> AddressPlace | None:
    if meant := forms.parts.get(joined):
        return _place(spoken, first, last, meant)
    if meant := forms.nouns.get(joined):
        return _place(spoken, first, last, meant, is_role=True)
    if first == last:
        noun = spoken[first].text.lower()
        fitting = [entry for member, entry in forms.cast.values() if member.is_called(noun)]
        if fitting:
            more = [entry for entry in forms.ranks.get(joined, ()) if entry not in fitting]
            return _place(spoken, first, last, [*fitting, *more], is_role=True, is_trade=True)
        if meant := forms.ranks.get(joined):
            return _place(spoken, first, last, meant, is_role=True)
        if forms.cast and trades_of(noun):
            return _place(spoken, first, last, (), is_role=True, is_trade=True)
        return None
    if meant := forms.ranks.get(joined):
        return _place(spoken, first, last, meant, is_role=True, is_trade=True)
    return None


def _whispered(text: str, people: Sequence[AddresseeMention]) -> AddresseeMention | None:
    """The person that the whole text is whispered or typed to."""
    found = _WHISPERED.match(text)
    if found is None:
        return None
    group = next(number for number in (1, 2, 3) if found[number] is not None)
    start, end = found.span(group)
    for person in people:
        if start <= person.start < end:
            return replace(person, called=CERTAIN, is_whispered=True)
    who = found[group].strip()
    if not who:
        return None
    if who.split()[-1].casefold() not in _TABLE_GROUP and _may_be_a_place(who, text[:start]):
        return None
    return AddresseeMention(None, who, 0, CERTAIN, is_whispered=True, start=start, end=end)


def _may_be_a_place(who: str, before: str) -> bool:
    """Whether it is a place, not a person: "(to the left) ...", "(an der Theke) ...", "(an Bord) ..."."""
    first, *others = who.split()
    is_name = (others or [first])[-1][0].isupper() and first.casefold() not in _PLACE_ARTICLES
    return not is_name or _BEHIND_PLACE_PREPOSITION.search(before) is not None


def _sound_alikes(spoken: Sequence[Word], forms: CallForms) -> Iterator[AddressPlace]:
    n = len(spoken)
    for at, word in enumerate(spoken):
        is_apart = not word.joins and (at + 1 == n or not spoken[at + 1].joins)
        if n > 1 and is_apart and len(word.folded) >= _SHORTEST_SOUND_ALIKE:
            alike = (each for each in forms.names.sounding_like(word.folded) if each.entity_id in forms.people)
            if (name := next(alike, None)) is not None and (entry := forms.names.entry(name.entity_id)) is not None:
                yield _place(spoken, at, at, [entry], name=entry.name, is_guess=True)
