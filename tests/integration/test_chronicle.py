"""Talk becomes knowledge: once, in order, for those who heard it; and what is taken back is not known any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.reading_progress import MAX_ATTEMPTS, PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker
from glyphoxa.chronicle.chronicler import Chronicler
from glyphoxa.chronicle.judge import RulesJudge
from glyphoxa.chronicle.ports import LeaseLost, ReadingStep, SessionProgress
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import ExtractedEntity, ExtractedFact, Extraction, KnownEntity, SceneTalk
from glyphoxa.domain.campaign import Safety
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.world.event_kinds import FactConfirmed
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, EVENING, INNKEEPER, SMITH, a_known_party, said
from tests.support.command_line import a_settings_file, run
from tests.support.patience import DEADLINE_S


def a_judge() -> RulesJudge:
    return RulesJudge("en", RulesExtractor("en").index)


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(a_known_party())
    return store


async def read_new(store: Store, campaign: CampaignId) -> int:
    return await chronicle_worker(store).read_new(campaign)


async def learned(store: Store) -> list[tuple[str, str, str]]:
    """Return status, predicate and value of each learned fact."""
    facts = await PostgresInspection(store.database).current(CAMPAIGN, DM, limit=1_000)
    return [
        (fact.status, fact.claim.predicate, str(fact.claim.content if fact.claim.object is None else fact.claim.object))
        for fact in facts
        if fact.provenance.origin == "talk"
    ]


async def progress(store: Store) -> SessionProgress:
    [one] = await PostgresChronicleLog(store.database, store.world).progress(CAMPAIGN)
    return one


async def test_no_npc_knows_what_was_found_until_the_dm_accepts_it(table: Store) -> None:
    await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
    await read_new(table, CAMPAIGN)
    assert await learned(table) == [("pending", "promise", "I promise to bring you six crowns by Friday")]
    inspection = PostgresInspection(table.database)
    [found] = [fact for fact in await inspection.current(CAMPAIGN, DM, limit=100) if fact.claim.predicate == "promise"]
    assert "promise" not in {fact.claim.predicate for fact in await inspection.current(CAMPAIGN, SMITH, limit=100)}
    await table.world.commit(CAMPAIGN, [FactConfirmed(found.claim.fact_id)], Cause("dm", 2_000_000))
    assert "promise" in {fact.claim.predicate for fact in await inspection.current(CAMPAIGN, SMITH, limit=100)}


async def test_a_worker_reads_on_with_a_changed_campaign(table: Store) -> None:
    worker = chronicle_worker(table)
    await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
    await worker.read_new(CAMPAIGN)
    accepts = replace(a_known_party("accept"), safety=Safety(lines=("spiders",)))
    await table.campaigns.load(accepts)
    await table.log.append([said(2, "I promise to bring you a silver ring."), said(3, "I promise you ten spiders.")])
    await worker.read_new(CAMPAIGN)
    assert await learned(table) == [
        ("accepted", "promise", "I promise to bring you a silver ring"),
        ("pending", "promise", "I promise to bring you six crowns by Friday"),
    ]


async def test_learned_fact_is_known_only_to_those_who_heard_it(table: Store) -> None:
    await table.campaigns.load(a_known_party("accept"))
    await table.log.append(
        [
            said(1, "My sister Wenna Thistlebrook lives in Dunharrow."),
            said(2, "I promise to bring you six crowns by Friday.", witnesses=frozenset({INNKEEPER})),
        ]
    )
    assert await read_new(table, CAMPAIGN) == 1
    known = await learned(table)
    assert ("accepted", "promise", "I promise to bring you six crowns by Friday") in known
    assert {predicate for _, predicate, _ in known} >= {"promise", "SIBLING_OF", "LOCATED_AT"}
    inspection = PostgresInspection(table.database)
    of_smith = {fact.claim.predicate for fact in await inspection.current(CAMPAIGN, SMITH, limit=1_000)}
    of_innkeeper = {fact.claim.predicate for fact in await inspection.current(CAMPAIGN, INNKEEPER, limit=1_000)}
    assert "SIBLING_OF" in of_smith
    assert "promise" not in of_smith
    assert "promise" in of_innkeeper
    assert "SIBLING_OF" not in of_innkeeper


async def test_it_is_learned_once_however_often_it_is_read(table: Store) -> None:
    await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
    await read_new(table, CAMPAIGN)
    before = await table.world.events(CAMPAIGN)
    assert await read_new(table, CAMPAIGN) == 0
    assert await table.world.events(CAMPAIGN) == before
    assert not (await progress(table)).has_news


async def test_other_words_take_the_place_of_what_the_first_ones_told(table: Store) -> None:
    first = said(1, "I promise to bring you six crowns by Friday.")
    await table.log.append([first, said(2, "We have decided to leave the bridge alone.")])
    await read_new(table, CAMPAIGN)
    await table.log.revise(replace(first, text="I promise to bring you ten crowns by Friday."), was=first)
    assert (await progress(table)).n_rereads == 1
    await read_new(table, CAMPAIGN)
    values = [value for _, predicate, value in await learned(table) if predicate == "promise"]
    assert values == ["I promise to bring you ten crowns by Friday"]
    assert "decision" in {predicate for _, predicate, _ in await learned(table)}

    await table.world.correct(CAMPAIGN, UtteranceId("u1"), "Nice weather, is it not.", Cause("dm", 2_000_000))
    await read_new(table, CAMPAIGN)
    assert {predicate for _, predicate, _ in await learned(table)} == {"decision"}


async def test_what_is_retracted_or_rolled_back_is_not_known_any_more(table: Store) -> None:
    await table.log.append(
        [
            said(1, "I promise to bring you six crowns by Friday."),
            said(2, "We have decided to leave the bridge alone."),
            said(3, "I found out that the miller lies to all of us."),
        ]
    )
    await read_new(table, CAMPAIGN)
    await table.world.retract(CAMPAIGN, UtteranceId("u1"), Cause("dm", 2_000_000))
    assert {predicate for _, predicate, _ in await learned(table)} == {"decision", "discovery"}
    await table.world.rollback(CAMPAIGN, EVENING, 2, Cause("dm", 2_000_001))
    assert {predicate for _, predicate, _ in await learned(table)} == {"decision"}
    await read_new(table, CAMPAIGN)
    assert {predicate for _, predicate, _ in await learned(table)} == {"decision"}


async def test_what_rests_on_two_utterances_goes_with_either(table: Store) -> None:
    class OfBoth:
        async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
            both = tuple(each.utterance.id for each in talk.said)
            miller = ExtractedEntity("m", "Odo Miller", "npc", both, 0.9)
            return Extraction((miller,), (), (ExtractedFact("m", "occupation", "miller", both, 0.9),))

    await table.log.append(
        [
            said(1, "Here comes Odo Miller."),
            said(
                2,
                "I found out that he is the miller who owes Wenna six crowns.",
                witnesses=frozenset({SMITH, INNKEEPER}),
            ),
        ]
    )
    log = PostgresChronicleLog(table.database, table.world)
    await Chronicler(CAMPAIGN, "en", log, OfBoth(), a_judge()).run(EVENING)
    assert await learned(table) == [("pending", "occupation", "miller")]
    inspection = PostgresInspection(table.database)
    assert not [f for f in await inspection.current(CAMPAIGN, INNKEEPER, limit=99) if f.provenance.origin == "talk"]
    await table.world.retract(CAMPAIGN, UtteranceId("u1"), Cause("dm", 2_000_000))
    assert await learned(table) == []


async def test_a_worker_whose_session_was_taken_writes_nothing(table: Store) -> None:
    await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
    slow = PostgresChronicleLog(table.database, table.world, worker="slow", lease_ms=0)
    other = PostgresChronicleLog(table.database, table.world, worker="other")
    assert await slow.take(CAMPAIGN, EVENING) == 0
    assert await other.take(CAMPAIGN, EVENING) == 0
    assert await slow.take(CAMPAIGN, EVENING) is None
    with pytest.raises(LeaseLost):
        await slow.learn(CAMPAIGN, ReadingStep(EVENING, 0, 1))
    await other.learn(CAMPAIGN, ReadingStep(EVENING, 0, 1))
    await other.release(CAMPAIGN, EVENING)
    assert (await progress(table)).read_ordinal == 1


async def test_a_failure_is_noted_tried_again_and_given_up_until_somebody_says_otherwise(table: Store) -> None:
    class Fails:
        async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
            raise Unavailable("no model answers at port 9")

    await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
    log = PostgresChronicleLog(table.database, table.world)
    chronicler = Chronicler(CAMPAIGN, "en", log, Fails(), a_judge())
    for attempt in range(1, MAX_ATTEMPTS + 1):
        with pytest.raises(Unavailable):
            await chronicler.run(EVENING)
        now = await progress(table)
        assert (now.attempts, now.read_ordinal, now.is_dead) == (attempt, 0, attempt == MAX_ATTEMPTS)
        assert now.error == "no model answers at port 9"
        assert now.retry_at_ms is not None
    assert await read_new(table, CAMPAIGN) == 0, "it waits for somebody"
    assert await log.revive(CAMPAIGN) == [EVENING]
    assert await read_new(table, CAMPAIGN) == 1
    assert (await progress(table)).error is None


async def test_a_worker_hears_of_what_is_said(table: Store) -> None:
    working = asyncio.create_task(chronicle_worker(table).run())
    try:
        await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
        async with asyncio.timeout(DEADLINE_S):
            while not await learned(table):  # noqa: ASYNC110 - the database tells another process, not this one
                await asyncio.sleep(0.01)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_the_dm_sees_how_far_it_is_and_has_it_go_on(
    table: Store, dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await table.log.append([said(1, "I promise to bring you six crowns by Friday.")])
    settings = a_settings_file(tmp_path, dsn)
    assert await run("worker", "status", "--config", settings) == 0
    assert "unread talk" in capsys.readouterr().out
    assert await run("worker", "read", "evning", "--config", settings) == 1
    assert "did you mean 'evening'?" in capsys.readouterr().err
    assert await run("worker", "read", "--config", settings) == 0
    assert "read 1 utterance, " in capsys.readouterr().out
    assert await run("worker", "read", EVENING, "--config", settings) == 0
    assert "nothing was left to read" in capsys.readouterr().out
    assert await run("worker", "retry", "--config", settings) == 0
    assert "nothing has failed" in capsys.readouterr().out
    assert await run("worker", "status", "--config", settings) == 0
    assert "up to date" in capsys.readouterr().out
    assert await run("show", "worth", EVENING, "--all", "--config", settings) == 0
    assert "I promise to bring you six" in capsys.readouterr().out
