"""How the server answers what is asked of a large campaign, under the rules that keep campaigns apart: at 2,000
entities, 18,000 facts, 30,000 events and 100,000 turns; at 20,000 utterances, or 100,000 in `make proof`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.log import PostgresTurns
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, TurnId
from glyphoxa.transcript.ports import TalkFilter
from tests.support.patience import DEADLINE_MS
from tests.support.plans import Node, answered_by, indexes_of, nodes_of
from tests.support.postgres import TestServer, vacuum
from tests.support.proof import n_examples

FILES = ("world/event_log", "world/tables", "world/retraction", "world/imports", "world/inspection")
FILES += ("transcript/log", "transcript/search", "transcript/turns", "transcript/graph_rag")
SQL = {f"{file.rpartition('/')[2]}.{name}": query for file in FILES for name, query in load_queries(file).items()}
BIG = CampaignId("big")
N_UTTERANCES = n_examples(100_000)
A_SPEAKER, A_WITNESS, AN_ENTITY = SpeakerId("player-3"), NpcId("npc-1"), "e1500"
A_SESSION = SessionId(f"s{N_UTTERANCES // 1_000}")
A_TIME = datetime.fromtimestamp(1_700_000_000 + N_UTTERANCES // 2 * 60, UTC)
RARE_WORD, RARE_NAME = "drachenzahn", "Will"
EVER, ANYWHERE = (None, None), (None, None, None, None)
AN_UTTERANCE = {
    "place": 0,
    "session_id": A_SESSION,
    "utterance_id": "u77",
    "speaker_id": "x",
    "speaker_name": "x",
    "text": "x",
    "raw_text": "x",
    "npc_id": "",
    "at": A_TIME.isoformat(),
    "duration_ns": 0,
    "witnesses": [],
}
FEW = frozenset({"campaigns", "sessions"})
FILLED = (*FEW, "entities", "relationships", "attribute_facts", "fact_supports", "world_events", "import_documents")
FILLED += ("session_entries", "corrections", "chunks", "turns")
VIEWERS = pytest.mark.parametrize("viewer", [None, A_WITNESS])
BOTH = pytest.mark.parametrize("kind", ["of these values", "of any values"])

# Of $2 entities. Entity 0 is an end of a tenth of all relations, entity 1 of a twentieth, and so on: everybody knows
# the king.
_WORLD = (
    """INSERT INTO entities (campaign_id, id, type, name, origin, scope, knowers)
       SELECT $1, 'e' || n, (ARRAY['npc', 'location', 'item'])[n % 3 + 1], 'Name' || n, 'dm',
              CASE WHEN n % 10 = 9 THEN 'secret' ELSE 'public' END, ARRAY['npc-' || n % 40]
         FROM generate_series(0, $2::int - 1) AS n""",
    """INSERT INTO relationships (campaign_id, source_id, target_id, rel_type, origin, fact_id, status, scope,
                                  knowers, seq, disputes)
       SELECT $1, 'e' || (n * 7919) % $2::int, 'e' || floor($2::int ^ random())::int % $2::int,
              (ARRAY['KNOWS', 'LOCATED_AT', 'OWNS', 'MEMBER_OF'])[n % 4 + 1] , 'dm', 'r' || n,
              CASE WHEN n % 9 = 8 THEN 'pending' ELSE 'accepted' END,
              CASE WHEN n % 20 = 3 THEN 'secret' ELSE 'public' END, ARRAY['npc-' || n % 40], n,
              CASE n % 500 WHEN 0 THEN ARRAY['r' || n + 1] ELSE '{}' END
         FROM generate_series(1, 5 * $2::int) AS n ON CONFLICT DO NOTHING""",
    """INSERT INTO attribute_facts (campaign_id, fact_id, entity_id, attribute, value, origin, scope, knowers, seq,
                                    disputes)
       SELECT $1, 'a' || n, 'e' || n % $2::int, 'note', to_jsonb('word' || n % 3000 || ' word' || n % 700), 'dm',
              CASE WHEN n % 20 = 3 THEN 'secret' ELSE 'public' END, ARRAY['npc-' || n % 40], n,
              CASE n % 500 WHEN 0 THEN ARRAY['a' || n + 1] ELSE '{}' END
         FROM generate_series(1, 4 * $2::int) AS n""",
    """INSERT INTO fact_supports (campaign_id, support_id, fact_id)
       SELECT $1, 'r' || n, 'a' || n FROM generate_series(1, 4 * $2::int) AS n""",
    """INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by, session_id, ordinal, source_turn_id)
       SELECT $1, n, CASE n % 1000 WHEN 0 THEN 'undone' ELSE 'fact_confirmed' END,
              CASE n % 10 WHEN 9
                   THEN jsonb_build_object('attributes', jsonb_build_object('evidence', ARRAY['u' || n + 1]))
                   ELSE '{}' END,
              now(), 'talk', 's' || n / 1000, n % 1000, 'u' || n FROM generate_series(1, 15 * $2::int) AS n""",
    """INSERT INTO import_documents (campaign_id, source, key, name, type, kind, document, digest, decision, accepted,
                                     entity)
       SELECT $1, 'foundry:big', 'd' || n, 'Somebody', 'npc', 'Actor', '{}', '', 'accepted', '{}', 'e' || n
         FROM generate_series(1, 2 * $2::int) AS n""",
)
# Of $2 utterances. Word n is said about 1/n as often as the first, as in a language. Sessions of 500, one a minute.
_TALK = (
    """INSERT INTO sessions (campaign_id, id, started_at, last_ordinal)
       SELECT $1, 's' || s, to_timestamp(1700000000 + s * 30000), 500 FROM generate_series(0, ($2::int - 1) / 500) AS s
    """,
    """INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id, speaker_name, text,
                                    raw_text, timestamp, duration_ns, witnesses, retracted)
       SELECT $1, 's' || (n / 500), n % 500 + 1, 'u' || n, 'player-' || (n % 40), 'Player ' || (n % 40), t.text, t.text,
              to_timestamp(1700000000 + n * 60), 3000000000, ARRAY['npc-' || (n % 3), 'npc-' || (n % 100)], n % 1000 = 0
         FROM generate_series(0, $2::int - 1) AS n,
              LATERAL (SELECT string_agg('wort' || floor(exp(random() * ln(20000 + 0 * g)))::int, ' ')
                              || CASE WHEN n % 2000 = 7 THEN ' drachenzahn' WHEN n % 2000 = 8 THEN ' Will' ELSE '' END
                              AS text
                         FROM generate_series(1, 12 + 0 * n) AS g) AS t""",
    """INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage)
       SELECT $1, 'u' || n, 0, 0, 4, 'word', 'wort', 0.9, 'phonetic' FROM generate_series(1, $2::int / 10) AS n""",
    """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model,
                           entity_ids, knowers)
       SELECT $1, 'u' || n, 'u' || n, 's' || n / 500, '', '', array_fill(n % 100 + 1, ARRAY[384])::vector, 'm',
              ARRAY['e' || n % 2000, 'e' || n % 50], ARRAY['npc-' || n % 40, 'npc-' || n % 3]
         FROM generate_series(1, $2::int / 5 - 1) AS n""",
)
# One a minute; 200 sessions of 500; one NPC is asked once in 10,000 turns.
_TURNS = """
INSERT INTO turns (campaign_id, id, session_id, speaker_id, speaker_name, raw_text, text, npc_id, outcome, recalled,
                   prompt_text, created_at)
    SELECT $1, 's' || (n / 500) || '-t' || lpad(n::text, 6, '0'), 's' || (n / 500), 'tamsin', 'Tamsin', 'x', 'x',
           CASE WHEN n % 10000 = 7 THEN 'hermit' ELSE 'npc-' || (n % 5) END, 'answered',
           jsonb_build_array(jsonb_build_object('source', 'said', 'text', repeat('word ', 100), 'utterance_id', 'u',
                                                'session_id', 's', 'speaker_id', 'tamsin', 'at_ms', 0,
                                                'signals', jsonb_build_object())),
           repeat(md5(n::text), 40), to_timestamp(1700000000 + n * 60)
      FROM generate_series(0, $2::int - 1) AS n
