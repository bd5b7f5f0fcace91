from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.dm.entities import NameResolver
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId, NpcId, SpeakerId
from tests.support.builders import BRAN, INNKEEPER, SMITH, a_campaign


def a_cast(**aliases: tuple[str, ...]) -> NameResolver:
    """Return a resolver of `a_campaign`; NPCs may be given other aliases by their ids."""
    campaign = a_campaign()
    npcs = tuple(replace(npc, aliases=aliases.get(npc.id, npc.aliases)) for npc in campaign.npcs)
    return NameResolver.of(replace(campaign, npcs=npcs), campaign.entities)


@pytest.mark.parametrize("name", ["e-grimjaw", "Grimjaw", "GRIM JAW", "the smith", "The Smith"])
def test_an_entity_goes_by_id_name_and_alias_in_any_case(name: str) -> None:
    assert a_cast().entity(name).id == "e-grimjaw"


@pytest.mark.parametrize("name", ["Grimjow", "", "  ", "!"])
def test_unknown_npc_error_lists_the_npcs(name: str) -> None:
    with pytest.raises(NotFound, match=r"no entity .* in campaign 'town': (did you mean 'Grimjaw'|valid: .*Eldrinax)"):
        a_cast().entity(name)
    with pytest.raises(NotFound, match=r"no NPC .* in campaign 'town': (did you mean 'Grimjaw'|valid: .*Mirelle)"):
        a_cast().npc(name)


def test_an_npc_goes_by_its_name_before_anybodys_alias() -> None:
    resolver = a_cast(grimjaw=("Mirelle",))
    assert (resolver.npc("Mirelle"), resolver.npc("the smith"), resolver.npc("grimjaw")) == (INNKEEPER, SMITH, SMITH)


def test_an_alias_of_two_npcs_names_neither() -> None:
    resolver = a_cast(grimjaw=("the keeper",), mirelle=("the keeper",))
    with pytest.raises(InvalidInput, match=r"'The Keeper' matches several NPCs: Grimjaw \(id grimjaw\), Mirelle"):
        resolver.npc("The Keeper")


def test_word_of_a_name_means_it_if_no_other_has_the_word() -> None:
    resolver = a_cast().with_names({EntityId("e-grimjaw"): "Grimjaw Ironhand"})
    assert (resolver.npc("ironhand"), resolver.npc("smith"), resolver.entity("Ironhand").id) == (
        SMITH,
        SMITH,
        "e-grimjaw",
    )
    with pytest.raises(NotFound):
        resolver.npc("the")
    shared = a_cast(grimjaw=("old keeper",), mirelle=("young keeper",))
    with pytest.raises(InvalidInput, match=r"'Keeper' may be several NPCs: .*; write more of the name"):
        shared.npc("Keeper")


@pytest.mark.parametrize("name", ["Pilar", "van der Berg", "doctor berg", "Captain Pilar", "Maria", "Ana"])
def test_unique_part_of_a_name_is_accepted(name: str) -> None:
    resolver = a_cast().with_names({EntityId("e-grimjaw"): "Dr. Pilar-Maria Ana van der Berg"})
    assert (resolver.npc(name), resolver.entity(name).id) == (SMITH, "e-grimjaw")


def test_an_npc_goes_by_the_name_it_was_given_since() -> None:
    resolver = a_cast().with_names({EntityId("e-grimjaw"): "Grimjaw the Bald"})
    assert (resolver.npc("Grimjaw the Bald"), resolver.npc("Grimjaw")) == (SMITH, SMITH)


def test_players_can_be_the_source_of_a_told_fact() -> None:
    resolver = a_cast()
    assert resolver.speaker("DM") == "dm"
    assert resolver.speaker("Bran") == SpeakerId(BRAN)
    assert resolver.speaker("the smith") == SpeakerId(SMITH)
    with pytest.raises(NotFound, match="no speaker 'Eldrinax' in campaign 'town'"):
        resolver.speaker("Eldrinax")


def test_people_are_called_by_their_names() -> None:
    resolver = a_cast()
    people: list[NpcId | SpeakerId] = [SpeakerId("dm"), SMITH, SpeakerId(BRAN), NpcId("gone")]
    assert [resolver.person(who) for who in people] == ["the DM", "Grimjaw", "Bran", "gone"]
