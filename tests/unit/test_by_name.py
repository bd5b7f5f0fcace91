"""Whom a question names, as far as an NPC knows of them."""

from __future__ import annotations

from glyphoxa.context.by_name import known_by_name
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import Claim, Fact, secret_of
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, a_campaign
from tests.support.memory import GraphTwin


async def named(graph: GraphTwin, npc: NpcId, question: str) -> dict[str, str]:
    entities = await graph.entities(CAMPAIGN, npc)
    found = await known_by_name(graph, CAMPAIGN, npc, question, entities=entities, relations=graph.of_world)
    return {one.known.entity.name: one.why for one in found}


async def test_who_is_named_is_known_and_why() -> None:
    graph = GraphTwin.of(a_campaign())
    assert await named(graph, SMITH, "Has Eldrinax paid the smith?") == {
        "Eldrinax": "named 'Eldrinax'",
        "Grimjaw": "named 'the smith'",
    }
    assert await named(graph, SMITH, "Who was it?") == {}


async def test_who_is_secret_from_an_npc_is_not_named_for_it() -> None:
    graph = GraphTwin.of(a_campaign())
    graph.scoped = [(e, secret_of([INNKEEPER]) if e.name == "Eldrinax" else scope) for e, scope in graph.scoped]
    assert await named(graph, SMITH, "Who is Eldrinax?") == {}
    assert set(await named(graph, INNKEEPER, "Who is Eldrinax?")) == {"Eldrinax"}


async def test_a_name_inside_a_longer_one_is_meant_where_the_two_belong_together() -> None:
    graph = GraphTwin.of(a_campaign())
    wife = Entity(EntityId("e-wife"), "npc", "Eldrinax's wife")
    graph.scoped.append((wife, graph.scoped[0][1]))
    assert set(await named(graph, SMITH, "Where is Eldrinax's wife?")) == {"Eldrinax's wife"}
    claim = Claim.relation(wife.id, "MARRIED_TO", EntityId("e-eldrinax"))
    graph.of_world.append(Fact(claim.fact_id, claim, seq=1))
    assert set(await named(graph, SMITH, "Where is Eldrinax's wife?")) == {"Eldrinax's wife", "Eldrinax"}
