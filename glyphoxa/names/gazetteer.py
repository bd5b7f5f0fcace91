"""The names of a campaign, indexed by spelling and by sound.

Correction, keyword spotting, address detection and exact recall all look names up here. A gazetteer is immutable, so
concurrent readers need no lock. When the knowledge graph changes, another one replaces it (`Gazetteer.having`).

Of tens of thousands of names, few are worth a close comparison with what was heard (`NameIndex`). The features of a
name are the pairs of adjacent letters of its spelling, and the pairs of adjacent symbols of its phonetic codes ("^F FK
KR RT TN N$"). The names that share most features with what was heard are compared one by one. So a different first
sound ("McCraden", Vukradin) or a lost syllable costs only a few features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
from numpy import int64
from numpy.typing import NDArray
from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.language_data import vocabulary_of
from glyphoxa.language.words import Word, words
from glyphoxa.names.naming import KINDS, Entry, Name, Speech, names_of
from glyphoxa.names.reader import Mention, NameReader, is_written_as_a_name
from glyphoxa.names.sound import Sounder, coder_for, sounder_for

_WIDEST_WINDOW = 8
_REMEMBERED = 8192


class Gazetteer:
    """Immutable. Build with `Gazetteer.build`; earlier names win wherever order matters.

    A spelling of several entries belongs to the first one; if that is removed, to the next one.

    Attributes:
        names: Every spelling once: own names, then aliases, short forms and learned forms.
        longest: Letters of the longest name that `alike` may return; 0 if there is none.
        widest: Maximum number of adjacent words to compare with a name: misheard names may have more words.
    """

    def __init__(
        self, entries: tuple[Entry, ...], language: str, speech: Speech, known: Mapping[Entry, tuple[Name, ...]]
    ) -> None:
        self.language: Final = language
        self.entries: Final = entries
        self.vocabulary: Final = speech.vocabulary
        self.coder: Final = speech.coder
        self.sounder: Final = speech.sounder
        self._speech: Final = speech
        self._named: Final = {entry: known.get(entry) or names_of(entry, speech) for entry in entries}
        self._reader: Final = NameReader(
            speech, (name for kind in KINDS for entry in entries for name in self._named[entry] if name.kind == kind)
        )
        """All claimants of a spelling; it belongs to the first."""
        self.by_joined: Final = {joined: _holder(wanted) for joined, wanted in self._reader.claims.items()}
        self.names: Final = tuple(self.by_joined.values())
        self.by_code: Final[dict[str, tuple[Name, ...]]] = {}
        for name in self.names:
            for code in name.codes if name.kind != "learned" else ():
                self.by_code[code] = (*self.by_code.get(code, ()), name)
        most_words = max((len(name.words) for name in self.names), default=0)
        self.widest: Final = min(max(3, most_words + 1), _WIDEST_WINDOW)
        self._by_id: Final = {entry.entity_id: entry for entry in reversed(entries)}
        self._public: Final = frozenset(entry.entity_id for entry in entries if entry.is_public)
        self._index: Final = NameIndex(self.names)
        self.longest: Final = self._index.longest

    @classmethod
    def build(cls, entries: Iterable[Entry], *, language: str = "en") -> Gazetteer:
        """Skips names without a letter or digit; the first of two equal names wins."""
        # Cached, because the next partial transcript and the next stage ask again.
        speech = Speech(vocabulary_of(language), coder_for(language), lru_cache(_REMEMBERED)(sounder_for(language)))
        return cls(tuple(entries), language, speech, {})

    def having(self, entries: Iterable[Entry]) -> Gazetteer:
        """The gazetteer of other entries; this one if they are the same. Reuses prepared entries.

        Takes a third of the time of `build`: do not call in a loop that carries audio.
        """
        wanted = tuple(entries)
        return self if wanted == self.entries else Gazetteer(wanted, self.language, self._speech, self._named)

    def entry(self, entity_id: EntityId) -> Entry | None:
        """The first entry of an entity."""
        return self._by_id.get(entity_id)

    def is_all_public(self, text: str) -> bool:
        """Whether all names in a text are public. A name of several entities is public if one of them is."""
        found = self.mentions_in(words(text), with_shared=True, with_faint=True)
        return all(any(one.entity_id in self._public for one in self.claims_of(each.name)) for each in found)

    def mentions(self, text: str, *, with_shared: bool = False) -> tuple[Mention, ...]:
        """The names in a text, in order, without overlap; a longer name wins over a shorter one within it.

        Args:
            with_shared: Also those that are nobody's; see `Name`.
        """
        return self.mentions_in(words(text), with_shared=with_shared)

    def entities_in(self, text: str) -> tuple[EntityId, ...]:
        """The named entities of a text, each once, in order of first mention."""
        return tuple(dict.fromkeys(mention.name.entity_id for mention in self.mentions(text)))

    def mentions_in(
        self, spoken: Sequence[Word], *, with_shared: bool = False, with_faint: bool = False
    ) -> tuple[Mention, ...]:
        """See `mentions`.

        Args:
            with_faint: Also stop words and single letters that are not written as a name.
        """
        found: list[Mention] = []
        for first in range(len(spoken)):
            if found and first <= found[-1].last:
                continue
            longest: Mention | None = None
            for last, name in self.spelled_from(spoken, first):
                if name.kind == "learned" or (name.is_shared and not with_shared):
                    continue
                if with_faint or not name.is_faint or is_written_as_a_name(spoken, first, last):
                    longest = Mention(name, first, last, spoken[first].start, spoken[last].end)
            if longest is not None:
                found.append(longest)
        return tuple(found)

    def spelled_from(self, spoken: Sequence[Word], first: int) -> Iterable[tuple[int, Name]]:
        """All names that begin at this word, each with the index of its last word; shorter ones first."""
        return self._reader.spelled_from(spoken, first, self.by_joined.get, plural=self._plural)

    def spelled(self, text: str) -> Name | None:
        """The name that all words of a text spell together, also inflected. Learned forms are none."""
        spoken = words(text)
        ways = self.spelled_from(spoken, 0) if spoken else ()
        return next((name for last, name in ways if last == len(spoken) - 1 and name.kind != "learned"), None)

    def same_sound(self, codes: tuple[str, ...]) -> tuple[Name, ...]:
        """The names that have one of these codes, each once."""
        if len(codes) == 1:
            return self.by_code.get(codes[0], ())
        return tuple(dict.fromkeys(name for code in codes for name in self.by_code.get(code, ())))

    def sounding_like(self, letters: str) -> Iterator[Name]:
        """Yield names of the same sound, first letter and nearly the same length, without those that are nobody's."""
        for name in self.same_sound(self.coder(letters)):
            n_more = abs(len(name.joined) - len(letters))
            if not name.is_shared and name.joined[:1] == letters[:1] and n_more <= 1 + len(letters) // 8:
                yield name

    def claims_of(self, name: Name) -> Sequence[Name]:
        """All entries with that spelling, as their own name, an alias or a short form; the first one owns it."""
        return self._reader.claims.get(name.joined, (name,))

    def wanting(self, name: Name) -> Sequence[Name]:
        """All entries that claim the name equally: as their own name or an alias. Nobody owns a shared short form."""
        if name.is_shared:
            return ()
        same = self.claims_of(name)
        return (name, *(each for each in same if each.entity_id != name.entity_id and each.kind == name.kind))

    def alike(self, heard: str, codes: tuple[str, ...], *, limit: int, least_shared: float = 0.0) -> list[Name]:
        """The names most similar in sound and spelling, best first. See `NameIndex.alike`."""
        return self._index.alike(heard, codes, self.sounder, limit=limit, least_shared=least_shared)

    def _plural(self, joined: str) -> Name | None:
        name = self.by_joined.get(joined)
        return name if name is not None and name.kind != "learned" else None


