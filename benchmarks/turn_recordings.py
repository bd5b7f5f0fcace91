"""The demo's recorded players, with the true end of what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from demo.script import read_evening
from glyphoxa.adapters.audio.wav import RATE_HZ, read_recording, samples_of
from glyphoxa.domain.errors import InvalidInput

CHUNK_MS = 20
CHUNK_BYTES = RATE_HZ * CHUNK_MS // 1_000 * 2
EVENING = Path(__file__).resolve().parents[1] / "demo" / "evening.yaml"
_FRAME = RATE_HZ // 100
_VOICED = 0.02
"""Of the loudest 10 ms: what is quieter (-34 dB) is the room, not the voice."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Somebody saying something.

    Attributes:
        pcm: 16 kHz mono s16le.
        voiced_from_ms: Where the voice begins.
        voiced_until_ms: Where it ends: the last 10 ms that are louder than the room.
        longest_pause_ms: Between two voiced places.
    """

    path: Path
    text: str
    pcm: bytes
    voiced_from_ms: int
    voiced_until_ms: int
    longest_pause_ms: int

    def words_until(self, ms: int) -> list[str]:
        """The words spoken so far, taking every character to last equally long."""
        words = self.text.split()
        if ms >= self.voiced_until_ms:
            return words
        share = (ms - self.voiced_from_ms) / (self.voiced_until_ms - self.voiced_from_ms)
        said, spoken = 0, share * sum(map(len, words))
        for n, word in enumerate(words):
            said += len(word)
            if said > spoken:
                return words[:n]
        return words


def read_recorded(path: Path, text: str) -> Recorded:
    """Raises:
    NotFound: There is no such recording.
    InvalidInput: It cannot be used, or is silent.
    """
    pcm = read_recording(path).pcm
    samples = samples_of(pcm)
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    loudness = np.sqrt((frames**2).mean(axis=1)) if len(frames) else np.zeros(0)
    voiced = np.flatnonzero(loudness > loudness.max(initial=0.0) * _VOICED)
    if len(voiced) < 2:
        raise InvalidInput(f"recording {path} is silent")
    pauses = (np.diff(voiced) - 1) * 10
    return Recorded(path, text, pcm, int(voiced[0]) * 10, int(voiced[-1] + 1) * 10, int(pauses.max()))


def demo_recordings() -> list[Recorded]:
    """All lines of the demo."""
    evening = read_evening(EVENING)
    return [read_recorded(evening.wav(line), line.text) for session in evening.sessions for line in session.lines]


def questions(recordings: Sequence[Recorded], *, to: Sequence[str]) -> list[Recorded]:
    """Those that are one sentence and call somebody by name: with an endpointing wait of 200 ms each is one turn."""
    return [r for r in recordings if not set(r.text[:-1]) & set(".?!") and any(name in r.text for name in to)]
