"""How the server answers what is asked of talk, under the rules that keep campaigns apart: at 20,000 utterances, or
100,000 in `make proof`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId
from glyphoxa.transcript.ports import TalkFilter
from tests.support.plans import answered_by
from tests.support.postgres import TestServer, vacuum
from tests.support.proof import n_examples

BIG = CampaignId("big")
A_SPEAKER, A_WITNESS = SpeakerId("player-3"), NpcId("npc-1")
RARE_WORD, RARE_NAME = "drachenzahn", "Will"

# Word n is said about 1/n as often as the first, as in a language. Sessions of 500 utterances, one a minute.
_TALK = """
INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id, speaker_name, text, raw_text,
                             timestamp, duration_ns, witnesses, retracted)
    SELECT $1, 's' || (n / 500), n % 500 + 1, 'u' || n, 'player-' || (n % 40), 'Player ' || (n % 40), t.text, t.text,
           to_timestamp(1700000000 + n * 60), 3000000000, ARRAY['npc-' || (n % 3), 'npc-' || (n % 100)], n % 1000 = 0
      FROM generate_series(0, $2::int - 1) AS n,
           LATERAL (SELECT string_agg('wort' || floor(exp(random() * ln(20000 + 0 * g)))::int, ' ')
                           || CASE WHEN n % 2000 = 7 THEN ' drachenzahn' WHEN n % 2000 = 8 THEN ' Will' ELSE '' END
                           AS text
                      FROM generate_series(1, 12 + 0 * n) AS g) AS t
"""
_CORRECTIONS = """
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage)
    SELECT $1, 'u' || n, 0, 0, 4, 'word', 'wort', 0.9, 'phonetic' FROM generate_series(1, $2::int) AS n
"""


async def fill_with_talk(dsn: str, n_utterances: int) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET session_replication_role = replica")  # no triggers: this is about plans
        await connection.execute("SELECT setseed(0.5)")
        for campaign, n in [(BIG, n_utterances), *((f"small-{i}", 500) for i in range(9))]:
            await connection.execute(
                "INSERT INTO sessions (campaign_id, id, started_at, last_ordinal) "
                "SELECT $1, 's' || s, to_timestamp(1700000000 + s * 30000), 500 FROM generate_series(0, $2::int) AS s",
                campaign,
                (n - 1) // 500,
            )
            await connection.execute(_TALK, campaign, n)
        await connection.execute(_CORRECTIONS, BIG, n_utterances // 10)
        await vacuum(connection, "sessions", "session_entries", "corrections", "chunks")
    finally:
        await connection.close()


LOG, SEARCH = load_queries("transcript/log"), load_queries("transcript/search")
N_UTTERANCES = n_examples(100_000)
A_SESSION = SessionId(f"s{N_UTTERANCES // 1_000}")
A_TIME = datetime.fromtimestamp(1_700_000_000 + N_UTTERANCES // 2 * 60, UTC)
EVER = (None, None)
ANYWHERE = (None, None, None, None)
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


@pytest.fixture(scope="module")
def much_talk(postgres: TestServer) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    asyncio.run(fill_with_talk(postgres.server.dsn(name), N_UTTERANCES))
    yield postgres.server.dsn(name)
    asyncio.run(postgres.drop(name))


@pytest.fixture
async def store(much_talk: str) -> AsyncIterator[Store]:
    async with open_store(much_talk) as opened:
        yield opened


async def indexes(store: Store, query: str, *arguments: object) -> set[str]:
    """The indexes by which talk is read, named like those of the whole table; nothing may read all of it."""
    nodes = await answered_by(store, BIG, query, *arguments, table="session_entries")
    reads_all = [n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan" and "Relation Name" in n]
    assert [name for name in reads_all if name.startswith(("session_entries", "chunks", "corrections"))] == []
    async with store.database.use(BIG) as connection:
        rows = await connection.fetch(
            "SELECT child.relname AS part, parent.relname AS whole FROM pg_inherits i "
            "JOIN pg_class child ON child.oid = i.inhrelid JOIN pg_class parent ON parent.oid = i.inhparent "
            "WHERE child.relname = ANY ($1)",
            [n["Index Name"] for n in nodes if "Index Name" in n],
        )
    return {row["whole"] for row in rows}


async def test_recent_talk(store: Store) -> None:
    by = await indexes(store, LOG["recent"], A_SESSION, A_TIME, 50)
    assert by == {"idx_session_entries_session_timestamp"}


async def test_whether_an_utterance_is_there_already(store: Store) -> None:
    by = await indexes(store, LOG["exists"], "u77")
    assert by == {"session_entries_campaign_id_utterance_id_key"}
    by = await indexes(store, LOG["append"], [AN_UTTERANCE])
    assert by == {"session_entries_campaign_id_utterance_id_key"}


async def test_counts(store: Store) -> None:
    assert await indexes(store, LOG["count"]) == {"idx_session_entries_session_id"}
    assert await indexes(store, LOG["count_of_session"], A_SESSION) == {"idx_session_entries_session_id"}
    assert await store.log.count(BIG) == N_UTTERANCES
    assert await store.log.count(BIG, A_SESSION) == 500


@pytest.mark.parametrize("viewer", [None, A_WITNESS])
@pytest.mark.parametrize("one_is_enough", [True, False])
async def test_words_and_names(store: Store, viewer: str | None, one_is_enough: bool) -> None:
    asked = (viewer, f"{RARE_WORD} {RARE_NAME}", [RARE_NAME], one_is_enough)
    by = await indexes(store, SEARCH["search"], *asked, *ANYWHERE, 20)
    assert by == {"idx_session_entries_fts", "idx_session_entries_names", "session_entries_pkey"}
    # Within a session there may be a shorter way.
    assert await indexes(store, SEARCH["search"], *asked, A_SESSION, A_SPEAKER, A_TIME, A_TIME, 20)


async def test_what_is_found_by_words_is_all_that_there_is(store: Store) -> None:
    found = await store.talk_search.search(BIG, A_WITNESS, TalkFilter(RARE_WORD, limit=100))
    # Every 2,000th has the word, and the NPC was there for a third of them.
    assert len(found) == sum(n % 3 == 1 for n in range(7, N_UTTERANCES, 2_000))
    assert all(A_WITNESS in item.utterance.witnesses for item in found)


@pytest.mark.parametrize("viewer", [None, A_WITNESS])
async def test_the_latest_of_a_session_of_a_speaker_and_of_a_time(store: Store, viewer: str | None) -> None:
    by = await indexes(store, SEARCH["latest_of_session"], viewer, A_SESSION, None, *EVER, 20)
    assert by <= {"idx_session_entries_session_timestamp", "idx_session_entries_session_id"} and by
    by = await indexes(store, SEARCH["latest_of_speaker"], viewer, A_SPEAKER, *EVER, 20)
    assert by == {"idx_session_entries_speaker"}
    for times in ((A_TIME, None), (None, A_TIME)):
        by = await indexes(store, SEARCH["latest"], viewer, *times, 20)
        assert by == {"idx_session_entries_timestamp"}


async def test_a_search_reads_the_partition_of_its_campaign_alone(store: Store) -> None:
    nodes = await answered_by(
        *(store, BIG, SEARCH["search"], None, RARE_WORD, [], True, *ANYWHERE, 20), table="session_entries"
    )
    read = {n["Relation Name"] for n in nodes if n.get("Relation Name", "").startswith("session_entries_")}
    assert len(read) == 1
