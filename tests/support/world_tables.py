"""The projections in the tables, for comparison with the log."""

from __future__ import annotations

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.tables import WorldTables
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Cause, difference, replay
from glyphoxa.world.state import WorldState

TOWN = CampaignId("town")
MIRA, INN, FORGE, SWORD = EntityId("mira"), EntityId("inn"), EntityId("forge"), EntityId("sword")
DM = Cause("dm", 1_000)


A_ROW_EACH = """
INSERT INTO campaign_documents (campaign_id, document, seq)
    VALUES ('town', '{"id": "town", "name": "town", "language": "en",
    "entities": [], "relationships": [], "npcs": [], "players": [], "scenes": []}', 4);
INSERT INTO campaign_times (campaign_id, time_zone, story_day) VALUES ('town', 'Europe/Berlin', '12');
INSERT INTO story_days (campaign_id, session_id, day, file_day) VALUES ('town', 'first', '12', '12');
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage)
    VALUES ('town', 'first-1', 0, 0, 4, 'wort', 'wörd', 0.9, 'phonetic');
INSERT INTO turns (campaign_id, id, session_id, speaker_id, speaker_name, raw_text, text, outcome)
    VALUES ('town', 't1', 'first', 'bran', 'Bran', 'word', 'word', 'spoken');
INSERT INTO form_counts (campaign_id, heard, entity_id, n, utterances) VALUES ('town', 'mirra', 'mira', 1, '{first-1}');
INSERT INTO table_controls (campaign_id, session_id, controls) VALUES ('town', 'first', '{"muted": ["mira"]}');
INSERT INTO chronicle_progress (campaign_id, session_id, read_ordinal) VALUES ('town', 'first', 2);
INSERT INTO chronicle_rereads (campaign_id, session_id, ordinal, change_seq) VALUES ('town', 'first', 1, 7);
INSERT INTO turn_judgements (campaign_id, session_id, utterance_id, ordinal, mode, risk, flags, judged_by)
    VALUES ('town', 'first', 'first-1', 1, 'in_world_answer', 'medium', '{veil:torture}', 'rules');
INSERT INTO state_atoms (campaign_id, stable_key, utterance_id, kind, title, summary, confidence)
    SELECT 'town', 'atom:first-' || n, 'first-' || n, 'thread', 'word', 'word', 0.5 FROM generate_series(1, 2) n;
INSERT INTO atom_edges (campaign_id, from_key, to_key, label, confidence)
    VALUES ('town', 'atom:first-2', 'atom:first-1', 'same_as', 1);
INSERT INTO import_sources (campaign_id, source, name) VALUES ('town', 'markdown:vault', 'vault');
INSERT INTO import_documents (campaign_id, source, key, name, type, kind, document, digest, decision, accepted)
    VALUES ('town', 'markdown:vault', 'Inn.md', 'Inn', 'location', 'note',
            '{"key": "Inn.md", "name": "Inn", "type": "location", "kind": "note", "file": "Inn.md"}',
            'd', 'accepted', NULL);
"""
"""In tables that a world and its transcript do not fill: the town's, with four utterances of a first session."""


async def a_town(store: Store, campaign: CampaignId) -> None:
    """A campaign with four entities, of which nothing is known: events 1 to 4."""
    await a_campaign_row(store, campaign)
    people = (
        EntityAdded(MIRA, "npc", "Mira", ("the innkeeper",)),
        EntityAdded(INN, "location", "The Inn"),
        EntityAdded(FORGE, "location", "The Forge"),
        EntityAdded(SWORD, "item", "The Sword"),
    )
    await store.world.commit(campaign, people, DM)


async def told_of(store: Store, campaign: CampaignId, entity: EntityId) -> dict[str, object]:
    """Its attributes, as `entities` shows them."""
    async with store.database.use(campaign) as connection:
        found: dict[str, object] = await connection.fetchval(
            "SELECT attributes FROM entities WHERE campaign_id = $1 AND id = $2", campaign, entity
        )
    return found


async def a_campaign_row(store: Store, campaign: CampaignId, *, language: str = "en") -> None:
    async with store.database.use(None) as connection:
        await connection.execute(
            "INSERT INTO campaigns (id, name, language) VALUES ($1, $1, $2) ON CONFLICT DO NOTHING", campaign, language
        )


async def everything(store: Store, campaign: CampaignId) -> WorldState:
    async with store.database.use(campaign) as connection, connection.transaction():
        return await WorldTables(connection, campaign).read(with_ended=True)


async def stands_as_replayed(store: Store, campaign: CampaignId) -> WorldState:
    """Fails unless each projection says what a replay of the log says; returns that."""
    replayed = replay(await store.world.events(campaign, limit=100_000))
    stored = await everything(store, campaign)
    assert difference(stored, replayed).is_empty
    async with store.database.use(campaign) as connection:
        told = await connection.fetch("SELECT id, attributes FROM entities WHERE campaign_id = $1", campaign)
        rests = await connection.fetch("SELECT support_id, fact_id FROM fact_supports WHERE campaign_id = $1", campaign)
        ways = await connection.fetch(
            "SELECT fact_id, source_id, target_id FROM relationships WHERE campaign_id = $1", campaign
        )
    assert {row["id"]: row["attributes"] for row in told} == _attributes(replayed)
    assert sorted(map(tuple, rests)) == sorted((on, f.id) for f in replayed.facts.values() for on in f.supports)
    assert sorted(map(tuple, ways)) == sorted(way for fact in replayed.facts.values() for way in _ways(fact))
    return replayed


def _attributes(state: WorldState) -> dict[EntityId, dict[str, object]]:
    values: dict[EntityId, dict[str, list[object]]] = {entity: {} for entity in state.entities}
    for fact in sorted(state.facts.values(), key=lambda fact: (fact.seq, fact.id)):
        if fact.claim.object is None and fact.status == "accepted" and fact.visibility.scope == "public":
            values[fact.claim.subject].setdefault(fact.claim.predicate, []).append(fact.claim.content)
    return {
        entity: {name: held[0] if len(held) == 1 else held for name, held in of_entity.items()}
        for entity, of_entity in values.items()
    }


def _ways(fact: Fact) -> set[tuple[str, str, str]]:
    claim = fact.claim
    if claim.object is None:
        return set()
    ways = {(fact.id, claim.subject, claim.object)}
    if claim.predicate in ("ALLIED_WITH", "HOSTILE_TO"):
        ways.add((fact.id, claim.object, claim.subject))
    return ways
