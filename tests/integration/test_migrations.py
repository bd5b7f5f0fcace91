from __future__ import annotations

import asyncio
import re
import shutil
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

import glyphoxa.adapters.postgres
from glyphoxa.adapters.postgres.server.migrate import migrate, migrations_folder, read_migrations
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, Between
from glyphoxa.names.wrong_forms import PairStatus
from glyphoxa.transcript.ports import TalkFilter
from tests.support.builders import an_utterance

NAMED_INDEXES = {
    "idx_session_entries_session_id",
    "idx_session_entries_timestamp",
    "idx_session_entries_session_timestamp",
    "idx_session_entries_fts",
    "idx_session_entries_names",
    "idx_entities_type",
    "idx_rel_source",
    "idx_rel_target",
}


async def applied(dsn: str, *, dimensions: int = 384, folder: Path | None = None) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        return await migrate(connection, embedding_dimensions=dimensions, folder=folder)
    finally:
        await connection.close()


async def test_an_empty_database_gets_the_whole_schema_and_a_second_start_changes_nothing(empty_dsn: str) -> None:
    assert await applied(empty_dsn) == len(read_migrations(migrations_folder()))
    assert await applied(empty_dsn) == 0


async def test_processes_that_start_together_take_turns(empty_dsn: str) -> None:
    counts = await asyncio.gather(*(applied(empty_dsn) for _ in range(4)))
    assert sorted(counts) == [0, 0, 0, len(read_migrations(migrations_folder()))]


async def test_the_indexes_that_are_promised_are_there(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
    await connection.close()
    assert {row["indexname"] for row in rows} >= NAMED_INDEXES


def indexes_named_in_queries() -> set[str]:
    queries = [path.read_text() for path in Path(glyphoxa.adapters.postgres.__path__[0]).rglob("*.sql")]
    functions = (migrations_folder() / "0014_walk.sql").read_text()
    return set(re.findall(r"idx_\w+", functions.join(queries)))


async def test_every_index_is_named_by_a_query_that_it_serves(dsn: str) -> None:
    """An index that nothing reads is written with every row. Functions of the database name theirs in migrations."""
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        """SELECT c.relname AS name
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE c.relnamespace = 'public'::regnamespace AND NOT i.indisunique AND NOT c.relispartition"""
    )
    await connection.close()
    assert {row["name"] for row in rows} <= indexes_named_in_queries()


async def test_every_key_begins_with_the_campaign(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        """SELECT c.conrelid::regclass::text AS table, a.attname AS first
             FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
            WHERE c.contype IN ('p', 'u') AND c.connamespace = 'public'::regnamespace AND c.conrelid::regclass::text
                  NOT IN ('campaigns', 'schema_migrations', 'schema_settings',
                          'cluster_nodes', 'table_leases', 'campaign_servers', 'reading_queue')"""
    )
    await connection.close()
    assert {row["first"] for row in rows} == {"campaign_id"}


async def test_a_migration_that_was_changed_after_it_ran_is_named(empty_dsn: str, tmp_path: Path) -> None:
    await applied(empty_dsn)
    folder = shutil.copytree(migrations_folder(), tmp_path / "migrations")
    with (folder / "0002_chunks.sql").open("a") as file:
        file.write("-- a late thought\n")
    with pytest.raises(Corrupt, match=r"0002_chunks\.sql was changed after it was applied"):
        await applied(empty_dsn, folder=folder)


async def test_a_database_of_a_newer_version_is_not_touched(empty_dsn: str, tmp_path: Path) -> None:
    await applied(empty_dsn)
    folder = shutil.copytree(migrations_folder(), tmp_path / "migrations")
    max(folder.glob("*.sql")).unlink()
    with pytest.raises(Corrupt, match="newer version"):
        await applied(empty_dsn, folder=folder)


async def test_a_migration_that_fails_leaves_nothing_of_itself(empty_dsn: str, tmp_path: Path) -> None:
    (tmp_path / "0001_bad.sql").write_text("CREATE TABLE half (a INT); SELECT no_such_thing;")
    with pytest.raises(asyncpg.UndefinedColumnError):
        await applied(empty_dsn, folder=tmp_path)
    connection = await asyncpg.connect(empty_dsn)
    assert await connection.fetchval("SELECT to_regclass('half')") is None
    await connection.close()


async def test_another_number_of_dimensions_is_refused_with_the_stored_one(empty_dsn: str) -> None:
    await applied(empty_dsn, dimensions=768)
    with pytest.raises(InvalidInput, match="is 384, but this database is for 768"):
        await applied(empty_dsn, dimensions=384)


