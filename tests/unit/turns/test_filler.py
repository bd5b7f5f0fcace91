from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from glyphoxa.turns.playback import filler_of

RATE_HZ = 24_000


def word(ms: int) -> NDArray[np.int16]:
    return np.full(ms * RATE_HZ // 1_000, 8_000, dtype=np.int16)


def silence(ms: int) -> NDArray[np.int16]:
    return np.zeros(ms * RATE_HZ // 1_000, dtype=np.int16)


def rendered(*parts: NDArray[np.int16]) -> bytes:
    return np.concatenate(parts).tobytes()


def test_the_silence_around_a_filler_is_cut_off_but_for_a_little() -> None:
    filler = filler_of(rendered(silence(240), word(320), silence(400)), rate_hz=RATE_HZ)
    assert filler.n_samples == (320 + 2 * 16) * 24


def test_trimmed_filler_starts_and_ends_in_silence() -> None:
    hiss = np.full(2_400, 100, dtype=np.int16)  # not loud enough to be a part of the word
    sound = np.frombuffer(filler_of(rendered(hiss, word(320), hiss), rate_hz=RATE_HZ).pcm, dtype=np.int16)
    assert (sound[0], sound[-1]) == (0, 0)
    assert abs(np.diff(sound[:192].astype(int))).max() < 3


def test_a_filler_without_silence_stays_as_it_is() -> None:
    pcm = word(30).tobytes()
    assert filler_of(pcm, rate_hz=RATE_HZ).pcm == pcm
    assert filler_of(pcm, rate_hz=RATE_HZ).breaks == ()


def test_a_filler_may_end_between_its_words() -> None:
    filler = filler_of(rendered(silence(80), word(160), silence(80), word(240), silence(80)), rate_hz=RATE_HZ)
    (between,) = (at for at in filler.breaks if at < (16 + 160 + 80) * 24)
    assert (16 + 160) * 24 <= between <= (16 + 160 + 16) * 24


def test_silence_is_no_filler() -> None:
    assert filler_of(silence(100).tobytes(), rate_hz=RATE_HZ).n_samples == 0
    assert filler_of(b"", rate_hz=RATE_HZ).n_samples == 0
