"""OpenAI's clients neither buffer half a second of audio nor reconnect for each turn."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web
from httpcore2._async import http11
from pipecat.frames.frames import (
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    TTSAudioRawFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.tts_service import TTSService

from benchmarks.servers.local import tone
from benchmarks.servers.openai import SPEECH_RATE_HZ, OpenAiServer, Reply
from glyphoxa.domain.ids import NpcId
from glyphoxa.prompt.prompt import Message, Prompt
from glyphoxa_processors.frames import PrimeFrame, ReplyEndFrame
from tests.integration.test_voice_wire import TURN, clause
from tests.support.graph import RunningGraph
from tests.support.provider import KEYS, ProviderNamed, make_llm, make_tts


def voice_at(server: OpenAiServer) -> TTSService:
    return make_tts(ProviderNamed("openai", server.base_url), environ=KEYS)


class SlowVoice(OpenAiServer):
    """Sends a fifth of a second, and the rest when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = asyncio.Event()

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        sound = tone((await request.json())["input"], rate_hz=SPEECH_RATE_HZ)
        response = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
        await response.prepare(request)
        await response.write(sound[: SPEECH_RATE_HZ // 5 * 2])
        await self.may_go_on.wait()
        await response.write(sound[SPEECH_RATE_HZ // 5 * 2 :])
        await response.write_eof()
        return response


async def test_a_voice_is_heard_from_its_first_tenth_of_a_second_on() -> None:
    async with SlowVoice() as server, RunningGraph(voice_at(server)) as graph:
        await graph.send(*clause("Sit down by the fire."), ReplyEndFrame(TURN))
        await graph.wait_for(TTSAudioRawFrame)
        server.may_go_on.set()
        await graph.wait_for(ReplyEndFrame)
    assert b"".join(f.audio for f in graph.of(TTSAudioRawFrame)) == tone(
        "Sit down by the fire.", rate_hz=SPEECH_RATE_HZ
    )


async def test_the_first_clause_is_on_its_way_out_before_the_second_is_asked_for() -> None:
    heard_before: list[bool] = []

    class Watching(OpenAiServer):
        async def _speak(self, request: web.Request) -> web.StreamResponse:
            heard_before.append(bool(graph.of(TTSAudioRawFrame)))
            return await super()._speak(request)

    async with Watching() as server, RunningGraph(voice_at(server)) as graph:
        await graph.send(*clause("Well met."), *clause("Sit down by the fire."), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    assert heard_before == [False, True]


@pytest.mark.parametrize(("idle_s", "n_connections"), [(200, 1), (300, 2)])
async def test_a_model_that_was_quiet_for_minutes_is_asked_on_the_same_connection(
    idle_s: float, n_connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_ports: list[int] = []

    class Watching(OpenAiServer):
        async def _complete(self, request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            from_ports.append(request.transport.get_extra_info("peername")[1])
            return await super()._complete(request)

    passed_s = 0.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + passed_s

    monkeypatch.setattr(http11, "time", Clock)
    async with Watching([Reply("Aye.")]) as server:
        provider = ProviderNamed("openai-compatible", server.base_url, model="some-model")
        async with RunningGraph(make_llm(provider, environ=KEYS)) as graph:
            for n in (1, 2):
                await graph.send(LLMContextFrame(context=LLMContext([{"role": "user", "content": "Well?"}])))
                await graph.wait_for(LLMFullResponseEndFrame, n=n)
                passed_s += idle_s
    assert len(set(from_ports)) == n_connections


class Ports(OpenAiServer):
    """Notes from which ports it is asked what."""

    def __init__(self) -> None:
        super().__init__([Reply("Aye, all of it, my friend, and more.")])
        self.connected: list[int] = []
        self.asked: list[int] = []
        self.may_go_on = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        return [*super().routes(), web.head("/v1/", self._connect)]

    async def _connect(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        self.connected.append(port_of(request))
        self.noted()
        return web.Response(status=404)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(port_of(request))
        self.noted()
        if len(self.asked) == 1:
            await self.may_go_on.wait()
        return await super()._complete(request)

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(port_of(request))
        return await super()._speak(request)


def port_of(request: web.Request) -> int:
    assert request.transport is not None
    return int(request.transport.get_extra_info("peername")[1])


ASKED = PrimeFrame(Prompt(NpcId("grimjaw"), (Message("user", "Alice: How is"),), "How is", "Alice"))


async def test_connection_reopens_after_a_cancelled_answer() -> None:
    question = LLMContextFrame(context=LLMContext([{"role": "user", "content": "Well?"}]))
    async with Ports() as server:
        provider = ProviderNamed("openai-compatible", server.base_url, model="some-model")
        async with RunningGraph(make_llm(provider, environ=KEYS)) as graph:
            await graph.send(ASKED)
            await server.wait_until(lambda: len(server.connected) == 1)
            await graph.send(question)
            await server.wait_until(lambda: len(server.asked) == 1)
            await graph.send(InterruptionFrame())
            await graph.wait_for(InterruptionFrame)
            await graph.send(ASKED, ASKED)
            await server.wait_until(lambda: len(server.connected) == 2)
            await graph.wait_for(PrimeFrame, n=3)
            await graph.send(question)
            await graph.wait_for(LLMFullResponseEndFrame)
            await graph.send(ASKED)
            await graph.wait_for(PrimeFrame, n=4)
            server.may_go_on.set()
    assert len(server.connected) == 2
    assert server.asked[1] == server.connected[1]


async def test_a_voice_too_has_its_connection_before_it_is_asked_to_speak() -> None:
    async with Ports() as server, RunningGraph(voice_at(server)) as graph:
        await graph.send(ASKED)
        await server.wait_until(lambda: len(server.connected) == 1)
        await graph.send(*clause("Well met."), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    assert server.asked == server.connected