"""


async def fill(dsn: str) -> None:
    database = Database(dsn)
    async with database.administer(deadline_ms=DEADLINE_MS) as connection:
        index = await connection.fetchval("SELECT indexdef FROM pg_indexes WHERE indexname = 'idx_chunks_embedding'")
        await connection.execute("DROP INDEX idx_chunks_embedding")
        await connection.execute("SET session_replication_role = replica")  # no triggers: this is about plans
        await connection.execute("SELECT setseed(0.5)")
        sizes = (2_000, N_UTTERANCES, 100_000), *[(200, 500, 500)] * 9
        for number, (n_entities, n_utterances, n_turns) in enumerate(sizes):
            campaign = f"small-{number}" if number else BIG
            await connection.execute("SELECT set_config('glyphoxa.campaign', $1, false)", campaign)
            await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, $1, 'en')", campaign)
            for statements, n in ((_WORLD, n_entities), (_TALK, n_utterances), ((_TURNS,), n_turns)):
                for statement in statements:
                    await connection.execute(statement, campaign, n)
        await connection.execute(index.replace(" ON ONLY ", " ON "))
        await vacuum(connection, *FILLED)
    await database.close()


@pytest.fixture(scope="module")
def big(postgres: TestServer) -> Iterator[str]:
    with postgres.a_database(fill) as dsn:
        yield dsn


@pytest.fixture
async def store(big: str) -> AsyncIterator[Store]:
    async with open_store(big) as opened:
        yield opened


# -- talk


async def talk_read_by(store: Store, query: str, *arguments: object) -> set[str]:
    nodes = await answered_by(store, BIG, SQL[query], *arguments, table="session_entries")
    return {name for name in await indexes_of(store, nodes, whole=FEW) if "session_entries" in name}


async def test_recent_talk(store: Store) -> None:
    by = await talk_read_by(store, "log.recent", A_SESSION, A_TIME, 50)
    assert by == {"idx_session_entries_session_timestamp"}


async def test_whether_an_utterance_is_there_already(store: Store) -> None:
    by = await talk_read_by(store, "log.exists", "u77")
    assert by == {"session_entries_campaign_id_utterance_id_key"}
    by = await talk_read_by(store, "log.append", [AN_UTTERANCE])
    assert by == {"session_entries_campaign_id_utterance_id_key"}


async def test_counts(store: Store) -> None:
    assert await talk_read_by(store, "log.count") == {"idx_session_entries_session_id"}
    assert await talk_read_by(store, "log.count_of_session", A_SESSION) == {"idx_session_entries_session_id"}
    assert await store.log.count(BIG) == N_UTTERANCES
    assert await store.log.count(BIG, A_SESSION) == 500


@VIEWERS
@pytest.mark.parametrize("one_is_enough", [True, False])
async def test_words_and_names(store: Store, viewer: str | None, one_is_enough: bool) -> None:
    asked = (viewer, f"{RARE_WORD} {RARE_NAME}", [RARE_NAME], one_is_enough)
    by = await talk_read_by(store, "search.search", *asked, *ANYWHERE, 20)
    assert by == {"idx_session_entries_fts", "idx_session_entries_names", "session_entries_pkey"}
    # Within a session there may be a shorter way.
    assert await talk_read_by(store, "search.search", *asked, A_SESSION, A_SPEAKER, A_TIME, A_TIME, 20)


async def test_what_is_found_by_words_is_all_that_there_is(store: Store) -> None:
    found = await store.talk_search.search(BIG, A_WITNESS, TalkFilter(RARE_WORD, limit=100))
    # Every 2,000th has the word, and the NPC was there for a third of them.
    assert len(found) == sum(n % 3 == 1 for n in range(7, N_UTTERANCES, 2_000))
    assert all(A_WITNESS in item.utterance.witnesses for item in found)


@VIEWERS
async def test_the_latest_of_a_session_of_a_speaker_and_of_a_time(store: Store, viewer: str | None) -> None:
    by = await talk_read_by(store, "search.latest_of_session", viewer, A_SESSION, None, *EVER, 20)
    assert by <= {"idx_session_entries_session_timestamp", "idx_session_entries_session_id"} and by
    by = await talk_read_by(store, "search.latest_of_speaker", viewer, A_SPEAKER, *EVER, 20)
    assert by == {"idx_session_entries_speaker"}
    for times in ((A_TIME, None), (None, A_TIME)):
        by = await talk_read_by(store, "search.latest", viewer, *times, 20)
        assert by == {"idx_session_entries_timestamp"}


async def test_a_search_reads_the_partition_of_its_campaign_alone(store: Store) -> None:
    asked = (None, RARE_WORD, [], True, *ANYWHERE, 20)
    nodes = await answered_by(store, BIG, SQL["search.search"], *asked, table="session_entries")
    read = {n["Relation Name"] for n in nodes if n.get("Relation Name", "").startswith("session_entries_")}
    assert len(read) == 1


# -- turns


@pytest.mark.parametrize(
    ("session", "npc", "index", "n"),
    [
        (None, None, "idx_turns_latest", 20),
        (None, "npc-1", "idx_turns_of_npc", 20),
        (None, "hermit", "idx_turns_of_npc", 10),
        ("s100", None, "idx_turns_session_id", 500),
    ],
)
async def test_the_latest_turns_are_found_without_reading_the_others(
    store: Store, session: str | None, npc: str | None, index: str, n: int
) -> None:
    plan = await answered_by(store, BIG, SQL["turns.latest"], session, npc, 20, table="turns")
    scans = [node for node in plan if "Scan" in node["Node Type"]]
    assert {node["Index Name"] for node in scans if "Index Name" in node} == {index}
    assert all(node["Actual Rows"] <= n and node.get("Rows Removed by Filter", 0) == 0 for node in scans)


async def test_a_turn_is_found_by_its_id(store: Store) -> None:
    plan = await answered_by(store, BIG, SQL["turns.turn"], "s100-t050000", table="turns")
    assert [node["Index Name"] for node in plan if "Index Name" in node] == ["turns_pkey"]


async def test_by_an_ending_of_its_id_it_is_found_too(store: Store) -> None:
    turns = PostgresTurns(store.database)
    assert await turns.ending_with(BIG, "t050000", limit=10) == ["s100-t050000"]
    assert await turns.ending_with(BIG, "0000", npc=NpcId("hermit"), limit=10) == []
    [latest, *_] = await turns.latest(BIG, limit=3)
    assert (latest.id, latest.prompt.text) == ("s199-t099999", "")
    [of_session] = await turns.latest(BIG, session=SessionId("s100"), npc=NpcId("hermit"), limit=3)
    assert of_session.id == "s100-t050007"
    whole = await turns.turn(BIG, TurnId("s199-t099999"))
    assert whole is not None and len(whole.prompt.text) == 1_280


# -- the world


@pytest.mark.parametrize(
    ("query", "arguments", "fewer_than"),
    [
        ("imports.documents_of", ("e5",), 10),
        ("tables.remove_facts", (["r9", "a9"],), 10),
        ("event_log.head", (), 5),
        ("event_log.events_last", (0, 10), 20),
        ("event_log.events_first", (29_000, 10), 20),
        ("event_log.undoing_events", (), 70),
        ("retraction.learned_from", ("u5010", "s5", 10), 20),
        ("retraction.learned_from_any", (["u5010", "u7"],), 30),
        ("retraction.learned_behind", ("s3", 990, []), 30),
    ],
)
async def test_few_rows_are_read_of_the_world(
    store: Store, query: str, arguments: tuple[object, ...], fewer_than: int
) -> None:
    """Those that were looked at in vain among them."""
    nodes = await answered_by(store, BIG, SQL[query], *arguments, table="relationships")
    read = [n for n in nodes if "Relation Name" in n or n["Node Type"] == "Bitmap Index Scan"]
    assert sum((n["Actual Rows"] + n.get("Rows Removed by Filter", 0)) * n["Actual Loops"] for n in read) < fewer_than


# -- the graph: with a plan for the values asked for, and with the one that the server keeps for any values


async def indexes(store: Store, kind: str, query: str, *arguments: object) -> set[str]:
    async with store.database.use(BIG) as connection:
        assert await connection.fetchval("SELECT row_security_active('relationships')")
        if kind == "of any values":
            text = await plan_of_any_values(connection, query, len(arguments))
        else:
            [(text,)] = await connection.fetch(f"EXPLAIN (FORMAT JSON) {query}", BIG, *arguments)
    return await indexes_of(store, nodes_of(json.loads(text)[0]["Plan"]), whole=FEW)


async def plan_of_any_values(connection: Any, query: str, n_arguments: int) -> str:  # a pool's own kind of connection
    """Return the plan after a few executions; the campaign is given, so that other partitions are left out."""
    async with connection.transaction():
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE asked AS {query}")
        nulls = ", NULL" * n_arguments
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE asked ('{BIG}'{nulls})")
        await connection.execute("DEALLOCATE asked")
    return str(text)


@VIEWERS
async def test_a_walk_reads_relations_by_their_ends(store: Store, viewer: str | None) -> None:
    """Look at the queries within the function, too."""
    told: list[str] = []
    async with store.database.administer(deadline_ms=DEADLINE_MS) as connection:
        await connection.execute("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0")
        await connection.execute("SET auto_explain.log_nested_statements = on; SET auto_explain.log_format = json")
        await connection.execute("SET auto_explain.log_level = notice; SET client_min_messages = notice")
        await connection.execute("SET ROLE glyphoxa_app")
        await connection.fetchval("SELECT set_config('glyphoxa.campaign', $1, false)", BIG)
        connection.add_log_listener(lambda _, message: told.append(message.message))
        await connection.fetch("SELECT * FROM glyphoxa_walk($1, $2, $3, 3)", BIG, viewer, AN_ENTITY)
        await asyncio.sleep(0)  # listeners are told one round later
    plans = [json.loads(text[text.index("{") :]) for text in told if "plan:" in text]
    asked = [plan for plan in plans if "relationships" in plan["Query Text"] and "$1" not in plan["Query Text"]]
    nodes: list[Node] = [node for plan in asked for node in nodes_of(plan["Plan"])]
    by = await indexes_of(store, nodes, whole=FEW)
    assert by == {"idx_rel_source", "idx_rel_target", "idx_rel_source_restricted", "idx_rel_target_restricted"}


@BOTH
@VIEWERS
async def test_talk_around_an_entity(store: Store, kind: str, viewer: str | None) -> None:
    meaning = SQL["graph_rag.by_meaning"].replace("{{dimensions}}", "384")
    question = np.ones(384, dtype=np.float32)
    by = await indexes(store, kind, meaning, viewer, AN_ENTITY, 2, question, "m", 10)
    assert {"idx_chunks_entity_ids", "idx_chunks_embedding"} <= by
    by = await indexes(store, kind, SQL["graph_rag.by_words"], viewer, AN_ENTITY, 2, "wort1700 wort1701", "", 10)
    assert {"idx_chunks_entity_ids", "idx_session_entries_fts"} <= by


@BOTH
@VIEWERS
async def test_facts_of_a_page_of_entities_are_read_by_their_subjects(
    store: Store, kind: str, viewer: str | None
) -> None:
    subjects = [f"e{n}" for n in range(1_000, 1_100)]
    by = await indexes(store, kind, SQL["inspection.of_subjects"], viewer, subjects)
    assert "idx_attribute_facts_entity" in by
    assert by & {"relationships_pkey", "idx_rel_source"}, "both begin with the campaign and the subject"
