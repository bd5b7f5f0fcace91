"""A filler as it is played: without the silence around it, and where it may be broken off.

A voice that speaks "Hm." leaves up to half a second of silence around it, longer than the sound itself. While it
lasts, an answer that is ready would have to wait for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEP_MS = 8
_SILENT_SHARE = 0.02
"""Of the loudest 8 ms: -34 dB. What is quieter at either end is no part of the sound."""
_QUIET_SHARE = 0.08
"""-22 dB: a word has ended, though the next may follow at once."""
_A_BREAK_STEPS = 3
"""So long it is quiet between two words, at least."""
_KEPT_STEPS = 2
"""Of the silence at either end, so that nothing that dies away is cut."""


@dataclass(frozen=True, slots=True)
class Filler:
    """Mono, s16le.

    Attributes:
        breaks: After how many samples it may end before its end, ascending.
    """

    pcm: bytes
    breaks: tuple[int, ...] = ()

    @property
    def n_samples(self) -> int:
        return len(self.pcm) // 2


def filler_of(pcm: bytes, *, rate_hz: int) -> Filler:
    """The filler in what a voice rendered."""
    samples = np.frombuffer(pcm, dtype=np.int16)
    step = rate_hz * _STEP_MS // 1_000
    loudness = _loudness(samples, step)
    loud = np.flatnonzero(loudness > _SILENT_SHARE * loudness.max(initial=0.0))
    if not len(loud):
        return Filler(b"")
    first = max(0, int(loud[0]) - _KEPT_STEPS)
    last = min(len(loudness), int(loud[-1]) + 1 + _KEPT_STEPS)
    sound = samples[first * step : last * step].copy()
    if first:
        sound[:step] = sound[:step] * np.linspace(0, 1, step)
    if last < len(loudness):
        sound[-step:] = sound[-step:] * np.linspace(1, 0, step)
    breaks = _breaks(loudness[first:last], step)
    return Filler(sound.tobytes(), tuple(at for at in breaks if at < len(sound)))


def _loudness(samples: NDArray[np.int16], step: int) -> NDArray[np.float64]:
    """Of each step; the last may be shorter."""
    steps = np.pad(samples.astype(np.float64), (0, -len(samples) % step)).reshape(-1, step)
    loudness: NDArray[np.float64] = np.sqrt(np.mean(steps**2, axis=1))
    return loudness


def _breaks(loudness: NDArray[np.float64], step: int) -> list[int]:
    """One step into each stretch that is quiet for long enough, behind the first that is loud."""
    is_quiet = loudness < _QUIET_SHARE * loudness.max()
    breaks: list[int] = []
    n_quiet, was_loud = 0, False
    for at, quiet in enumerate(is_quiet):
        n_quiet = n_quiet + 1 if quiet else 0
        was_loud = was_loud or not quiet
        if was_loud and n_quiet == _A_BREAK_STEPS:
            breaks.append((at - _A_BREAK_STEPS + 2) * step)
    return breaks
