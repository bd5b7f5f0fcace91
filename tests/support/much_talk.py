"""Many utterances of one campaign among ten, made by the server itself: a hundred thousand in some ten seconds."""

from __future__ import annotations

import asyncpg

from glyphoxa.domain.ids import CampaignId, NpcId, SpeakerId
from tests.support.postgres import vacuum

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
