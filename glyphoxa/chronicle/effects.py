"""Turns an extraction into events: resolves names, drops invalid claims, and sets who may know them."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from glyphoxa.chronicle.statements import sentences_of
from glyphoxa.chronicle.talk import (
    NOT_TOLD,
    ExtractedEntity,
    ExtractedFact,
    ExtractedRelation,
    Extraction,
    Kind,
    KnownEntity,
    NumberedUtterance,
    SceneTalk,
)
from glyphoxa.chronicle.utterance_nodes import StateAtom
from glyphoxa.domain.campaign import ENTITY_TYPES, Findings
from glyphoxa.domain.ids import EntityId, NpcId, UtteranceId
from glyphoxa.domain.knowledge import AUTO_ACCEPT, NEVER, Claim, Provenance, Visibility, witnessed_by
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.words import fold
from glyphoxa.names.naming import Called, Resolver
from glyphoxa.world.event_kinds import EntityAdded, EntityScoped, FactStated
from glyphoxa.world.event_log import Cause, Event
from glyphoxa.world.state import rule_of

MAX_ENTITIES: Final = 60
MAX_CLAIMS: Final = 120
"""Limit for one stretch. More findings in forty utterances are repetitions or inventions."""
MAX_NAME_CHARS: Final = 80
MAX_VALUE_CHARS: Final = 300
MAX_OVERRULING_CONFIDENCE: Final = 0.6
"""Confidence limit for a claim that would end a stored one, such as a location. The DM decides."""
_SAME_NAME: Final = 92.0
"""Similarity (of 100) at which two spellings of six letters or more are the same name."""
_MIN_MISSPELT: Final = 6
_PREDICATE = re.compile(r"[^\W\d_]\w{0,39}")
_ARTICLES: Final = lexicon("chronicle").compile(r"^{articles}\s+", flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Effect:
    """The events from one utterance."""

    cause: Cause
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Effects:
    """The result for a stretch.

    Attributes:
        of: Effects in the order of the utterances.
        refused: Reasons why findings were rejected.
        ids: The entities of the extraction's keys.
        atoms: State atoms of the utterances worth remembering.
    """

    of: tuple[Effect, ...]
    refused: tuple[str, ...] = ()
    ids: Mapping[str, EntityId] = field(default_factory=dict)
    atoms: tuple[StateAtom, ...] = ()


def effects_of(
    extraction: Extraction, talk: SceneTalk, known: Sequence[KnownEntity], *, findings: Findings = "review"
) -> Effects:
    """Return events for the findings, grouped by the last utterance of their evidence.

    An NPC may know a claim if it heard all of its evidence, and may know an entity if it heard one mention. Names are
    looked up among known entities before one is added. Findings without valid evidence or form are dropped, and so
    are those that only an NPC said, because a model invented its words.

    Args:
        findings: `review`: the DM must confirm each claim. `accept`: only those of low confidence.
    """
    return _Writing(talk, known, NEVER if findings == "review" else AUTO_ACCEPT).write(extraction)


class _Writing:
    def __init__(self, talk: SceneTalk, known: Sequence[KnownEntity], accept_at: float) -> None:
        self._talk = talk
        self._accept_at = accept_at
        in_story = (each for each in (*talk.before, *talk.said) if each.utterance.aside is None)
        self._said = {each.utterance.id: each for each in in_story}
        self._names = Resolver(known, _called, campaign=talk.campaign, what="entity", plural="entities")
        self._of_key: dict[str, EntityId] = {}
        self._events = defaultdict[UtteranceId, list[Event]](list)
        self._refused: list[str] = []
        self._rumoured: set[str] = set()

    def write(self, extraction: Extraction) -> Effects:
        self._rumoured = {fact.subject for fact in extraction.facts if fact.kind is Kind.RUMOUR}
        for entity in extraction.entities[:MAX_ENTITIES]:
            self._entity(entity)
        for relation in extraction.relations[:MAX_CLAIMS]:
            self._claim(relation)
        for fact in extraction.facts[:MAX_CLAIMS]:
            self._claim(fact)
        left = len(extraction.entities[MAX_ENTITIES:]) + sum(
            len(claims[MAX_CLAIMS:]) for claims in (extraction.relations, extraction.facts)
        )
        if left:
            self._refused.append(f"{left} findings above the limit for a stretch")
        in_order = sorted(self._events, key=lambda each: self._said[each].ordinal)
        return Effects(
            tuple(Effect(self._cause(self._said[each]), tuple(self._events[each])) for each in in_order),
            (*extraction.refused, *self._refused),
            self._of_key,
        )

    def _entity(self, entity: ExtractedEntity) -> None:
        name = " ".join(entity.name.split())
        rests_on = self._evidence(entity.evidence)
        if not rests_on or not folded(name) or len(name) > MAX_NAME_CHARS or not name.isprintable():
            self._refused.append(f"no name, or no evidence in the transcript: {name[:MAX_NAME_CHARS]!r}")
            return
        visibility = self._heard_by_any(rests_on)
        met = self._met(entity, name)
        if met is None and not self._is_told(name, rests_on, is_rumoured=entity.key in self._rumoured):
            self._refused.append(f"only asked about, or first named by an NPC: {name!r}")
            return
        if met is None:
            type_ = entity.type if entity.type in ENTITY_TYPES or _PREDICATE.fullmatch(entity.type) else "concept"
            aliases = tuple(dict.fromkeys(each for each in entity.aliases if 0 < len(each) <= MAX_NAME_CHARS))
            met = KnownEntity(self._free_id(name), type_, name, aliases, visibility, "talk")
            self._names.add(met)
            self._add_entity(met, _of_players(rests_on)[0])
        elif met.is_of_talk and not visibility.is_within(met.visibility):
            wider = met.visibility.known_to(*visibility.knowers)
            self._events[_of_players(rests_on)[0].utterance.id].append(EntityScoped(met.id, wider))
            self._names.add(replace(met, visibility=wider))
        self._of_key[entity.key] = met.id

    def _is_told(self, name: str, rests_on: Sequence[NumberedUtterance], *, is_rumoured: bool) -> bool:
        """Return whether a player states something about a new name that no NPC has just brought up."""
        spelled = folded(name)
        first = next((each for each in self._said.values() if spelled in folded(each.utterance.text)), None)
        if first is not None and first.utterance.npc_id is not None:
            return False
        return is_rumoured or is_stated_of(name, rests_on)

    def _met(self, entity: ExtractedEntity, name: str) -> KnownEntity | None:
        if entity.known is not None and entity.known in self._names.by_id:
            return self._names.by_id[entity.known]
        for each in (name, *entity.aliases):
            if (found := self._names.exact_or_bare(each)) is not None:
                return found
        near = self._names.like(name, least=_SAME_NAME) if len(fold(name)) >= _MIN_MISSPELT else []
        return near[0] if near and near[0].type == entity.type else None

    def _free_id(self, name: str) -> EntityId:
        slug = re.sub(r"[\W_]+", "-", folded(name)).strip("-")[:60].strip("-") or "somebody"
        free, n = slug, 1
        while free in self._names.by_id:
            n += 1
            free = f"{slug}-{n}"
        return EntityId(free)

    def _claim(self, found: ExtractedRelation | ExtractedFact) -> None:
        claim, rests_on = self._claim_of(found), self._evidence(found.evidence)
        if claim is None or not rests_on:
            return
        last = _of_players(rests_on)[-1]
        sure = min(max(found.confidence, 0.0), 1.0)
        if self._would_overrule(claim):
            sure = min(sure, MAX_OVERRULING_CONFIDENCE)
        cause, speaker = self._cause(last), last.utterance.speaker_name
        provenance = Provenance(
            sure,
            "inferred" if found.is_inferred else "stated",
            origin="talk",
            session_id=cause.session_id,
            utterance_id=cause.utterance_id,
            ordinal=cause.ordinal,
            at_ms=cause.at_ms,
            reason=f"a model concluded it from what {speaker} said" if found.is_inferred else f"{speaker} said so",
            accept_at=self._accept_at if found.kind is Kind.NOW else NEVER,
        )
        # If a scene mentions a guarded entity, only its listeners may know the claim.
        also = {"evidence": [each.utterance.id for each in rests_on]} if len(rests_on) > 1 else {}
        for end in (claim.subject, claim.object):
            # An entity that another utterance named first exists without this one.
            if end is not None and self._names.by_id[end].is_of_talk:
                self._add_entity(self._names.by_id[end], last)
        stated = FactStated(claim, provenance, self._heard_by_all(rests_on), attributes=also)
        self._events[last.utterance.id].append(stated)

    def _would_overrule(self, claim: Claim) -> bool:
        rule = rule_of(claim, {})
        one = claim.object if rule == "functional_object" else claim.subject
        return rule in ("functional", "functional_object") and one is not None and not self._names.by_id[one].is_of_talk

    def _claim_of(self, found: ExtractedRelation | ExtractedFact) -> Claim | None:
        if isinstance(found, ExtractedRelation):
            source, target = self._of_key.get(found.source), self._of_key.get(found.target)
            if source is None or target is None or source == target or not _PREDICATE.fullmatch(found.type):
                self._refused.append(f"no relation: {found.source!r} {found.type!r} {found.target!r}")
                return None
            return Claim.relation(source, found.type, target)
        subject, value = self._of_key.get(found.subject), " ".join(found.value.split())
        if subject is None or not _PREDICATE.fullmatch(found.about) or not 0 < len(value) <= MAX_VALUE_CHARS:
            self._refused.append(f"no fact: {found.subject!r} {found.about!r}")
            return None
        return Claim.attribute(subject, found.about, value)

    def _evidence(self, ids: Iterable[UtteranceId]) -> list[NumberedUtterance]:
        """Return the evidence in order; empty if no player said any of it in the stretch, or a line is unknown."""
        unique = dict.fromkeys(ids)
        if any(each not in self._said for each in unique):
            return []
        rests_on = sorted((self._said[each] for each in unique), key=lambda each: each.ordinal)
        return [] if self._talk.is_context(unique) else rests_on

    def _heard_by_all(self, rests_on: Sequence[NumberedUtterance]) -> Visibility:
        last = rests_on[-1].utterance
        listeners = frozenset.intersection(*(each.utterance.witnesses for each in rests_on))
        return witnessed_by(sorted(listeners), at_ms=last.at_ms, utterance=last.id)

    def _heard_by_any(self, rests_on: Sequence[NumberedUtterance]) -> Visibility:
        first = rests_on[0].utterance
        listeners = frozenset[NpcId]().union(*(each.utterance.witnesses for each in rests_on))
        return witnessed_by(sorted(listeners), at_ms=first.at_ms, utterance=first.id)

    def _cause(self, said: NumberedUtterance) -> Cause:
        return Cause("talk", said.utterance.at_ms, self._talk.session, said.ordinal, said.utterance.id)

    def _add_entity(self, entity: KnownEntity, by: NumberedUtterance) -> None:
        added = EntityAdded(entity.id, entity.type, entity.name, entity.aliases, entity.visibility, "talk")
        events = self._events[by.utterance.id]
        if not any(isinstance(event, EntityAdded) and event.entity == entity.id for event in events):
            events.append(added)


def is_stated_of(name: str, said: Iterable[NumberedUtterance]) -> bool:
    """Return whether a player states something with a name, and does not only ask or deny it."""
    return any(
        folded(name) in folded(sentence.text) and sentence.told not in (*NOT_TOLD, Kind.DENIED)
        for each in _of_players(said)
        for sentence in sentences_of(each.utterance.text, ())
    )


def _called(entity: KnownEntity) -> Called:
    return Called(entity.id, (entity.name,), entity.aliases, entity.type)


def _of_players(said: Iterable[NumberedUtterance]) -> list[NumberedUtterance]:
    return [each for each in said if each.utterance.is_evidence]


def folded(name: str) -> str:
    """Normalise a name for comparison: no article, no accents, lower case."""
    plain = unicodedata.normalize("NFKD", _ARTICLES.sub("", " ".join(name.split())).casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))
