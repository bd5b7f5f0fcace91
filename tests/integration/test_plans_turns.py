"""How the server answers what is asked of turns, at 100,000 of them and under the rules that keep campaigns apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.log import PostgresTurns
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, TurnId
from tests.support.plans import answered_by
from tests.support.postgres import TestServer, vacuum

BIG = CampaignId("big")
N_TURNS = 100_000
TURNS = load_queries("transcript/turns")

# One a minute; 200 sessions of 500; one NPC is asked once in 10,000 turns.
_FILL = """
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


async def _fill(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for campaign, n in [(BIG, N_TURNS), ("small-1", 500), ("small-2", 500)]:
            await connection.execute(_FILL, campaign, n)
        await vacuum(connection, "turns")
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def many_turns(postgres: TestServer) -> Iterator[str]:
    name = asyncio.run(postgres.create())
    asyncio.run(_fill(postgres.server.dsn(name)))
    yield postgres.server.dsn(name)
    asyncio.run(postgres.drop(name))


@pytest.fixture
async def store(many_turns: str) -> AsyncIterator[Store]:
    async with open_store(many_turns) as opened:
        yield opened


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
    plan = await answered_by(store, BIG, TURNS["latest"], session, npc, 20, table="turns")
    scans = [node for node in plan if "Scan" in node["Node Type"]]
    assert {node["Index Name"] for node in scans if "Index Name" in node} == {index}
    assert all(node["Actual Rows"] <= n and node.get("Rows Removed by Filter", 0) == 0 for node in scans)


async def test_a_turn_is_found_by_its_id(store: Store) -> None:
    plan = await answered_by(store, BIG, TURNS["turn"], "s100-t050000", table="turns")
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
