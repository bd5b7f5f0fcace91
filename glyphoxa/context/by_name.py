"""Whom and what a question names, as far as one NPC knows of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.memory.ports.graph import KnowledgeGraph, Known
from glyphoxa.memory.recall.exact.facts import named_entity, named_relation
from glyphoxa.memory.recall.exact.gate import ExactGate


@dataclass(frozen=True, slots=True)
class KnownByName:
    """
    Attributes:
        why: "named 'the smith'".
    """

    known: Known
    why: str


async def known_by_name(
    graph: KnowledgeGraph,
    campaign: CampaignId,
    npc: NpcId,
    question: str,
    *,
    entities: Iterable[Entity],
    relations: Iterable[Fact] = (),
    language: str = "en",
) -> list[KnownByName]:
    """What the NPC knows of those whom the question names, in the order in which they are named.

    Args:
        entities: All that the NPC knows of.
        relations: Facts that it knows: a name inside a longer one is meant where the two belong together.
        language: Of the campaign.

    Raises:
        Unavailable: The graph cannot be asked.
    """
    gate = ExactGate(map(named_entity, entities), language=language)
    for fact in relations:
        if fact.claim.object is not None:
            gate.put(named_relation(fact))
    found = []
    for called in gate.ask(question).called:
        known = await graph.known(campaign, npc, EntityId(called.item.id))
        if known is not None:
            found.append(KnownByName(known, called.why))
    return found
