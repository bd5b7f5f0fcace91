"""Where in the sound speech ended.

A detector tells of each of its windows whether it hears speech, and takes what dies away for speech too: Silero's last
such window ends 18 to 86 ms (median 60, thirteen recordings, each at sixteen places of the windows' grid) behind the
last voiced sample, or in front of it where a word ends in a hiss ("Velkoreth"). How loud the sound is tells the end to
8 ms: it is the last place near there that is not 34 dB quieter than the voice. In a room that is not that quiet itself,
the detector's usual lateness is taken off instead.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

DETECTOR_TAIL_MS = 50
"""What a window of speech ends too late, when the sound does not tell."""

_STEP_MS = 8
_VOICED_SHARE = 0.02
"""Of the voice's loudest 8 ms: -34 dB. What is quieter is the room."""
_NEAR = 80 // _STEP_MS
"""So far from the end of the last window of speech, to either side."""
_VOICE = 2_000 // _STEP_MS
"""So much of the latest speech tells how loud the voice is."""
_ROOM = 96 // _STEP_MS
_NOISY_ROOM = 1.5
"""A room that reaches the threshold with this factor hides the end of the voice."""


class SpeechEnd:
    """Takes the sound window by window.

    Args:
        rate_hz: Of the sound. A window is a whole number of 8 ms.
    """

    def __init__(self, rate_hz: int) -> None:
        self._step = rate_hz * _STEP_MS // 1_000
        self._speech: deque[float] = deque(maxlen=_VOICE)
        self._behind: list[float] = []
        self._room: deque[float] = deque(maxlen=_ROOM)
        self._n_behind = 0

    def hear(self, window: NDArray[np.int16], *, is_speech: bool) -> None:
        """The next window: samples of one channel, and what the detector takes it for."""
        steps = window.astype(np.float32).reshape(-1, self._step)
        loudness = np.sqrt(np.mean(steps * steps, axis=1)).tolist()
        if is_speech:
            if self._n_behind:
                self._speech.extend(self._behind)
                self._behind.clear()
                self._room.clear()
                self._n_behind = 0
            self._speech.extend(loudness)
        else:
            self._behind.extend(loudness[: _NEAR - len(self._behind)])
            self._room.extend(loudness)
            self._n_behind += len(loudness)

    @property
    def detected_quiet_ms(self) -> int:
        """Since the last window of speech."""
        return self._n_behind * _STEP_MS

    @property
    def quiet_ms(self) -> int:
        """From the end of the voice to the end of the last window; 0 while there is speech."""
        return self.detected_quiet_ms + self._tail_ms() if self._n_behind else 0

    def _tail_ms(self) -> int:
        threshold = max(self._speech, default=0.0) * _VOICED_SHARE
        if float(np.median(self._room)) * _NOISY_ROOM >= threshold:
            return DETECTOR_TAIL_MS
        near = [*list(self._speech)[-_NEAR:], *self._behind]
        n_quiet = next((n for n, loudness in enumerate(reversed(near)) if loudness > threshold), len(near))
        return (n_quiet - len(self._behind)) * _STEP_MS
