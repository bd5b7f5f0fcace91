"""What a campaign's file lets each NPC know: for a table that has no database, or whose database is away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Provenance, Status, Viewer, Visibility, secret_of
from glyphoxa.world.api import IdentitySnapshot, Known, StateRows, WorldEntity, WorldState, may_know


def scoped_entities(campaign: Campaign) -> list[tuple[Entity, Visibility]]:
    """The file's entities, with who may know that there is such a thing."""
    return [(entity, _visibility(entity.known_by, hidden=entity.hidden)) for entity in campaign.entities]


def facts_of(campaign: Campaign, *, accept_at: float) -> list[Fact]:
    """What the file says, as facts.

    Args:
        accept_at: The confidence from which the DM need not look at one.
    """
    facts = [
        _fact(Claim.attribute(entity.id, name, value), PUBLIC)
        for entity in campaign.entities
        for name, value in entity.attributes.items()
        if value is not None
    ]
    for related in campaign.relationships:
        fact = _fact(
            Claim.relation(related.source, related.type, related.target),
            _visibility(related.known_by, hidden=related.hidden),
            Provenance(related.confidence, related.origin, related.dm_confirmed, "campaign_file", accept_at=accept_at),
        )
        facts.append(fact.with_(attributes=related.attributes))
    for secret in campaign.secrets:
        if not secret.known_by:
            continue  # nobody is told
        about = secret.about or campaign.npc(min(secret.known_by)).entity_id
        visibility = _visibility(sorted(secret.known_by), hidden=secret.hidden)
        facts.append(_fact(Claim.attribute(about, "secret", secret.text), visibility))
    return facts


def state_of_file(campaign: Campaign, *, accept_at: float) -> WorldState:
    """The file's world, as it would be stored. See `facts_of`."""
    entities = (WorldEntity(e.id, e.type, e.name, e.aliases, visibility) for e, visibility in scoped_entities(campaign))
    state = WorldState()
    state.load((), StateRows(entities=entities, facts=facts_of(campaign, accept_at=accept_at)))
    return state


class ScopedKnowledge:
    """Entities and accepted facts, asked in the name of a viewer like `glyphoxa.world.graph.KnowledgeGraph`."""

    def __init__(self, entities: Iterable[tuple[Entity, Visibility]], facts: Sequence[Fact]) -> None:
        self._entities = {entity.id: (entity, visibility) for entity, visibility in entities}
        self._facts = facts

    @classmethod
    def of_file(cls, campaign: Campaign, *, accept_at: float) -> ScopedKnowledge:
        """See `facts_of`."""
        return cls(scoped_entities(campaign), facts_of(campaign, accept_at=accept_at))

    def entities(self, viewer: Viewer) -> list[Entity]:
        return [entity for entity, visibility in self._entities.values() if visibility.is_visible_to(viewer)]

    def entity(self, viewer: Viewer, entity: EntityId) -> Entity | None:
        found, visibility = self._entities.get(entity, (None, PUBLIC))
        return found if visibility.is_visible_to(viewer) else None

    def facts(self, viewer: Viewer) -> list[Fact]:
        return [fact for fact in self._facts if may_know(viewer, fact, self._visibility_of)]

    def known(self, viewer: Viewer, entity: EntityId) -> Known | None:
        found = self.entity(viewer, entity)
        if found is None:
            return None
        attributes: list[Fact] = []
        relations: list[tuple[Fact, Entity]] = []
        for fact in self.facts(viewer):
            claim = fact.claim
            if entity not in (claim.subject, claim.object):
                continue
            if claim.object is None:
                attributes.append(fact)
                continue
            other = self.entity(viewer, claim.object if claim.subject == entity else claim.subject)
            if other is not None:
                relations.append((fact, other))
        return Known(found, tuple(attributes), tuple(relations))

    def identity(self, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        known = self.known(npc, entity)
        if known is None:
            return None
        # What is hidden is visible to nobody, so that what is left of it here is secret.
        return IdentitySnapshot(known, tuple(fact for fact in self.facts(npc) if fact.visibility.scope == "secret"))

    def _visibility_of(self, entity: EntityId) -> Visibility | None:
        return self._entities[entity][1] if entity in self._entities else None


def _visibility(known_by: Sequence[NpcId], *, hidden: bool) -> Visibility:
    if not known_by and not hidden:
        return PUBLIC
    named = secret_of(known_by)
    return Visibility("hidden", named.knowers) if hidden else named


_OF_THE_FILE = Provenance(dm_confirmed=True, origin="campaign_file")


def _fact(claim: Claim, visibility: Visibility, provenance: Provenance = _OF_THE_FILE) -> Fact:
    status: Status = "accepted" if provenance.is_enough else "pending"
    return Fact(claim.fact_id, claim, seq=0, status=status, provenance=provenance, visibility=visibility)
