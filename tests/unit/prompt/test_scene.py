"""Where an NPC is, as the world is now and as far as that NPC may know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.domain.campaign import Campaign, Entity, Scene
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Claim, Fact, Visibility, secret_of
from glyphoxa.prompt.identity import KnownSentences
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.scene import Scenes
from tests.support.builders import INNKEEPER, MARKET, SMITH, a_campaign, known
from tests.support.memory import GraphTwin, WorldTwin

SQUARE, MIRELLE, GRIMJAW = EntityId("e-square"), EntityId("e-mirelle"), EntityId("e-grimjaw")
TOBIN = Entity(EntityId("e-tobin"), "npc", "Old Tobin")
BELL = Entity(EntityId("e-bell"), "quest", "the Silent Bell")
PLENTY = 300
PLAIN = "evening, Market Square. Mirelle is here."


def looks(text: str, visibility: Visibility = PUBLIC) -> Fact:
    return known(Claim.attribute(SQUARE, "description", text), visibility)


def the_town() -> Campaign:
    """With somebody who does not speak, and a quest."""
    town = a_campaign()
    return replace(town, entities=(*town.entities, TOBIN, BELL))


def market(town: Campaign, **changed: str) -> Scene:
    return replace(town.scene(MARKET), **changed)


class Town:
    """A scene in a world.

    Args:
        facts: Facts besides those of the file.
    """

    def __init__(self, *facts: Fact, tokens: int = PLENTY, town: Campaign | None = None, day: str = "") -> None:
        self.campaign = town or the_town()
        self.graph = GraphTwin.of(self.campaign)
        self.graph.of_world += facts
        self.by_name = KnownWorld(self.campaign, WorldTwin(self.graph))
        sentences = KnownSentences(self.campaign, self.by_name.known)
        self.scenes = Scenes(self.campaign, sentences, tokens=tokens, story_day=lambda: day)

    async def line(self, *, looks: str = "") -> str:
        """For the smith.

        Args:
            looks: The file's description of the scene.
        """
        await self.by_name.refresh()
        return self.scenes.line(market(self.campaign, description=looks), SMITH)


async def test_the_dms_description_of_a_place_comes_before_what_the_file_says_of_the_scene() -> None:
    town = Town(looks("Market Square is flooded."), tokens=20)
    assert (
        await town.line(looks="Nets dry in the evening sun.")
        == "evening, Market Square. Market Square is flooded. Mirelle is here."
    )
    wide = Town(looks("Market Square is flooded."), tokens=60)
    assert await wide.line(looks="Nets dry in the evening sun.") == (
        "evening, Market Square. Market Square is flooded. Nets dry in the evening sun. Mirelle is here."
    )


async def test_the_files_description_of_a_place_is_told_where_there_is_room() -> None:
    town = the_town()
    paved = {"description": "Market Square is paved."}
    described = [replace(e, attributes=paved) if e.id == SQUARE else e for e in town.entities]
    town = replace(town, entities=tuple(described))
    assert await Town(town=town).line() == "evening, Market Square. Market Square is paved. Mirelle is here."
    assert await Town(town=town, tokens=60).line() == PLAIN


async def test_a_place_and_a_person_have_the_names_that_they_have_now() -> None:
    town = Town()
    renamed = {SQUARE: "Traitors' Square", MIRELLE: "Mistress Mirelle"}
    town.graph.scoped = [(replace(e, name=renamed.get(e.id, e.name)), seen) for e, seen in town.graph.scoped]
    assert await town.line() == "evening, Traitors' Square. Mistress Mirelle is here."


@pytest.mark.parametrize("hidden", [HIDDEN, secret_of([INNKEEPER])])
@pytest.mark.parametrize(("entity", "gone"), [(SQUARE, "Market Square"), (MIRELLE, "Mirelle"), (TOBIN.id, "Tobin")])
async def test_what_an_npc_may_not_know_of_is_not_in_its_line(hidden: Visibility, entity: EntityId, gone: str) -> None:
    town = Town(known(Claim.relation(TOBIN.id, "LOCATED_AT", SQUARE)))
    assert gone in await town.line()
    town.graph.scoped = [(e, hidden if e.id == entity else seen) for e, seen in town.graph.scoped]
    assert gone not in await town.line()


async def test_dms_place_description_names_no_hidden_entity() -> None:
    town = Town(looks("Stalls burn. Old Tobin watches."))
    assert await town.line() == (
        "evening, Market Square. Market Square: Stalls burn. Old Tobin watches. Mirelle is here."
    )
    town.graph.scoped = [(e, HIDDEN if e.id == TOBIN.id else seen) for e, seen in town.graph.scoped]
    assert await town.line() == "evening, Market Square. Market Square: Stalls burn. Mirelle is here."


async def test_who_does_not_speak_is_there_as_the_world_says() -> None:
    there = known(Claim.relation(TOBIN.id, "LOCATED_AT", SQUARE))
    assert await Town(there).line() == "evening, Market Square. Mirelle and Old Tobin are here."
    unseen = there.with_(visibility=secret_of([INNKEEPER]))
    assert await Town(unseen).line() == PLAIN


async def test_who_speaks_is_where_the_scene_says() -> None:
    """Who is not in it hears nothing, wherever the world has it."""
    town = the_town()
    town = replace(town, scenes=tuple(replace(scene, npcs=(SMITH,)) for scene in town.scenes))
    assert (
        await Town(known(Claim.relation(MIRELLE, "LOCATED_AT", SQUARE)), town=town).line() == "evening, Market Square."
    )


@pytest.mark.parametrize(("status", "is_told"), [("open", True), ("Done", False), ("erledigt", False), (None, True)])
async def test_a_quest_that_an_npc_has_a_part_in_is_told_while_it_is_under_way(
    status: str | None, is_told: bool
) -> None:
    facts = [known(Claim.relation(GRIMJAW, "PARTICIPATED_IN", BELL.id))]
    facts += [known(Claim.attribute(BELL.id, "status", status))] if status else []
    expected = f"{PLAIN} Still to be done: the Silent Bell." if is_told else PLAIN
    assert await Town(*facts).line() == expected


async def test_a_quest_of_others_or_in_secret_is_not_told() -> None:
    assert await Town(known(Claim.relation(MIRELLE, "QUEST_GIVER", BELL.id))).line() == PLAIN
    assert await Town(known(Claim.relation(GRIMJAW, "QUEST_GIVER", BELL.id), secret_of([SMITH]))).line() == PLAIN


async def test_the_day_of_the_story_stands_behind_the_time() -> None:
    assert await Town(day="12 Hammer 1492").line() == "evening, 12 Hammer 1492, Market Square. Mirelle is here."


async def test_what_stands_last_is_trimmed_first() -> None:
    parts = ("Mirelle", "flooded", "Nets", "12 Hammer", "Tobin", "Silent Bell")
    facts = (
        looks("Market Square is flooded. " * 10),
        known(Claim.relation(TOBIN.id, "LOCATED_AT", SQUARE)),
        known(Claim.relation(GRIMJAW, "PARTICIPATED_IN", BELL.id)),
    )
    found = []
    for tokens in range(5, 180):
        line = await Town(*facts, tokens=tokens, day="12 Hammer").line(looks="Nets dry on all the rails. " * 4)
        assert len(line) <= max(4 * tokens, len(PLAIN))
        found.append(sum(part in line for part in parts))
        assert [part in line for part in parts] == [n < found[-1] for n in range(len(parts))]
    assert {1, 2, 3, 6} <= set(found)


async def test_a_scene_that_was_left_is_told_as_it_was() -> None:
    """Nothing that a prompt cache has read changes, but for what the NPC may not know of any more."""
    town = Town(known(Claim.relation(GRIMJAW, "PARTICIPATED_IN", BELL.id)))
    then = await town.line()
    town.graph.of_world.append(known(Claim.attribute(BELL.id, "status", "done")))
    assert town.scenes.line(market(town.campaign), SMITH) == then
    await town.by_name.refresh()
    assert town.scenes.line(market(town.campaign), SMITH) == then
    town.graph.scoped = [(e, HIDDEN if e.id == BELL.id else seen) for e, seen in town.graph.scoped]
    await town.by_name.refresh()
    assert town.scenes.line(market(town.campaign), SMITH) == PLAIN


async def test_before_the_world_was_read_the_file_tells() -> None:
    town = Town(looks("Market Square is flooded."))
    assert town.scenes.line(market(town.campaign), SMITH) == PLAIN
