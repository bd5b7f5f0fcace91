"""The names of a campaign, indexed for the ear: by spelling and by sound.

Correction, keyword spotting, address detection and exact recall all look names up here. A gazetteer is immutable
and may be read by many at once. When the knowledge graph changes, a new one takes its place, which shares with the
old one all that did not change (see `glyphoxa.speech.names.observable`): lookups need no lock, and a name more costs no
rebuild. A gazetteer that grew name by name answers as one that was built from the same entries at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import attrgetter

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.language.phonetics import Coder, coder_for
from glyphoxa.speech.language.sounds import Sounder, sounder_for
from glyphoxa.speech.language.vocabulary import Vocabulary, vocabulary_of
from glyphoxa.speech.language.words import Word, words
from glyphoxa.speech.names.index import NameIndex
from glyphoxa.speech.names.name_tables import by_rank, codes_of, holder, recoded, recounted, replaced, respelled
from glyphoxa.speech.names.naming import Entry, Name, NameKind, Speech, names_of

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
        """The names most alike by sound and spelling, best first. See `glyphoxa.speech.names.index`."""
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