def _holder(wanted: Sequence[Name]) -> Name:
    """The owner of a spelling. A shared family name belongs to none of its persons."""
    first = wanted[0]
    if first.kind == "short" and any(
        other.kind == "short" and other.entity_id != first.entity_id for other in wanted[1:]
    ):
        return replace(first, is_shared=True)
    return first


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
    for player in campaign.known_players:
        player_entity = EntityId(player.id)
        listed.setdefault(player_entity, Entry(player.name, player_entity, "player"))
    for entity in campaign.entities:
        listed.setdefault(
            entity.id, Entry(entity.name, entity.id, entity.type, entity.aliases, (), entity.id in public)
        )
    return list(listed.values())


def cast_of(campaign: Campaign) -> list[Entry]:
    """Names at the table that need no stored campaign: NPCs in play, and players."""
    known = {entity.id: entity.aliases for entity in campaign.entities}
    own = (tuple(alias for alias in npc.aliases if alias not in known.get(npc.entity_id, ())) for npc in campaign.npcs)
    npcs = tuple(replace(npc, aliases=aliases) for npc, aliases in zip(campaign.npcs, own, strict=True))
    return entries_of(replace(campaign, npcs=npcs, entities=()))


# Candidate names for what was heard.

_edit_similarity = Levenshtein.normalized_similarity
SHORTEST = 4
"""Shorter names are too similar to each other: they match by spelling only."""
LONGEST = 64
"""Longer names match by spelling only; nobody says them."""
MIN_LENGTH_RATIO = 0.6
_LOOKED_AT = 40

Places = NDArray[int64]


