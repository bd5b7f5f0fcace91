"""Knowledge in each prompt of an NPC of entities whose type asks for it, such as the laws of a world."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from glyphoxa.domain.campaign import TYPE_TEMPLATES, Campaign, Entity, NodeType
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.domain.knowledge import Claim, Provenance
from glyphoxa.language.sentences import characters_in
from glyphoxa.prompt.select import IN_EVERY_PROMPT
from tests.support.builders import FORGE, INNKEEPER, SMITH, a_campaign, known
from tests.support.minds import PATIENT, Mind

TIDES = Entity(EntityId("tides"), "world_law", "Law of Tides", (), {"law": "No spell outlives the ebb."})
NAMES = Entity(EntityId("names"), "world_law", "Law of Names", (), {"law": "A true name binds its bearer."})
TIDES_TOLD = "Law of Tides, law: No spell outlives the ebb."
NAMES_TOLD = "Law of Names, law: A true name binds its bearer."


def a_world_of_laws(*laws: Entity, node_type: NodeType = TYPE_TEMPLATES["world_law"]) -> Campaign:
    town = a_campaign()
    return replace(town, entities=(*town.entities, *(laws or (TIDES, NAMES))), node_types={"world_law": node_type})


@pytest.fixture
async def mind() -> AsyncIterator[Mind]:
    mind = Mind(a_world_of_laws())
    await mind.assembly.enter(mind.assembly.campaign.scene(FORGE))
    yield mind
    await mind.prefetch.close()


async def test_laws_of_a_world_are_in_each_prompt_after_the_identity(mind: Mind) -> None:
    before = (await Mind(a_campaign()).assembly.gather(SMITH, "Hello.")).identity
    for question in ("", "Hello.", "What does a sword cost?"):
        assert (await mind.assembly.gather(SMITH, question)).identity == (*before, NAMES_TOLD, TIDES_TOLD)
    assert TIDES_TOLD in mind.assembly.standing(INNKEEPER)


async def test_law_in_each_prompt_is_not_recalled_as_well(mind: Mind) -> None:
    hot = await mind.assembly.gather(SMITH, "What is the Law of Tides?")
    assert "ebb" not in " ".join(hot.facts)
    assert {one.why for one in hot.rejected if "ebb" in one.recalled.text} == {IN_EVERY_PROMPT}


async def test_law_of_a_type_without_the_flag_is_recalled_and_not_in_each_prompt() -> None:
    mind = Mind(a_world_of_laws(node_type=NodeType(("law",))))
    hot = await mind.assembly.gather(SMITH, "What is the Law of Tides?")
    assert TIDES_TOLD not in hot.identity and "ebb" in " ".join(hot.facts)
    await mind.prefetch.close()


async def test_law_that_few_know_reaches_only_their_prompts() -> None:
    told = Entity(EntityId("salt"), "world_law", "Law of Salt", (), {"law": "Salt stops the dead."}, known_by=(SMITH,))
    mind = Mind(a_world_of_laws(told))
    for question in ("Hello.", "What is the Law of Salt?", "Does anything hold back the dead?"):
        assert "stops the dead" not in str(await mind.assembly.gather(INNKEEPER, question))
    assert "stops the dead" in str((await mind.assembly.gather(SMITH, "Hello.")).identity)
    await mind.prefetch.close()


async def test_accepted_law_of_the_talk_enters_each_prompt(mind: Mind) -> None:
    claim = Claim.attribute(NAMES.id, "exceptions", "The river has no name.")
    heard = Provenance(0.9, origin="talk", session_id=SessionId("s1"))
    mind.graph.of_world.append(known(claim, provenance=heard))
    assert "The river has no name." in " ".join((await mind.assembly.gather(SMITH, "Hello.")).identity)


async def test_thousands_of_laws_stay_within_the_budget() -> None:
    laws = [
        Entity(EntityId(f"law{n}"), "world_law", f"Law {n:04}", (), {"law": f"Never count to {n}."})
        for n in range(3_000)
    ]
    mind = Mind(a_world_of_laws(*laws))
    own = (await Mind(a_campaign()).assembly.gather(SMITH, "Hello.")).identity
    told = (await mind.assembly.gather(SMITH, "Hello.")).identity[len(own) :]
    assert told[0] == "Law 0000, law: Never count to 0."
    assert sum(len(line) + 1 for line in told) <= characters_in(PATIENT.bible_tokens) + 1
    hot = await mind.assembly.gather(SMITH, "What is Law 0100?")
    assert "Never count to 100." in " ".join(hot.facts), "one without room is recalled"
    await mind.prefetch.close()
