"""Recall by a language model: real talk in a real database, real client libraries, servers of their protocols."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from benchmarks.servers.local import LocalServer
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import NOTES, deep_recall, local_slots, slot_of
from glyphoxa.config.provider_sections import DeepRecallSettings, RecallLlmSettings, RecallMethod, RerankSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.providers.registry import RECALL, SECOND_LOOK
from glyphoxa.recall.recall import RecallResult
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.command_line import a_settings_file, run
from tests.support.live_table import an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_S
from tests.support.proof import proof_only
from tests.support.weights import weights

KEYS = {"OPENAI_API_KEY": "secret-1234"}
TALK = (
    "My sister Ilvara sails with the pirates.",
    "We met Ilvara off the cape.",
    "There was a storm, and nobody drowned.",
    "It rains.",
)
SECRET = "Ilvara has drowned."


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, key in KEYS.items():
        monkeypatch.setenv(variable, key)


def picks(*words: str, opens: str = "") -> Any:
    """A model that chooses the lines with one of these words, in their order, and opens those with another."""

    def choose(body: Mapping[str, Any]) -> Reply:
        told = body["messages"][-1]["content"]
        numbers = {line: int(n) for n, line in re.findall(r"^(\d+)\. (.*)$", told, re.MULTILINE)}
        chosen = [n for word in words for line, n in numbers.items() if word in line]
        is_last = "This is the last round" in told
        opened = [n for line, n in numbers.items() if opens and opens in line and not is_last]
        return Reply(json.dumps({"chosen": chosen, "open": opened}))

    return choose


class RerankServer(LocalServer):
    """Answers `POST /rerank` as Cohere does: best first, by how long a text is; or with what it is given."""

    def __init__(self, answer: object = None, **options: Any) -> None:
        super().__init__(key="secret-1234", **options)
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    @property
    def base_url(self) -> str:
        return f"{self.http_url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/rerank", self._rerank)]

    async def _rerank(self, request: web.Request) -> web.Response:
        if (status := self.refusal(request)) is not None:
            return web.json_response({"message": "no"}, status=status, headers={"x-should-retry": "false"})
        body = await request.json()
        self.asked.append(body)
        scores = sorted(((len(text), at) for at, text in enumerate(body["documents"])), reverse=True)
        results = [{"index": at, "relevance_score": float(score)} for score, at in scores]
        return web.json_response(self.answer if self.answer is not None else {"results": results})


def reranked_by(server: RerankServer) -> Settings:
    rerank = RerankSettings(name="cohere-compatible", model="m", base_url=server.base_url, api_key_env="OPENAI_API_KEY")
    return Settings(recall=DeepRecallSettings(method="hybrid_rerank", rerank=rerank))


def settings_with(method: str, **llm: Any) -> Settings:
    recall = DeepRecallSettings(method=method, llm=RecallLlmSettings(**llm))  # type: ignore[arg-type]
    return Settings(recall=recall)


@pytest.fixture
async def talk(store: Store) -> Store:
    told = [replace(an_utterance(text, id=f"u{n}"), at_ms=1_000 * n) for n, text in enumerate(TALK, start=1)]
    secret = replace(an_utterance(SECRET, id="secret"), at_ms=500, witnesses=frozenset({INNKEEPER}))
    await store.log.append([secret, *told])
    return store


async def asked(store: Store, settings: Settings, method: RecallMethod, **more: Any) -> RecallResult[Any]:
    async with AsyncExitStack() as stack:
        recall = settings.recall.model_copy(update={"method": method})
        chosen = settings.model_copy(update={"recall": recall})
        deep = await deep_recall()(chosen, store, a_campaign(), stack, **more)
        return await deep.search(CAMPAIGN, SMITH, TalkQuery("What of Ilvara?", limit=15))


@pytest.mark.parametrize(
    ("method", "model", "picked"),
    [
        ("hybrid_llm", picks("met", "sails"), ["u2", "u1"]),
        ("llm", picks("drowned", opens="met"), ["u3"]),
    ],
)
async def test_a_model_behind_openai_s_protocol_picks_what_an_npc_is_reminded_of(
    talk: Store, method: RecallMethod, model: Any, picked: list[str]
) -> None:
    """Utterances that the NPC did not witness are never sent."""
    async with OpenAiServer(model, key="secret-1234") as server:
        found = await asked(talk, settings_with(method, name="openai", base_url=server.base_url), method)
    assert [one.utterance_id for one in found.items] == [UtteranceId(each) for each in picked]
    assert found.left_out == ("meaning: no embeddings model is set",)
    assert server.completions
    assert SECRET not in json.dumps(server.completions)


async def test_a_server_that_reranks_has_its_say_on_the_order(talk: Store) -> None:
    async with RerankServer() as server:
        found = await asked(talk, reranked_by(server), "hybrid_rerank")
    [body] = server.asked
    assert (body["model"], body["query"]) == ("m", "What of Ilvara?")
    assert SECRET not in json.dumps(body)
    longest = max(found.items, key=lambda one: len(one.text))
    assert longest.signals["reranker"] == 1.0
    assert len(found.items) == len(body["documents"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"refuse_with": 401}, "refuses the key (HTTP 401)"),
        ({"refuse_with": 500}, "fails: "),
        ({"answer": {"results": [{"index": 0, "relevance_score": 1.0}]}}, "did not return a score for each of"),
        ({"answer": ["no"]}, "did not return a score for each of"),
    ],
)
async def test_a_reranker_that_fails_changes_nothing_of_the_order(talk: Store, options: Any, why: str) -> None:
    plain = await asked(talk, Settings(), "hybrid")
    async with RerankServer(**options) as server:
        found = await asked(talk, reranked_by(server), "hybrid_rerank")
    assert found.items == plain.items
    assert why in found.left_out[-1]
    assert "secret" not in found.left_out[-1]


@pytest.mark.parametrize(
    ("llm", "problem"),
    [
        ({"name": "openai"}, "recall.llm 'openai' needs a key: environment variable OPENAI_API_KEY is not set"),
        ({"name": "local"}, "recall.llm local needs a local providers.llm, such as qwen-1.5b"),
    ],
)
async def test_who_cannot_be_asked_is_named_before_anything_is(
    talk: Store, monkeypatch: pytest.MonkeyPatch, llm: Any, problem: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    remote = Settings.model_validate({"providers": {"llm": {"name": "openai"}}}).providers
    with pytest.raises(InvalidInput, match=re.escape(problem)):
        await asked(talk, settings_with("llm", **llm).model_copy(update={"providers": remote}), "llm")


def test_background_work_takes_no_npc_slot_in_the_local_model() -> None:
    campaign = a_campaign()
    recalling = settings_with("llm", name="local")
    both = recalling.model_copy(
        update={"correction": Settings.model_validate({"correction": {"llm": {"name": "local"}}}).correction}
    )
    assert [local_slots(each, campaign) for each in (Settings(), recalling, both)] == [3, 4, 5]
    assert (slot_of(RECALL, recalling, slots=4), slot_of(RECALL, both, slots=5)) == (3, 3)
    assert (slot_of(NOTES, both, slots=5), slot_of(SECOND_LOOK, both, slots=5)) == (2, 4)


async def test_at_a_table_only_who_may_look_deep_asks_the_model(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1234")
    path = write_campaign(tmp_path, others=["Eldrinax"])
    file = path.read_text("utf-8")
    for tier in ("DEEP", "STANDARD"):
        file = file.replace("voice: heart\n  engine", f"voice: heart\n  budget_tier: {tier}\n  engine", 1)
    path.write_text(file, "utf-8")
    async with OpenAiServer(picks("harbour"), key="secret-1234") as server:
        llm = RecallLlmSettings(name="openai", base_url=server.base_url)
        settings = settings_for(path, dsn, tmp_path).model_copy(
            update={"recall": DeepRecallSettings(method="hybrid_llm", llm=llm)}
        )
        async with an_evening(settings, monkeypatch) as evening:
            ear = await evening.ear()
            for text in ("Grimjaw, my sister is a pirate.", "Grimjaw, my sister came to the harbour."):
                ear.say(text)
                await evening.kept(text)
            assert await evening.table.kept()
            assert not server.completions

            async def found(npc: str) -> list[str]:
                tools = evening.mouths[NpcId(npc)].tools
                assert tools is not None
                answer = await tools.call("memory_search_sessions", {"query": "sister"})
                return [str(one) for one in answer["found"]]  # type: ignore[attr-defined]

            # What was said a moment ago is found once it was read, for which nobody waits long.
            async with asyncio.timeout(DEADLINE_S):
                while len(await found("eldrinax")) < 2:
                    pass
            assert not server.completions
            [deep] = await found("grimjaw")
            assert "harbour" in deep
            [body] = server.completions
            asked = body["messages"][-1]["content"]
            assert "Tamsin: Grimjaw, my sister is a pirate." in asked
            world, _, _ = asked.partition("Said before:")
            assert world.startswith("World:\n") and "The Cold Forge" in world


# -- as the DM asks


async def test_the_dm_sees_what_a_model_would_pick_and_in_which_round(
    tmp_path: Path, evenings_dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1234")
    settings_file = a_settings_file(tmp_path, evenings_dsn)
    async with OpenAiServer(picks("fears", "forty"), key="secret-1234") as server:
        with settings_file.open("a") as file:
            file.write(f"recall: {{llm: {{name: openai, base_url: {server.base_url}}}}}\n")
        capsys.readouterr()
        asking = ("recall", "silver?", "--npc", "Grimjaw", "--method", "llm", "--explain", "--config", settings_file)
        assert await run(*asking) == 0
        shown = capsys.readouterr().out
        for picked in ("Elowen never goes near the water, she fears it.", "I heard she owes forty silver."):
            [found_by] = re.findall(rf"{picked}\n(?:    .*\n)*?    found by: (.*)", shown)
            assert "round 1.00" in found_by
        assert server.completions


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--method", "llm"), "model weights are missing; fetch them with"),
        (("--method", "hybrid_rerank"), "recall by hybrid_rerank needs recall.rerank, which is not set; valid"),
    ],
)
async def test_without_a_model_to_ask_the_dm_hears_it_in_one_line(
    tmp_path: Path, evenings_dsn: str, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], problem: str
) -> None:
    settings_file = a_settings_file(tmp_path, evenings_dsn)
    with settings_file.open("a") as file:
        file.write(f"models: {{dir: {tmp_path / 'no weights'}}}\nproviders: {{embeddings: {{name: none}}}}\n")
    capsys.readouterr()
    assert await run("recall", "silver?", "--npc", "Grimjaw", *options, "--config", settings_file) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    [line] = shown.err.splitlines()
    assert problem in line


@pytest.mark.models
@proof_only
async def test_whatever_a_real_small_model_picks_is_something_that_was_witnessed(talk: Store) -> None:
    witnessed = {f"u{n}" for n in range(1, len(TALK) + 1)}
    async with LlamaServer(model_path=weights("qwen2.5-coder-0.5b-instruct-q4_k_m"), slots=1) as llama:
        methods: tuple[RecallMethod, ...] = ("hybrid_llm", "llm")
        for method in methods:
            found = await asked(talk, settings_with(method, name="local"), method, llama=llama)
            assert {str(one.utterance_id) for one in found.items} <= witnessed
            assert not any("fails: " in part for part in found.left_out)
