"""Extraction without a model: known and introduced names, and sentences of known forms."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from glyphoxa.chronicle.consent_requests import asks_to_forget
from glyphoxa.chronicle.statements import (
    SPEAKER,
    MarkedSentence,
    facts_in,
    other_kinds_in,
    relations_in,
    sentences_of,
    stands_in,
)
from glyphoxa.chronicle.talk import (
    ExtractedEntity,
    ExtractedFact,
    ExtractedRelation,
    Extraction,
    KnownEntity,
    NumberedUtterance,
    SceneTalk,
)
from glyphoxa.chronicle.utterance_nodes import said_in_words
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.language.calls import NamedPlace, calls_in
from glyphoxa.language.language_data import primary_language
from glyphoxa.language.new_names import NewName, name_finder
from glyphoxa.language.roles import OTHERS
from glyphoxa.language.sentences import parts_of
from glyphoxa.language.table_talk import marked_out_of_character, out_of_character
from glyphoxa.language.words import fold, words
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry, Name, described_in, fits_person
from glyphoxa.names.reader import Mention
from glyphoxa.world.state import WorldEntity

PEOPLE: Final = ("npc", "player")
_OF_MENTION: Final = 0.9
_OF_ANOTHER: Final = 0.75
"""Confidence that a known name with a title of somebody else is a new name."""
MOST_CHARS: Final = 50_000
"""Characters of one line that are read, an hour of speech without a break. The line itself is stored whole."""
_LEAST_WORTH: Final = 0.4
"""Confidence of a fact that the DM may review. `python -m benchmarks.sayings` measures it."""


def names_of(known: Iterable[WorldEntity | Entity], language: str, before: Gazetteer | None = None) -> Gazetteer:
    """Return the gazetteer of these entities, made from an earlier one if there is one."""
    entries = [_entry_of(each, language) for each in known]
    return Gazetteer.build(entries, language=language) if before is None else before.having(entries)


def _entry_of(entity: WorldEntity | Entity, language: str) -> Entry:
    aliases = entity.aliases
    if primary_language(language) == "de":
        aliases = (*aliases, *(form for name in entity.names for form in _inflected(name)))
    return Entry(entity.name, entity.id, entity.type, aliases)


def _inflected(name: str) -> Iterator[str]:
    """Yield German inflections: "der Eiserne Bund" is also "des Eisernen Bundes" and "dem Eisernen Bund"."""
    words = name.split()
    if words and words[0] in ("Der", "Die", "Das", "der", "die", "das"):
        words = words[1:]
    if len(words) > 1 and words[0].endswith("e"):
        yield from (" ".join((words[0] + ending, *words[1:])) for ending in ("n", "m", "r", "s"))
        yield " ".join((words[0] + "n", *words[1:-1], words[-1] + "es"))


_PERHAPS_CALLED: Final = -1.5
"""Log odds from which a name before a comma may be a call: no relation is better than one of the wrong person."""


def without_called(text: str, named: Sequence[NamedPlace]) -> list[NamedPlace]:
    """Return the names without those of people who are spoken to, set apart by punctuation."""
    ends = (text[each.end : each.end + 1] for each in named)
    least = (_PERHAPS_CALLED if end == "," else math.inf if end.isspace() else 0.0 for end in ends)
    return [each for each, odds, call in zip(named, calls_in(text, named), least, strict=True) if odds <= call]


def meant_in(
    text: str, names: Gazetteer, known: Mapping[EntityId, KnownEntity]
) -> Iterator[tuple[Mention, EntityId | None, NewName | None]]:
    """Yield the names in a text, and whom each means.

    None: the title, the trade or the age beside it is another person's, or it may be several people's. In the first
    case the name of the other person follows, unless nothing but "the other" tells them apart.
    """
    spoken = words(text)
    for mention in names.mentions(text, with_shared=True):
        claims = [one for one in names.claims_of(mention.name) if one.entity_type in PEOPLE]
        if not claims or mention.name.entity_type not in PEOPLE:
            yield mention, mention.name.entity_id, None
            continue
        begins, ends, described = described_in(spoken, mention.first, mention.last)
        fits = {one: fits_person(described, _described(one, known)) for one in claims}
        found = [one for one in claims if fits[one]] or [
            one for one in claims if one.kind == mention.name.kind and fits[one] is None
        ]
        if len(found) == 1 or not described or not OTHERS.isdisjoint(described):
            yield mention, found[0].entity_id if len(found) == 1 else None, None
            continue
        start, end = spoken[begins].start, spoken[ends].end
        yield mention, None, NewName(text[start:end].replace(",", ""), "npc", start, end, _OF_ANOTHER)


def _described(name: Name, known: Mapping[EntityId, KnownEntity]) -> list[str]:
    """Return the words of a person's names and occupations."""
    entity = known.get(name.entity_id)
    texts = (name.canonical,) if entity is None else (*entity.names, *entity.occupations)
    return " ".join(texts).lower().split()


