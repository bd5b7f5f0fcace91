"""What a campaign file says of the world: claims, each with how sure it is and who may know it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.campaign import Campaign, Entity, Secret
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Knower, Origin, Provenance, Visibility, secret_of
from glyphoxa.world.api import FactStated, rule_of

OFFERED: Final = "its attribute `location` names it"
"""Why a LOCATED_AT is offered that the file does not state."""
_OFFERED_CONFIDENCE = 0.6


def visibility_of(known_by: Collection[NpcId], *, hidden: bool) -> Visibility:
    """As a campaign file writes it: `known_by` and `hidden`."""
    if hidden:
        return Visibility.of("hidden", (Knower(npc, "secret") for npc in known_by))
    return secret_of(known_by) if known_by else PUBLIC


@dataclass(frozen=True, slots=True)
class Loading:
    """
    Attributes:
        origin: Of what is stated: "campaign_file", or "import" for tables.
        at_ms: Now, milliseconds since the Unix epoch.
        accept_at: The confidence from which facts are accepted without the DM.
    """

    origin: Origin
    at_ms: int
    accept_at: float


def claims_of(campaign: Campaign, resolve: Callable[[EntityId], EntityId], loading: Loading) -> dict[Claim, FactStated]:
    """Everything the campaign states, one statement a claim.

    Args:
        resolve: From an entity to the one into which it was merged: what is said of it is said of that one.

    Raises:
        InvalidInput: A secret is known to nobody and about nothing, or a value is none that JSON can hold.
    """
    origin, at_ms, accept_at = loading.origin, loading.at_ms, loading.accept_at
    firm = Provenance(1.0, "stated", dm_confirmed=True, origin=origin, at_ms=at_ms, accept_at=accept_at)
    found: dict[Claim, FactStated] = {}
    for entity in campaign.entities:
        for claim in _attribute_claims(entity, resolve(entity.id), campaign):
            found[claim] = FactStated(claim, firm)
    for relationship in campaign.relationships:
        source, target = resolve(relationship.source), resolve(relationship.target)
        if source == target:
            continue  # the two turned out to be one
        claim = Claim.relation(source, relationship.type, target)
        sure = replace(
            firm,
            confidence=relationship.confidence,
            source=relationship.origin,
            dm_confirmed=relationship.dm_confirmed,
        )
        visibility = visibility_of(relationship.known_by, hidden=relationship.hidden)
        before = found.get(claim)
        also = {} if before is None else before.attributes
        found[claim] = FactStated(claim, sure, visibility, attributes={**also, **relationship.attributes})
    for secret in campaign.secrets:
        claim = Claim.attribute(resolve(_subject(secret, campaign)), "secret", secret.text)
        visibility = visibility_of(secret.known_by, hidden=secret.hidden or not secret.known_by)
        before = found.get(claim)
        if before is not None and before.visibility.scope == visibility.scope:
            visibility = visibility.known_to(*before.visibility.knowers)
        found[claim] = FactStated(claim, firm, visibility)
    for claim in _offers(campaign, resolve):
        wait = replace(firm, confidence=_OFFERED_CONFIDENCE, source="inferred", dm_confirmed=False, reason=OFFERED)
        found.setdefault(claim, FactStated(claim, wait))
    return found


def is_offer(stated: FactStated) -> bool:
    return stated.provenance.reason == OFFERED


def _attribute_claims(entity: Entity, subject: EntityId, campaign: Campaign) -> Iterable[Claim]:
    """A list is one value, except where several may hold at a time: then each of its items is one."""
    for name, value in entity.attributes.items():
        if value is None:
            continue
        whole = Claim.attribute(subject, name, value)
        if isinstance(value, list | tuple) and value and rule_of(whole, campaign.slots) == "many":
            yield from (Claim.attribute(subject, name, item) for item in value)
        else:
            yield whole


def _subject(secret: Secret, campaign: Campaign) -> EntityId:
    if secret.about is not None:
        return secret.about
    if not secret.known_by:
        raise InvalidInput(f"a secret that nobody knows must be about something: {secret.text!r}")
    return campaign.npc(min(secret.known_by)).entity_id


def _offers(campaign: Campaign, resolve: Callable[[EntityId], EntityId]) -> Iterable[Claim]:
    """An attribute `location` that holds the name of an entity, where the file does not say LOCATED_AT itself."""
    placed = {relation.source for relation in campaign.relationships if relation.type == "LOCATED_AT"}
    by_name: Mapping[str, EntityId] = {entity.name.casefold(): entity.id for entity in campaign.entities}
    for entity in campaign.entities:
        named = entity.attributes.get("location")
        place = by_name.get(named.strip().casefold()) if isinstance(named, str) else None
        if place is not None and entity.id not in placed and resolve(entity.id) != resolve(place):
            yield Claim.relation(resolve(entity.id), "LOCATED_AT", resolve(place))
