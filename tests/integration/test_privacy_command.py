"""A player's erased words are gone for good: searched for in every column of every table, and in every file."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.adapters.postgres.chronicle_nodes import PostgresEpisodes
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.app.background import chronicle_worker, timeline_writer
from glyphoxa.chronicle.effects import Effect
from glyphoxa.chronicle.ports import LeaseLost, ReadingStep
from glyphoxa.cli.upkeep import DAY_MS, DAY_S, erase_old, erase_old_before_opening, erasing_daily
from glyphoxa.config.sections import PrivacySettings
from glyphoxa.config.settings import MemorySettings, Settings
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, PlayerId, SessionId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import DM, Claim
from glyphoxa.domain.turn_record import AssembledPrompt, Outcome, TurnRecord
from glyphoxa.names.wrong_forms import FormHeard, form_of
from glyphoxa.transcript.ports import TalkFilter, TalkQuery
from glyphoxa.transcript.spool import Spool
from glyphoxa.transcript.spool_files import record
from glyphoxa.web.access.records import AuditKind, AuditLog, audit_path, lines_about
from glyphoxa.world.event_kinds import FactReplaced, FactStated
from glyphoxa.world.event_log import Cause, difference
from tests.support.builders import CAMPAIGN, SMITH, TAMSIN, a_campaign, an_utterance
from tests.support.command_line import a_settings_file, run
from tests.support.embedders import embedder_of_topics
from tests.support.patience import DEADLINE_S
from tests.support.world_tables import stands_as_replayed

Capture = pytest.CaptureFixture[str]
FORK, ELSEWHERE = CampaignId("fork"), CampaignId("elsewhere")
EVENING, LATER = SessionId("evening"), SessionId("later")
ELDRINAX = EntityId("e-eldrinax")
_CANARY = "zorblax"


def said(n: int, text: str, speaker: str = "Bran", *, session: SessionId = EVENING) -> Utterance:
    at_ms = 1_000_000 + n * 1_000
    return replace(an_utterance(text, id=f"u{n}", speaker=speaker), session_id=session, at_ms=at_ms)


def elsewhere(line: Utterance) -> Utterance:
    """The same player at another table, in words of their own."""
    text = line.text.replace(_CANARY, "quuxle")
    return replace(line, campaign_id=ELSEWHERE, id=UtteranceId(f"x-{line.id}"), text=text, raw_text=text)


TALK = (
    said(1, "Eldrinax stole the zorblax1 from the forge.", "Tamsin"),
    said(2, "Eldrinax lives in the forge."),
    said(3, "Captain zorblax2 owes me a zorblax3.", "Tamsin"),
    said(4, "Mirelle is afraid of the storm."),
    replace(said(5, "So, a zorblax1 was stolen?", "Grimjaw"), npc_id=SMITH),
    said(6, "I told you of zorblax4 before.", "Tamsin", session=LATER),
    said(7, "Nobody listens to me.", session=LATER),
)
OF_TAMSIN = {"u1", "u3", "u5", "u6"}


def files_of(directory: Path) -> dict[str, str]:
    """All below a directory, unpacked."""
    found = {}
    for path in directory.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content = unpacked(content) if path.suffix in (".gz", ".damaged") else content
            found[str(path.relative_to(directory))] = content.decode("utf-8", "replace")
    return found


def unpacked(content: bytes) -> bytes:
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content)


async def everything(dsn: str) -> dict[str, str]:
    """Every row of every table as text, and what the server's planner keeps of them."""
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        found = {}
        for schema, table in tables:
            rows = await connection.fetch(f'SELECT t::text AS row FROM "{schema}"."{table}" t')
            found[table] = "\n".join(row["row"] for row in rows)
        rows = await connection.fetch("SELECT s::text AS row FROM pg_stats s WHERE schemaname = 'public'")
        found["pg_stats"] = "\n".join(row["row"] for row in rows)
        return found
    finally:
        await connection.close()


def holding(found: dict[str, str], word: str = _CANARY) -> list[str]:
    return sorted(name for name, text in found.items() if word in text.casefold())


