"""Speech whose words are numbers: one that is lost or said twice can be seen in the transcript."""

from __future__ import annotations

import numpy as np
from pipecat.frames.frames import (
    InputAudioRawFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)

from benchmarks.servers.deepgram import Word
from tests.support.graph import RunningGraph

COUNT = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COUNTING = {n: Word(word) for n, word in enumerate(COUNT, 1)}


def sound(voice: int, ms: int) -> list[InputAudioRawFrame]:
    pcm = np.full(320, voice, dtype=np.int16).tobytes()
    return [InputAudioRawFrame(pcm, 16_000, 1) for _ in range(ms // 20)]


def spoken(*voices: int) -> list[InputAudioRawFrame]:
    """One word each, a tenth of a second long."""
    return [frame for voice in voices for frame in sound(voice, 100)]


def starts() -> VADUserStartedSpeakingFrame:
    return VADUserStartedSpeakingFrame(start_secs=0.2)


def stops() -> VADUserStoppedSpeakingFrame:
    return VADUserStoppedSpeakingFrame(stop_secs=0.2)


def transcript(graph: RunningGraph) -> str:
    return " ".join(frame.text for frame in graph.of(TranscriptionFrame) if frame.text)


async def say(graph: RunningGraph, *voices: int) -> None:
    """A whole segment, answered."""
    n_before = len(graph.of(TranscriptionFrame))
    await graph.send(starts(), *spoken(*voices), *sound(0, 200), stops())
    await graph.wait_for(TranscriptionFrame, n=n_before + 1)
