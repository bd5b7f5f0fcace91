"""Talk leaves a graph behind: an atom for each line worth remembering, connected once, for those who heard it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glyphoxa.adapters.postgres.chunks import reindex
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.app.table import Rehearsal
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SessionId, SpeakerId, UtteranceId
from glyphoxa.recall.vectors import Embedder
from glyphoxa.world.event_log import Cause
from glyphoxa.world.graph import ConsentChange
from tests.support.builders import INNKEEPER, SMITH, a_campaign, a_known_party, an_utterance
from tests.support.bundles import exported, imported
from tests.support.command_line import CommandLine, a_settings_file
from tests.support.command_line import rows as shown

CAMPAIGN = a_campaign().id
FIRST, SECOND = SessionId("first"), SessionId("second")
PROMISE = "I promise to bring Grimjaw the silver lantern by Friday."
KEPT = "Grimjaw, I promise that I bring you the silver lantern today."
FOUND = "I found out that Mirelle hides a map of the old mine."
DM = Cause("dm", 9_000_000)


def said(n: int, text: str, *, session: SessionId = FIRST, heard_by: Sequence[NpcId] = (SMITH,)) -> Utterance:
    one = an_utterance(text, id=f"u{n}")
    return replace(one, session_id=session, at_ms=1_000_000 + 1_000 * n, witnesses=frozenset(heard_by))


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(a_campaign())
    return store


async def read(store: Store, *lines: Utterance) -> None:
    await store.log.append(lines)
    await chronicle_worker(store).read_new(CAMPAIGN)


async def rows(store: Store, query: str, campaign: CampaignId = CAMPAIGN) -> list[Any]:
    async with store.database.use(campaign) as connection:
        return await connection.fetch(query)


async def atoms(store: Store) -> dict[str, str]:
    return {row["utterance_id"]: row["kind"] for row in await rows(store, "SELECT * FROM live_atoms")}


async def consolidated(store: Store) -> int:
    done = 0
    while n := await store.atoms.consolidate(CAMPAIGN, least=1):
        done += n
    return done


async def edges(store: Store, label: str) -> set[tuple[str, str]]:
    found = await rows(store, "SELECT * FROM ontology_edges")
    return {(row["from_node_id"], row["to_node_id"]) for row in found if row["relation_label"] == label}


async def test_line_worth_remembering_grafts_one_atom_with_typed_edges(table: Store) -> None:
    await read(table, said(1, PROMISE), said(2, "Hello."), said(3, FOUND, heard_by=(SMITH, INNKEEPER)))
    assert await atoms(table) == {"u1": "thread", "u3": "world_discovery"}
    assert await edges(table, "temporal_follows") == {("atom:u3", "atom:u1")}
    assert ("atom:u1", "e-forge") in await edges(table, "at_location")
    assert ("atom:u3", "e-square") in await edges(table, "at_location")
    [(finder, found)] = await edges(table, "discovered")
    assert found == "atom:u3"
    assert await edges(table, "shared_scene_with") == {(finder, "e-grimjaw"), (finder, "e-mirelle")}
    nodes = {row["stable_key"]: row for row in await rows(table, "SELECT * FROM ontology_nodes")}
    assert nodes[finder]["title"] == "Tamsin"
    assert nodes["atom:u1"]["summary"] == f"Tamsin said: “{PROMISE}”"
    assert (nodes["atom:u1"]["scope"], nodes["atom:u1"]["session_id"]) == ("session", "first")


async def test_thread_is_continued_across_sessions_and_is_then_no_longer_open(table: Store) -> None:
    await read(table, said(1, PROMISE), said(2, FOUND))
    assert [each.key for each in await table.atoms.open_threads(CAMPAIGN)] == ["atom:u1"]
    await read(table, said(3, KEPT, session=SECOND))
    assert await consolidated(table) == 3
    assert await edges(table, "continues_thread") == {("atom:u3", "atom:u1")}
    assert [each.key for each in await table.atoms.open_threads(CAMPAIGN)] == ["atom:u3"]
    assert await table.atoms.open_threads(CAMPAIGN, FIRST) == []
    nodes = await rows(table, "SELECT DISTINCT status, scope FROM ontology_nodes WHERE node_type = 'state_atom'")
    assert [tuple(each) for each in nodes] == [("consolidated", "campaign")]


async def test_open_thread_is_in_the_later_prompts_of_those_who_heard_it(table: Store) -> None:
    await read(table, said(1, PROMISE))
    town = a_campaign()
    for npc, session, is_there in ((SMITH, SECOND, True), (INNKEEPER, SECOND, False), (SMITH, FIRST, False)):
        prompt = await Rehearsal(Settings(), table, town, session).ask(town.npc(npc), town.players[0], "Good evening.")
        assert (PROMISE in prompt.assembled.text) is is_there, (npc, session)


async def test_repeated_line_is_merged_with_its_evidence_and_edges(table: Store) -> None:
    await read(table, said(1, PROMISE), said(2, FOUND), said(3, PROMISE), said(4, KEPT, session=SECOND))
    await consolidated(table)
    [thread] = await table.atoms.open_threads(CAMPAIGN, SECOND)
    assert thread.key == "atom:u4"
    nodes = {row["stable_key"]: row["evidence"] for row in await rows(table, "SELECT * FROM ontology_nodes")}
    assert nodes["atom:u1"] == ["u1", "u3"]
    assert "atom:u3" not in nodes
    assert await edges(table, "temporal_follows") == {("atom:u2", "atom:u1")}
    located = [row for row in await rows(table, "SELECT * FROM ontology_edges") if row["from_node_id"] == "atom:u1"]
    assert [row["evidence"] for row in located] == [{"utterances": ["u1", "u3"]}]


async def test_lines_with_other_witnesses_are_never_merged(table: Store) -> None:
    await read(table, said(1, PROMISE), said(2, PROMISE, heard_by=(INNKEEPER,)), said(3, PROMISE, heard_by=()))
    await consolidated(table)
    assert await rows(table, "SELECT * FROM atom_edges WHERE label = 'same_as'") == []
    heard = {npc: await table.atoms.open_threads(CAMPAIGN, npc=npc) for npc in (SMITH, INNKEEPER)}
    assert {npc: [each.key for each in found] for npc, found in heard.items()} == {
        SMITH: ["atom:u1"],
        INNKEEPER: ["atom:u2"],
    }


async def test_reworded_line_replaces_its_atom_and_is_connected_again(table: Store) -> None:
    first = said(1, PROMISE)
    await read(table, first, said(2, KEPT))
    await consolidated(table)
    await table.log.revise(replace(first, text="We have decided to burn the old mill."), was=first)
    assert await atoms(table) == {"u2": "thread"}
    await read(table)
    await consolidated(table)
    summaries = await rows(table, "SELECT summary FROM live_atoms WHERE utterance_id = 'u1'")
    assert [each["summary"] for each in summaries] == ["Tamsin said: “We have decided to burn the old mill.”"]
    assert await edges(table, "continues_thread") == set()
    await table.world.correct(CAMPAIGN, UtteranceId("u1"), PROMISE, DM)
    await read(table, said(3, "Grimjaw, here is the silver lantern that I promise to bring."))
    await consolidated(table)
    assert {source for source, _ in await edges(table, "continues_thread")} == {"atom:u3"}
    await PostgresChronicleLog(table.database, table.world).read_again(CAMPAIGN, FIRST)
    before = await rows(table, "SELECT stable_key, summary FROM state_atoms ORDER BY 1")
    await read(table)
    assert await rows(table, "SELECT stable_key, summary FROM state_atoms ORDER BY 1") == before


async def test_retracted_line_takes_its_atom_with_it_until_it_is_restored(table: Store) -> None:
    await read(table, said(1, PROMISE), said(2, PROMISE), said(3, KEPT))
    await consolidated(table)
    event = await table.world.retract(CAMPAIGN, UtteranceId("u1"), DM)
    assert await atoms(table) == {"u2": "thread", "u3": "thread"}
    keys = {row["stable_key"] for row in await rows(table, "SELECT * FROM ontology_nodes")}
    assert {"atom:u2", "atom:u3"} <= keys
    assert await edges(table, "continues_thread") == set()
    await table.world.undo(CAMPAIGN, [event.seq], DM)
    assert await edges(table, "continues_thread") == {("atom:u3", "atom:u1")}
    assert await table.world.rollback(CAMPAIGN, FIRST, 2, DM) is not None
    assert set(await atoms(table)) == {"u1", "u2"}


async def test_erased_line_leaves_no_atom(table: Store) -> None:
    await read(table, said(1, PROMISE), said(2, PROMISE), replace(said(3, KEPT), speaker_id=said(3, "").speaker_id))
    await consolidated(table)
    await PostgresErasure(table.database).erase(CAMPAIGN, Meant(player=PlayerId("tamsin")), at_ms=9_000_000)
    await read(table)
    assert await rows(table, "SELECT * FROM state_atoms") == []
    assert await rows(table, "SELECT * FROM atom_edges") == []
    assert await table.atoms.open_threads(CAMPAIGN) == []


async def test_every_column_of_the_views_holds_real_values(store: Store, dsn: str) -> None:
    town = a_known_party()
    await store.campaigns.load(replace(town, entities=(*town.entities, Entity(EntityId("e-well"), "item", "the well"))))
    await read(store, said(1, PROMISE), said(2, FOUND, heard_by=(SMITH, INNKEEPER)))
    await read(store, said(3, KEPT, session=SECOND), said(4, "My sister Wenna lives in Dunharrow.", session=SECOND))
    await store.atoms.consolidate(CAMPAIGN, least=1)
    await read(store, said(5, "We have decided to leave the bridge alone.", session=SECOND))
    withheld = "My cousin Odo Barrowman owns the old ferry."
    await read(store, said(6, withheld, session=SECOND))
    await store.world.consent(
        CAMPAIGN,
        ConsentChange(SpeakerId("tamsin"), "withheld", (UtteranceId("u6"),)),
        Cause("player", 9_000_000),
    )
    async with open_store(dsn, embedder=Embedder("words", 384, embedded)) as embedding:
        await embedding.chunks.fill_missing(CAMPAIGN)
    async with store.database.use(CAMPAIGN) as connection:
        # As after 2,000 events of each session.
        await connection.execute(
            "INSERT INTO world_snapshots SELECT campaign_id, max(seq), 1, jsonb_build_array(max(seq)), max(at) "
            "FROM world_events WHERE session_id IS NOT NULL GROUP BY campaign_id, session_id"
        )
    same_everywhere = {"world_id", "projection_version"}
    for view in ("ontology_nodes", "ontology_edges", "ontology_snapshots"):
        found = await rows(store, f"SELECT * FROM {view}")
        for column in {*found[0].keys()} - same_everywhere:
            values = {str(row[column]) for row in found if row[column] not in (None, "", [], {})}
            assert len(values) > 1, (view, column, values)
    nodes = await rows(store, "SELECT * FROM ontology_nodes")
    assert {row["node_type"] for row in nodes} == {"anchor", "entity", "state_atom"}
    assert {row["semantic_kind"] for row in nodes} >= {"npc", "player", "location", "item", "thread", "world_discovery"}
    assert {row["title"] for row in nodes if row["embedding"] is None} <= {"Tamsin", "Bran", ""}
    hidden = {row["stable_key"]: row["title"] + row["summary"] for row in nodes if row["consent_state"] == "withheld"}
    assert hidden == {"atom:u6": "", "odo-barrowman": ""}
    assert "Barrowman" not in str(nodes) + str(await rows(store, "SELECT * FROM ontology_edges"))
    labels = {row["relation_label"] for row in await rows(store, "SELECT * FROM ontology_edges")}
    assert labels >= {"shared_scene_with", "temporal_follows", "discovered", "at_location", "continues_thread", "KNOWS"}


async def test_vector_of_an_entity_follows_its_description_and_the_model(dsn: str) -> None:
    town = a_campaign()
    hidden = Entity(EntityId("e-lair"), "location", "the lair", hidden=True)
    async with open_store(dsn, embedder=Embedder("words", 384, embedded)) as store:
        await store.campaigns.load(replace(town, entities=(*town.entities, hidden)))
        await store.chunks.fill_missing(CAMPAIGN)
        assert "the lair" not in {row["content"] for row in await rows(store, "SELECT * FROM entity_vectors")}
        before = {row["entity_id"]: row["content"] for row in await rows(store, "SELECT * FROM entity_vectors")}
        assert before["e-grimjaw"] == "Grimjaw: Grimjaw is a smith."
        smith, *others = town.entities
        changed = replace(smith, attributes={"description": "Grimjaw is blind."})
        await store.campaigns.load(replace(town, entities=(changed, *others)))
        await store.chunks.fill_missing(CAMPAIGN)
        await store.chunks.fill_missing(CAMPAIGN)
        query = "SELECT * FROM entity_vectors WHERE entity_id = 'e-grimjaw'"
        assert [row["content"] for row in await rows(store, query)] == ["Grimjaw: Grimjaw is blind."]
        vector = (await embedded(["Grimjaw: Grimjaw is blind."]))[0]
        near = await PostgresInspection(store.database).near_entities(CAMPAIGN, vector, model="words", limit=2)
        assert near[0][1:] == ("Grimjaw", "npc") and near[0][0] == pytest.approx(0)
    async with open_store(Database(dsn, embedding_dimensions=8, any_model=True)) as store:
        short = Embedder("short", 8, shortly)
        await store.log.append([said(1, PROMISE)])
        await reindex(store.database, short)
        [dimensions] = await rows(store, "SELECT DISTINCT vector_dims(embedding) AS n FROM entity_vectors")
        assert dimensions["n"] == 8
        nodes = await rows(store, "SELECT embedding FROM ontology_nodes")
        assert [len(row["embedding"].to_list()) for row in nodes] == [8] * len(town.entities)


async def test_a_chunk_has_the_entity_that_it_is_about_as_topic(table: Store, dsn: str) -> None:
    """Whether it is embedded before or after it is read, and as long as its words say so."""
    await table.log.append([said(1, PROMISE), said(2, "Hello.")])
    async with open_store(dsn, embedder=Embedder("words", 384, embedded)) as embedding:
        await embedding.chunks.fill_missing(CAMPAIGN)
        await read(table, said(3, FOUND))
        await embedding.chunks.fill_missing(CAMPAIGN)
        query = "SELECT utterance_id, topic FROM chunks"
        assert {row["utterance_id"]: row["topic"] for row in await rows(table, query)} == {
            "u1": "e-grimjaw",
            "u2": "",
            "u3": "e-mirelle",
        }
        await table.world.correct(CAMPAIGN, UtteranceId("u1"), "I promise to come by Friday.", DM)
        await chronicle_worker(table).read_new(CAMPAIGN)
        await embedding.chunks.fill_missing(CAMPAIGN)
        assert {row["utterance_id"]: row["topic"] for row in await rows(table, query)}["u1"] == ""


async def embedded(texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Vectors of unit length in which each word counts once, wherever it is."""
    vectors = np.zeros((len(texts), 384), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        row[[zlib.crc32(word.encode()) % 384 for word in text.casefold().split()]] = 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def shortly(texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return (await embedded(texts))[:, :8] + np.float32(0.1)


async def test_open_threads_are_listed_on_the_command_line(
    table: Store, dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(a_settings_file(tmp_path, dsn), capsys)
    assert "no thread is open" in await cli.told("show", "threads")
    await table.log.append([said(1, PROMISE), said(2, FOUND), said(3, KEPT, session=SECOND)])
    await cli.told("worker", "read")
    assert [row[1] for row in shown(await cli.told("show", "threads"))] == ["second"]
    assert "no thread is open" in await cli.told("show", "threads", "--session", "first")


async def test_bundle_of_an_earlier_release_is_imported_without_atoms(table: Store) -> None:
    await read(table, said(1, PROMISE))
    bundle = json.loads(await exported(table, CAMPAIGN))
    for name in ("state_atoms", "atom_edges"):
        del bundle["tables"][name]
    await imported(table, json.dumps(bundle), CampaignId("imported"))
    assert await table.atoms.open_threads(CampaignId("imported")) == []
    assert await table.log.count(CampaignId("imported")) == 1
