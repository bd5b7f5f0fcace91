"""Everything that could be heard, in one track, each sound where it was heard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from glyphoxa.adapters.wav import pcm16, samples_of

Samples = npt.NDArray[np.float32]

RATE_HZ = 24_000
SLACK_MS = 120
"""Chunks that come this little early or late belong to one stretch of speech: placed by the clock they would click."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of sound at 24 kHz. `at_ms` counts from the beginning of the track."""

    at_ms: int
    samples: Samples

    @property
    def end_ms(self) -> int:
        return self.at_ms + len(self.samples) * 1000 // RATE_HZ


@dataclass(slots=True)
class Stretches:
    """Joins the chunks of one voice, as they come in, into stretches without gaps."""

    _began_ms: int = 0
    _chunks: list[bytes] = field(default_factory=list)
    _n_bytes: int = 0
    _done: list[Sound] = field(default_factory=list)

    def add(self, pcm: bytes, *, at_ms: int) -> None:
        """24 kHz s16le that begins to be heard at `at_ms`."""
        if self._chunks and at_ms > self._began_ms + self._n_bytes * 1000 // (2 * RATE_HZ) + SLACK_MS:
            self._close()
        if not self._chunks:
            self._began_ms = at_ms
        self._chunks.append(pcm)
        self._n_bytes += len(pcm)

    def sounds(self) -> tuple[Sound, ...]:
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        if self._chunks:
            self._done.append(Sound(self._began_ms, samples_of(b"".join(self._chunks))))
        self._chunks, self._n_bytes = [], 0


def mixed(sounds: Iterable[Sound], *, duration_ms: int) -> bytes:
    """The sum of all sounds as 24 kHz s16le of `duration_ms`, softly limited."""
    track = np.zeros(duration_ms * RATE_HZ // 1000, np.float32)
    for sound in sounds:
        start = max(0, sound.at_ms * RATE_HZ // 1000)
        samples = sound.samples[: max(0, len(track) - start)]
        track[start : start + len(samples)] += samples
    return pcm16(soft_limit(track))


def soft_limit(samples: Samples, *, knee: float = 0.7) -> Samples:
    """Unchanged up to `knee`, bent towards 1 above it: two loud voices at once do not crackle."""
    loud = np.abs(samples)
    bent = knee + (1 - knee) * np.tanh((loud - knee) / (1 - knee))
    return np.asarray(np.where(loud > knee, np.sign(samples) * bent, samples), np.float32)
