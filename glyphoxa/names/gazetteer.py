"""The names of a campaign, indexed for the ear: by spelling and by sound.

Correction, keyword spotting, address detection and exact recall all look names up here. A gazetteer is immutable
and may be read by many at once. When the knowledge graph changes, a new one takes its place, which shares with the
old one all that did not change (see `glyphoxa.names.gazetteer`): lookups need no lock, and a name more costs no
rebuild. A gazetteer that grew name by name answers as one that was built from the same entries at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.vocabulary import Vocabulary, vocabulary_of
from glyphoxa.language.words import Word, words
from glyphoxa.names.index import NameIndex
from glyphoxa.names.naming import Entry, Name, NameKind, Speech, names_of
from glyphoxa.names.sound import Coder, Sounder, coder_for, sounder_for

# The look-up tables of a gazetteer, made anew from those of the one before it and what changed.
#
# Each answers as a table made from all names at once; its cost is that of the copy.


by_rank = attrgetter("rank")


def holder(wanted: Sequence[Name]) -> Name:
    """Whose a spelling is. Of several persons of one family, none is called by the family's name alone."""
    first = wanted[0]
    if first.kind == "short" and any(
        other.kind == "short" and other.entity_id != first.entity_id for other in wanted[1:]
    ):
        return replace(first, is_shared=True)
    return first


def codes_of(name: Name) -> tuple[str, ...]:
    return () if name.kind == "learned" else name.codes


def replaced(names: tuple[Name, ...], removed: Sequence[Name], added: Sequence[Name]) -> tuple[Name, ...]:
    listed = list(names)
    for name in removed:
        del listed[bisect_left(listed, name.rank, key=by_rank)]
    for name in added:
        insort(listed, name, key=by_rank)
    return tuple(listed)


def recoded(
    by_code: Mapping[str, tuple[Name, ...]], removed: Sequence[Name], added: Sequence[Name]
) -> dict[str, tuple[Name, ...]]:
    listed = dict(by_code)
    for name in removed:
        for code in codes_of(name):
            rest = tuple(other for other in listed.pop(code) if other.rank != name.rank)
            if rest:
                listed[code] = rest
    for name in added:
        for code in codes_of(name):
            listed[code] = tuple(sorted((*listed.get(code, ()), name), key=by_rank))
    return listed


def respelled(spellings: tuple[str, ...], removed: Sequence[Name], added: Sequence[Name]) -> tuple[str, ...]:
    gone, come = {name.joined for name in removed}, {name.joined for name in added}
    if gone == come:
        return spellings
    listed = list(spellings)
    for joined in gone - come:
        del listed[bisect_left(listed, joined)]
    for joined in come - gone:
        insort(listed, joined)
    return tuple(listed)


def recounted(lengths: Mapping[int, int], removed: Sequence[Name], added: Sequence[Name]) -> Counter[int]:
    counted = Counter(lengths)
    counted.subtract(len(name.words) for name in removed)
    counted.update(len(name.words) for name in added)
    return +counted


__all__ = ["Entry", "Gazetteer", "Mention", "Name", "NameKind"]

_WIDEST_WINDOW = 8
_REMEMBERED = 8192