def test_a_gap_in_the_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").write_text("")
    (tmp_path / "0003_c.sql").write_text("")
    with pytest.raises(InvalidInput, match="without gaps"):
        read_migrations(tmp_path)


# What a schema consists of, by name. Two databases with the same answers are the same to every query.
_PARTS = {
    "columns": """
        SELECT c.relname || '.' || a.attname,
               concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
                         a.attgenerated, a.attstorage, pg_get_expr(d.adbin, d.adrelid))
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
          LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')""",
    "tables": """
        SELECT relname, concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity, reloptions, relacl,
                                  pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid))
          FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'""",
    "indexes": """
        SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) || indisvalid::text
          FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'public'::regnamespace""",
    "constraints": """
        SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) || convalidated::text
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "triggers": """
        SELECT tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal""",
    "policies": """
        SELECT polrelid::regclass || '.' || polname,
               concat_ws(' ', polcmd, polroles, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
          FROM pg_policy""",
    "functions": """
        SELECT oid::regprocedure::text, pg_get_functiondef(oid)
          FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND prolang <>
               (SELECT oid FROM pg_language WHERE lanname = 'c')""",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
}


async def schema(dsn: str) -> dict[str, dict[str, str]]:
    connection = await asyncpg.connect(dsn)
    try:
        return {part: dict(await connection.fetch(query)) for part, query in _PARTS.items()}
    finally:
        await connection.close()


_A_TURN_OF_0019 = """
INSERT INTO turns (campaign_id, id, session_id, speaker_id, speaker_name, raw_text, text, outcome, passed_over)
    VALUES ('town', 't19', 's1', 'tamsin', 'Tamsin', 'Who?', 'Who?', 'answered', '[{"why": "no room for it"}]');
"""
_FORMS_OF_0035 = """
UPDATE session_entries SET retracted = true WHERE campaign_id = 'town' AND utterance_id = 'u5';
INSERT INTO learned_name_events (campaign_id, heard, as_heard, entity_id, kind, witness, why, utterance_id, at)
    SELECT 'town', 'grimshow', 'Grim ' || s.spelled, 'e-g', s.kind, s.witness, s.why, s.utterance, now()
      FROM (VALUES ('Show', 'proved', 'llm', 'fits', 'u1'), ('show', 'proved', 'said', 'said again', 'u5'),
                   ('show', 'rejected', 'dm', 'no', NULL)) AS s (spelled, kind, witness, why, utterance);
INSERT INTO learned_name_events (campaign_id, heard, as_heard, entity_id, kind, witness, undoes, at)
    SELECT campaign_id, heard, as_heard, entity_id, 'undone', 'dm', id, now()
      FROM learned_name_events WHERE campaign_id = 'town' AND kind = 'rejected';
INSERT INTO learned_names (campaign_id, heard, entity_id, as_heard, state, count, provenance)
    VALUES ('town', 'grimshow', 'e-g', 'Grim show', 'suggested', 4, '{"utterances": ["u1", "u7"], "again": 3}');
"""
_A_DATABASE_OF_0004 = """
INSERT INTO campaigns (id, name, language, document) VALUES ('town', 'The town', 'de', '{"npcs": []}');
INSERT INTO entities (campaign_id, id, type, name, aliases, attributes, origin) VALUES
    ('town', 'e-g', 'npc', 'Grimjaw', '{the smith}', '{"occupation": "smith"}', 'campaign_file'),
    ('town', 'e-f', 'location', 'the forge', '{}', '{}', 'campaign_file');
INSERT INTO relationships (campaign_id, source_id, target_id, rel_type, origin)
    VALUES ('town', 'e-g', 'e-f', 'LOCATED_AT', 'campaign_file');
INSERT INTO sessions SELECT c, s, now() FROM unnest('{town,gone}'::text[]) AS c, unnest('{s1,s2}'::text[]) AS s;
INSERT INTO session_entries (campaign_id, session_id, utterance_id, speaker_id, speaker_name, text, raw_text, timestamp,
                             duration_ns, witnesses)
    SELECT c, 's' || 1 + n % 2, 'u' || n, 'tamsin', 'Tamsin', 'Die Drachen, Teil ' || n, 'raw ' || n,
           to_timestamp(1000 - n), 5000000, '{grimjaw}'
      FROM unnest('{town,gone}'::text[]) AS c, generate_series(1, 7) AS n;
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage)
    VALUES ('town', 'u3', 0, 0, 3, 'raw', 'Die', 0.9, 'phonetic');
INSERT INTO chunks (campaign_id, id, session_id, content, embedding)
    VALUES ('town', 'u1', 's2', 'Tamsin: Die Drachen', array_fill(0.5, ARRAY[384])::vector);
INSERT INTO turns (campaign_id, id, session_id, speaker_id, speaker_name, raw_text, text, outcome)
    VALUES ('town', 't1', 's1', 'tamsin', 'Tamsin', '', '', 'answered');
INSERT INTO learned_name_events (campaign_id, heard, as_heard, entity_id, kind, witness, at)
    VALUES ('town', 'grimjoe', 'Grim Joe', 'e-g', 'confirmed', 'dm', now());
INSERT INTO learned_names (campaign_id, heard, entity_id, as_heard, state, count, provenance)
    VALUES ('town', 'grimjoe', 'e-g', 'Grim Joe', 'active', 3, '{"utterances": ["u1"]}');
"""


async def test_a_database_that_grew_step_by_step_is_the_same_as_a_new_one_and_has_kept_its_talk(
    empty_dsn: str, dsn: str, tmp_path: Path
) -> None:
    """The schema is the sum of the migrations, whatever rows were there on the way."""
    n_all = len(read_migrations(migrations_folder()))
    for n in range(1, n_all + 1):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        for path in sorted(migrations_folder().glob("*.sql"))[:n]:
            shutil.copy(path, folder)
        assert await applied(empty_dsn, folder=folder) == 1
        if n == 4:
            await run(empty_dsn, _A_DATABASE_OF_0004)
        if n == 19:
            await run(empty_dsn, _A_TURN_OF_0019)
        if n == 35:
            await run(empty_dsn, _FORMS_OF_0035)
    grown, new = await schema(empty_dsn), await schema(dsn)
    for part in _PARTS:
        assert grown[part] == new[part], part

    async with open_store(empty_dsn) as store:
        for campaign in (CampaignId("town"), CampaignId("gone")):
            async with store.database.use(campaign) as connection:
                rows = await connection.fetch(
                    "SELECT session_id, ordinal, utterance_id, fts_config::text AS fts FROM session_entries ORDER BY id"
                )
                last = await connection.fetch("SELECT id, last_ordinal FROM sessions ORDER BY id")
                rejected = await connection.fetch("SELECT rejected->0->>'why' FROM turns WHERE id = 't19'")
            assert [tuple(row)[:3] for row in rows] == [
                ("s2", 1, "u1"),
                ("s1", 1, "u2"),
                ("s2", 2, "u3"),
                ("s1", 2, "u4"),
                ("s2", 3, "u5"),
                ("s1", 3, "u6"),
                ("s2", 4, "u7"),
            ]
            wanted = "german" if campaign == "town" else "english"
            assert {row["fts"] for row in rows} == {wanted}
            assert [tuple(row) for row in last] == [("s1", 3), ("s2", 4)]
            assert [row[0] for row in rejected] == (["no room for it"] if campaign == "town" else [])
        learned = PostgresLearnedNames(store.database)
        assert [(pair.heard, pair.status) for pair in await learned.statuses(CampaignId("town"))] == [
            ("Grim Show", PairStatus("suggested", 4, (UtteranceId("u1"), UtteranceId("u7")))),
            ("Grim Joe", PairStatus("active", 1, ())),
        ]
        history = await learned.history(CampaignId("town"), heard="grim show")
        assert [(one.step.kind, one.step.why) for one in history] == [
            ("undone", ""),
            ("undone", ""),
            ("rejected", "no"),
            ("proved", "said again"),
            ("proved", "fits"),
        ]
        assert await learned.statuses(CampaignId("gone")) == []
        [third] = await store.talk_search.search(
            CampaignId("town"), DM, TalkFilter("Drache", between=Between(before_ms=997_001, after_ms=996_500))
        )
        assert (third.utterance.id, third.utterance.raw_text, third.utterance.witnesses) == ("u3", "raw 3", {"grimjaw"})
        assert [c.after for c in third.utterance.corrections] == ["Die"]
        # What comes next follows what was there.
        await store.log.append([replace(an_utterance("next", id="u8"), session_id=SessionId("s2"))])
        [found] = await store.talk_search.search(CampaignId("town"), DM, TalkFilter("next"))
        assert found.ordinal == 5


async def run(dsn: str, script: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(script)
    finally:
        await connection.close()
