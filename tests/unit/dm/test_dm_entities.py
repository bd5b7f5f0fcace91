from __future__ import annotations

import re

import pytest

from glyphoxa.dm.entities import EntityDesk, NewEntity
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import DM, Claim
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH
from tests.support.world_twin import WorldTwin, a_world

GRIMJAW, ELDRINAX, FORGE = (EntityId(f"e-{name}") for name in ("grimjaw", "eldrinax", "forge"))


@pytest.fixture
def world() -> WorldTwin:
    return a_world()


def desk(world: WorldTwin) -> EntityDesk:
    return EntityDesk(CAMPAIGN, world, world, world.resolver(), now_ms=lambda: 5_000 + len(world.log))


async def facts_about(world: WorldTwin, entity: str) -> dict[str, object]:
    facts = await world.current(CAMPAIGN, DM, about=EntityId(entity), limit=100)
    return {fact.claim.predicate: fact.claim.object or fact.claim.content for fact in facts}


async def test_a_new_entity_comes_with_its_attributes(world: WorldTwin) -> None:
    attributes = '{"personality": "paranoid wizard", "level": 9, "trait": ["old", "lame"]}'
    await desk(world).add(
        NewEntity(name="Tower  of Whispers", type="location", alias=["the tower"], attributes=attributes)
    )
    tower = world.resolver().entity("TOWER OF WHISPERS")
    assert (tower.id, tower.type, tower.aliases) == ("tower-of-whispers", "location", ("the tower",))
    facts = await world.current(CAMPAIGN, DM, about=tower.id, limit=10)
    assert {(fact.claim.predicate, fact.claim.value) for fact in facts} == {
        ("personality", '"paranoid wizard"'),
        ("level", "9"),
        ("trait", '"old"'),
        ("trait", '"lame"'),
    }
    assert all(fact.status == "accepted" and fact.provenance.dm_confirmed for fact in facts)


async def test_a_location_that_names_an_entity_offers_the_relation(world: WorldTwin) -> None:
    await desk(world).add(NewEntity(name="Korvald", type="npc", attributes='--location "The Forge"'))
    facts = {
        fact.claim.predicate: fact for fact in await world.current(CAMPAIGN, DM, about=EntityId("korvald"), limit=9)
    }
    assert (facts["location"].claim.content, facts["location"].status) == ("The Forge", "accepted")
    assert (facts["LOCATED_AT"].claim.object, facts["LOCATED_AT"].status) == (FORGE, "pending")


@pytest.mark.parametrize(
    ("name", "kind", "more", "told"),
    [
        ("Korvald", "npd", {}, "unknown entity type 'npd': did you mean 'npc'?"),
        ("Korvald", "dragon", {}, "unknown entity type 'dragon': valid: concept, event, faction, item, location, npc"),
        ("...", "npc", {}, "'...' is not a name: it has no letter or digit"),
        (
            "grim jaw",
            "npc",
            {},
            "Grimjaw is already called 'grim jaw'; if this is a different entity, give it its own id",
        ),
        ("Grim", "npc", {"id": "e-grimjaw"}, "'e-grimjaw' is taken by Grimjaw (npc): give another id"),
        ("Korvald", "npc", {"attributes": "--x Infinity"}, "is not a value that JSON can hold"),
    ],
)
async def test_an_entity_that_cannot_be_added_is_not(
    world: WorldTwin, name: str, kind: str, more: dict[str, str], told: str
) -> None:
    before = len(world.log)
    with pytest.raises(InvalidInput, match=re.escape(told)):
        await desk(world).add(NewEntity(name=name, type=kind, **more))
    assert len(world.log) == before


async def test_two_of_one_name_are_told_apart_by_their_ids(world: WorldTwin) -> None:
    await desk(world).add(NewEntity(name="Grimjaw", type="npc", id="old-grimjaw"))
    with pytest.raises(
        InvalidInput, match=r"'grimjaw' matches several entities: Grimjaw \(npc, id e-grimjaw\), Grimjaw"
    ):
        world.resolver().entity("grimjaw")
    assert world.resolver().entity("old-grimjaw").name == "Grimjaw"


async def test_a_type_of_the_campaigns_own(world: WorldTwin) -> None:
    await desk(world).add(NewEntity(name="Smaug", type="dragon", new_type=True))
    await desk(world).add(NewEntity(name="Glaurung", type="dragon"))
    assert world.resolver().entity("glaurung").type == "dragon"


async def test_renamed_entity_is_found_by_its_old_name(world: WorldTwin) -> None:
    await desk(world).change("Eldrinax", name="Eldrinax the Grey", type="concept")
    found = world.resolver().entity("eldrinax")
    assert (found.name, found.type, found.aliases) == ("Eldrinax the Grey", "concept", ("Eldrinax",))
    await desk(world).add_alias("Eldrinax", "the old fool")
    await desk(world).change("Eldrinax", name="The Old Fool")
    assert world.resolver().entity("eldrinax").aliases == ("Eldrinax", "Eldrinax the Grey")
    with pytest.raises(InvalidInput, match="there is another entity 'Mirelle': merge the two"):
        await desk(world).change("eldrinax", name="Mirelle")
    with pytest.raises(InvalidInput, match="give a new name or type"):
        await desk(world).change("eldrinax")