@dataclass(frozen=True, slots=True)
class Mention:
    """A name that stands in a text, spelled right but for case, spaces and accents.

    Attributes:
        first: Index of its first word.
        last: Index of its last word, inclusive.
        start: First character; `end` is one past the last, a possessive ending included.
    """

    name: Name
    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry, its place among all that ever were, and what it may be called."""

    entry: Entry
    place: int
    names: tuple[Name, ...]


@dataclass(frozen=True, eq=False)
class Gazetteer:
    """Immutable. Build with `Gazetteer.build`; names given first come first wherever order matters.

    Where several entries have a name, it is the first one's; when that one goes, it is the next one's.
    """

    language: str
    names: tuple[Name, ...]
    by_joined: Mapping[str, Name]
    by_code: Mapping[str, tuple[Name, ...]]
    _speech: Speech
    _listed: Mapping[EntityId, tuple[_Listed, ...]]
    _claims: Mapping[str, tuple[Name, ...]]
    """Who wants a spelling that more than one entry has; the first of them has it."""
    _spellings: tuple[str, ...]
    """All of `by_joined`, sorted: where none goes on, no wider window is looked at."""
    _lengths: Mapping[int, int]
    """How many names have so many words."""
    _index: NameIndex
    _places: int

    @classmethod
    def build(cls, entries: Iterable[Entry], *, language: str = "en") -> Gazetteer:
        """Names that hold no letter or digit are left out; of two equal ones the first counts."""
        # What was heard once is asked for again, in the next partial transcript and at the next stage.
        speech = Speech(vocabulary_of(language), coder_for(language), lru_cache(_REMEMBERED)(sounder_for(language)))
        listed: dict[EntityId, tuple[_Listed, ...]] = {}
        claims: dict[str, tuple[Name, ...]] = {}
        place = -1
        for place, entry in enumerate(entries):
            listing = _Listed(entry, place, names_of(entry, place, speech))
            listed[entry.entity_id] = (*listed.get(entry.entity_id, ()), listing)
            for name in listing.names:
                claims[name.joined] = (*claims.get(name.joined, ()), name)
        claims = {joined: tuple(sorted(wanted, key=by_rank)) for joined, wanted in claims.items()}
        names = tuple(sorted((holder(wanted) for wanted in claims.values()), key=by_rank))
        by_code: dict[str, tuple[Name, ...]] = {}
        for name in names:
            for code in codes_of(name):
                by_code[code] = (*by_code.get(code, ()), name)
        return cls(
            language=language,
            names=names,
            by_joined={name.joined: name for name in names},
            by_code=by_code,
            _speech=speech,
            _listed=listed,
            _claims={joined: wanted for joined, wanted in claims.items() if len(wanted) > 1},
            _spellings=tuple(sorted(claims)),
            _lengths=Counter(len(name.words) for name in names),
            _index=NameIndex.of(names),
            _places=place + 1,
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return self._speech.vocabulary

    @property
    def coder(self) -> Coder | None:
        return self._speech.coder

    @property
    def sounder(self) -> Sounder:
        return self._speech.sounder

    @cached_property
    def widest(self) -> int:
        """Most adjacent words worth comparing with a name: names are also heard in more pieces than they have."""
        return min(max(3, max(self._lengths, default=0) + 1), _WIDEST_WINDOW)

    @cached_property
    def longest(self) -> int:
        """Letters of the longest name that `alike` may give."""
        return self._index.longest

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What it was built from, in order."""
        listings = sorted(
            (listing for listings in self._listed.values() for listing in listings), key=attrgetter("place")
        )
        return tuple(listing.entry for listing in listings)

    def entry(self, entity_id: EntityId) -> Entry | None:
        listings = self._listed.get(entity_id)
        return listings[0].entry if listings else None

    # -- another one

    def with_entry(self, entry: Entry) -> Gazetteer:
        """With this entry in the place of those of the same entity, or behind all others if there are none."""
        before = self._listed.get(entry.entity_id, ())
        place = before[0].place if before else self._places
        listing = _Listed(entry, place, names_of(entry, place, self._speech))
        if len(before) == 1 and before[0].entry == entry:
            return self
        listed = dict(self._listed)
        listed[entry.entity_id] = (listing,)
        gone = [name for each in before for name in each.names]
        return self._changed(listed, gone, listing.names, places=max(self._places, place + 1))

    def without(self, entity_id: EntityId) -> Gazetteer:
        """Without the entries of an entity; the same gazetteer if there are none."""
        before = self._listed.get(entity_id)
        if not before:
            return self
        listed = dict(self._listed)
        del listed[entity_id]
        return self._changed(listed, [name for each in before for name in each.names], (), places=self._places)

    def _changed(
        self,
        listed: Mapping[EntityId, tuple[_Listed, ...]],
        gone: Sequence[Name],
        come: Sequence[Name],
        *,
        places: int,
    ) -> Gazetteer:
        by_joined, claims = dict(self.by_joined), dict(self._claims)
        gone_ranks = {name.rank for name in gone}
        removed: list[Name] = []
        added: list[Name] = []
        wanting = {name.joined: name for name in come}
        for joined in dict.fromkeys(name.joined for name in (*gone, *come)):
            before = by_joined.pop(joined, None)
            wanted = claims.pop(joined, () if before is None else (before,))
            wanted = tuple(name for name in wanted if name.rank not in gone_ranks)
            if joined in wanting:
                wanted = tuple(sorted((*wanted, wanting[joined]), key=by_rank))
            if len(wanted) > 1:
                claims[joined] = wanted
            if before is not None:
                removed.append(before)
            if wanted:
                by_joined[joined] = holder(wanted)
                added.append(by_joined[joined])
        return replace(
            self,
            names=replaced(self.names, removed, added),
            by_joined=by_joined,
            by_code=recoded(self.by_code, removed, added),
            _listed=listed,
            _claims=claims,
            _spellings=respelled(self._spellings, removed, added),
            _lengths=recounted(self._lengths, removed, added),
            _index=self._index.changed(without=removed, having=added),
            _places=places,
        )

    # -- looking up

    def is_all_public(self, text: str) -> bool:
        """Whether everybody may know all names in a text. A name of several things is known if one of them is."""
        spoken = words(text)
        at = 0
        while at < len(spoken):
            held = [found for found in self.spelled_from(spoken, at) if found[1].kind != "learned"]
            if held and not self._is_public(held[-1][1]):
                return False
            at = held[-1][0] + 1 if held else at + 1
        return True

    def _is_public(self, name: Name) -> bool:
        wanted = self._claims.get(name.joined, (name,))
        return any(listing.entry.is_public for each in wanted for listing in self._listed[each.entity_id])

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """The names in a text, in order, without overlap; a longer name wins over a shorter one within it."""
        return self.mentions_in(words(text))

    def entities_in(self, text: str) -> tuple[EntityId, ...]:
        """Whom and what a text names, each once, in the order in which they are first named."""
        return tuple(dict.fromkeys(mention.name.entity_id for mention in self.mentions(text)))

    def mentions_in(self, spoken: Sequence[Word]) -> tuple[Mention, ...]:
        found: list[Mention] = []
        at = 0
        while at < len(spoken):
            mention = self._longest_at(spoken, at)
            if mention is None:
                at += 1
            else:
                found.append(mention)
                at = mention.last + 1
        return tuple(found)

    def spelled_from(self, spoken: Sequence[Word], first: int) -> Iterator[tuple[int, Name]]:
        """All names that begin with this word, each with the index of its last word; shorter ones first."""
        stem = ""
        for last in range(first, min(first + self.widest, len(spoken))):
            word = spoken[last]
            if last > first and not word.joins:
                return
            name = self._spelled(stem, word)
            if name is not None:
                yield last, name
            stem += word.full
            following = bisect_right(self._spellings, stem)
            if following == len(self._spellings) or not self._spellings[following].startswith(stem):
                return

    def same_sound(self, codes: tuple[str, ...]) -> tuple[Name, ...]:
        """The names that have one of these codes, each once."""
        if len(codes) == 1:
            return self.by_code.get(codes[0], ())
        return tuple(dict.fromkeys(name for code in codes for name in self.by_code.get(code, ())))

    def wanting(self, name: Name) -> Sequence[Name]:
        """Everybody who is called so as much as the first: by their own name, or by an alias. A short form that
        several have is nobody's.
        """
        if name.is_shared:
            return ()
        claims = self._claims.get(name.joined, ())
        return (name, *(each for each in claims if each.entity_id != name.entity_id and each.kind == name.kind))

    def alike(self, heard: str, codes: tuple[str, ...], *, limit: int, least_shared: float = 0.0) -> list[Name]:
        """The names most alike by sound and spelling, best first. See `glyphoxa.names.index`."""
        return self._index.alike(heard, codes, self.sounder, limit=limit, least_shared=least_shared)

    def _longest_at(self, spoken: Sequence[Word], first: int) -> Mention | None:
        longest: Mention | None = None
        for last, name in self.spelled_from(spoken, first):
            if name.kind == "learned" or name.is_shared:
                continue
            if not name.is_faint or is_written_as_a_name(spoken, first, last):
                longest = Mention(name, first, last, spoken[first].start, spoken[last].end)
        return longest

    def _spelled(self, stem: str, last: Word) -> Name | None:
        """The name that these letters and this word spell, also in the possessive or plural."""
        by_joined = self.by_joined
        if last.tail and (name := by_joined.get(stem + last.full)):
            return name
        if name := by_joined.get(stem + last.folded):
            return name
        if last.folded.endswith("s") and not last.tail:
            name = by_joined.get(stem + last.folded[:-1])
            if name and len(name.joined) >= 4 and name.kind != "learned":
                return name
        return None


