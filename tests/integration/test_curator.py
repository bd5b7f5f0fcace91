"""The curator reads memory and writes to it over the providers' own protocols, and sums up the timeline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import (
    TalkReaders,
    chronicle_log,
    chronicler_of,
    open_talk_readers,
    talk_readers_at_table,
    timeline_writer,
)
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import DEFAULT_TYPES, Compression
from glyphoxa.domain.ids import EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, Claim, Provenance, witnessed_by
from glyphoxa.world.event_kinds import EntityScoped, FactStated
from glyphoxa.world.event_log import Cause
from tests.integration.test_llm_chronicle import EVENING, LIGHTHOUSE, both, learned, progress, read, said
from tests.integration.test_timeline import play, timeline, told
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, a_campaign, a_known_party

pytestmark = pytest.mark.usefixtures("keys")

FACTS = "memory_search_facts"


def step(tool: str = "done", query: str = "", **found: Any) -> dict[str, Any]:
    return {"tool": tool, "query": query, "entities": [], "relationships": [], "facts": [], **found}


@asynccontextmanager
async def curator(
    *answers: object, name: str = "openai", chronicle: str = "rules"
) -> AsyncIterator[tuple[TalkReaders, list[Any]]]:
    """Yield readers with a curator that gives these answers in turn, and the requests to its model."""
    replies = [Reply(each if isinstance(each, str) else json.dumps(each)) for each in answers]
    server: OpenAiServer | GeminiServer = OpenAiServer(replies) if name == "openai" else GeminiServer(replies)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server)
        address = server.base_url if isinstance(server, OpenAiServer) else server.http_url
        settings = Settings.model_validate(
            {
                "memory": {"chronicle": chronicle, "curator": "on"},
                "chronicle": {"calls_per_minute": 0, "retries": 0},
                "curator": {"llm": {"name": name, "base_url": address}},
            }
        )
        asked = server.completions if isinstance(server, OpenAiServer) else server.requests
        yield await open_talk_readers(settings, stack), asked


@pytest.fixture
async def table(store: Store) -> Store:
    await store.campaigns.load(a_known_party())
    lines = ("We found Odo Fennimore in the old mill.", "Odo Fennimore tended the lighthouse before the flood.")
    promise = "I promise to bring you six crowns."
    await store.log.append([said(n, text) for n, text in enumerate((*lines, promise), start=1)])
    return store


NOTED = step(entities=[{"name": "Odo Fennimore", "type": "npc"}], facts=[LIGHTHOUSE | {"lines": [2]}])


@both
async def test_curator_adds_to_the_rules_over_each_protocol(table: Store, name: str) -> None:
    async with curator(step(FACTS, "Odo Fennimore"), NOTED, name=name) as (readers, asked):
        await read(table, readers)
        assert len(asked) == 2 and FACTS in json.dumps(asked[1])
    assert await learned(table) == {"past": "tended the lighthouse", "promise": "I promise to bring you six crowns"}
    assert (await progress(table)).n_refused == 0
    await table.world.retract(CAMPAIGN, UtteranceId("u2"), Cause("dm", 2_000_000))
    assert await learned(table) == {"promise": "I promise to bring you six crowns"}


async def test_curator_works_alone_where_the_chronicle_is_off(table: Store) -> None:
    async with curator(NOTED, chronicle="none") as (readers, _):
        await read(table, readers)
    assert await learned(table) == {"past": "tended the lighthouse"}


async def test_two_curators_store_each_finding_once(table: Store) -> None:
    async with curator(NOTED) as (one, asked), curator(NOTED) as (other, asked_too):
        both = [await chronicler_of(table, CAMPAIGN, chronicle_log(table, each), each) for each in (one, other)]
        await asyncio.gather(*(each.run(EVENING) for each in both))
    assert len(asked) + len(asked_too) == 1, "the session is leased to one of them"
    assert await learned(table) == {"past": "tended the lighthouse", "promise": "I promise to bring you six crowns"}


async def test_secret_of_another_npc_is_not_shown_to_the_curator(table: Store) -> None:
    """The stretch was heard by the smith, and the innkeeper alone knows who killed the miller."""
    smith, sure = a_campaign().npc(SMITH).entity_id, Provenance(1.0, origin="dm")
    stated = [
        FactStated(Claim.attribute(smith, about, value), sure, witnessed_by([npc], at_ms=1))
        for about, value, npc in (("deed", "strangled the miller", INNKEEPER), ("oath", "never to drink", SMITH))
    ]
    await table.world.commit(CAMPAIGN, stated, Cause("dm", 1))
    steps = [step("memory_query_entities", "Grimjaw"), step(FACTS, "what Grimjaw did to the miller"), step()]
    async with curator(*steps) as (readers, asked):
        await read(table, readers)
        shown = json.dumps(asked[-1]["messages"])
        assert len(asked) == 3 and "never to drink" in shown and "strangled" not in shown


async def test_line_heard_by_an_npc_that_has_left_shows_the_curator_nothing(table: Store) -> None:
    heard = replace(said(4, "Grimjaw keeps the inn with Odo Fennimore."), witnesses=frozenset({SMITH, NpcId("gone")}))
    await table.log.append([heard])
    async with curator(step("memory_query_entities", "Grimjaw"), step()) as (readers, asked):
        await read(table, readers)
        assert len(asked) == 2 and '\\"found\\": []' in json.dumps(asked[1]["messages"])
    assert (await progress(table)).error is None


async def test_curator_works_at_a_table_only_if_its_model_runs_elsewhere() -> None:
    async with AsyncExitStack() as stack:
        local = Settings.model_validate({"memory": {"curator": "on"}})
        assert talk_readers_at_table(local, stack).curating is None
        assert (
            local.reads_talk
            and not Settings.model_validate({"memory": {"curator": "on", "chronicle": "none"}}).reads_talk
        )
        cloud = Settings.model_validate(
            {"memory": {"curator": "on", "chronicle": "none"}, "curator": {"llm": {"name": "openai"}}}
        )
        readers = talk_readers_at_table(cloud, stack)
        assert cloud.reads_talk and readers.curating is not None and readers.curating.is_alone
        assert readers.lease_ms > readers.curating.deadline_ms


# Compaction.


def ruling(action: str, *lines: int, text: str = "") -> dict[str, Any]:
    return {"action": action, "lines": list(lines), "text": text}


def compact(*sentences: dict[str, Any], nodes: tuple[str, ...] = ("episode-one#1", "episode-one#3")) -> dict[str, Any]:
    return {"tool": "memory_compact_nodes", "nodes": list(nodes), "sentences": list(sentences)}


DONE = {"tool": "done", "nodes": [], "sentences": []}
FOLDED = "Tamsin promised Orrin the 2 silver keys of house 0."


@pytest.fixture
async def campaign(store: Store) -> Store:
    await store.campaigns.load(a_campaign())
    return store


async def told_by(store: Store, *answers: object, hidden: int | None = None) -> list[Any]:
    """Play a session of eight scenes, and let a curator that answers like this sum it up."""
    await play(store, "one", 8, hidden_from_smith=hidden)
    async with curator(*answers) as (readers, asked):
        await (await timeline_writer(store, CAMPAIGN, readers)).sum_up(SessionId("one"))
    return asked


async def summaries(store: Store, npc: NpcId) -> dict[str, str]:
    return {node.id: told(node, npc) for node in (await timeline(store)).nodes if node.tier == 1}


async def test_curator_keeps_folds_and_drops_lines_of_nodes(campaign: Store) -> None:
    answer = compact(ruling("FOLD", 1, text=FOLDED), ruling("DROP", 2), ruling("KEEP", 3))
    answer["nodes"].append("episode-one#5")
    asked = await told_by(campaign, answer, DONE)
    first = json.dumps(asked[0]["messages"])
    assert "house 0." in first and "episode-one#1: 1" in first and "house 7." not in first, (
        "recent nodes are no candidates"
    )
    assert set(asked[0]["response_format"]["json_schema"]["schema"]["properties"]["tool"]["enum"]) == {
        "memory_compact_nodes",
        "memory_compaction_candidates",
        "done",
    }
    [text] = (await summaries(campaign, SMITH)).values()
    assert text.startswith(FOLDED) and "house 2." in text and "house 1." not in text
    assert len([node for node in (await timeline(campaign)).nodes if node.parent is None]) == 6


async def test_npc_is_told_no_sentence_of_a_line_that_it_did_not_hear(campaign: Store) -> None:
    secret = "Tamsin promised Orrin and Wenna the silver keys of house 1."
    answer = compact(
        ruling("KEEP", 1), ruling("KEEP", 2), ruling("FOLD", 1, 2, text=secret), ruling("FOLD", 1, text=secret)
    )
    await told_by(campaign, answer, DONE, hidden=1)
    of_smith, of_other = [(await summaries(campaign, npc))["episode-one#1+1"] for npc in (SMITH, INNKEEPER)]
    assert "house 0." in of_smith and "house 1." not in of_smith and "Wenna" not in of_smith
    assert "house 1." in of_other


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (compact(ruling("KEEP", 1), nodes=("episode-one#1", "episode-two#9")), "'episode-two#9' is no candidate"),
        (compact(ruling("KEEP", 1), nodes=("episode-one#1",)), "name at least two event nodes"),
        (compact(ruling("FOLD", 1, text="Tamsin slew a dragon.")), "no sentence has only the words of the lines"),
        (compact(ruling("KEEP", 77)), "no sentence has only the words of the lines"),
        (DONE | {"tool": "drop_table"}, "there is no tool 'drop_table'"),
    ],
)
async def test_wrong_call_is_reported_to_the_model_and_rules_sum_up(
    campaign: Store, answer: dict[str, Any], why: str
) -> None:
    asked = await told_by(campaign, answer, answer)
    assert len(asked) == 2 and why in json.dumps(asked[1]["messages"]).replace("\\\\", "")
    [text] = (await summaries(campaign, SMITH)).values()
    assert "dragon" not in text and "silver keys" in text


@pytest.mark.parametrize("answer", ["no", DONE])
async def test_curator_that_sums_up_nothing_leaves_it_to_the_rules(campaign: Store, answer: object) -> None:
    asked = await told_by(campaign, answer)
    assert len(asked) == 1 and len(await summaries(campaign, SMITH)) == 1


KEEPS = compact(ruling("KEEP", 1)), DONE


@pytest.mark.parametrize(
    ("by", "answers", "n_asked", "n_sums"),
    [("curator", (DONE,), 1, 0), ("curator", KEEPS, 2, 1), ("automatic", KEEPS, 0, 1), ("both", (DONE,), 1, 1)],
)
async def test_type_of_node_names_who_sums_it_up(
    store: Store, by: Any, answers: tuple[object, ...], n_asked: int, n_sums: int
) -> None:
    event = replace(DEFAULT_TYPES["event"], compression=Compression(by=by))
    await store.campaigns.load(replace(a_campaign(), node_types={"event": event}))
    asked = await told_by(store, *answers)
    assert (len(asked), len(await summaries(store, SMITH))) == (n_asked, n_sums)


async def test_a_curator_that_is_off_and_alone_is_warned_of(store: Store, warnings: list[str]) -> None:
    event = replace(DEFAULT_TYPES["event"], compression=Compression(by="curator"))
    await store.campaigns.load(replace(a_campaign(), node_types={"event": event}))
    await timeline_writer(store, CAMPAIGN)
    assert warnings == [f"events of campaign {CAMPAIGN} are not summed up: `by: curator`, but memory.curator is off"]


async def test_nobody_is_told_of_a_node_that_the_dm_has_hidden(campaign: Store) -> None:
    await play(campaign, "one", 4)
    await (await timeline_writer(campaign, CAMPAIGN)).sum_up(SessionId("one"))
    await campaign.world.commit(CAMPAIGN, [EntityScoped(EntityId("episode-one#3"), HIDDEN)], Cause("dm", 2_000_000_000))
    await play(campaign, "two", 4, begin=4)
    nodes = ("episode-one#1", "episode-one#3", "episode-one#5")
    async with curator(compact(ruling("KEEP", 1, 2, 3), nodes=nodes), DONE) as (readers, asked):
        await (await timeline_writer(campaign, CAMPAIGN, readers)).sum_up(SessionId("two"))
        assert asked and "house 0." in json.dumps(asked) and "house 1." not in json.dumps(asked)
    told_of = [told(node, npc) for node in (await timeline(campaign)).nodes for npc in (SMITH, INNKEEPER)]
    assert any("house 0." in text for text in told_of) and not any("house 1." in text for text in told_of)


async def test_words_of_an_npc_are_quoted_to_nobody(campaign: Store) -> None:
    own = replace(
        said(99, "I will never open the gate, Tamsin."), npc_id=SMITH, speaker_name="Grimjaw", id=UtteranceId("own")
    )
    heard = frozenset({SMITH, INNKEEPER})
    await campaign.log.append([replace(own, session_id=SessionId("one"), at_ms=1_000_000_000 - 1, witnesses=heard)])
    nodes = ("episode-one#1", "episode-one#4")
    asked = await told_by(campaign, compact(ruling("KEEP", 1, 2), nodes=nodes), DONE)
    assert "1 Grimjaw: I will never open the gate" in json.dumps(asked[0])
    assert "gate" not in (await summaries(campaign, INNKEEPER))["episode-one#1+1"]
    assert "Grimjaw said" not in (await summaries(campaign, SMITH))["episode-one#1+1"]


async def test_curator_killed_while_it_sums_up_leaves_nothing_half_done(campaign: Store) -> None:
    await play(campaign, "one", 8)
    hanging = asyncio.Event()

    async def hang(*_: object) -> int:
        hanging.set()
        await asyncio.Event().wait()
        return 0

    writer = await timeline_writer(campaign, CAMPAIGN)
    task = asyncio.create_task(replace(writer, curator=hang).write(SessionId("one"), is_over=True))
    await hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await summaries(campaign, SMITH) == {}
    await writer.write(SessionId("one"), is_over=True)
    assert len(await summaries(campaign, SMITH)) == 1
