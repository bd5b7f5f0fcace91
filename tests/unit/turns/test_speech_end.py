"""Where speech ended: what the detector's windows cannot tell, the loudness does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from glyphoxa.turns.endpointing import DETECTOR_TAIL_MS, SpeechEnd
from tests.support.proof import n_examples

RATE_HZ = 16_000
WINDOW_MS = 32
WINDOW = RATE_HZ * WINDOW_MS // 1_000


def sound(*parts: tuple[int, float]) -> NDArray[np.int16]:
    """Noise, so many milliseconds of each loudness."""
    dice = np.random.default_rng(0)
    return np.concatenate([dice.normal(0, max(rms, 1e-9), ms * RATE_HZ // 1_000) for ms, rms in parts]).astype(np.int16)


def heard(pcm: NDArray[np.int16], *, speech_until_ms: int) -> SpeechEnd:
    """Windows that begin before that time are taken for speech."""
    end = SpeechEnd(RATE_HZ)
    for n in range(len(pcm) // WINDOW):
        end.hear(pcm[n * WINDOW : (n + 1) * WINDOW], is_speech=n * WINDOW_MS < speech_until_ms)
    return end


def test_silence_is_zero_while_somebody_speaks() -> None:
    assert heard(sound((320, 3_000)), speech_until_ms=320).quiet_ms == 0


def test_silence_counts_from_the_end_of_voice_not_of_the_window() -> None:
    end = heard(sound((600, 3_000), (200, 0)), speech_until_ms=640)
    assert end.detected_quiet_ms == 800 - 640
    assert end.quiet_ms == 200


@settings(max_examples=n_examples(50), derandomize=True)
@given(voice_ms=st.integers(300, 900), late_ms=st.integers(0, 70))
def test_the_end_is_found_to_a_hundredth_of_a_second(voice_ms: int, late_ms: int) -> None:
    """However late the detector is about it, as far as Silero has been seen to be."""
    speech_until_ms = voice_ms + late_ms
    all_ms = -(-speech_until_ms // WINDOW_MS) * WINDOW_MS + 4 * WINDOW_MS
    quiet_ms = heard(sound((voice_ms, 3_000), (all_ms - voice_ms, 0)), speech_until_ms=speech_until_ms).quiet_ms
    latest_window_of_speech_ms = all_ms - 4 * WINDOW_MS
    if latest_window_of_speech_ms - voice_ms <= 80:
        assert abs(quiet_ms - (all_ms - voice_ms)) <= 8


def test_a_voice_that_dies_away_ends_where_it_is_lost_in_the_room() -> None:
    end = heard(sound((400, 3_000), (48, 300), (32, 100), (160, 10)), speech_until_ms=480)
    assert end.quiet_ms == 160


def test_quiet_long_before_the_detectors_last_window_is_not_believed() -> None:
    """It heard something there."""
    assert heard(sound((320, 3_000), (320, 0)), speech_until_ms=512).quiet_ms == 640 - 512 + 80


def test_final_hiss_counts_as_voice_despite_the_detector() -> None:
    """ "Velkoreth": the windows of its end are no speech to Silero."""
    end = heard(sound((320, 3_000), (64, 300), (128, 0)), speech_until_ms=320)
    assert end.detected_quiet_ms == 192
    assert end.quiet_ms == 128


def test_noise_long_after_the_voice_is_not_voice() -> None:
    end = heard(sound((320, 3_000), (128, 0), (16, 900), (48, 0)), speech_until_ms=320)
    assert end.quiet_ms == 192


def test_loud_room_uses_the_detectors_usual_delay() -> None:
    end = heard(sound((448, 3_000), (192, 150)), speech_until_ms=512)
    assert end.quiet_ms == 640 - 512 + DETECTOR_TAIL_MS


def test_a_pause_in_which_speech_goes_on_is_forgotten() -> None:
    end = heard(sound((320, 3_000)), speech_until_ms=320)
    for is_speech in (False, False, True):
        end.hear(sound((WINDOW_MS, 3_000 if is_speech else 0)), is_speech=is_speech)
    assert end.quiet_ms == 0
    end.hear(sound((WINDOW_MS, 0)), is_speech=False)
    assert end.quiet_ms == WINDOW_MS


def test_a_shout_at_the_beginning_does_not_hide_a_quiet_end() -> None:
    """How loud the voice is, its last two seconds tell."""
    end = heard(sound((320, 20_000), (2_240, 300), (160, 0)), speech_until_ms=2_560)
    assert end.quiet_ms == 160