def is_written_as_a_name(spoken: Sequence[Word], first: int, last: int) -> bool:
    """With a capital that says something: "I fear It" and "Will, come here", but not "Will you come?"."""
    is_followed = last + 1 < len(spoken) and spoken[last + 1].joins
    return spoken[first].is_capital and not (spoken[first].opens and is_followed)


# The names of a campaign, as a gazetteer is built from them.


def entries_of(campaign: Campaign) -> list[Entry]:
    """The names of a campaign: its NPCs first, then its players, then all other entities."""
    entities = {entity.id: entity for entity in campaign.entities}
    public = {entity.id for entity in campaign.entities if not entity.hidden and not entity.known_by}
    listed: dict[EntityId, Entry] = {}
    for npc in campaign.npcs:
        entity = entities.get(npc.entity_id)
        name, aliases = (entity.name, (npc.name, *entity.aliases)) if entity else (npc.name, ())
        is_public = entity is None or entity.id in public
        listed[npc.entity_id] = Entry(name, npc.entity_id, "npc", (*aliases, *npc.aliases), is_public=is_public)
    for player in campaign.players:
        player_entity = EntityId(player.id)
        listed.setdefault(player_entity, Entry(player.name, player_entity, "player"))
    for entity in campaign.entities:
        listed.setdefault(
            entity.id, Entry(entity.name, entity.id, entity.type, entity.aliases, (), entity.id in public)
        )
    return list(listed.values())


