"""Documents of other tools in the store: what the DM is asked, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.imports import PostgresImports
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.dm.source_world import NEW_ENTITY, DocumentEdit, DocumentSelection, SourceLink, SourceText
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim
from glyphoxa.world.event_kinds import EntitiesMerged, EntityChanged, EntityRemoved, EntityScoped
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, SMITH, a_campaign, an_utterance
from tests.support.known_of import entities_of, known_of
from tests.support.source_worlds import MILL, MILLER, SPY, a_world


@pytest.fixture
async def desk(store: Store) -> PostgresImports:
    await store.campaigns.load(a_campaign())
    return store.imports(CAMPAIGN)


async def names(store: Store, viewer: object = DM) -> set[str]:
    return {each.name for each in await entities_of(store, CAMPAIGN, viewer)}  # type: ignore[arg-type]


async def test_imported_documents_wait_and_change_nothing(store: Store, desk: PostgresImports) -> None:
    before = await names(store)
    arrival = await desk.take_in(a_world(MILL, MILLER, SPY))
    assert (arrival.n_new, arrival.n_changed, arrival.n_unchanged) == (3, 0, 0)
    n, proposals = await desk.waiting()
    assert (n, [each.document.name for each in proposals]) == (3, ["Salt Mill", "Berta Moor", "Vask"])
    assert [(group.type, group.folder, group.n) for group in await desk.groups()] == [
        ("npc", "People", 2),
        ("location", "Coast", 1),
    ]
    assert await names(store) == before


async def test_accepted_documents_become_entities_with_their_facts(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER, SPY))
    await desk.accept(DocumentSelection())
    [miller] = [each for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Berta Moor"]
    assert miller.aliases == ("the miller",)
    assert miller.attributes["race"] == "dwarf"
    assert miller.attributes["description"] == "She grinds salt."
    known = await known_of(store, CAMPAIGN, SMITH, miller.id)
    assert known is not None
    assert [other.id for _, other in known.relations] == ["salt-mill"]
    assert "drowned" not in str(known)
    told = await known_of(store, CAMPAIGN, DM, miller.id)
    assert "drowned" in str(told)
    assert "Vask" not in await names(store, SMITH)
    assert "Vask" in await names(store)
    assert (await desk.waiting())[0] == 0
    assert [each.document.key for each in await desk.documents_of(miller.id)] == ["Actor.1"]


async def test_second_import_of_an_unchanged_world_proposes_nothing(desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER, SPY))
    await desk.accept(DocumentSelection(type="location"))
    await desk.skip(DocumentSelection(keys=("Actor.2",)))
    await desk.accept(DocumentSelection())
    again = await desk.take_in(a_world(MILL, MILLER, replace(SPY, name="Vask the Spy")))
    assert (again.n_new, again.n_changed, again.n_unchanged, again.n_skipped) == (0, 0, 2, 1)
    assert (await desk.waiting())[0] == 0


async def test_changed_document_proposes_its_changes_alone(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER))
    await desk.edit(DocumentSelection(keys=("Actor.1",)), DocumentEdit(name="Berta of the Moor"))
    await desk.accept(DocumentSelection())
    arrival = await desk.take_in(a_world(replace(MILLER, aliases=(), attributes={"race": "gnome"})))
    assert (arrival.n_changed, arrival.gone) == (1, ("Salt Mill",))
    _, [proposal] = await desk.waiting()
    assert proposal.document.name == "Berta of the Moor"
    assert proposal.changes == ("removed: alias the miller", "changed: race 'gnome'")
    await desk.accept(DocumentSelection())
    [miller] = [each for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Berta of the Moor"]
    assert (miller.aliases, miller.attributes["race"]) == ((), "gnome")
    assert "Salt Mill" in await names(store)


async def test_changed_relation_names_the_other_document(desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER))
    await desk.accept(DocumentSelection())
    await desk.take_in(a_world(MILL, replace(MILLER, links=(SourceLink("Scene.1", "OWNS"),))))
    _, [proposal] = await desk.waiting()
    assert proposal.changes == ("removed: relation LOCATED_AT Salt Mill", "new: relation OWNS Salt Mill")


async def test_document_with_another_id_states_its_text_once(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILLER))
    await desk.accept(DocumentSelection())
    arrival = await desk.take_in(a_world(replace(MILLER, key="People/Berta.md", texts=MILLER.texts[:1])))
    assert (arrival.n_new, arrival.gone) == (1, ("Berta Moor",))
    await desk.accept(DocumentSelection())
    [miller] = [each for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Berta Moor"]
    assert miller.attributes["description"] == "She grinds salt."
    assert "note" not in miller.attributes


async def test_document_with_a_known_name_joins_that_entity(store: Store, desk: PostgresImports) -> None:
    smith = replace(SPY, name="GRIMJAW", attributes={"race": "orc"}, texts=(SourceText("He lies.", hidden=True),))
    await desk.take_in(a_world(smith))
    _, [proposal] = await desk.waiting()
    assert proposal.same_as is not None
    assert proposal.same_as.id == "e-grimjaw"
    before = await names(store, SMITH)
    await desk.accept(DocumentSelection())
    assert await names(store, SMITH) == before
    assert "orc" not in str(await known_of(store, CAMPAIGN, SMITH, EntityId("e-grimjaw")))
    assert "race: orc" in str(await known_of(store, CAMPAIGN, DM, EntityId("e-grimjaw")))


async def test_document_edited_as_new_becomes_a_second_entity(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(replace(SPY, name="Grimjaw")))
    await desk.edit(DocumentSelection(), DocumentEdit(same_as=NEW_ENTITY, hidden=False))
    await desk.accept(DocumentSelection())
    assert [each.name for each in await entities_of(store, CAMPAIGN, SMITH)].count("Grimjaw") == 2


async def test_edit_that_does_not_fit_is_refused(desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER))
    for edit in (DocumentEdit(name="One"), DocumentEdit(type="npcc"), DocumentEdit(same_as=EntityId("nobody"))):
        with pytest.raises(InvalidInput):
            await desk.edit(DocumentSelection(), edit)
    with pytest.raises(NotFound, match="key"):
        await desk.edit(DocumentSelection(keys=("Actor.9",)), DocumentEdit(hidden=True))


async def test_accepted_page_says_where_an_entity_and_its_facts_come_from(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILL, MILLER))
    await desk.accept(DocumentSelection())
    [miller] = [each for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Berta Moor"]
    where = "foundry Actor (npc) Berta Moor{} (data/actors.db, Actor.1)"
    assert [each.words for each in await desk.documents_of(miller.id)] == [where.format("")]
    told = await known_of(store, CAMPAIGN, DM, miller.id)
    assert told is not None
    [secret] = [fact.claim for fact in told.attributes if fact.claim.predicate == "secret"]
    [page] = await desk.documents_of(miller.id, stating=secret)
    assert page.words == where.format(", GM notes")
    assert await desk.documents_of(miller.id, stating=Claim.attribute(miller.id, "race", "orc")) == []


async def test_prose_of_accepted_documents_is_not_read_for_facts(store: Store, desk: PostgresImports) -> None:
    text = SourceText("Berta Moor fears Grimjaw. Berta Moor is a smuggler.", hidden=False, page="Biography")
    await desk.take_in(a_world(MILL, replace(MILLER, texts=(text,), links=())))
    await desk.accept(DocumentSelection())
    await store.log.append([an_utterance("Good evening.")])
    await chronicle_worker(store).read_new(CAMPAIGN)
    assert await PostgresInspection(store.database).of_status(CAMPAIGN, "pending", limit=10) == []
    [told] = [each for each in (await store.world.now(CAMPAIGN)).facts.values() if "smuggler" in str(each.claim.value)]
    assert told.claim.predicate == "description"


async def test_names_without_letters_or_twice_are_stored_once(desk: PostgresImports) -> None:
    arrival = await desk.take_in(a_world(MILL, MILL, replace(SPY, name=" \x00 "), replace(MILLER, name="Ber\x07ta")))
    assert (arrival.n_new, len(arrival.remarks)) == (2, 2)
    assert {each.document.name for each in (await desk.waiting())[1]} == {"Salt Mill", "Ber ta"}


async def test_skipped_change_waits_again_when_it_changes(desk: PostgresImports) -> None:
    await desk.take_in(a_world(MILLER))
    await desk.accept(DocumentSelection())
    gnome, orc = (replace(MILLER, attributes={"race": race}) for race in ("gnome", "orc"))
    await desk.take_in(a_world(gnome))
    await desk.skip(DocumentSelection())
    assert (await desk.take_in(a_world(gnome))).n_skipped == 1
    assert (await desk.take_in(a_world(orc))).n_changed == 1
    assert (await desk.take_in(a_world(MILLER))).n_unchanged == 1
    assert (await desk.waiting())[0] == 0


async def test_dms_decisions_about_imported_entities_survive_the_next_import(
    store: Store, desk: PostgresImports
) -> None:
    await desk.take_in(a_world(MILL, MILLER, SPY))
    await desk.accept(DocumentSelection())
    miller = EntityId("berta-moor")
    [spy] = [each.id for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Vask"]
    decided = [
        EntityScoped(spy, PUBLIC),
        EntityChanged(miller, name="Berta the Grim"),
        EntityRemoved(EntityId("salt-mill")),
    ]
    await store.world.commit(CAMPAIGN, decided, Cause("dm", 1))
    changed = replace(SPY, attributes={"race": "gnome"}), replace(MILLER, aliases=("old Berta",))
    await desk.take_in(a_world(replace(MILL, type="item"), *changed))
    done = await desk.accept(DocumentSelection())
    assert any("you removed it" in each for each in done.remarks)
    entities = {each.id: each for each in await entities_of(store, CAMPAIGN, SMITH)}
    assert "salt-mill" not in entities
    assert entities[spy].attributes["race"] == "gnome"
    assert (entities[miller].name, entities[miller].aliases) == ("Berta the Grim", ("old Berta",))


async def test_entity_of_the_campaign_file_keeps_what_the_file_says(store: Store, desk: PostgresImports) -> None:
    found = replace(MILLER, name="Grimjaw", attributes={"description": "An elf."}, texts=(), links=())
    away = SourceLink("Scene.1", "LOCATED_AT")
    await desk.take_in(a_world(MILL, replace(found, links=(away,))))
    await desk.accept(DocumentSelection())
    known = await known_of(store, CAMPAIGN, SMITH, EntityId("e-grimjaw"))
    assert known is not None
    assert "Grimjaw is a smith." in str(known) and "An elf." not in str(known)
    assert "salt-mill" not in str(known)
    [waits] = await PostgresInspection(store.database).of_status(CAMPAIGN, "pending", limit=10)
    assert waits.claim.predicate == "LOCATED_AT"
    await store.campaigns.load(replace(a_campaign(), name="Another"))
    assert "Salt Mill" in await names(store)


async def test_additions_to_a_revealed_hidden_document_stay_hidden(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(SPY))
    await desk.accept(DocumentSelection())
    [spy] = [each.id for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Vask"]
    await store.world.commit(CAMPAIGN, [EntityScoped(spy, PUBLIC)], Cause("dm", 1))
    await desk.take_in(
        a_world(replace(SPY, aliases=("the Count",), attributes={**SPY.attributes, "occupation": "spy"}))
    )
    done = await desk.accept(DocumentSelection())
    assert any("you revealed it" in each for each in done.remarks)
    [seen] = [each for each in await entities_of(store, CAMPAIGN, SMITH) if each.id == spy]
    assert (seen.name, seen.aliases, dict(seen.attributes)) == ("Vask", (), {"race": "elf"})
    assert "spy" in str(await known_of(store, CAMPAIGN, DM, spy))


async def test_additions_to_a_merged_hidden_document_stay_hidden(store: Store, desk: PostgresImports) -> None:
    await desk.take_in(a_world(SPY))
    await desk.accept(DocumentSelection())
    [spy] = [each.id for each in await entities_of(store, CAMPAIGN, DM) if each.name == "Vask"]
    smith = EntityId("e-grimjaw")
    await store.world.commit(CAMPAIGN, [EntitiesMerged(smith, spy)], Cause("dm", 1))
    await desk.take_in(a_world(replace(SPY, attributes={**SPY.attributes, "debts": "many"})))
    await desk.accept(DocumentSelection())
    assert "debts" not in str(await known_of(store, CAMPAIGN, SMITH, smith))
    assert "debts" in str(await known_of(store, CAMPAIGN, DM, smith))


async def test_entity_hidden_by_the_file_stays_hidden_after_it_left_it(store: Store) -> None:
    double = Entity(EntityId("double"), "npc", "Lord Vey", ("Vask",), hidden=True)
    file = a_campaign()
    await store.campaigns.load(replace(file, entities=(*file.entities, double)))
    desk = store.imports(CAMPAIGN)
    await desk.take_in(a_world(replace(SPY, hidden=False)))
    await desk.accept(DocumentSelection())
    await store.campaigns.load(file)
    assert "Lord Vey" in await names(store)
    assert "Lord Vey" not in await names(store, SMITH)