@pytest.fixture
async def table(dsn: str) -> AsyncIterator[Store]:
    """An evening and a later one, and all that is made of them; with a fork, and a campaign that is none."""
    embedder = embedder_of_topics({"zorblax1": 0, "storm": 1})
    async with open_store(dsn, embedder=embedder) as store:
        await store.campaigns.load(a_campaign())
        await store.campaigns.load(replace(a_campaign(), id=ELSEWHERE))
        was = Correction(13, 18, "zorblax0", "stole", 0.9, "phonetic", "zorblax")
        talk = [replace(TALK[0], raw_text="Eldrinax stohl the zorblax1.", corrections=(was,)), *TALK[1:]]
        await store.log.append(talk)
        await store.log.append([elsewhere(each) for each in TALK])
        await learn(store, "keeps a zorblax1", 1)
        await learn(store, "likes the rain", 1)
        await learn(store, "likes the rain", 2)
        await learn(store, "whispers zorblax2", 4, evidence=["u3", "u4"])
        await chronicle_worker(store).read_new(CAMPAIGN)
        async with store.database.use(CAMPAIGN) as connection:  # a model's notes quote the line and its context
            quoting = "UPDATE turn_judgements SET judged_by = 'llm', note = 'zorblax4' WHERE utterance_id = ANY ($1)"
            await connection.execute(quoting, ["u2", "u3", "u7"])
        await (await timeline_writer(store, CAMPAIGN)).sum_up(EVENING)
        edited = FactReplaced(held("keeps a zorblax1"), Claim.attribute(ELDRINAX, "note", "keeps a big zorblax1"))
        await store.world.commit(CAMPAIGN, [edited], Cause("dm", 9_000_000))
        await store.world.correct(CAMPAIGN, UtteranceId("u3"), "It owes me a zorblax5.", Cause("dm", 9_000_001))
        learned = PostgresLearnedNames(store.database)
        one, other = UtteranceId("u1"), UtteranceId("u2")
        proof = FormHeard(*form_of("Zorblax Max"), ELDRINAX, "proved", "spelled", "so", one)
        ours = FormHeard(*form_of("Elder Max"), ELDRINAX, "proved", "spelled", "so", one)
        again = replace(proof, by="phonetic", utterance=UtteranceId("u6"))
        for step in (proof, ours, replace(ours, utterance=other), again):
            await learned.record(CAMPAIGN, step, at_ms=1_000)
        for n, (by, reply) in enumerate(((TALK[0], UtteranceId("u5")), (TALK[6], None))):
            await store.log.record_turn(CAMPAIGN, a_turn(n, by, reply))
        await store.chunks.fill_missing(CAMPAIGN)
        await store.world.fork(CAMPAIGN, FORK, name="The fork")
        await store.world.as_of(CAMPAIGN)
        yield store


async def learn(store: Store, value: str, n: int, *, evidence: list[str] | None = None) -> None:
    attributes = {} if evidence is None else {"evidence": evidence}
    stated = FactStated(Claim.attribute(ELDRINAX, "note", value), attributes=attributes)
    await store.world.commit(CAMPAIGN, [stated], Cause("talk", 1_000_000, EVENING, n, UtteranceId(f"u{n}")))


def held(value: str) -> FactId:
    return Claim.attribute(ELDRINAX, "note", value).fact_id


def a_turn(n: int, by: Utterance, reply: UtteranceId | None) -> TurnRecord:
    return TurnRecord(
        TurnId(f"t{n}"),
        by.session_id,
        by.speaker_id,
        by.speaker_name,
        by.raw_text,
        by.text,
        SMITH,
        "named",
        Outcome.ANSWERED,
        prompt=AssembledPrompt(text=f"Tamsin: {TALK[0].text}"),
        utterance_id=by.id,
        reply_id=reply,
    )


def spool_in(data_dir: Path) -> None:
    """A shrunk segment, one that is written, what was under way, and what could not be read."""
    directory = data_dir / "spool"
    with Spool(directory, max_bytes=40_000, segment_bytes=600) as spool:
        for each in TALK:
            spool.append(each)
        spool.shrink()
        spool.acknowledge(spool.pending()[0].end)
        spool.note(said(8, "Just now a zorblax8", "Tamsin"))
        spool.note(said(9, "Just now a stool"))
    packed = gzip.compress(record(TALK[0]) + record(TALK[1]))
    (directory / "0000000099.spool.damaged").write_bytes(packed[:-6])
    (directory / "damaged").write_bytes(b'00000010 00000000 {"speaker_id":"tamsin","text":"zorblax9"}\n')


