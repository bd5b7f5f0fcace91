"""The real OpenAI voice against a server of its protocol, and the choice of a voice."""

from __future__ import annotations

from pipecat.frames.frames import InterruptionFrame, TTSAudioRawFrame

from benchmarks.servers.deepgram import DeepgramServer
from benchmarks.servers.local import tone
from benchmarks.servers.openai import OpenAiServer
from glyphoxa_processors.frames import PieceEndFrame, PieceFrame, ReplyEndFrame
from tests.integration.test_voice_wire import TURN, clause
from tests.support.graph import RunningGraph
from tests.support.provider import KEYS, ProviderNamed, make_tts


def sound_of_each_piece(graph: RunningGraph) -> list[bytes]:
    pieces: list[bytes] = []
    for frame in graph.out:
        if isinstance(frame, PieceFrame):
            pieces.append(b"")
        elif isinstance(frame, TTSAudioRawFrame):
            pieces[-1] += frame.audio
    return pieces


def speaking(server: OpenAiServer) -> RunningGraph:
    return RunningGraph(make_tts(ProviderNamed("openai", server.base_url), environ=KEYS))


async def test_each_clause_sounds_between_its_marks_and_in_order() -> None:
    async with OpenAiServer(key="secret-1234") as server, speaking(server) as graph:
        await graph.send(*clause("Well met."), *clause("Sit down by the fire."), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    assert sound_of_each_piece(graph) == [
        tone("Well met.", rate_hz=24_000),
        tone("Sit down by the fire.", rate_hz=24_000),
    ]


async def test_a_voice_that_was_interrupted_speaks_the_next_reply_only() -> None:
    async with OpenAiServer() as server, speaking(server) as graph:
        await graph.send(*clause("This is never heard to its end, since a player speaks."))
        await graph.wait_for(PieceFrame)
        await graph.send(InterruptionFrame())
        await graph.wait_for(InterruptionFrame)
        n_before = len(graph.out)
        await graph.send(*clause("Well met."), ReplyEndFrame(TURN))
        await graph.wait_for(ReplyEndFrame)
    after = b"".join(frame.audio for frame in graph.out[n_before:] if isinstance(frame, TTSAudioRawFrame))
    assert after.endswith(tone("Well met.", rate_hz=24_000))


async def test_a_wrong_key_is_an_error_without_the_key_in_it_and_the_reply_ends() -> None:
    async with OpenAiServer(key="another") as server, speaking(server) as graph:
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