async def test_removing_an_entity_removes_its_facts(world: WorldTwin) -> None:
    await desk(world).add(NewEntity(name="Korvald", type="npc", attributes='--personality "gruff"'))
    assert await desk(world).before_removal("korvald") == (
        ["with it ends: Korvald, personality: gruff"],
        "This removes Korvald (npc).",
    )
    [removed] = await desk(world).remove("KORVALD")
    assert await facts_about(world, "korvald") == {}
    with pytest.raises(NotFound, match="no entity 'Korvald' in campaign 'town'"):
        await desk(world).remove("Korvald")
    await world.undo(CAMPAIGN, [removed.seq], removed.cause)
    assert await facts_about(world, "korvald") == {"personality": "gruff"}


async def test_aliases_come_and_go(world: WorldTwin) -> None:
    await desk(world).add_alias("Eldrinax", "the old fool")
    assert world.resolver().entity("The Old Fool").id == ELDRINAX
    with pytest.raises(InvalidInput, match="Eldrinax is already called 'the OLD fool'"):
        await desk(world).add_alias("Grimjaw", "the OLD fool")
    with pytest.raises(NotFound, match=r"Eldrinax has no alias 'the old fol': did you mean 'the old fool'\?"):
        await desk(world).remove_alias("Eldrinax", "the old fol")
    await desk(world).remove_alias("Eldrinax", "THE OLD FOOL")
    assert world.resolver().entity("Eldrinax").aliases == ()


async def test_two_entities_that_are_one_are_merged_and_split_again(world: WorldTwin) -> None:
    await desk(world).add(NewEntity(name="The Grey Man", type="npc", attributes='--hat "pointed"'))
    await desk(world).merge("Eldrinax", "the grey man")
    assert world.resolver().entity("the grey man").id == ELDRINAX
    assert await facts_about(world, ELDRINAX) == {"hat": "pointed"}
    assert await desk(world).split("The Grey Man") == "undone: merged The Grey Man into Eldrinax"
    assert world.resolver().entity("the grey man").id == "the-grey-man"
    assert (await facts_about(world, ELDRINAX), await facts_about(world, "the-grey-man")) == ({}, {"hat": "pointed"})
    with pytest.raises(NotFound, match="nothing was merged into The Grey Man"):
        await desk(world).split("The Grey Man")


async def test_split_by_the_kept_name_splits_the_last_merge(world: WorldTwin) -> None:
    for name in ("Grey Man", "Old Fool"):
        await desk(world).add(NewEntity(name=name, type="npc"))
        await desk(world).merge("Eldrinax", name)
    await desk(world).split("Eldrinax")
    assert world.resolver().entity("Old Fool").id == "old-fool"
    assert world.resolver().entity("Grey Man").id == ELDRINAX


async def test_an_npc_that_is_played_is_never_the_one_that_is_gone(world: WorldTwin) -> None:
    with pytest.raises(InvalidInput, match="Grimjaw is an NPC of the campaign: merge the other one into it instead"):
        await desk(world).merge("Eldrinax", "Grimjaw")
    with pytest.raises(InvalidInput, match="'the smith' and 'grimjaw' are the same entity: Grimjaw"):
        await desk(world).merge("the smith", "grimjaw")


async def test_existence_of_an_entity_can_be_secret(world: WorldTwin) -> None:
    await desk(world).keep_secret("Eldrinax", ["Mirelle"])
    seen = world.state.entities[ELDRINAX].visibility
    assert seen.is_visible_to(INNKEEPER) and not seen.is_visible_to(SMITH)
    await desk(world).hide("Eldrinax")
    assert not world.state.entities[ELDRINAX].visibility.is_visible_to(INNKEEPER)
    await desk(world).reveal("Eldrinax")
    assert world.state.entities[ELDRINAX].visibility.is_visible_to(SMITH)
    with pytest.raises(InvalidInput, match="name the NPCs"):
        await desk(world).keep_secret("Eldrinax", [])


async def test_merge_joins_facts_and_split_separates_them(world: WorldTwin) -> None:
    await desk(world).add(NewEntity(name="Grey Man", type="npc", attributes='--note "seen at dusk"'))
    before = Claim.attribute(EntityId("grey-man"), "note", "seen at dusk").fact_id
    await desk(world).merge("Eldrinax", "Grey Man")
    assert world.state.facts[before].claim.subject == ELDRINAX
    await desk(world).split("Grey Man")
    assert world.state.facts[before].claim.subject == "grey-man"