class Spelling(NamedTuple):
    """Folded letters without spaces, their sound as symbols, and their phonetic codes if needed."""

    letters: str
    sound: str
    codes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarity of a name and what was heard. Each figure 0 to 1.

    Attributes:
        sound: Levenshtein of the sounds, by symbol; see `glyphoxa.names.sound`.
        edits: Levenshtein of the letters.
        spelling: Jaro-Winkler of the letters.
        same_sound: They share a phonetic code.
    """

    sound: float
    edits: float
    spelling: float
    same_sound: bool

    @classmethod
    def of(cls, heard: Spelling, name: Spelling) -> Similarity:
        return cls(
            _edit_similarity(heard.sound, name.sound),
            _edit_similarity(heard.letters, name.letters),
            JaroWinkler.similarity(heard.letters, name.letters),
            any(code in name.codes for code in heard.codes),
        )

    @property
    def overall(self) -> float:
        """One figure to rank names by; sound counts half."""
        return 0.5 * self.sound + 0.3 * self.edits + 0.2 * self.spelling


def likeness(letters: str, sound: str, name: Name) -> float:
    """Return `Similarity.overall` of a name and what was heard, given folded letters and their sound."""
    return Similarity.of(Spelling(letters, sound), Spelling(name.joined, name.sound)).overall


class NameIndex:
    """Immutable. Contains names of `SHORTEST` to `LONGEST` letters, and learned forms unless made of ordinary words.

    Results do not depend on the order of the names.
    """

    def __init__(self, names: Iterable[Name]) -> None:
        self._names = sorted(filter(_is_held, names), key=attrgetter("joined"))
        self._lengths = np.array([len(name.joined) for name in self._names], dtype=int64)
        self._letters = _places_by_feature(self._names, lambda name: _pairs(name.joined))
        """Positions of the names with a pair of letters; `_sounds` of phonetic symbols."""
        self._sounds = _places_by_feature(self._names, lambda name: _pairs_of_all(name.codes))
        self.longest = int(self._lengths.max(initial=0))

    def alike(
        self, heard: str, codes: tuple[str, ...], sounder: Sounder, *, limit: int, least_shared: float = 0.0
    ) -> list[Name]:
        """The names most similar in sound and spelling, whatever their first letter, best first.

        Args:
            heard: Folded, without spaces.
            codes: Its phonetic codes; empty if the language has no coder.
            sounder: Converts letters to sounds; see `glyphoxa.names.sound`.
            least_shared: Minimum share of the heard features, 0 to 1, that a name must have.
        """
        candidates = self._looked_at(heard, codes, least_shared)
        if not candidates:
            return []
        sound = sounder(heard)
        # Sound counts half: if it differs too much, the spelling need not be compared.
        candidates.sort(key=lambda name: (-_edit_similarity(sound, name.sound), name.joined))
        return sorted(candidates[: 2 * limit], key=lambda name: (-likeness(heard, sound, name), name.joined))[:limit]

    def _looked_at(self, heard: str, codes: tuple[str, ...], least_shared: float) -> list[Name]:
        """The names of similar length that share most features with what was heard, at most `_LOOKED_AT`."""
        letters, sounds = _pairs(heard), _pairs_of_all(codes)
        sets = [found for pair in letters if (found := self._letters.get(pair)) is not None]
        sets += [found for pair in sounds if (found := self._sounds.get(pair)) is not None]
        # Without a common feature there is nothing to compare.
        least = max(1, math.ceil(least_shared * (len(letters) + len(sounds))))
        if len(sets) < least:
            return []
        shared = np.bincount(np.concatenate(sets), minlength=len(self._names))
        low, high = len(heard) * MIN_LENGTH_RATIO, len(heard) / MIN_LENGTH_RATIO
        lengths = self._lengths
        found = np.flatnonzero((shared >= least) & (lengths >= low) & (lengths <= high))
        if len(found) > _LOOKED_AT:
            order = np.lexsort((np.abs(lengths[found] - len(heard)), -shared[found]))
            found = found[order[:_LOOKED_AT]]
        return [self._names[place] for place in found.tolist()]


def _is_held(name: Name) -> bool:
    # A learned form may recur with small differences ("Gobblegool", "Gobblegul").
    return not (name.kind == "learned" and name.is_ordinary) and SHORTEST <= len(name.joined) <= LONGEST


def _pairs(text: str) -> set[str]:
    """Adjacent characters, including start and end.

    >>> sorted(_pairs("abc"))
    ['^a', 'ab', 'bc', 'c$']
    """
    return {one + other for one, other in zip("^" + text, text + "$", strict=True)}


def _pairs_of_all(codes: tuple[str, ...]) -> set[str]:
    return _pairs(codes[0]) if len(codes) == 1 else {pair for code in codes for pair in _pairs(code)}


def _places_by_feature(names: Sequence[Name], features_of: Callable[[Name], Iterable[str]]) -> dict[str, Places]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        for feature in features_of(name):
            places.setdefault(feature, []).append(place)
    return {feature: np.array(listed, dtype=int64) for feature, listed in places.items()}
