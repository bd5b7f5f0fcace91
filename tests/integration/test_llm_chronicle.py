"""Talk is read with a language model, over the providers' own protocols; and by rules alone where the model fails."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import (
    TalkReaders,
    chronicle_log,
    chronicler_of,
    open_talk_readers,
    talk_readers_at_table,
)
from glyphoxa.chronicle.chronicler import Chronicler, ChronicleWorker
from glyphoxa.chronicle.judge import RulesJudge
from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.statements import FACT_KINDS
from glyphoxa.chronicle.talk import LONGEST
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.domain.knowledge import DM
from glyphoxa.world.event_log import Cause
from tests.support.builders import CAMPAIGN, EVENING, SMITH, a_known_party, said
from tests.support.command_line import run

pytestmark = pytest.mark.usefixtures("keys")

SPOKEN = (
    "We found Odo Fennimore in the old mill.",
    "He tended the lighthouse, and his father was killed there in the flood.",
    "I promise to bring you six crowns.",
)
LIGHTHOUSE = {"subject": "Odo Fennimore", "about": "past", "value": "tended the lighthouse", "confidence": "certain"}
ANSWER = {
    "entities": [{"name": "Odo Fennimore", "type": "npc"}],
    "relationships": [],
    "facts": [LIGHTHOUSE | {"lines": [2]}, LIGHTHOUSE | {"lines": [77]}],
}

Server = OpenAiServer | GeminiServer
both = pytest.mark.parametrize("name", ["openai", "google"])


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(a_known_party())
    await store.log.append([said(n, text) for n, text in enumerate(SPOKEN, start=1)])
    return store


@asynccontextmanager
async def readers_of(name: str, reply: str, **changes: Any) -> AsyncIterator[tuple[TalkReaders, Server]]:
    async with AsyncExitStack() as stack:
        server: Server = (
            OpenAiServer([Reply(reply)], **changes) if name == "openai" else GeminiServer([Reply(reply)], **changes)
        )
        await stack.enter_async_context(server)
        address = server.base_url if isinstance(server, OpenAiServer) else server.http_url
        settings = Settings.model_validate(
            {
                "memory": {"chronicle": "llm"},
                "chronicle": {"calls_per_minute": 0, "llm": {"name": name, "base_url": address}},
            }
        )
        yield await open_talk_readers(settings, stack), server


async def read(table: Store, readers: TalkReaders) -> None:
    chronicler = await chronicler_of(table, CAMPAIGN, chronicle_log(table, readers), readers)
    assert await chronicler.run(EVENING) is not None


async def learned(table: Store) -> dict[str, str]:
    facts = await PostgresInspection(table.database).current(CAMPAIGN, DM, limit=1_000)
    return {
        fact.claim.predicate: str(fact.claim.content)
        for fact in facts
        if fact.provenance.origin == "talk" and fact.claim.predicate in FACT_KINDS
    }


async def progress(table: Store) -> SessionProgress:
    [one] = await PostgresChronicleLog(table.database, table.world).progress(CAMPAIGN)
    return one


@both
async def test_a_model_adds_what_the_rules_miss_with_the_lines_that_say_it(table: Store, name: str) -> None:
    async with readers_of(name, json.dumps(ANSWER)) as (readers, server):
        await read(table, readers)
        asked = server.completions if isinstance(server, OpenAiServer) else server.requests
        assert len(asked) == 1, "one call for all of it"
    assert await learned(table) == {"past": "tended the lighthouse", "promise": "I promise to bring you six crowns"}
    reached = await progress(table)
    assert (reached.read_ordinal, reached.n_refused) == (3, 1)
    assert reached.refused == "the model's facts, number 2: its evidence includes a line that does not exist"
    await table.world.retract(CAMPAIGN, UtteranceId("u1"), Cause("dm", 2_000_000))
    assert await learned(table) == {"promise": "I promise to bring you six crowns"}, "nobody says who he is any more"


async def test_what_rules_have_read_is_read_again_with_a_model(
    table: Store, dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await table.log.append([said(4, "Wenna Thistlebrook is our guest.")])
    await read(table, TalkReaders())
    entities = await PostgresChronicleLog(table.database, table.world).known(CAMPAIGN)
    async with OpenAiServer([Reply(json.dumps(ANSWER))]) as server:
        settings = tmp_path / "settings.yaml"
        settings.write_text(
            f"memory: {{postgres_dsn: '{dsn}', chronicle: llm}}\n"
            f"chronicle: {{calls_per_minute: 0, llm: {{name: openai-compatible, base_url: '{server.base_url}'}}}}\n"
        )
        assert await run("worker", "read", EVENING, "--config", settings) == 0
        assert "nothing was left to read" in capsys.readouterr().out
        assert await run("worker", "read", EVENING, "--again", "--config", settings) == 0
        assert "read 4 utterances, " in capsys.readouterr().out
        assert len(server.completions) == 1
    assert await learned(table) == {"past": "tended the lighthouse", "promise": "I promise to bring you six crowns"}
    now = await PostgresChronicleLog(table.database, table.world).known(CAMPAIGN)
    assert {each.name for each in now} >= {each.name for each in entities}, "who was only named is known still"
    assert await run("worker", "status", "--config", settings) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 rejected" in shown


async def test_a_whole_stretch_is_waited_for_where_each_call_costs(table: Store) -> None:
    now, log = 0, PostgresChronicleLog(table.database, table.world)

    async def chronicler(campaign: CampaignId) -> Chronicler:
        rules = RulesExtractor("en")
        return Chronicler(campaign, "en", log, rules, RulesJudge("en", rules.index))

    async def campaigns() -> list[CampaignId]:
        return [CAMPAIGN]

    async def nothing() -> AsyncIterator[object]:
        return
        yield

    worker = ChronicleWorker(
        log,
        campaigns=campaigns,
        chronicler=chronicler,
        said=nothing,  # type: ignore[arg-type]
        now_ms=lambda: now,
        gather_ms=60_000,
    )
    assert await worker.read_new(CAMPAIGN) == 0
    now = 59_000
    assert await worker.read_new(CAMPAIGN) == 0
    await table.log.append([said(4, "Wait, there is more.")])
    now = 61_000
    assert await worker.read_new(CAMPAIGN) == 0, "somebody spoke"
    now = 121_000
    assert await worker.read_new(CAMPAIGN) == 1
    await table.log.append([said(n, "And more.") for n in range(5, 5 + LONGEST)])
    assert await worker.read_new(CAMPAIGN) == 1, "a full one waits for nobody"
    worker.every = 2
    await table.log.append([said(50, "Well?"), replace(said(51, "Hm."), npc_id=SMITH, witnesses=frozenset({SMITH}))])
    assert await worker.read_new(CAMPAIGN) == 0, "one reply of the two that it waits for"
    await table.log.append([replace(said(52, "Aye."), npc_id=SMITH, witnesses=frozenset({SMITH}))])
    assert await worker.read_new(CAMPAIGN) == 1


def test_all_readers_of_a_process_share_one_rate_limit() -> None:
    told = {"memory": {"chronicle": "llm"}, "chronicle": {"llm": {"name": "openai"}}}
    limited, free = Settings.model_validate(told), Settings.model_validate(told)
    free.chronicle.__dict__["calls_per_minute"] = 0
    one, other = (talk_readers_at_table(limited, AsyncExitStack()).asking for _ in range(2))
    without = talk_readers_at_table(free, AsyncExitStack()).asking
    assert one is not None and other is not None and without is not None
    assert one.pace is other.pace
    at_ms = 1 << 60  # after all that other tests of this process have asked
    assert [without.pace.reserve(at_ms=at_ms) for _ in range(100)] == [0] * 100


def test_a_model_that_runs_here_is_the_npcs_alone_while_a_table_plays() -> None:
    stack = AsyncExitStack()
    local = Settings.model_validate({"memory": {"chronicle": "llm"}})
    assert talk_readers_at_table(local, stack).asking is None
    cloud = Settings.model_validate({"memory": {"chronicle": "llm"}, "chronicle": {"llm": {"name": "openai"}}})
    readers = talk_readers_at_table(cloud, stack)
    assert readers.asking is not None
    assert readers.lease_ms > readers.extract_ms > readers.asking.longest_ms, (
        "nobody takes a session that is being read"
    )
