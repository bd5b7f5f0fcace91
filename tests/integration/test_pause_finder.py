"""Silero on recorded players: a pause is as long as the settings say, wherever the windows and the pieces fall."""

from __future__ import annotations

import pytest
from pipecat.audio.vad.vad_analyzer import VADParams, VADState

from benchmarks.provider_process import CHUNK_BYTES, CHUNK_MS, Recorded, demo_recordings
from glyphoxa.npc.table_interface import INPUT_RATE_HZ
from glyphoxa_pipelines import ear

BY_NAME = {recorded.path.stem: recorded for recorded in demo_recordings()}


@pytest.fixture
def waits_ms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how long the detector waits for the end of a pause; no time passes."""
    waits: list[int] = []

    async def wait(s: float) -> None:
        waits.append(round(s * 1_000))

    monkeypatch.setattr(ear, "wait", wait)
    return waits


async def pauses(recorded: Recorded, *, pause_ms: int, before_ms: int, waits_ms: list[int]) -> list[tuple[int, int]]:
    """When each pause was reported, and when it says that the voice ended; the recording begins at 0."""
    detector = ear.Detector(params=VADParams(start_secs=0.2, confidence=0.6, min_volume=0.4), pause_ms=pause_ms)
    detector.set_sample_rate(INPUT_RATE_HZ)
    pcm = bytes(before_ms * 32) + recorded.pcm + bytes((pause_ms + 300) * 32)
    found, before = [], VADState.QUIET
    for at in range(0, len(pcm) - CHUNK_BYTES + 1, CHUNK_BYTES):
        waits_ms.clear()
        state = await detector.analyze_audio(pcm[at : at + CHUNK_BYTES])
        if before is VADState.SPEAKING and state is VADState.QUIET:
            now_ms = at // 32 + CHUNK_MS + sum(waits_ms) - before_ms
            found.append((now_ms, now_ms - detector.quiet_ms))
        before = state if state in (VADState.QUIET, VADState.SPEAKING) else before
    await detector.cleanup()
    return found


@pytest.mark.parametrize("name", ["greeting", "sorcerer", "know", "back"])
@pytest.mark.parametrize("before_ms", [1_000, 1_020, 1_060, 1_140])
async def test_a_pause_is_reported_when_it_is_over(name: str, before_ms: int, waits_ms: list[int]) -> None:
    recorded = BY_NAME[name]
    reported_ms, ended_ms = (await pauses(recorded, pause_ms=200, before_ms=before_ms, waits_ms=waits_ms))[-1]
    assert abs(ended_ms - recorded.voiced_until_ms) <= 10
    assert abs(reported_ms - recorded.voiced_until_ms - 200) <= 10


async def test_a_breath_that_is_shorter_than_the_pause_ends_nothing(waits_ms: list[int]) -> None:
    """320 ms after the name."""
    assert len(await pauses(BY_NAME["fen"], pause_ms=400, before_ms=1_000, waits_ms=waits_ms)) == 1
    assert len(await pauses(BY_NAME["fen"], pause_ms=200, before_ms=1_000, waits_ms=waits_ms)) == 2


async def test_a_pause_shorter_than_what_makes_the_detector_sure_waits_for_that(waits_ms: list[int]) -> None:
    recorded = BY_NAME["know"]
    reported_ms, ended_ms = (await pauses(recorded, pause_ms=50, before_ms=1_000, waits_ms=waits_ms))[-1]
    assert abs(ended_ms - recorded.voiced_until_ms) <= 10
    assert 96 <= reported_ms - recorded.voiced_until_ms <= 96 + 90 + CHUNK_MS
