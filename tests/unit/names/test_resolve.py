"""One reader of typed names for all commands, pages and tools."""

from __future__ import annotations

import pytest

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from glyphoxa.names.naming import Resolver, entities_by_name


def town(*also: Entity) -> Resolver[Entity]:
    entities = (
        Entity(EntityId("inn"), "location", "The Copper Kettle", ("the Kettle",)),
        Entity(EntityId("kettle-row"), "location", "Kettle Row"),
        Entity(EntityId("odo"), "npc", "Brother Odo Finch", ("der Müller",)),
        Entity(EntityId("tamsin"), "npc", "Tamsin Finch"),
    )
    return entities_by_name((*entities, *also), "town")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("inn", "inn"),
        ("THE COPPER KETTLE", "inn"),
        ("copper-kettle", "inn"),
        ("kettle", "inn"),  # an alias but for its article, before a part of another name
        ("Muller", "odo"),
        ("Der  Müller", "odo"),
        ("father Odo", "odo"),
        ("Row", "kettle-row"),
    ],
)
def test_typed_name_means_id_then_name_then_alias_then_part(typed: str, meant: str) -> None:
    assert town().one(typed).id == meant


def test_ambiguous_name_error_lists_what_it_may_mean() -> None:
    second = Entity(EntityId("odo-2"), "npc", "Brother Odo Finch")
    with pytest.raises(InvalidInput) as found:
        town(second).one("brother odo finch")
    assert str(found.value) == (
        "'brother odo finch' matches several entities: Brother Odo Finch (npc, id odo), "
        "Brother Odo Finch (npc, id odo-2); use the id"
    )
    with pytest.raises(InvalidInput, match=r"'Finch' may be several entities: .*Tamsin Finch.*write more of the name"):
        town().one("Finch")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("the Tasmin Finch", "did you mean 'Tamsin Finch'?"),
        ("KETTEL ROW", "did you mean 'Kettle Row'?"),
        ("xyz", "valid: Brother Odo Finch, Kettle Row, Tamsin Finch, The Copper Kettle, der Müller, the Kettle"),
        ("!?", "valid: Brother Odo Finch"),
    ],
)
def test_unknown_name_error_has_the_nearest_name_or_the_valid_ones(typed: str, hint: str) -> None:
    with pytest.raises(NotFound) as found:
        town().one(typed)
    assert str(found.value).startswith(f"no entity {typed!r} in campaign 'town': {hint}")


def test_added_thing_replaces_the_one_with_its_id() -> None:
    names = town()
    names.add(Entity(EntityId("inn"), "location", "The Tin Kettle"))
    assert names.one("tin kettle").name == names.one("copper kettle").name == "The Tin Kettle"


def test_similar_names_come_best_first() -> None:
    assert [one.id for one in town().like("the copper kettel", least=85, limit=3)] == ["inn"]
    assert town().like("Grimjaw", least=85) == []
