"""Turn a campaign file into what it states about the world: claims with their confidence and visibility.

The same claims are compared when a file is loaded, and are the world of a table without a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from glyphoxa.domain.campaign import Campaign, Secret, SlotRule
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Provenance, Visibility, visibility_of
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import Cause, WorldEvent, apply
from glyphoxa.world.state import WorldEntity, WorldState, rule_of

OFFERED: Final = "its attribute `location` names it"
"""Why a LOCATED_AT that the file does not state is offered."""
_OFFERED_CONFIDENCE = 0.6
_NO_TIME_MS: Final = 0


Guards: TypeAlias = Mapping[EntityId, Visibility]


def claims_of(
    campaign: Campaign,
    firm: Provenance,
    *,
    resolve: Callable[[EntityId], EntityId] = EntityId,
    guards: Guards = MappingProxyType({}),
) -> dict[Claim, FactStated]:
    """Return one statement for each claim that the campaign makes.

    Args:
        firm: The provenance of what the file states firmly, confirmed by the DM: its origin is "campaign_file" or
            "import", and its time is None if the statements have no time.
        resolve: Maps an entity to the one it was merged into.
        guards: Entities that players know although the file hides them: what it adds is for those who may know them.

    Raises:
        InvalidInput: A secret is known to nobody and about nothing, or JSON cannot hold a value.
    """
    found: dict[Claim, FactStated] = {}
    for entity in campaign.entities:
        guard, subject = guards.get(entity.id, PUBLIC), resolve(entity.id)
        for name, value in entity.attributes.items():
            for claim in attribute_claims(subject, name, value, campaign.slots):
                if guard == PUBLIC or claim not in found:
                    found[claim] = FactStated(claim, firm, guard)
    for relationship in campaign.relationships:
        source, target = resolve(relationship.source), resolve(relationship.target)
        if source == target:
            continue  # the two were merged
        claim = Claim.relation(source, relationship.type, target)
        sure = replace(
            firm,
            confidence=relationship.confidence,
            source=relationship.origin,
            dm_confirmed=relationship.dm_confirmed,
        )
        visibility = visibility_of(relationship)
        for end in (relationship.source, relationship.target):
            visibility = visibility.within(guards.get(end, PUBLIC))
        before = found.get(claim)
        also = {} if before is None else before.attributes
        found[claim] = FactStated(claim, sure, visibility, attributes={**also, **relationship.attributes})
    for secret in campaign.secrets:
        claim = Claim.attribute(resolve(_subject(secret, campaign)), "secret", secret.text)
        visibility = visibility_of(secret)
        before = found.get(claim)
        if before is not None and before.visibility.scope == visibility.scope:
            visibility = visibility.known_to(*before.visibility.knowers)
        found[claim] = FactStated(claim, firm, visibility)
    for claim in _offers(campaign, resolve):
        found.setdefault(claim, FactStated(claim, offered(firm)))
    return found


def attribute_claims(
    subject: EntityId, name: str, value: object, rules: Mapping[str, SlotRule] = MappingProxyType({})
) -> list[Claim]:
    """Return an attribute's claims: one, or one per list item where several values may hold at a time; none for None.

    Raises:
        InvalidInput: JSON cannot hold the value.
    """
    if value is None:
        return []
    whole = Claim.attribute(subject, name, value)
    if isinstance(value, list | tuple) and value and rule_of(whole, rules) == "many":
        return [Claim.attribute(subject, name, item) for item in value]
    return [whole]


def offered(firm: Provenance) -> Provenance:
    """Return the provenance of a LOCATED_AT that is offered for review beside what is stated."""
    return replace(firm, confidence=_OFFERED_CONFIDENCE, source="inferred", dm_confirmed=False, reason=OFFERED)


def _subject(secret: Secret, campaign: Campaign) -> EntityId:
    if secret.about is not None:
        return secret.about
    if not secret.known_by:
        raise InvalidInput(f"a secret that nobody knows must be about something: {secret.text!r}")
    return campaign.npc(min(secret.known_by)).entity_id


def _offers(campaign: Campaign, resolve: Callable[[EntityId], EntityId]) -> Iterable[Claim]:
    """Yield a LOCATED_AT where an attribute `location` names an entity and the file states no LOCATED_AT."""
    placed = {relation.source for relation in campaign.relationships if relation.type == "LOCATED_AT"}
    by_name: Mapping[str, EntityId] = {entity.name.casefold(): entity.id for entity in campaign.entities}
    for entity in campaign.entities:
        named = entity.attributes.get("location")
        place = by_name.get(named.strip().casefold()) if isinstance(named, str) else None
        if place is not None and entity.id not in placed and resolve(entity.id) != resolve(place):
            yield Claim.relation(resolve(entity.id), "LOCATED_AT", resolve(place))


def state_of_file(campaign: Campaign, *, accept_at: float) -> WorldState:
    """Return the file's world, as it would be stored. See `claims_of`.

    Args:
        accept_at: The certainty from which a fact is accepted without review.
    """
    state = WorldState(campaign.slots.items())
    state.load(entities=(WorldEntity(e.id, e.type, e.name, e.aliases, visibility_of(e)) for e in campaign.entities))
    cause = Cause("campaign_file", _NO_TIME_MS)
    firm = Provenance(dm_confirmed=True, origin="campaign_file", accept_at=accept_at)
    for seq, stated in enumerate(claims_of(campaign, firm).values(), start=1):
        apply(state, WorldEvent(seq, cause, stated))
    state.begin()
    return state
