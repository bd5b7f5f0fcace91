"""Providers that fail, each in its way, and those of the settings that answer in their place: over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aiohttp import web

from benchmarks.servers.local import hang_up
from benchmarks.servers.openai import OpenAiServer, Pace, Reply
from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.local.hibari_voice import load_engine
from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.app.engines import MouthSpec, find_mouth
from glyphoxa.app.models import LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import TurnId
from glyphoxa.npc.mouth import COOLDOWN_MS, MAX_FAILURES, Finished, Injected, Mouth, MouthEvent, SentenceStarted
from glyphoxa_pipelines.cascaded import llm_of
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.llm import SpokenLLM
from tests.support.patience import DEADLINE_S
from tests.support.pipecat_fakes import GRIMJAW, VALE, Memory, prompt

NOBODY = "http://127.0.0.1:9/v1"
"""A port where nothing listens."""


class Garbage(OpenAiServer):
    """Answers everything with what no protocol has."""

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/{what:.*}", self._babble)]

    async def _babble(self, request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=b"data: {]]\x00\xff not json\n\n", content_type="text/event-stream")


class BreaksOff(OpenAiServer):
    """Says a sentence and begins another; it is cut when `cut` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self._begin)]

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for token in ("It is sharp. ", "It is also "):
            choice = {"index": 0, "delta": {"content": token}, "finish_reason": None}
            chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await self.cut.wait()
        hang_up(request)
        return response


FAULTS: dict[str, Callable[[], OpenAiServer]] = {
    "429": lambda: OpenAiServer(refuse_with=429),
    "500": lambda: OpenAiServer(refuse_with=500),
    "401": lambda: OpenAiServer(refuse_with=401),
    "stalls": lambda: OpenAiServer(pace=Pace(ttft_ms=3_600_000, speech_ttfb_ms=3_600_000)),
    "cut before a word": lambda: OpenAiServer([Reply("Who is there?", dies_after=0)]),
    "garbage": Garbage,
}


@dataclass
class Npc:
    """A mouth as the settings open it, and what it told."""

    mouth: Mouth
    finished: asyncio.Queue[Finished] = field(default_factory=asyncio.Queue)
    injected: list[Injected] = field(default_factory=list)
    clock_ms: int = 0
    on_sentence: Callable[[], None] = lambda: None
    _n: int = 0

    async def answers(self) -> Finished:
        self._n += 1
        turn = TurnId(f"t{self._n}")
        self.mouth.begin(turn, prompt("How is my blade?"))
        self.mouth.release(turn)
        async with asyncio.timeout(DEADLINE_S):
            return await self.finished.get()


@asynccontextmanager
async def an_npc(
    providers: dict[str, Any], *, engine: str = "cascaded", local: LocalModels | None = None
) -> AsyncIterator[Npc]:
    host = PipelineHost()
    npc: Npc

    def listen(event: MouthEvent) -> None:
        if isinstance(event, Finished):
            npc.finished.put_nowait(event)
        elif isinstance(event, Injected):
            npc.injected.append(event)
        elif isinstance(event, SentenceStarted):
            npc.on_sentence()

    order = MouthSpec(
        campaign=VALE,
        npc=GRIMJAW,
        slot=0,
        settings=Settings.model_validate({"providers": providers}),
        local=local or LocalModels(),
        host=host,
        context=Memory(),
        tools=None,
        listener=listen,
        sink=lambda *_: None,
        now_ms=lambda: npc.clock_ms,
    )
    npc = Npc(await find_mouth(engine, files={})(order))
    await npc.mouth.start()
    try:
        yield npc
    finally:
        await npc.mouth.close()
        await host.close()


def llm(url: str, *fallbacks: str, after_ms: int = 60_000) -> dict[str, Any]:
    chosen = {"name": "openai-compatible", "model": "m"}
    behind = [{**chosen, "base_url": each} for each in fallbacks]
    return {**chosen, "base_url": url, "fallback": behind, "fallback_after_ms": after_ms}


def tts(url: str, *fallbacks: str) -> dict[str, Any]:
    chosen = {"name": "openai", "model": "m"}
    return {
        **chosen,
        "base_url": url,
        "fallback": [{**chosen, "base_url": each, "voice": "nova"} for each in fallbacks],
    }


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")


