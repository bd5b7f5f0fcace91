"""The silence in front of a reply, which nobody needs to hear.

A voice that speaks a clause leaves a fifth to a third of a second of silence in front of it. Between two clauses that
is a breath; in front of the first it is waited for by who has asked.
"""

from __future__ import annotations

import numpy as np

_STEP_MS = 8
_SILENT = 160
"""Loudness of 8 ms below which nothing is heard: -46 dBFS, where voices are at some -20."""
_KEPT_STEPS = 3
"""Of the silence, so that the beginning of a word is not cut."""
_LONGEST_MS = 600
"""More than a voice leaves: what is as quiet for longer is a quiet voice, and is heard."""


class LeadIn:
    """Of one reply, whose sound comes in pieces of any length."""

    def __init__(self, *, rate_hz: int) -> None:
        self._step = rate_hz * _STEP_MS // 1_000 * 2
        self._most = rate_hz * _LONGEST_MS // 1_000 * 2
        self._waiting = b""
        self._is_over = False

    def cut(self, pcm: bytes) -> bytes:
        """What is to be heard of it with the next piece; mono, s16le."""
        if self._is_over:
            return pcm
        self._waiting += pcm
        samples = np.frombuffer(self._waiting, dtype=np.int16, count=len(self._waiting) // self._step * self._step // 2)
        steps = samples.reshape(-1, self._step // 2).astype(np.float32)
        loud = np.flatnonzero(np.sqrt(np.mean(steps * steps, axis=1)) >= _SILENT)
        if len(loud):
            self._is_over = True
            return self._waiting[max(0, int(loud[0]) - _KEPT_STEPS) * self._step :]
        self._is_over = len(self._waiting) > self._most
        return self._waiting if self._is_over else b""
