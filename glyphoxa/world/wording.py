"""Claims, scopes and moments in words for the DM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from glyphoxa.domain.ids import EntityId, FactId, NpcId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import Claim, Fact, Visibility
from glyphoxa.language.relations import RelationWords, in_words

_LONGEST_VALUE: Final = 400


class Names(Protocol):
    """Names of a campaign's entities, people and sessions, and its sentences for relations."""

    @property
    def relations(self) -> RelationWords: ...

    def called(self, entity: EntityId) -> str: ...

    def visibility_of(self, entity: EntityId) -> Visibility: ...

    def person(self, who: NpcId | SpeakerId) -> str: ...

    def session(self, session: SessionId) -> str: ...


@dataclass(frozen=True, slots=True)
class Words:
    """Wording of an event.

    Attributes:
        facts: Texts of facts; a missing one is shown by its id.
    """

    names: Names
    facts: Mapping[FactId, str] = field(default_factory=dict)

    def fact(self, fact: FactId) -> str:
        return self.facts.get(fact, f"a fact ({fact})")

    def entity(self, entity: EntityId) -> str:
        return self.names.called(entity)

    def session(self, session: SessionId) -> str:
        return self.names.session(session)

    def people(self, npcs: Iterable[NpcId]) -> str:
        return ", ".join(self.names.person(npc) for npc in npcs)

    def claim(self, claim: Claim) -> str:
        return claim_in_words(claim, self.names)

    def visibility(self, visibility: Visibility) -> str:
        return visibility_in_words(visibility, self.names)


def moment(at_ms: int | None) -> str:
    """UTC, to the minute; empty when unknown."""
    return "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def value_in_words(content: object) -> str:
    """An attribute's value: text unchanged, anything else as JSON."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


def whole_value(value: object) -> str:
    """All of an attribute's value as text; nothing for None."""
    if isinstance(value, dict):
        return "; ".join(f"{in_words(name)}: {whole_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(whole_value, value))
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def fact_text(fact: Fact) -> str:
    """All words of a fact but the names of its entities."""
    return f"{in_words(fact.claim.predicate)}: {whole_value(fact.claim.content)} {whole_value(dict(fact.attributes))}"


def claim_in_words(claim: Claim, names: Names) -> str:
    """Return a claim such as: Grimjaw is at The Anvil; Grimjaw, occupation: blacksmith."""
    subject = names.called(claim.subject)
    if claim.object is not None:
        return names.relations.sentence(claim.predicate, subject, names.called(claim.object))
    return f"{subject}, {in_words(claim.predicate)}: {value_in_words(claim.content)}"


def fact_in_words(fact: Fact, names: Names) -> str:
    """Return the claim; of a relation that somebody wrote, also its attributes: A knows B (since: childhood)."""
    claim = claim_in_words(fact.claim, names)
    if fact.claim.object is None or fact.provenance.origin == "talk" or not fact.attributes:
        return claim
    also = "; ".join(f"{in_words(name)}: {value_in_words(value)}" for name, value in fact.attributes.items())
    return f"{claim} ({also})"


def known_to(fact: Fact, names: Names) -> Visibility:
    """Return who may know a fact: nobody who may not know of its entities."""
    seen = fact.visibility
    for end in fact.claim.ends:
        seen = seen.within(names.visibility_of(end))
    return seen


def known_to_in_words(fact: Fact, names: Names) -> str:
    """Such as: public; secret: Grimjaw, Elowen; hidden with Zharothrix, which is hidden itself."""
    guards = (end for end in fact.claim.ends if not fact.visibility.is_within(names.visibility_of(end)))
    return visibility_in_words(known_to(fact, names), names, guarded_by=" and ".join(map(names.called, guards)))


def visibility_in_words(visibility: Visibility, names: Names, *, guarded_by: str = "") -> str:
    """Such as: public; secret: Grimjaw, Elowen; hidden with Zharothrix."""
    scope = f"{visibility.scope} with {guarded_by}" if guarded_by else visibility.scope
    knowers = ", ".join(names.person(knower.npc) for knower in visibility.knowers)
    if visibility.scope == "public":
        return "public"
    if visibility.scope == "hidden":
        return f"{scope} (would be known to {knowers})" if knowers else scope
    return f"{scope}: {knowers or 'nobody'}"
