"""The real OpenAI and Deepgram voices against servers of their protocols."""

from __future__ import annotations

import pytest
from pipecat.frames.frames import InterruptionFrame, TTSAudioRawFrame, TTSSpeakFrame

from benchmarks.servers.deepgram import DeepgramServer
from benchmarks.servers.local import tone
from benchmarks.servers.openai import OpenAiServer
from glyphoxa.domain.ids import TurnId
from glyphoxa_processors.frames import PieceEndFrame, PieceFrame, ReplyEndFrame
from tests.support.graph import RunningGraph
from tests.support.provider import KEYS, ProviderNamed, make_tts

TURN = TurnId("t1")


def clause(text: str) -> list[PieceFrame | TTSSpeakFrame | PieceEndFrame]:
    return [PieceFrame(TURN, text), TTSSpeakFrame(text, append_to_context=False), PieceEndFrame(TURN)]


def sound_of_each_piece(graph: RunningGraph) -> list[bytes]:
    pieces: list[bytes] = []
    for frame in graph.out:
        if isinstance(frame, PieceFrame):
            pieces.append(b"")
        elif isinstance(frame, TTSAudioRawFrame):
            pieces[-1] += frame.audio
    return pieces


@pytest.mark.parametrize("name", ["openai", "deepgram"])
async def test_each_clause_sounds_between_its_marks_and_in_order(name: str) -> None:
    async with OpenAiServer(key="secret-1234") as openai, DeepgramServer(key="secret-1234") as deepgram:
        address = {"openai": openai.base_url, "deepgram": deepgram.http_url}[name]
        async with RunningGraph(make_tts(ProviderNamed(name, address), environ=KEYS)) as graph:
            await graph.send(*clause("Well met."), *clause("Sit down by the fire."), ReplyEndFrame(TURN))
            await graph.wait_for(ReplyEndFrame)
    assert sound_of_each_piece(graph) == [
        tone("Well met.", rate_hz=24_000),
        tone("Sit down by the fire.", rate_hz=24_000),
    ]


@pytest.mark.parametrize("name", ["openai", "deepgram"])
async def test_a_voice_that_was_interrupted_speaks_the_next_reply_only(name: str) -> None:
    async with OpenAiServer() as openai, DeepgramServer() as deepgram:
        address = {"openai": openai.base_url, "deepgram": deepgram.http_url}[name]
        async with RunningGraph(make_tts(ProviderNamed(name, address), environ=KEYS)) as graph:
            await graph.send(*clause("This is never heard to its end, since a player speaks."))
            await graph.wait_for(PieceFrame)
            await graph.send(InterruptionFrame())
            await graph.wait_for(InterruptionFrame)
            n_before = len(graph.out)
            await graph.send(*clause("Well met."), ReplyEndFrame(TURN))
            await graph.wait_for(ReplyEndFrame)
    after = b"".join(frame.audio for frame in graph.out[n_before:] if isinstance(frame, TTSAudioRawFrame))
    assert after.endswith(tone("Well met.", rate_hz=24_000))


@pytest.mark.parametrize("name", ["openai", "deepgram"])
async def test_a_wrong_key_is_an_error_without_the_key_in_it_and_the_reply_ends(name: str) -> None:
    async with OpenAiServer(key="another") as openai, DeepgramServer(key="another") as deepgram:
        address = {"openai": openai.base_url, "deepgram": deepgram.http_url}[name]
        async with RunningGraph(make_tts(ProviderNamed(name, address), environ=KEYS)) as graph:
            await graph.send(*clause("Well met."), ReplyEndFrame(TURN))
            error = await graph.wait_for_error()
            await graph.wait_for(ReplyEndFrame)
    assert "401" in error or "API key" in error
    assert "secret-1234" not in "".join(graph.errors)


async def test_the_voice_of_the_npc_is_asked_for() -> None:
    async with DeepgramServer() as server:
        tts = make_tts(ProviderNamed("deepgram", server.http_url), voice="aura-2-thalia-en", environ=KEYS)
        async with RunningGraph(tts) as graph:
            await graph.send(*clause("Well met."))
            await graph.wait_for(PieceEndFrame)
        assert server.connections[0].query["model"] == ["aura-2-thalia-en"]
