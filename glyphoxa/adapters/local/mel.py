"""The log-mel spectrogram that Whisper was trained on, in numpy.

Source: the `log_mel_spectrogram` of OpenAI's Whisper (MIT): 25 ms Hann windows every 10 ms, power spectrum, 80 bands
on Slaney's mel scale with area normalisation, log10 floored 8 below the loudest value, scaled about zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ = 16_000
HOP = 160
_WINDOW = 400
_BANDS = 80

Floats = npt.NDArray[np.float32]


class LogMel:
    """Turns sound into what Whisper's encoder reads; built once, it is only read afterwards."""

    def __init__(self) -> None:
        self._filters = _slaney_filters()
        self._window = np.hanning(_WINDOW + 1)[:-1].astype(np.float32)

    def __call__(self, samples: Floats) -> Floats:
        """`samples` at 16 kHz, at least one hop of them -> float32, shape (80, len(samples) // 160)."""
        # numpy reflects a short signal over and over, so that even 10 ms fill a window.
        padded = np.pad(samples, _WINDOW // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP]
        spectrum = np.fft.rfft(frames * self._window, axis=1)[:-1]
        power = np.abs(spectrum.astype(np.complex64)) ** 2
        log = np.log10(np.maximum(self._filters @ power.T, 1e-10))
        scaled: Floats = ((np.maximum(log, log.max() - 8.0) + 4.0) / 4.0).astype(np.float32)
        return scaled


def _slaney_filters() -> Floats:
    """Triangles of equal area, shape (80, 201): linear below 1 kHz, logarithmic above."""
    hz_per_mel = 200 / 3
    knee_mel = 1000 / hz_per_mel
    log_step = np.log(6.4) / 27
    top_mel = knee_mel + np.log(SAMPLE_RATE_HZ / 2 / 1000) / log_step
    mels = np.linspace(0.0, top_mel, _BANDS + 2)
    corners = np.where(mels < knee_mel, mels * hz_per_mel, 1000 * np.exp(log_step * (mels - knee_mel)))
    widths = np.diff(corners)
    distance = corners[:, None] - np.fft.rfftfreq(_WINDOW, 1 / SAMPLE_RATE_HZ)[None]
    rising = -distance[:-2] / widths[:-1, None]
    falling = distance[2:] / widths[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    filters: Floats = (triangles * (2 / (corners[2:] - corners[:-2]))[:, None]).astype(np.float32)
    return filters
