"""No NPC and no player gets from an import what players could not see in the other tool."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.bundle import Parts, Place, bind_campaign, export_campaign, export_for_players
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.desk import recap_of
from glyphoxa.app.table import Rehearsal
from glyphoxa.config.settings import Settings
from glyphoxa.dm.source_world import EVERYTHING, SourceText, SourceWorld
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import DM
from glyphoxa.plugins.imports.readers import read_source
from glyphoxa.world.event_kinds import FactRevealed
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, SESSION, SMITH, a_campaign, an_utterance
from tests.support.known_of import entities_of, known_of
from tests.support.proof import n_examples
from tests.support.secret_campaigns import words_in
from tests.support.source_worlds import SPY, a_random_world, a_world

KNOWN = ("Grimjaw", "Mirelle", "the forge", "Tamsin")


def hidden_in(text: str) -> set[str]:
    return {word for word in words_in(text) if word.startswith("mor")}


async def told(store: Store, npc: NpcId) -> str:
    """All that the NPC may know. An id, which nobody is told, may be made of an earlier name."""
    entities = await entities_of(store, CAMPAIGN, npc)
    known = [await known_of(store, CAMPAIGN, npc, each.id) for each in await entities_of(store, CAMPAIGN, DM)]
    facts = await PostgresInspection(store.database).current(CAMPAIGN, npc, limit=10_000)
    facts += [fact for each in known if each is not None for fact in each.attributes]
    ends = [end for each in known if each is not None for _, end in each.relations]
    return str(
        [(each.name, each.aliases, each.attributes) for each in (*entities, *ends)]
        + [(fact.claim.value, fact.attributes, fact.provenance.reason) for fact in facts]
    )


async def prompts(store: Store, npc: NpcId, world: SourceWorld, random: Random) -> str:
    """Its prompts for questions about documents, without the questions."""
    campaign = a_campaign()
    found = ""
    for one in random.sample(world.documents, 3):
        asked = f"What do you know of {one.name}?"
        rehearsal = Rehearsal(Settings(), store, campaign, SESSION)
        prompt = await rehearsal.ask(campaign.npc(npc), campaign.players[0], asked)
        found += str(prompt).replace(one.name, "")
    return found


async def test_hidden_words_of_random_worlds_reach_no_npc_and_no_player(store: Store) -> None:
    campaign = a_campaign()
    await store.campaigns.load(campaign)
    await store.log.append([an_utterance("We met Grimjaw at the forge.")])
    desk = store.imports(CAMPAIGN)
    seen, kept = 0, 0
    for seed in range(n_examples(6)):
        random = Random(seed)
        # Every second time another version of the same source: what was accepted changes.
        world = a_random_world(random, KNOWN, id=f"world {seed // 2}")
        await desk.take_in(world)
        await desk.accept(EVERYTHING)
        for npc in campaign.npcs:
            text = await told(store, npc.id) + await prompts(store, npc.id, world, random)
            assert not hidden_in(text), seed
            seen += len(words_in(text))
        kept += len(hidden_in(str(await store.world.now(CAMPAIGN)) + str(await store.campaigns.get(CAMPAIGN))))
        recap = await recap_of(store, CAMPAIGN, SESSION, "players")
        assert not hidden_in(str(recap))
    assert seen > 0
    assert kept > 0
    file = BytesIO()
    await export_for_players(store.database, CAMPAIGN, file)
    assert not hidden_in(file.getvalue().decode().replace("\\n", " "))
    assert words_in(file.getvalue().decode())


async def test_notes_hidden_by_words_of_their_author_reach_no_npc(store: Store, tmp_path: Path) -> None:
    notes = {
        "NPCs/Odo.md": "---\ntype: npc\nvisibility: storyteller\n---\nOdo owes Mor1or gold.\n",
        "Session 4 - DM prep.md": "Mor2or falls.\n",
        "Behind the Screen/Plot.md": "Mor3or rules.\n",
        "NPCs/Ada.md": (
            "---\ntype: npc\nKeeper info: She serves Mor4or.\n---\nAda bakes. ||Mor5or||\n\n"
            "**DM notes**\n\nMor6or pays her.\n\n- She met Mor7or.\n\n**Trade**\n\nRye bread.\n\n"
            "## What the players don't know\n\nMor8or is her sister.\n"
        ),
    }
    for name, text in notes.items():
        path = tmp_path / "vale" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    await store.campaigns.load(a_campaign())
    desk = store.imports(CAMPAIGN)
    world = read_source("markdown", tmp_path / "vale")
    await desk.take_in(world)
    await desk.accept(EVERYTHING)
    known = ""
    for npc in a_campaign().npcs:
        known += await told(store, npc.id) + await prompts(store, npc.id, world, Random(1))
    assert not hidden_in(known)
    assert "Ada bakes." in known and "Rye bread." in known
    held = (await store.world.now(CAMPAIGN)).facts.values()
    assert len(hidden_in(str([fact.claim for fact in held]))) == 8


async def test_players_recap_leaves_out_imported_secrets_that_somebody_knows(store: Store) -> None:
    await store.campaigns.load(a_campaign())
    said = "I promise to bring you the stolen crowns by Friday."
    await store.log.append([an_utterance(said)])
    desk = store.imports(CAMPAIGN)
    notes = SourceText("The stolen crowns lie below the mill. Nobody must know.", hidden=True)
    await desk.take_in(a_world(replace(SPY, hidden=False, texts=(notes,))))
    await desk.accept(EVERYTHING)
    assert said in str(await recap_of(store, CAMPAIGN, SESSION, "players"))
    [secret] = [each for each in (await store.world.now(CAMPAIGN)).facts.values() if each.claim.content == notes.text]
    await store.world.commit(CAMPAIGN, [FactRevealed(secret.id, (SMITH,))], Cause("dm", 1))
    assert said not in str(await recap_of(store, CAMPAIGN, SESSION, "players"))


async def test_bound_facts_of_a_hidden_entity_stay_hidden_at_its_namesake(store: Store) -> None:
    other = CampaignId("other")
    double = Entity(EntityId("double"), "npc", "Grimjaw", attributes={"debts": "Mor1or"}, hidden=True)
    await store.campaigns.load(a_campaign())
    await store.campaigns.load(
        replace(a_campaign(), id=other, entities=(double,), relationships=(), secrets=(), npcs=(), scenes=())
    )
    file = BytesIO()
    await export_campaign(store.database, other, file, Parts(secrets=True))
    file.seek(0)
    await bind_campaign(store.database, store.world, file, Place(CAMPAIGN), now_ms=1)
    assert "Grimjaw" in await told(store, SMITH)
    assert "Mor1or" not in await told(store, SMITH)
    held = (await store.world.now(CAMPAIGN)).facts.values()
    assert "Mor1or" in [fact.claim.content for fact in held]
