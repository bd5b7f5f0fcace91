"""The real Deepgram clients against servers that speak Deepgram's protocol."""

from __future__ import annotations

import json

import pytest
from pipecat.frames.frames import (
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)

from benchmarks.servers.deepgram import DeepgramServer, Heard, Word
from glyphoxa_processors.frames import notes_of
from tests.support.graph import RunningGraph
from tests.support.provider import KEYS, ProviderNamed, make_stt

WHO = (Word("Who"), Word("is"), Word("Grimjaw", confidence=0.55))


def silence(ms: int) -> list[InputAudioRawFrame]:
    return [InputAudioRawFrame(b"\0" * 640, 16_000, 1) for _ in range(ms // 20)]


def words_of(frame: TranscriptionFrame | InterimTranscriptionFrame) -> list[tuple[str, float]]:
    return [(frame.text[word.start : word.end], word.confidence) for word in notes_of(frame).words]


async def test_nova_returns_partials_and_finals_with_the_confidence_of_each_word() -> None:
    """The names of the campaign are on the wire."""
    script = (Heard(60, "interim", WHO[:2]), Heard(120, "final", WHO))
    async with DeepgramServer(script, key="secret-1234") as server:
        stt = make_stt(ProviderNamed("deepgram-nova", server.http_url), keyterms=["Grimjaw", "Old Mill"], environ=KEYS)
        async with RunningGraph(stt) as graph:
            await graph.send(*silence(200))
            [final] = await graph.wait_for(TranscriptionFrame)
        assert [frame.text for frame in graph.of(InterimTranscriptionFrame)] == ["Who is"]
        assert final.text == "Who is Grimjaw"
        assert words_of(final) == [("Who", 0.98), ("is", 0.98), ("Grimjaw", 0.55)]
        assert [(word.from_ms, word.to_ms) for word in notes_of(final).words] == [(0, 200), (200, 400), (400, 600)]
        assert notes_of(final).sound_ms == 0
        assert words_of(graph.of(InterimTranscriptionFrame)[0]) == [("Who", 0.98), ("is", 0.98)]
        query = server.connections[0].query
        assert query["keyterm"] == ["Grimjaw", "Old Mill"]
        assert query["model"] == ["nova-3-general"]
        assert query["encoding"] == ["linear16"]
        assert query["sample_rate"] == ["16000"]


async def test_nova_answers_a_pause_with_a_transcript_that_closes_it() -> None:
    async with (
        DeepgramServer(on_finalize=WHO) as server,
        RunningGraph(make_stt(ProviderNamed("deepgram-nova", server.http_url), environ=KEYS)) as graph,
    ):
        await graph.send(*silence(100), VADUserStoppedSpeakingFrame(stop_secs=0.2))
        [final] = await graph.wait_for(TranscriptionFrame)
    assert (final.text, final.finalized) == ("Who is Grimjaw", True)


@pytest.mark.parametrize("name", ["deepgram-nova", "deepgram-flux"])
async def test_sound_goes_no_further_than_the_recogniser(name: str) -> None:
    async with (
        DeepgramServer() as server,
        RunningGraph(make_stt(ProviderNamed(name, server.http_url), environ=KEYS)) as graph,
    ):
        await graph.send(*silence(100), VADUserStartedSpeakingFrame(start_secs=0.2))
        await graph.wait_for(VADUserStartedSpeakingFrame)
    assert not graph.of(InputAudioRawFrame)


async def test_nova_closes_a_pause_even_when_every_word_was_already_confirmed() -> None:
    async with (
        DeepgramServer((Heard(60, "final", WHO),)) as server,
        RunningGraph(make_stt(ProviderNamed("deepgram-nova", server.http_url), environ=KEYS)) as graph,
    ):
        await graph.send(*silence(100))
        await graph.wait_for(TranscriptionFrame)
        await graph.send(VADUserStoppedSpeakingFrame(stop_secs=0.2))
        first, closing = await graph.wait_for(TranscriptionFrame, n=2)
    assert (first.text, first.finalized) == ("Who is Grimjaw", False)
    assert (closing.text, closing.finalized) == ("", True)
    assert notes_of(closing).words == ()


async def test_flux_returns_its_updates_as_partials_and_ends_its_turn_at_the_pause_of_the_ear() -> None:
    script = (Heard(40, "StartOfTurn", WHO[:1]), Heard(80, "Update", WHO))
    async with DeepgramServer(script) as server:
        async with RunningGraph(make_stt(ProviderNamed("deepgram-flux", server.http_url), environ=KEYS)) as graph:
            await graph.send(VADUserStartedSpeakingFrame(start_secs=0.2), *silence(200))
            await graph.wait_for(InterimTranscriptionFrame)
            await graph.send(VADUserStoppedSpeakingFrame(stop_secs=0.2))
            [final] = await graph.wait_for(TranscriptionFrame)
        assert (final.text, final.finalized) == ("Who is Grimjaw", True)
        assert words_of(final) == [("Who", 0.98), ("is", 0.98), ("Grimjaw", 0.55)]
        [connection] = server.connections
        assert connection.query["eot_threshold"] == ["1.0"]
        assert connection.messages[0] == {"type": "ForceEndTurn"}


async def test_flux_closes_a_pause_whose_words_come_after_it() -> None:
    script = (Heard(40, "StartOfTurn", WHO[:1]), Heard(80, "Update", WHO))
    async with (
        DeepgramServer(script) as server,
        RunningGraph(make_stt(ProviderNamed("deepgram-flux", server.http_url), environ=KEYS)) as graph,
    ):
        await graph.send(VADUserStartedSpeakingFrame(start_secs=0.2), VADUserStoppedSpeakingFrame(stop_secs=0.2))
        await graph.send(*silence(200))
        [final] = await graph.wait_for(TranscriptionFrame)
    assert final.finalized


@pytest.mark.parametrize("name", ["deepgram-nova", "deepgram-flux"])
async def test_a_wrong_key_is_one_clear_error_without_the_key_in_it(name: str) -> None:
    async with (
        DeepgramServer(key="another") as server,
        RunningGraph(make_stt(ProviderNamed(name, server.http_url), environ=KEYS)) as graph,
    ):
        error = await graph.wait_for_error()
    assert "401" in error
    assert "secret-1234" not in json.dumps(graph.errors)