class RulesExtractor:
    """An `Extractor` without a model.

    Args:
        language: BCP 47 tag of the campaign.
        nobody: Names that are no part of the story: of its narrators, of the campaign, and words that it coined.
    """

    def __init__(self, language: str, *, nobody: Iterable[str] = ()) -> None:
        self._language = language
        self._nobody = frozenset(fold(name) for name in nobody)
        self.names = names_of((), language)
        """The gazetteer of the entities known at the last reading."""

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        # It takes a few milliseconds, and a table may be playing on the same loop.
        return await asyncio.to_thread(self.find, talk, known)

    def find(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        """See `Extractor.extract`."""
        names = self.index(known)
        return _Reading(talk, known, names, self._nobody).read()

    def index(self, known: Sequence[KnownEntity]) -> Gazetteer:
        """Return the gazetteer of the known entities: that of the last stretch, updated with changes."""
        self.names = names_of(known, self._language, self.names)
        return self.names


class _Reading:
    """One stretch as the rules read it."""

    def __init__(
        self,
        talk: SceneTalk,
        known: Sequence[KnownEntity],
        names: Gazetteer,
        nobody: Collection[str],
    ) -> None:
        self._talk = talk
        self._known = {entity.id: entity for entity in known}
        speaking = (*reversed(known), *(entity for entity in known if entity.type == "player"))
        self._by_name = {fold(name): entity for entity in speaking for name in entity.names}
        self._names = names
        speakers = {fold(each.utterance.speaker_name) for each in (*talk.before, *talk.said)}
        self._nobody = {name for name in speakers if name not in self._by_name} | set(nobody)
        self._new: dict[str, NewName] = {}
        self._found: dict[str, ExtractedEntity] = {}
        self._relations: dict[tuple[str, str, str], ExtractedRelation] = {}
        self._facts: dict[tuple[str, str, str], ExtractedFact] = {}
        self._refused: dict[str, None] = {}

    def read(self) -> Extraction:
        told = [
            replace(said, utterance=replace(said.utterance, text=part))
            for said in self._talk.said
            if said.utterance.is_evidence
            and not marked_out_of_character(said.utterance.text)
            and not asks_to_forget(said.utterance.text)
            for part in self._parts(said.utterance.text)
        ]
        self._introduce_all(told)
        for said in told:
            self._utterance(said)
        return Extraction(
            tuple(self._found.values()),
            tuple(self._relations.values()),
            tuple(self._facts.values()),
            tuple(self._refused),
        )

    def _parts(self, text: str) -> list[str]:
        if len(text) > MOST_CHARS:
            self._refused[f"only {MOST_CHARS} of {len(text)} characters were read: {text[:80]!r}"] = None
        return parts_of(text[:MOST_CHARS])

    def _introduce_all(self, told: Sequence[NumberedUtterance]) -> None:
        """Register introduced names first, so that all lines know them, even by a part of the name."""
        for said in told:
            text = said.utterance.text
            named = list(meant_in(text, self._names, self._known))
            taken = [(mention.start, mention.end) for mention, *_ in named]
            self._new |= {fold(other.text): other for _, _, other in named if other is not None}
            for new in name_finder(self._talk.language).names_in(text, taken=taken, nobody=self._nobody):
                known = self._new.get(fold(new.text))
                if known is None or known.confidence < new.confidence:
                    self._new[fold(new.text)] = new
        whole = [new.text.split() for new in self._new.values()]
        self._new = {
            name: new
            for name, new in self._new.items()
            if not any(other != new.text.split() and stands_in(new.text.split(), other) for other in whole)
        }
        introduced = [Entry(new.text, EntityId(f"new:{name}"), new.type) for name, new in self._new.items()]
        self._names = self._names.having([*self._names.entries, *introduced])

    def _utterance(self, said: NumberedUtterance) -> None:
        person: str | None = None
        named = self._named(said)
        # "Odo, my brother is ill" is said to Odo, whom the sentence does not concern.
        for sentence in sentences_of(said.utterance.text, without_called(said.utterance.text, named)):
            if out_of_character(sentence.text) is not None:
                continue
            if person is not None:
                sentence = sentence.after(person)  # noqa: PLW2901 - the same sentence with its pronoun resolved
            self._sentence(sentence, said)
            person = self._person_of(sentence) or person

    def _sentence(self, sentence: MarkedSentence, said: NumberedUtterance) -> None:
        evidence = (said.utterance.id,)
        for relation in relations_in(sentence):
            source, target = self._key(relation.source, said), self._key(relation.target, said)
            if source is not None and target is not None and source != target:
                found = replace(relation, source=source, target=target, evidence=evidence)
                self._relations.setdefault((source, relation.type, target), found)
        for fact in (*facts_in(sentence), *other_kinds_in(sentence)):
            subject = self._key(fact.subject, said)
            if subject is not None and fact.confidence >= _LEAST_WORTH:
                quoted = said_in_words(said.utterance.speaker_name, fact.value, self._talk.language)
                value = quoted if fact.about == str(fact.kind) else fact.value
                stated = replace(fact, subject=subject, value=value, evidence=evidence)
                self._facts.setdefault((subject, fact.about, value), stated)

    def _person_of(self, sentence: MarkedSentence) -> str | None:
        """Return the person that "he" or "she" means in the next sentence: the only person named in this one."""
        people = {key for key in sentence.keys if self._found[key].type in PEOPLE}
        return people.pop() if len(people) == 1 else None

    def _named(self, said: NumberedUtterance) -> list[NamedPlace]:
        text, by = said.utterance.text, said.utterance.id
        named: list[NamedPlace] = []
        for mention, meant, _ in meant_in(text, self._names, self._known):
            if mention.name.is_faint and not text[mention.start].isupper():
                continue
            if meant is None:
                self._refused[f"several may be called {text[mention.start : mention.end]!r}: {text[:80]!r}"] = None
                continue
            if (known := self._known.get(meant)) is not None:
                key = self._meet(known, by)
            else:
                new = self._new[meant.removeprefix("new:")]
                entity = ExtractedEntity(f"new:{fold(new.text)}", new.text, new.type, (by,), new.confidence)
                key = self._find(entity)
            named.append(NamedPlace(key, mention.start, mention.end))
        return named

    def _meet(self, entity: KnownEntity, by: UtteranceId) -> str:
        return self._find(ExtractedEntity(entity.id, entity.name, entity.type, (by,), _OF_MENTION, known=entity.id))

    def _find(self, entity: ExtractedEntity) -> str:
        """Add an entity, or its utterance to the evidence of the one found before. Returns its key."""
        found = self._found.setdefault(entity.key, entity)
        if found.evidence[-1:] != entity.evidence:
            self._found[entity.key] = replace(found, evidence=found.evidence + entity.evidence)
        return entity.key

    def _key(self, key: str, said: NumberedUtterance) -> str | None:
        """Return the key of a name or of the speaker; None for a speaker outside the story, or an unknown one."""
        if key != SPEAKER:
            return key
        name = said.utterance.speaker_name
        if fold(name) in self._nobody or not name.strip():
            return None
        entity = self._by_name.get(fold(name))
        return None if entity is None else self._meet(entity, said.utterance.id)
