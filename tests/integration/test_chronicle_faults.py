"""Reading the transcript ends with the same knowledge, whatever is killed, cut off or wrong meanwhile.

Processes are killed at random instants, the server restarts, workers take each other's lease, and the model fails. One
campaign is read undisturbed, another one with the same lines is not.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app import background
from glyphoxa.app.background import chronicle_log, chronicle_worker
from glyphoxa.chronicle.chronicler import ChronicleWorker
from glyphoxa.chronicle.ports import ReadingStep
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import DM, lines_of
from glyphoxa.world.event_log import Cause
from tests.support.builders import INNKEEPER, SMITH, a_known_party, an_utterance
from tests.support.chat_server import Answer, Body, ChatServer, Refused, error, said, whole
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.postgres import wait_until
from tests.support.proof import IS_PROOF, proof_only

CALM, TROUBLED = CampaignId("calm"), CampaignId("troubled")
ROUNDS = range(4 if IS_PROOF else 1)
KILLS = 25 if IS_PROOF else 4
LINES = max(240, 24 * KILLS)
RESTARTS = 20 if IS_PROOF else 3
LIFE_S = 0.8
"""Longest life of a process after it has asked the model: it reads a stretch in some tenths of a second."""
_PATIENCE_S = 5.0
FAILS = 0.3
FIRST = ("Odo", "Wenna", "Perrin", "Hilda", "Corwin", "Maud", "Tobin", "Elsa", "Garrick", "Sunniva", "Ludo", "Berit")
LAST = ("Fennimore", "Thistlebrook", "Marrow", "Quillfeather", "Stoneacre", "Underhay", "Vane", "Wickersham", "Yarrow")
EVENING = SessionId("evening")


# -- what is said


def spoken(n: int, dice: random.Random) -> str:
    """Return line number n. Its number is in no other line."""
    name = f"{dice.choice(FIRST)} {dice.choice(LAST)}"
    return dice.choice(
        (
            f"I promise to bring you {n} crowns by Friday.",
            f"{name} tended lighthouse {n} before the flood.",
            f"My sister {name} lives in house {n} in Dunharrow.",
            f"We have decided to leave bridge {n} alone.",
            f"{name} is a weaver, and her shop is number {n}.",
            f"The Geometers keep door {n} shut.",
            f"Pass me ale number {n}, please.",
            f"He said that he would give {name} {n} sheep.",
        )
    )


def talk(campaign: CampaignId, n_lines: int) -> tuple[list[Utterance], list[UtteranceId], list[UtteranceId]]:
    """Return lines, those of them that a player withholds, and those that the DM retracts."""
    dice, lines = random.Random(11), list[Utterance]()
    withheld, retracted = list[UtteranceId](), list[UtteranceId]()
    at_ms = 1_000_000
    while len(lines) < n_lines:
        n = len(lines)
        who = dice.choice(("Tamsin", "Bran"))
        at_ms += dice.choice((3_000, 3_000, 3_000, 9_000)) + (700_000 if dice.random() < 0.02 else 0)
        line = replace(
            an_utterance(spoken(n, dice), id=f"u{n}", speaker=who),
            campaign_id=campaign,
            session_id=EVENING,
            speaker_id=SpeakerId(who.lower()),
            at_ms=at_ms,
            witnesses=frozenset({SMITH, INNKEEPER} if n % 3 else {SMITH}),
        )
        lines.append(line)
        if dice.random() < 0.04 and len(lines) < n_lines:
            request = replace(line, id=UtteranceId(f"u{n + 1}"), text="Please do not write that down.", at_ms=at_ms + 1)
            lines.append(replace(request, raw_text=request.text))
            withheld.append(line.id)
        elif dice.random() < 0.04:
            retracted.append(line.id)
    return lines, withheld, retracted


async def stored(store: Store, campaign: CampaignId, n_lines: int) -> set[str]:
    """Store a campaign and its lines. Returns the lines that may leave no fact."""
    await store.campaigns.load(replace(a_known_party(), id=campaign, name=campaign))
    lines, withheld, retracted = talk(campaign, n_lines)
    for at in range(0, len(lines), 500):
        await store.log.append(lines[at : at + 500])
    for id_ in retracted:
        await store.world.retract(campaign, id_, Cause("dm", 2_000_000))
    return {*withheld, *retracted}


# -- what was learned


async def knowledge(store: Store, campaign: CampaignId) -> dict[str, list[str]]:
    """Return all that reading has left, without what depends on the order of events."""
    facts = await PostgresInspection(store.database).current(campaign, DM, limit=100_000)
    timeline = await store.episodes.read(campaign)
    async with store.database.use(campaign, deadline_ms=DEADLINE_MS) as connection:
        rows = {
            "judgements": await connection.fetch(
                "SELECT session_id, ordinal, utterance_id, mode, risk, note, extract_memory, judged_by, reason "
                "FROM turn_judgements"
            ),
            "atoms": await connection.fetch(
                "SELECT stable_key, kind, title, summary, confidence, about, speaker, heard_by, place FROM live_atoms"
            ),
            "entities": await connection.fetch(
                "SELECT id, type, name, aliases, scope, known_how, origin FROM entities"
            ),
            "progress": await connection.fetch(
                "SELECT session_id, read_ordinal, checked_ordinal, n_refused, attempts, error, taken_by "
                "FROM chronicle_progress"
            ),
        }
    return {
        "facts": sorted(
            f"{fact.claim} {fact.status} {fact.mentions} {fact.provenance} {fact.visibility} {fact.attributes}"
            for fact in facts
            if fact.provenance.origin == "talk"
        ),
        "timeline": sorted(
            f"{node.id} {node.parent} {[one.claim for one in node.summaries]}" for node in timeline.nodes
        ),
        **{name: sorted(str(dict(row)) for row in found) for name, found in rows.items()},
    }


async def differences(store: Store) -> dict[str, tuple[list[str], list[str]]]:
    """Return what only the campaign that was read undisturbed has of each kind, and what only the other one has."""
    calm, troubled = await knowledge(store, CALM), await knowledge(store, TROUBLED)
    both = {kind: (Counter(calm[kind]), Counter(troubled[kind])) for kind in calm}
    return {kind: (sorted(one - other), sorted(other - one)) for kind, (one, other) in both.items() if one != other}


async def assert_read_once(store: Store, campaign: CampaignId, n_lines: int, *, forbidden: set[str]) -> None:
    """Assert that each line was read, each fact is there once, and none rests on a line that was taken back."""
    log = chronicle_log(store)
    progress = await log.progress(campaign)
    assert sum(each.read_ordinal for each in progress) == n_lines
    assert not any(each.has_news or each.attempts or each.is_dead for each in progress)
    async with store.database.use(campaign, deadline_ms=DEADLINE_MS) as connection:
        judged = await connection.fetch("SELECT utterance_id FROM turn_judgements")
        unread = await connection.fetch("SELECT utterance_id FROM session_entries WHERE NOT retracted")
        atoms = await connection.fetch("SELECT utterance_id FROM live_atoms")
    assert {row[0] for row in unread} <= {row[0] for row in judged}
    assert not forbidden & {row[0] for row in atoms}
    facts = await PostgresInspection(store.database).current(campaign, DM, limit=100_000)
    learned = [fact for fact in facts if fact.provenance.origin == "talk" and fact.provenance.utterance_id]
    assert learned
    assert not forbidden & {line for fact in learned for line in (fact.provenance.utterance_id, *lines_of(fact))}
    numbered = [fact for fact in learned if re.search(r"\d", str(fact.claim.content or ""))]
    assert {fact.mentions for fact in numbered} == {1}
    assert len({(fact.claim.subject, fact.claim.predicate, str(fact.claim.content)) for fact in numbered}) == len(
        numbered
    )


# -- the model


def answer_to(body: Body) -> str:
    """Return what a model answers that notes each lighthouse, and what a term means."""
    text = str(body["messages"][-1]["content"])
    found = re.findall(r"^(\d+) [^:\n]+: (\w+ \w+) (tended lighthouse \d+)", text, flags=re.MULTILINE)
    facts = [
        {"subject": name, "about": "past", "value": value, "lines": [int(line)], "confidence": "certain"}
        for line, name, value in found[:10]
    ]
    entities = [{"name": name, "type": "npc"} for _, name, _ in found[:10]]
    if text.startswith("Term:"):
        return json.dumps({"meaning": "they keep doors shut", "lines": [1]})
    return json.dumps({"entities": entities, "relationships": [], "facts": facts})


def half_of(text: str) -> Answer:
    answer = said(text)
    return replace(answer, pieces=answer.pieces[: len(answer.pieces) // 2], hangs_up=True)


FAULTS: tuple[Callable[[str], Answer | Refused], ...] = (
    lambda _: error(500, "internal error"),
    lambda _: error(503, "overloaded"),
    lambda _: Refused(502, "<html>bad gateway</html>"),
    lambda _: whole("<html>welcome</html>", "text/html"),
    lambda text: said(text[: len(text) // 2]),
    lambda _: said("I would rather tell you a story."),
    lambda _: said('{"entities": 5, "relationships": [], "facts": [{}]}'),
    lambda _: said('{"meaning": ["x"], "entities": [], "relationships": [], "facts": {"a": 1}}'),
    half_of,
)
LATE: Callable[[str], Answer | Refused] = lambda text: replace(said(text), gate_after=0)  # noqa: E731 - one of the faults


@asynccontextmanager
async def a_failing_model(*, at_random: bool) -> AsyncIterator[ChatServer]:
    """Answer with `answer_to`, or a fault: at random, or always the same to the same question."""
    dice = random.Random(5)
    faults = (*FAULTS, LATE) if at_random else FAULTS

    def fault_of(body: Body) -> Callable[[str], Answer | Refused] | None:
        asked = f"{body['messages'][-1]['content']} {body.get('temperature')}"
        if at_random:
            return dice.choice(faults) if dice.random() < FAILS else None
        number = zlib.crc32(asked.encode())
        return faults[number // 100 % len(faults)] if number % 100 < 100 * FAILS else None

    chosen: list[Answer | Refused] = []

    def rule(body: Body) -> Refused | None:
        server.noted()
        fault = fault_of(body)
        text = answer_to(body)
        answer = said(text) if fault is None else fault(text)
        chosen.append(answer)
        return answer if isinstance(answer, Refused) else None

    def answering(_: Body) -> Answer:
        answer = chosen[-1]
        assert isinstance(answer, Answer)
        return answer

    async with ChatServer(rules=[rule], answering=answering) as server:
        yield server
        server.gate.set()


def settings_of(server: ChatServer, dsn: str, directory: Path) -> Settings:
    llm = {"name": "openai-compatible", "base_url": server.base_url}
    return Settings.model_validate(
        {
            "data_dir": directory,
            "memory": {"postgres_dsn": dsn, "chronicle": "llm"},
            "chronicle": {"calls_per_minute": 0, "llm": llm},
        }
    )


# -- processes that are killed


async def killed_again_and_again(
    store: Store, server: ChatServer, arguments: tuple[Any, ...], dice: random.Random
) -> int:
    """Start readers and kill them at random instants. Returns how many were killed before all was read."""
    from tests.support.reading_process import processes, read_until_killed  # importing it takes seconds

    n_within, log, forks = 0, chronicle_log(store), processes()
    for _ in range(KILLS):
        begun, n_before = forks.Event(), len(server.bodies)
        process = forks.Process(target=read_until_killed, args=(begun, *arguments), daemon=True)
        process.start()
        assert await asyncio.to_thread(begun.wait, DEADLINE_S)
        if dice.random() < 0.8:
            with suppress(TimeoutError):  # it has come to work that needs no model
                await server.wait_until(partial(_has_more, server, n_before), patience_s=_PATIENCE_S)
        await asyncio.sleep(dice.random() * LIFE_S)  # anywhere in its work: the moment is not what is asserted
        process.kill()
        await asyncio.to_thread(process.join)
        n_within += any(each.has_news for each in await log.progress(TROUBLED))
        await lease_expires(store)
    return n_within


def _has_more(server: ChatServer, n_before: int) -> bool:
    return len(server.bodies) > n_before


async def lease_expires(store: Store) -> None:
    """Let the time pass for which a dead worker holds the session."""
    async with store.database.use(TROUBLED) as connection:
        await connection.execute("UPDATE chronicle_progress SET taken_until = clock_timestamp()")


@pytest.mark.parametrize("number", ROUNDS)
@pytest.mark.parametrize("at_random", [pytest.param(False, marks=proof_only), True])
async def test_killed_workers_with_a_failing_model_learn_everything_once(
    store: Store, dsn: str, tmp_path: Path, at_random: bool, number: int, record_property: Callable[[str, object], None]
) -> None:
    from tests.support.reading_process import read

    forbidden = {campaign: await stored(store, campaign, LINES) for campaign in (CALM, TROUBLED)}
    async with a_failing_model(at_random=at_random) as server:
        settings = settings_of(server, dsn, tmp_path)
        deadline_ms = 300 if at_random else DEADLINE_MS
        arguments = (settings.model_dump_json(), TROUBLED, deadline_ms, at_random)
        n_within = await killed_again_and_again(store, server, arguments, random.Random(number))
        assert n_within
        assert server.bodies
        record_property("kills", f"{n_within} of {KILLS} before all was read, {len(server.bodies)} requests")
        await read(settings, TROUBLED, deadline_ms, at_random)
        await assert_read_once(store, TROUBLED, LINES, forbidden=forbidden[TROUBLED])
        if not at_random:
            await read(settings, CALM, deadline_ms, at_random)
            assert await differences(store) == {}


async def test_worker_completes_what_a_killed_worker_read_to_the_end(store: Store) -> None:
    forbidden = await stored(store, TROUBLED, 80)
    dying = chronicle_worker(store)

    async def dies(_campaign: CampaignId, _session: SessionId) -> None:
        raise asyncio.CancelledError

    dying.tell = dies
    with pytest.raises(asyncio.CancelledError):
        await dying.read_new(TROUBLED)
    await lease_expires(store)
    assert await chronicle_worker(store).read_new(TROUBLED) == 1
    assert (await store.episodes.read(TROUBLED)).nodes
    await assert_read_once(store, TROUBLED, 80, forbidden=forbidden)
    assert await chronicle_worker(store).read_new(TROUBLED) == 0


async def test_worker_retries_when_the_database_was_away_after_the_last_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(store, TROUBLED, 80)
    log = PostgresChronicleLog(store.database, store.world, lease_ms=0)
    monkeypatch.setattr(background, "chronicle_log", lambda *_: log)
    worker = chronicle_worker(store)
    tell = worker.tell

    async def is_away(_campaign: CampaignId, _session: SessionId) -> None:
        raise Unavailable("the database cannot be reached")

    worker.tell = is_away
    with pytest.raises(Unavailable):
        await worker.read_new(TROUBLED)
    worker.tell = tell
    assert await worker.read_new(TROUBLED) == 1
    assert (await store.episodes.read(TROUBLED)).nodes
    assert not any(each.has_news for each in await log.progress(TROUBLED))


# -- the server restarts


async def test_restarts_of_the_server_while_reading_lose_and_double_nothing(reachable_dir: Path) -> None:
    server, dice, n_lines = EmbeddedPostgres(reachable_dir / "postgres"), random.Random(17), 60 * RESTARTS
    async with open_store(EmbeddedPostgres(reachable_dir / "postgres", settings={"fsync": "off"})) as store:
        forbidden = {campaign: await stored(store, campaign, n_lines) for campaign in (CALM, TROUBLED)}
        await chronicle_worker(store).read_new(CALM)
        reading = asyncio.create_task(_read_through(store, chronicle_worker(store)))
        for _ in range(RESTARTS):
            await asyncio.sleep(dice.random() / 2)
            if (pid := server.pid()) is not None:
                os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            await reading
        await assert_read_once(store, TROUBLED, n_lines, forbidden=forbidden[TROUBLED])
        assert await differences(store) == {}
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)


async def _read_through(store: Store, *workers: ChronicleWorker) -> None:
    """Have workers read until nothing is left, whatever is unavailable meanwhile."""

    async def work(worker: ChronicleWorker) -> None:
        log, is_over = chronicle_log(store), False
        while not is_over:
            with suppress(Unavailable):
                await worker.read_new(TROUBLED)
                is_over = not any(each.has_news for each in await log.progress(TROUBLED))
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(work(worker))


# -- leases and clocks


async def test_workers_that_take_each_others_lease_learn_everything_once(store: Store) -> None:
    forbidden = {campaign: await stored(store, campaign, 240) for campaign in (CALM, TROUBLED)}
    await chronicle_worker(store).read_new(CALM)

    dice = random.Random(19)
    reading = asyncio.create_task(_read_through(store, chronicle_worker(store), chronicle_worker(store)))
    for _ in range(2 * RESTARTS):
        await asyncio.sleep(dice.random() / 4)
        await lease_expires(store)
    async with asyncio.timeout(DEADLINE_S):
        await reading
    await assert_read_once(store, TROUBLED, 240, forbidden=forbidden[TROUBLED])
    assert await differences(store) == {}


async def test_failure_of_a_worker_that_lost_its_lease_is_not_recorded(store: Store) -> None:
    await stored(store, TROUBLED, 10)
    slow = PostgresChronicleLog(store.database, store.world, worker="slow", lease_ms=0)
    other = PostgresChronicleLog(store.database, store.world, worker="other")
    await slow.take(TROUBLED, EVENING)
    await other.take(TROUBLED, EVENING)
    assert (await slow.failed(TROUBLED, EVENING, "no model answers")).attempts == 0
    await other.learn(TROUBLED, ReadingStep(EVENING, 0, 10))


async def test_lease_and_retry_from_before_the_clock_was_set_back_hold_nobody_up(store: Store) -> None:
    forbidden = await stored(store, TROUBLED, 80)
    dead = PostgresChronicleLog(store.database, store.world, worker="dead")
    await dead.take(TROUBLED, EVENING)
    await dead.failed(TROUBLED, EVENING, "no model answers")
    await dead.take(TROUBLED, EVENING)
    assert await chronicle_worker(store).read_new(TROUBLED) == 0
    async with store.database.use(TROUBLED) as connection:
        set_back = "SET taken_until = taken_until + interval '2 years', retry_at = retry_at + interval '2 years'"
        await connection.execute(f"UPDATE chronicle_progress {set_back}")
    assert await chronicle_worker(store).read_new(TROUBLED) == 1
    await assert_read_once(store, TROUBLED, 80, forbidden=forbidden)


async def test_clock_that_is_set_back_does_not_delay_reading(store: Store) -> None:
    await stored(store, TROUBLED, 10)
    worker, at_ms = chronicle_worker(store), 9_000_000
    worker.gather_ms, worker.now_ms = 60_000, lambda: at_ms
    assert await worker.read_new(TROUBLED) == 0
    at_ms = 0
    assert await worker.read_new(TROUBLED) == 1
