"""Documents of other tools in the store: what the DM is asked, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.desk import import_desk_of
from glyphoxa.dm.import_review import ImportDesk
from glyphoxa.dm.imported import NEW_ENTITY, Edit, Selection, SourceDocument, SourceLink, SourceText, SourceWorld
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import DM
from tests.support.builders import CAMPAIGN, SMITH, a_campaign

SCENE = SourceDocument(
    "Scene.1",
    "Salt Mill",
    "location",
    "Scene",
    "data/scenes.db",
    ("Coast",),
    hidden=False,
    texts=(SourceText("A mill at the sea. Nobody grinds here any more.", hidden=False),),
)
MILLER = SourceDocument(
    "Actor.1", "Berta Moor", "npc", "Actor (npc)", "data/actors.db", ("People", "Coast"), ("the miller",),
    {"race": "dwarf"}, hidden=False,
    texts=(
        SourceText("She grinds salt.", hidden=False),
        SourceText("She drowned her brother.", hidden=True, page="GM notes"),
    ),
    links=(SourceLink("Scene.1", "LOCATED_AT"),),
)  # fmt: skip
SPY = SourceDocument("Actor.2", "Vask", "npc", "Actor (npc)", "data/actors.db", ("People",), attributes={"race": "elf"})


def a_world(*documents: SourceDocument) -> SourceWorld:
    return SourceWorld("foundry", "coast", "The Coast", documents)


@pytest.fixture
async def desk(store: Store) -> ImportDesk:
    await store.campaigns.load(a_campaign())
    return import_desk_of(store, CAMPAIGN)


async def names(store: Store, viewer: object = DM) -> set[str]:
    return {each.name for each in await store.graph.entities(CAMPAIGN, viewer)}  # type: ignore[arg-type]


async def test_imported_documents_wait_and_change_nothing(store: Store, desk: ImportDesk) -> None:
    before = await names(store)
    arrival = await desk.take_in(a_world(SCENE, MILLER, SPY))
    assert (arrival.n_new, arrival.n_changed, arrival.n_unchanged) == (3, 0, 0)
    n, proposals = await desk.waiting()
    assert (n, [each.document.name for each in proposals]) == (3, ["Salt Mill", "Berta Moor", "Vask"])
    assert [(group.type, group.folder, group.n) for group in await desk.groups()] == [
        ("npc", "People", 2),
        ("location", "Coast", 1),
    ]
    assert await names(store) == before


async def test_accepted_documents_become_entities_with_their_facts(store: Store, desk: ImportDesk) -> None:
    await desk.take_in(a_world(SCENE, MILLER, SPY))
    await desk.accept(Selection())
    [miller] = [each for each in await store.graph.entities(CAMPAIGN, DM) if each.name == "Berta Moor"]
    assert miller.aliases == ("the miller",)
    assert miller.attributes["race"] == "dwarf"
    assert miller.attributes["description"] == "She grinds salt."
    known = await store.graph.known(CAMPAIGN, SMITH, miller.id)
    assert known is not None
    assert [other.id for _, other in known.relations] == ["salt-mill"]
    assert "drowned" not in str(known)
    told = await store.graph.known(CAMPAIGN, DM, miller.id)
    assert "drowned" in str(told)
    assert "Vask" not in await names(store, SMITH)
    assert "Vask" in await names(store)
    assert (await desk.waiting())[0] == 0
    assert [each.key for each in await desk.documents_of(miller.id)] == ["Actor.1"]


async def test_second_import_of_an_unchanged_world_proposes_nothing(desk: ImportDesk) -> None:
    await desk.take_in(a_world(SCENE, MILLER, SPY))
    await desk.accept(Selection(type="location"))
    await desk.skip(Selection(keys=("Actor.2",)))
    await desk.accept(Selection())
    again = await desk.take_in(a_world(SCENE, MILLER, replace(SPY, name="Vask the Spy")))
    assert (again.n_new, again.n_changed, again.n_unchanged, again.n_skipped) == (0, 0, 2, 1)
    assert (await desk.waiting())[0] == 0


async def test_changed_document_proposes_its_changes_alone(store: Store, desk: ImportDesk) -> None:
    await desk.take_in(a_world(SCENE, MILLER))
    await desk.edit(Selection(keys=("Actor.1",)), Edit(name="Berta of the Moor"))
    await desk.accept(Selection())
    arrival = await desk.take_in(a_world(replace(MILLER, aliases=(), attributes={"race": "gnome"})))
    assert (arrival.n_changed, arrival.gone) == (1, ("Salt Mill",))
    _, [proposal] = await desk.waiting()
    assert proposal.document.name == "Berta of the Moor"
    assert proposal.changes == ("removed: alias the miller", "changed: race 'gnome'")
    await desk.accept(Selection())
    [miller] = [each for each in await store.graph.entities(CAMPAIGN, DM) if each.name == "Berta of the Moor"]
    assert (miller.aliases, miller.attributes["race"]) == ((), "gnome")
    assert "Salt Mill" in await names(store)


async def test_document_with_a_known_name_joins_that_entity(store: Store, desk: ImportDesk) -> None:
    smith = replace(SPY, name="GRIMJAW", attributes={"race": "orc"}, texts=(SourceText("He lies.", hidden=True),))
    await desk.take_in(a_world(smith))
    _, [proposal] = await desk.waiting()
    assert proposal.same_as is not None
    assert proposal.same_as.id == "e-grimjaw"
    before = await names(store, SMITH)
    await desk.accept(Selection())
    assert await names(store, SMITH) == before
    assert "orc" not in str(await store.graph.known(CAMPAIGN, SMITH, EntityId("e-grimjaw")))
    assert "race: orc" in str(await store.graph.known(CAMPAIGN, DM, EntityId("e-grimjaw")))


async def test_document_edited_as_new_becomes_a_second_entity(store: Store, desk: ImportDesk) -> None:
    await desk.take_in(a_world(replace(SPY, name="Grimjaw")))
    await desk.edit(Selection(), Edit(same_as=NEW_ENTITY, hidden=False))
    await desk.accept(Selection())
    assert [each.name for each in await store.graph.entities(CAMPAIGN, SMITH)].count("Grimjaw") == 2


async def test_edit_that_does_not_fit_is_refused(desk: ImportDesk) -> None:
    await desk.take_in(a_world(SCENE, MILLER))
    for edit in (Edit(name="One"), Edit(type="npcc"), Edit(same_as=EntityId("nobody"))):
        with pytest.raises(InvalidInput):
            await desk.edit(Selection(), edit)
    with pytest.raises(NotFound, match="key"):
        await desk.edit(Selection(keys=("Actor.9",)), Edit(hidden=True))