async def test_nothing_of_what_a_player_said_is_left_anywhere(
    dsn: str, table: Store, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("GLYPHOXA_DATA", str(data))
    spool_in(data)
    (data / "prompts").mkdir()
    (data / "prompts" / "grimjaw").write_text("zorblax1")
    log = AuditLog(audit_path(data, CAMPAIGN))
    log.record(AuditKind.SAT_DOWN, who="player:tamsin", what="tamsin", address="10.1.2.3")
    log.record(AuditKind.SAT_DOWN, who="player:bran", what="bran")
    log.close()
    assert len(holding(files_of(data))) >= 5
    before = await everything(dsn)
    assert {"world_events", "turns", "turn_judgements", "corrections", "form_counts", "attribute_facts"} <= set(
        holding(before)
    )
    assert await recalled(table) != []
    command = ("privacy", "erase", "--campaign", CAMPAIGN, "--config", a_settings_file(tmp_path, dsn), "--player")

    assert await run(*command, "Tamsin") == 1
    told = capsys.readouterr()
    assert "would be erased: campaign town: 4 utterances (1 of NPCs)" in told.out
    assert "campaign fork: 4 utterances" in told.out
    assert "--yes" in told.err
    assert await everything(dsn) == before

    assert await run(*command, "Tamsin", "--yes") == 0
    assert _CANARY not in capsys.readouterr().out.casefold()
    after = await everything(dsn)
    assert holding(after) == []
    assert holding(files_of(data)) == []
    with Spool(data / "spool") as spool:
        assert [each.utterance.id for each in spool.pending()] == ["u2", "u4", "u7", "u9"]
    assert lines_about(data, CAMPAIGN, TAMSIN)["audit"] == []
    assert [line["who"] for line in lines_about(data, CAMPAIGN, PlayerId("bran"))["audit"]] == ["player:bran"]
    assert await recalled(table) == []
    assert await table.talk_search.search(CAMPAIGN, DM, TalkFilter(_CANARY)) == []
    for campaign in (CAMPAIGN, FORK):
        await stands_as_replayed(table, campaign)

    assert await run(*command, "tamsin", "--yes") == 0
    assert "erased: campaign town: 0 utterances" in capsys.readouterr().out
    erased = (await table.world.events(CAMPAIGN, latest_first=True))[0].seq
    assert await run("facts", "undo", *command[2:6], erased) == 1
    assert "cannot be undone" in capsys.readouterr().err


async def recalled(store: Store) -> list[str]:
    question = TalkQuery("What about the zorblax1?")
    found = await store.past_talk.recall(CAMPAIGN, SMITH, question, patient=True)
    return [one.text for one in found if _CANARY in one.text.casefold()]


async def test_what_others_said_and_what_rests_on_it_too_stays_as_it_was(dsn: str, table: Store) -> None:
    connection = await asyncpg.connect(dsn)
    others = (
        "SELECT e::text FROM session_entries e WHERE (speaker_id = 'bran' OR campaign_id = 'elsewhere') "
        "ORDER BY campaign_id, id"
    )
    before = await connection.fetch(others)
    facts_before = {fact.id for fact in (await table.world.now(CAMPAIGN)).facts.values()}
    not_touched = await table.world.now(ELSEWHERE)
    await PostgresErasure(table.database).erase(CAMPAIGN, Meant(player=TAMSIN), at_ms=10_000_000)

    assert await connection.fetch(others) == before
    stones = await connection.fetch("SELECT * FROM session_entries WHERE campaign_id = $1 AND is_erased", CAMPAIGN)
    assert {row["utterance_id"] for row in stones} == OF_TAMSIN
    assert {(row["text"], row["raw_text"], row["speaker_id"], row["speaker_name"]) for row in stones} == {("",) * 4}
    assert [(row["session_id"], row["ordinal"]) for row in stones] == [
        ("evening", 1),
        ("evening", 3),
        ("evening", 5),
        ("later", 1),
    ]
    await connection.close()
    state = await table.world.now(CAMPAIGN)
    assert held("likes the rain") in state.facts
    assert {held("keeps a zorblax1"), held("keeps a big zorblax1"), held("whispers zorblax2")}.isdisjoint(state.facts)
    kept = [line for line in facts_before if line in state.facts]
    assert len(kept) >= len(a_campaign().relationships)
    assert difference(not_touched, await table.world.now(ELSEWHERE)).is_empty
    statuses = await PostgresLearnedNames(table.database).statuses(CAMPAIGN)
    assert [one.heard for one in statuses] == ["Elder Max"]
    assert await table.chunks.fill_missing(CAMPAIGN) is not None
    assert [each.id for each in await table.log.recent(CAMPAIGN, EVENING, since_ms=0)] == ["u2", "u4"]


async def test_what_is_taken_back_later_brings_no_words_back(dsn: str, table: Store) -> None:
    rollback = await table.world.rollback(CAMPAIGN, EVENING, 0, Cause("dm", 9_500_000))
    assert rollback is not None
    await PostgresErasure(table.database).erase(CAMPAIGN, Meant(session=EVENING), at_ms=10_000_000)
    for event in await table.world.events(CAMPAIGN, latest_first=True):
        if type(event.event).__name__ in ("TalkErased", "RolledBack", "UtteranceCorrected"):
            await table.world.undo(CAMPAIGN, [event.seq], Cause("dm", 11_000_000))
    await stands_as_replayed(table, CAMPAIGN)
    assert await table.log.recent(CAMPAIGN, EVENING, since_ms=0) == []
    mine = [text for name, text in (await everything(dsn)).items() if name.startswith(("world_events", "attribute_f"))]
    assert not re.search(r"zorblax[1-35]", "\n".join(mine).casefold())


async def test_the_last_session_is_erased_even_if_all_of_it_was_rolled_back(
    dsn: str, table: Store, tmp_path: Path, capsys: Capture
) -> None:
    assert await table.world.rollback(CAMPAIGN, LATER, 0, Cause("dm", 9_500_000)) is not None
    config = ("--campaign", CAMPAIGN, "--config", a_settings_file(tmp_path, dsn))
    assert await run("privacy", "erase", *config, "--session", "last", "--yes") == 0
    shown = f"would be erased of session {LATER}: campaign {CAMPAIGN}: 2 utterances"
    assert shown in capsys.readouterr().out
    kept = [said.id for said in TALK if said.session_id == EVENING]
    assert [each.id for each in await table.log.recent(CAMPAIGN, EVENING, since_ms=0)] == kept


async def test_what_is_not_there_is_named_and_nothing_is_erased(
    dsn: str, table: Store, tmp_path: Path, capsys: Capture
) -> None:
    config = ("--campaign", CAMPAIGN, "--config", a_settings_file(tmp_path, dsn))
    for arguments, problem in (
        (("erase", "--yes"), "--player P, --session S or --all"),
        (("erase", "--player", "Nobody", "--yes"), "no player 'Nobody'"),
        (("erase", "--session", "never", "--yes"), "no session 'never'"),
        (("retain", "--older-than", "soon", "--yes"), "--older-than is a number of days"),
    ):
        assert await run("privacy", arguments[0], *config, *arguments[1:]) == 1, arguments
        assert problem in capsys.readouterr().err, arguments
    assert await table.log.count(CAMPAIGN) == len(TALK)
    assert await PostgresErasure(table.database).erased(CAMPAIGN) == frozenset()


async def test_a_player_gets_what_is_kept_of_them_and_nothing_of_others(
    dsn: str, table: Store, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, file = tmp_path / "data", tmp_path / "tamsin.json"
    monkeypatch.setenv("GLYPHOXA_DATA", str(data))
    log = AuditLog(audit_path(data, CAMPAIGN))
    log.record(AuditKind.SAT_DOWN, who="player:tamsin", what="tamsin")
    log.close()
    command = ("privacy", "export", "--campaign", CAMPAIGN, "--config", a_settings_file(tmp_path, dsn), file)
    assert await run(*command, "--player", "Tamsin") == 0
    assert "4 utterances" in capsys.readouterr().out
    assert file.stat().st_mode & 0o777 == 0o600
    told = json.loads(file.read_text())
    assert {each["utterance"] for each in told["utterances"]} == OF_TAMSIN
    assert told["utterances"][0]["heard"] == "Eldrinax stohl the zorblax1."
    assert told["utterances"][0]["corrections"][0]["before"] == "zorblax0"
    assert "keeps a zorblax1" in str(told["learned"])
    assert {each["utterance"] for each in told["judged"]} == OF_TAMSIN
    assert {each["heard"] for each in told["names"]} == {"Zorblax Max", "Elder Max"}
    assert [each["kind"] for each in told["audit"]] == ["sat down"]
    assert not any(words in file.read_text() for words in ("Mirelle is afraid", "Nobody listens", "prompt"))

    assert await run(*command, "--player", "Tamsin") == 1
    assert "exists already" in capsys.readouterr().err
    assert await run(*command[:-1], tmp_path / "all.json") == 1
    assert "--player P or --session S" in capsys.readouterr().err


async def test_old_talk_is_erased_once_a_day_where_the_settings_say_so(
    table: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    kept_for = Settings(data_dir=data, privacy=PrivacySettings(retain_days=1))
    limit_ms = TALK[3].at_ms + DAY_MS
    assert await erase_old(table, Settings(data_dir=data), CAMPAIGN, at_ms=limit_ms) == 0
    waits: asyncio.Queue[float] = asyncio.Queue()

    async def wait_s(seconds: float) -> None:
        await waits.put(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr("glyphoxa.cli.upkeep.now_ms", lambda: limit_ms)
    async with erasing_daily(table, kept_for, CAMPAIGN, wait_s=wait_s), asyncio.timeout(DEADLINE_S):
        assert await waits.get() == DAY_S
    assert {each.id for each in await table.log.recent(CAMPAIGN, EVENING, since_ms=0)} == {"u4"}, "u5 answered u1"
    assert {each.id for each in await table.log.recent(CAMPAIGN, LATER, since_ms=0)} == {"u6", "u7"}
    assert len(await table.log.recent(ELSEWHERE, EVENING, since_ms=0)) == 5
    await stands_as_replayed(table, CAMPAIGN)


async def test_a_table_that_opens_erases_what_is_too_old_and_opens_without_its_database_too(
    dsn: str, table: Store, tmp_path: Path
) -> None:
    kept_for = Settings(data_dir=tmp_path, memory=MemorySettings(postgres_dsn=dsn), privacy=PrivacySettings())
    await erase_old_before_opening(kept_for, CAMPAIGN)
    assert await table.log.count(CAMPAIGN) == len(TALK), "no age is set"
    soon = PrivacySettings(retain_days=1)
    away = MemorySettings(postgres_dsn="postgresql://nobody@127.0.0.1:1/none")
    await erase_old_before_opening(kept_for.model_copy(update={"privacy": soon, "memory": away}), CAMPAIGN)
    await erase_old_before_opening(kept_for.model_copy(update={"privacy": soon}), CAMPAIGN)
    for session in (EVENING, LATER):
        assert await table.log.recent(CAMPAIGN, session, since_ms=0) == []
    assert len(await table.log.recent(ELSEWHERE, EVENING, since_ms=0)) == 5


async def test_a_spool_in_use_is_said_and_the_same_again_finishes(
    dsn: str, table: Store, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("GLYPHOXA_DATA", str(data))
    spool_in(data)
    command = ("privacy", "erase", "--campaign", CAMPAIGN, "--config", a_settings_file(tmp_path, dsn))
    with Spool(data / "spool", max_bytes=40_000, segment_bytes=600):
        assert await run(*command, "--player", "tamsin", "--yes") == 1
        assert "run the same command again" in capsys.readouterr().err
        assert holding(await everything(dsn)) == []
    assert await run(*command, "--player", "tamsin", "--yes") == 0
    assert holding(files_of(data)) == []


async def test_who_reads_talk_while_it_is_erased_writes_none_of_it(dsn: str, table: Store) -> None:
    chronicle = PostgresChronicleLog(table.database, table.world)
    await chronicle.read_again(CAMPAIGN, EVENING)
    read = await chronicle.take(CAMPAIGN, EVENING)
    assert read is not None
    events = (FactStated(Claim.attribute(ELDRINAX, "note", "hides zorblax1"), attributes={"evidence": ["u1", "u2"]}),)
    cause = Cause("talk", 1_000, EVENING, 1, UtteranceId("u1"))
    await PostgresErasure(table.database).erase(CAMPAIGN, Meant(player=TAMSIN), at_ms=10_000_000)
    with pytest.raises(LeaseLost):
        await chronicle.learn(CAMPAIGN, ReadingStep(EVENING, read, read + 4, (Effect(cause, events),)))
    summed_up = Cause("talk", 1_000, EVENING)
    episodes = PostgresEpisodes(table.database, table.world)
    await episodes.grow(CAMPAIGN, await episodes.read(CAMPAIGN), events, summed_up, {})
    assert holding(await everything(dsn)) == []

    assert await chronicle_worker(table).read_new(CAMPAIGN) >= 0
    await (await timeline_writer(table, CAMPAIGN)).sum_up(EVENING)
    assert holding(await everything(dsn)) == []
    await stands_as_replayed(table, CAMPAIGN)