@pytest.mark.parametrize("fault", [*FAULTS, "refused"])
async def test_a_language_model_that_fails_is_replaced_within_the_turn(fault: str) -> None:
    async with AsyncExitStack() as stack:
        good = await stack.enter_async_context(OpenAiServer([Reply("Well met.")]))
        bad = await stack.enter_async_context(FAULTS[fault]()) if fault != "refused" else None
        url = NOBODY if bad is None else bad.base_url
        async with an_npc({"llm": llm(url, good.base_url, after_ms=500), "tts": tts(good.base_url)}) as npc:
            finished = await npc.answers()
    assert (finished.heard, finished.error) == ("Well met.", "")
    assert any("the first engine's answer" in why for why in npc.injected[-1].prompt.omitted)
    rendered = [each["input"] for each in good.speeches]
    assert len(rendered) == len({*rendered}), "only the last has lines for an answer that fails, and none was needed"


@pytest.mark.parametrize("fault", ["500", "stalls", "refused"])
async def test_a_voice_that_fails_is_replaced_within_the_turn_by_one_with_a_voice_of_its_own(fault: str) -> None:
    async with AsyncExitStack() as stack:
        good = await stack.enter_async_context(OpenAiServer([Reply("Well met.")]))
        bad = await stack.enter_async_context(FAULTS[fault]()) if fault != "refused" else None
        url = NOBODY if bad is None else bad.base_url
        async with an_npc({"llm": llm(good.base_url, after_ms=500), "tts": tts(url, good.base_url)}) as npc:
            finished = await npc.answers()
    assert (finished.heard, finished.error) == ("Well met.", "")
    assert {each["voice"] for each in good.speeches} == {"nova"}


async def test_a_stream_that_dies_after_a_sentence_keeps_what_was_heard_and_says_so() -> None:
    async with (
        BreaksOff() as bad,
        OpenAiServer([Reply("Well met.")]) as good,
        an_npc({"llm": llm(bad.base_url, good.base_url), "tts": tts(good.base_url)}) as npc,
    ):
        npc.on_sentence = bad.cut.set
        finished = await npc.answers()
    assert finished.heard.startswith("It is sharp.")
    assert finished.error


async def test_one_after_the_other_is_asked_and_the_turn_fails_only_with_the_last() -> None:
    async with OpenAiServer([Reply("Well met.")]) as good, OpenAiServer(refuse_with=500) as bad:
        async with an_npc({"llm": llm(NOBODY, bad.base_url, good.base_url), "tts": tts(good.base_url)}) as npc:
            assert (await npc.answers()).heard == "Well met."
        async with an_npc({"llm": llm(NOBODY, bad.base_url), "tts": tts(good.base_url)}) as npc:
            finished = await npc.answers()
    assert finished.heard == ""
    assert finished.error


async def test_provider_pauses_after_five_failures_and_needs_three_answers() -> None:
    async with (
        OpenAiServer([Reply("Well met.")]) as good,
        OpenAiServer([Reply("Aye.")], refuse_with=500) as bad,
        an_npc({"llm": llm(bad.base_url, good.base_url), "tts": tts(good.base_url)}) as npc,
    ):
        for _ in range(MAX_FAILURES + 2):
            assert (await npc.answers()).heard == "Well met."
        n_asked = len(good.completions)
        assert n_asked == MAX_FAILURES + 2
        bad.refuse_with = None
        assert (await npc.answers()).heard == "Well met."
        assert bad.completions == []
        npc.clock_ms += COOLDOWN_MS
        for _ in range(3):
            assert (await npc.answers()).heard == "Aye."
        bad.refuse_with = 500
        assert (await npc.answers()).heard == "Well met.", "trusted again, it may fail a few times"
        bad.refuse_with = None
        assert (await npc.answers()).heard == "Aye."


async def test_pipeline_of_a_user_asks_the_first_model_and_no_local_fallback() -> None:
    chosen = {**llm(NOBODY), "fallback": [{"name": "qwen-1.5b"}]}
    order = MouthSpec(
        campaign=VALE,
        npc=GRIMJAW,
        slot=0,
        settings=Settings.model_validate({"providers": {"llm": chosen}}),
        local=LocalModels(llama=cast(LlamaServer, object()), hibari=load_engine()),
        host=PipelineHost(),
        context=Memory(),
        tools=None,
        listener=lambda _: None,
        sink=lambda *_: None,
        now_ms=now_ms,
    )
    model = llm_of(order)
    assert isinstance(model, SpokenLLM)
    assert model._chat.address.startswith(NOBODY)
    await model.cleanup()
