from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.turns.playback import LeadIn

RATE_HZ = 24_000
MS = RATE_HZ // 1_000


def sound(*spans: tuple[int, int]) -> bytes:
    """Return sound with spans of (milliseconds, loudness)."""
    return np.concatenate([np.full(ms * MS, value, dtype=np.int16) for ms, value in spans]).tobytes()


def heard(pcm: bytes, *, piece_ms: int) -> bytes:
    lead_in, size = LeadIn(rate_hz=RATE_HZ), piece_ms * MS * 2
    return b"".join(lead_in.cut(pcm[at : at + size]) for at in range(0, len(pcm), size))


@given(st.integers(1, 700))
def test_leading_silence_is_trimmed_for_any_chunk_size(piece_ms: int) -> None:
    cut = heard(sound((304, 20), (200, 8_000), (400, 0), (100, 8_000)), piece_ms=piece_ms)
    assert cut == sound((24, 20), (200, 8_000), (400, 0), (100, 8_000))


def test_audio_without_leading_silence_passes_immediately() -> None:
    first = sound((10, 8_000))
    assert LeadIn(rate_hz=RATE_HZ).cut(first) == first


def test_a_voice_that_is_as_quiet_as_silence_is_heard() -> None:
    quiet = sound((2_000, 100))
    assert heard(quiet, piece_ms=20) == quiet
