"""Faults of pipecat's own services against the servers of our wires, which answer ours without a fault.

Each test shows what keeps our wire. When it fails, pipecat's service may take its place: see
docs/decisions/0037-write-our-own-wires.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pipecat.frames.frames import (
    InterimTranscriptionFrame,
    LLMContextFrame,
    LLMMessagesAppendFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.cartesia.tts import CartesiaTTSService
from pipecat.services.deepgram import stt as deepgram_stt
from pipecat.services.deepgram.flux.stt import DeepgramFluxSTTService
from pipecat.services.deepgram.tts import DeepgramTTSService
from pipecat.services.elevenlabs.tts import ElevenLabsTTSService
from pipecat.services.google.gemini_live.llm import GeminiLiveLLMService
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.services.openai.tts import OpenAITTSService

from benchmarks.servers.deepgram import Close, DeepgramServer
from benchmarks.servers.openai import OpenAiServer
from glyphoxa_processors.frames import ReplyEndFrame
from tests.integration.test_voice_wire import TEXTS, TURN, clause, heard
from tests.support.chat_server import ChatServer, refuses, said
from tests.support.counting import COUNTING, spoken, starts
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.graph import RunningGraph
from tests.support.realtime_server import RealtimeServer, SpokenReply
from tests.support.s2s_play import brisk
from tests.support.voice_server import VoiceServer


def over_ws(url: str) -> str:
    return url.replace("http://", "ws://")


def prompt(*messages: tuple[str, str]) -> LLMContextFrame:
    turns: list[Any] = [{"role": role, "content": text} for role, text in messages]
    return LLMContextFrame(context=LLMContext(turns))


RECOGNISERS: dict[str, Callable[[str], Any]] = {
    "nova": lambda url: deepgram_stt.DeepgramSTTService(api_key="k", base_url=url),
    "flux": lambda url: DeepgramFluxSTTService(api_key="k", url=f"{url}/v2/listen"),
}
VOICES: dict[str, Callable[[str], Any]] = {
    "deepgram": lambda url: DeepgramTTSService(api_key="k", base_url=url),
    "elevenlabs": lambda url: ElevenLabsTTSService(api_key="k", voice_id="v", url=url),
    "cartesia": lambda url: CartesiaTTSService(api_key="k", voice_id="v", url=url),
}


@pytest.mark.parametrize("make", RECOGNISERS.values(), ids=RECOGNISERS)
async def test_recogniser_loses_words_with_its_connection(
    make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it reconnects at once."""
    monkeypatch.setattr(deepgram_stt, "exponential_backoff_time", lambda _attempt: 0.0)
    async with (
        DeepgramServer(voices=COUNTING, hangs_up_after_ms=330) as server,
        RunningGraph(make(over_ws(server.http_url))) as graph,
    ):
        await graph.send(starts(), *spoken(1, 2, 3, 4))
        await server.wait_until(lambda: len(server.connections) == 2)

        def texts() -> str:
            return " ".join(f.text for f in (*graph.of(InterimTranscriptionFrame), *graph.of(TranscriptionFrame)))

        while "five" not in texts():
            await graph.send(*spoken(5, 6))
            n_heard = server.connections[1].audio_bytes
            await server.wait_until(lambda n=n_heard: server.connections[1].audio_bytes > n)  # type: ignore[misc]
    assert "four" not in texts()


@pytest.mark.parametrize(("name", "make"), VOICES.items(), ids=VOICES)
async def test_voice_loses_clauses_with_its_connection(name: str, make: Callable[[str], Any]) -> None:
    def closes(clause: Any) -> Any:
        return [*clause.sounds[:1], Close(1011, "internal error")] if clause.n == 1 else clause.answers

    async with (
        VoiceServer(name, on_wire=closes) as server,
        RunningGraph(make(over_ws(server.address))) as graph,
    ):
        for text in TEXTS:
            await graph.send(*clause(text))
        await graph.send(ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    assert heard(graph)[:2] == [TEXTS[0], ""]


async def test_openai_voice_refuses_voices_of_compatible_servers() -> None:
    async with OpenAiServer() as server:
        settings = OpenAITTSService.Settings(voice="bm_george")
        voice = OpenAITTSService(api_key="k", base_url=server.base_url, settings=settings)
        async with RunningGraph(voice) as graph:
            await graph.send(TTSSpeakFrame("Well met.", append_to_context=False))
            assert "is not supported" in await graph.wait_for_error()
            assert graph.of(TTSAudioRawFrame) == []


async def test_openai_model_fails_the_turn_at_a_field_that_the_server_refuses() -> None:
    async with ChatServer(said("Blue."), rules=[refuses("stream_options")]) as server:
        model = OpenAILLMService(api_key="k", base_url=server.base_url, settings=OpenAILLMService.Settings(model="m"))
        async with RunningGraph(model) as graph:
            await graph.send(prompt(("user", "What colour is the sky?")))
            assert "stream_options" in await graph.wait_for_error()


FIRST, SECOND = "How is my blade? Facts: it is called Vaelith.", "Sharp?"
SETTLED = "Nobody speaks."


async def test_openai_session_never_asks_a_second_prompt() -> None:
    async with brisk(RealtimeServer, [SpokenReply("Ready.")]) as server:
        service = OpenAIRealtimeLLMService(api_key="k", base_url=f"{over_ws(server.http_url)}/v1/realtime")
        async with RunningGraph(service) as graph:
            await graph.send(prompt(("user", FIRST)))
            await server.wait_until(lambda: any(each.asked for each in server.conversations))
            await graph.wait_for(TTSAudioRawFrame)
            await graph.send(prompt(("user", FIRST), ("assistant", "Ready."), ("user", SECOND)))
            await graph.send(LLMMessagesAppendFrame([{"role": "user", "content": SETTLED}], run_llm=False))
            [conversation] = server.conversations
            await server.wait_until(lambda: SETTLED in str(conversation.received))
    assert conversation.asked == [[("user", FIRST)]]
    assert SECOND not in str(conversation.received)


async def test_gemini_session_waits_for_sound_instead_of_answering_text() -> None:
    async with brisk(GeminiLiveServer, [SpokenReply("Ready.")]) as server:
        service = GeminiLiveLLMService(api_key="k", settings=GeminiLiveLLMService.Settings(model="models/m"))
        api: Any = service._client._api_client
        api._websocket_base_url = lambda _options=None: over_ws(server.http_url)
        api._websocket_ssl_ctx = {}
        async with RunningGraph(service) as graph:
            await graph.send(prompt(("user", FIRST)))
            await server.wait_until(lambda: any(FIRST in str(each.received) for each in server.conversations))
            await graph.send(prompt(("user", FIRST), ("assistant", "Ready."), ("user", SECOND)))
            await graph.send(LLMMessagesAppendFrame([{"role": "user", "content": SETTLED}], run_llm=False))
            await server.wait_until(lambda: any(SETTLED in str(each.received) for each in server.conversations))
    assert [each.asked for each in server.conversations if each.asked] == []
    assert not any(SECOND in str(each.received) for each in server.conversations)
