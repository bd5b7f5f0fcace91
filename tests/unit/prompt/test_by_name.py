"""Whom a question names, as far as an NPC knows of them, and what it is told of them."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.campaign import Entity, Relationship
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim
from glyphoxa.prompt.identity import Identities
from glyphoxa.prompt.known_world import KnownWorld
from tests.support.builders import INNKEEPER, SMITH, a_campaign, known
from tests.support.memory import GraphTwin, WorldTwin

ELDRINAX, MIRELLE = EntityId("e-eldrinax"), EntityId("e-mirelle")
FEUD = Entity(EntityId("e-feud"), "event", "the Salt Feud")


def a_feud() -> GraphTwin:
    """In which two took part."""
    graph = GraphTwin.of(a_campaign())
    graph.scoped.append((FEUD, PUBLIC))
    graph.of_world += [
        known(Claim.attribute(FEUD.id, "description", "The Salt Feud was about salt.")),
        known(Claim.relation(ELDRINAX, "PARTICIPATED_IN", FEUD.id)),
        known(Claim.relation(MIRELLE, "PARTICIPATED_IN", FEUD.id)),
    ]
    return graph


async def of(graph: GraphTwin) -> KnownWorld:
    by_name = KnownWorld(a_campaign(), WorldTwin(graph))
    await by_name.refresh()
    return by_name


async def named(graph: GraphTwin, npc: NpcId, question: str) -> dict[str, str]:
    return {one.known.entity.name: one.why for one in (await of(graph)).named(npc, question)}


async def test_who_is_named_is_known_and_why() -> None:
    graph = GraphTwin.of(a_campaign())
    assert await named(graph, INNKEEPER, "Has Eldrinax paid the smith?") == {
        "Eldrinax": "named 'Eldrinax'",
        "Grimjaw": "named 'the smith'",
    }
    assert await named(graph, SMITH, "Who was it?") == {}
    assert await named(graph, SMITH, "") == {}


async def test_an_npc_need_not_be_reminded_of_itself() -> None:
    assert await named(GraphTwin.of(a_campaign()), SMITH, "Grimjaw, where is the smith?") == {}


async def test_who_took_part_in_something_is_told_of_beside_it() -> None:
    by_name = await of(a_feud())
    told = by_name.facts(SMITH, "What do you know of the Salt Feud?")
    assert told[0].text == "The Salt Feud was about salt."
    beside = {one.text: one.score for one in told[1:]}
    assert beside == {"Eldrinax is an old wizard.": 0.5, "Mirelle keeps the inn.": 0.5}
    assert [one.text for one in by_name.facts(SMITH, "What of Eldrinax?")] == ["Eldrinax is an old wizard."]


async def test_a_question_that_is_answered_brings_nobody_along() -> None:
    graph = a_feud()
    graph.of_world.append(known(Claim.relation(FEUD.id, "LOCATED_AT", MIRELLE)))
    told = (await of(graph)).facts(SMITH, "Where was the Salt Feud?")
    assert [one.text for one in told] == ["the Salt Feud is at Mirelle."]


async def test_without_long_term_memory_the_file_tells() -> None:
    """Each NPC what is for it."""
    by_name = KnownWorld(a_campaign(), None)
    await by_name.refresh()
    assert [one.text for one in by_name.facts(SMITH, "What of Eldrinax?")] == ["Eldrinax is an old wizard."]


async def test_with_it_nobody_is_named_before_it_was_read() -> None:
    """The DM may have hidden since what the file tells everybody."""
    by_name = KnownWorld(a_campaign(), WorldTwin(GraphTwin.of(a_campaign())))
    assert by_name.facts(SMITH, "What of Eldrinax?") == []


async def test_what_the_file_is_less_sure_of_than_the_settings_want_is_told_to_nobody() -> None:
    unsure = Relationship(ELDRINAX, MIRELLE, "OWNS", confidence=0.8, dm_confirmed=False)
    campaign = replace(a_campaign(), relationships=(unsure,))
    asked = "What does Eldrinax own?"
    for accept_at, knows in ((0.7, True), (0.9, False)):
        by_name = KnownWorld(campaign, None, accept_at=accept_at)
        told = by_name.facts(SMITH, asked)
        assert any(one.text.startswith("Eldrinax owns") for one in told) is knows
        identities = Identities(campaign, by_name, tokens=120)
        assert any("owns" in line for line in identities.read(INNKEEPER).lines) is knows


async def test_an_npc_is_told_what_happened_in_a_session_and_no_bookkeeping() -> None:
    evening = Entity(EntityId("episode-town-20260101"), "event", "Session town-20260101", ("the long evening",))
    graph = GraphTwin.of(a_campaign())
    graph.scoped.append((evening, PUBLIC))
    graph.of_world += [
        known(Claim.attribute(evening.id, "kind", "episode")),
        known(Claim.attribute(evening.id, "summary", "They found the seal.")),
        known(Claim.relation(ELDRINAX, "PARTICIPATED_IN", evening.id)),
    ]
    by_name = await of(graph)
    told = [one.text for one in by_name.facts(SMITH, "What do you know of the long evening and of Eldrinax?")]
    assert "They found the seal." in told
    assert not [text for text in told if "town-2026" in text or "episode" in text or "took part" in text]
