"""The names of a campaign, indexed for the ear: by spelling and by sound.

Correction, keyword spotting and address detection all look names up here. A gazetteer is immutable; when
the knowledge graph changes, a new one is built and takes the old one's place, so lookups need no lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.phonetics import Coder, coder_for
from glyphoxa.speech.vocabulary import Vocabulary, vocabulary_of
from glyphoxa.speech.words import Word, fold, words

NameKind = Literal["name", "alias", "short", "learned"]

# What may stand before a person's name and is often left out.
_TITLES = frozenset(
    (
        "aunt", "baron", "baroness", "brother", "captain", "count", "countess", "doctor", "dr", "duchess", "duke",
        "elder", "emperor", "empress", "father", "general", "king", "lady", "lord", "madam", "master", "mayor", "miss",
        "mister", "mistress", "mother", "mr", "mrs", "ms", "prince", "princess", "professor", "queen", "saint",
        "sergeant", "sir", "sister", "st", "the", "uncle",
        "bruder", "das", "der", "die", "frau", "furst", "furstin", "graf", "grafin", "hauptmann", "herr", "herzog",
        "herzogin", "konig", "konigin", "meister", "schwester",
    )
)  # fmt: skip
_PERSONS = frozenset({"npc", "player"})
_WIDEST_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be known by name.

    Attributes:
        name: As it is to be written.
        aliases: Other names that are right as they are ("the smith").
        learned: Wrong forms that the DM has confirmed to mean this name ("Finland").
    """

    name: str
    entity_id: EntityId
    entity_type: str = ""
    aliases: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """One way to name an entity.

    Attributes:
        text: As it is written.
        canonical: The entity's own name.
        joined: `text` folded, without spaces.
        words: Its words, folded.
        codes: How `joined` sounds; empty without a coder.
        is_ordinary: It is made of dictionary words only, so hearing them is no sign of the name.
    """

    text: str
    entity_id: EntityId
    entity_type: str
    canonical: str
    kind: NameKind
    joined: str
    words: tuple[str, ...]
    codes: tuple[str, ...]
    is_ordinary: bool


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


@dataclass(frozen=True)
class Gazetteer:
    """Immutable. Build with `Gazetteer.build`; names given first come first wherever order matters."""

    language: str
    names: tuple[Name, ...]
    vocabulary: Vocabulary
    coder: Coder | None
    widest: int
    """Most adjacent words worth comparing with a name: names are also heard in more pieces than they have."""
    by_joined: Mapping[str, Name]
    by_code: Mapping[str, tuple[Name, ...]]
    _beginnings: frozenset[str]
    """What names begin with: where no name goes on, no wider window is looked at."""

    @classmethod
    def build(cls, entries: Iterable[Entry], *, language: str = "en") -> Gazetteer:
        """Names that hold no letter or digit are left out; of two equal ones the first counts."""
        vocabulary = vocabulary_of(language)
        coder = coder_for(language)
        entries = tuple(entries)
        by_joined: dict[str, Name] = {}
        for kind, text, entry in _ways_to_name(entries, vocabulary):
            joined = fold(text)
            if joined and joined not in by_joined:
                by_joined[joined] = _name(text, entry, kind, vocabulary, coder)
        by_code: dict[str, tuple[Name, ...]] = {}
        for name in by_joined.values():
            if name.kind != "learned":
                for code in name.codes:
                    by_code[code] = (*by_code.get(code, ()), name)
        longest = max((len(name.words) for name in by_joined.values()), default=0)
        return cls(
            language=language,
            names=tuple(by_joined.values()),
            vocabulary=vocabulary,
            coder=coder,
            widest=min(max(3, longest + 1), _WIDEST_WINDOW),
            by_joined=by_joined,
            by_code=by_code,
            _beginnings=frozenset(joined[:end] for joined in by_joined for end in range(1, len(joined))),
        )

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """The names in a text, in order, without overlap; a longer name wins over a shorter one within it."""
        return self.mentions_in(words(text))

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
            if stem not in self._beginnings:
                return

    def glossary(self, *, limit: int = 60) -> str:
        """The first names as a prompt for a speech recogniser: "Names: Grimjaw, Ironhold." or nothing."""
        listed = list(dict.fromkeys(name.text for name in self.names if name.kind == "name"))[:limit]
        return f"Names: {', '.join(listed)}." if listed else ""

    def _longest_at(self, spoken: Sequence[Word], first: int) -> Mention | None:
        longest: Mention | None = None
        for last, name in self.spelled_from(spoken, first):
            if name.kind != "learned":
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


def entries_of(campaign: Campaign) -> list[Entry]:
    """The names of a campaign: its NPCs first, then its players, then all other entities."""
    entities = {entity.id: entity for entity in campaign.entities}
    listed: dict[EntityId, Entry] = {}
    for npc in campaign.npcs:
        entity = entities.get(npc.entity_id)
        name, aliases = (entity.name, (npc.name, *entity.aliases)) if entity else (npc.name, ())
        listed[npc.entity_id] = Entry(name, npc.entity_id, "npc", (*aliases, *npc.aliases))
    for player in campaign.players:
        player_entity = EntityId(player.id)
        listed.setdefault(player_entity, Entry(player.name, player_entity, "player"))
    for entity in campaign.entities:
        listed.setdefault(entity.id, Entry(entity.name, entity.id, entity.type, entity.aliases))
    return list(listed.values())


def _ways_to_name(entries: Sequence[Entry], vocabulary: Vocabulary) -> Iterable[tuple[NameKind, str, Entry]]:
    # Own names before aliases before short forms: "Marek" is the smith even if the innkeeper is "Marek's wife".
    for entry in entries:
        yield "name", entry.name, entry
    for entry in entries:
        for alias in entry.aliases:
            yield "alias", alias, entry
    for entry in entries:
        for short in _short_forms(entry, vocabulary):
            yield "short", short, entry
    for entry in entries:
        for wrong in entry.learned:
            if not all(word.folded in vocabulary.stop for word in words(wrong)):
                yield "learned", wrong, entry


def _short_forms(entry: Entry, vocabulary: Vocabulary) -> Iterable[str]:
    """A name without its titles ("Lord Marek Dorn" -> "Marek Dorn"), and the parts of a person's name."""
    parts = words(entry.name)
    bare = [part for part in parts if part.folded not in _TITLES]
    if (
        bare
        and len(bare) < len(parts)
        and bare[-1] is parts[-1]
        and not _is_ordinary([b.full for b in bare], vocabulary)
    ):
        yield entry.name[bare[0].start : bare[-1].end]
    if entry.entity_type in _PERSONS and len(parts) > 1:
        for part in bare:
            if len(part.folded) >= 4 and not _is_ordinary([part.full], vocabulary):
                yield part.text


def _name(text: str, entry: Entry, kind: NameKind, vocabulary: Vocabulary, coder: Coder | None) -> Name:
    joined = fold(text)
    parts = tuple(part.full for part in words(text)) or (joined,)
    return Name(
        text=text,
        entity_id=entry.entity_id,
        entity_type=entry.entity_type,
        canonical=entry.name,
        kind=kind,
        joined=joined,
        words=parts,
        codes=coder(joined) if coder else (),
        is_ordinary=_is_ordinary(parts, vocabulary),
    )


def _is_ordinary(parts: Iterable[str], vocabulary: Vocabulary) -> bool:
    return all(vocabulary.is_ordinary(part) or len(part) < 2 for part in parts)