def cast_of(campaign: Campaign) -> list[Entry]:
    """What those who sit at the table are called even where nothing is stored of them: NPCs that play, and players."""
    entities = {entity.id: entity for entity in campaign.entities}
    listed: dict[EntityId, Entry] = {}
    for npc in campaign.npcs:
        known = entities[npc.entity_id].aliases if npc.entity_id in entities else ()
        own = tuple(alias for alias in npc.aliases if alias not in known)
        listed[npc.entity_id] = Entry(npc.name, npc.entity_id, "npc", own)
    for player in campaign.players:
        listed.setdefault(EntityId(player.id), Entry(player.name, EntityId(player.id), "player"))
    return list(listed.values())


# The names of a table while it plays: the one place where they change (the observer pattern).
#
# Readers take `current` once and work with that: it never changes under their hands. Whoever keeps something
# of his own for the names (a corrector, key terms) subscribes and is told after each change.


NamesListener = Callable[[Gazetteer], None]


@dataclass(slots=True)
class ObservableGazetteer:
    """Holds the names that count now.

    Changes come from one thread, readers from any: `current` is replaced whole, in one step.
    """

    current: Gazetteer
    _listeners: list[NamesListener] = field(default_factory=list)

    def subscribe(self, listener: NamesListener) -> Callable[[], None]:
        """Have `listener` called with the new gazetteer after each change. Returns how to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def replace(self, names: Gazetteer) -> None:
        """Take names that were made elsewhere, and tell of them unless they are the very same as before.

        Raises:
            ExceptionGroup: What listeners raised. All others were told.
        """
        if names is self.current:
            return
        self.current = names
        raised: list[Exception] = []
        for listener in tuple(self._listeners):
            try:
                listener(names)
            except Exception as error:  # whatever it is, it is no reason to leave the next one behind
                raised.append(error)
        if raised:
            raise ExceptionGroup("not everybody took the new names", raised)
