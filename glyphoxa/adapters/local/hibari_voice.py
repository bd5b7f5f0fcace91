"""Many voices from one small model.

hibari's network returns F0 and the spectra of one female voice before its own inverse STFT. Changing pitch, pitch
range, formants (by stretching the bins), breath and pace in between yields other voices. Uses internals of
`hibari.dsp`: the package is pinned.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from glyphoxa.adapters.local import machine as native_env
from glyphoxa.domain.errors import InvalidInput, did_you_mean

Floats = npt.NDArray[np.float32]

_MAX_PHONEMES = 400
"""The network's input limit; longer sentences are split at a clause, a word, or anywhere."""


@dataclass(frozen=True, slots=True)
class Preset:
    """How a voice differs from the model's own.

    Attributes:
        pitch: Factor on F0.
        formant: Factor on the formants' frequencies; below 1 is a longer vocal tract.
        pitch_range: Exponent on F0 about its mean: below 1 is flatter, above 1 is livelier.
        breath: Added to the log magnitude of the noise.
        pace: 1 is the model's own.
        gain: Brings the voice's speech to about -20 dBFS RMS; fixed, so that loudness never pumps between sentences. A
            whisper stays a little below.
        about: A description for users.
    """

    pitch: float = 1.0
    formant: float = 1.0
    pitch_range: float = 1.0
    breath: float = 0.0
    pace: float = 1.0
    gain: float = 1.0
    about: str = ""


PRESETS = {
    "heart": Preset(gain=1.78, about="a woman, warm and clear: the model's own voice"),
    "young_woman": Preset(pitch=1.12, formant=1.06, gain=1.55, about="a young woman, bright and light"),
    "old_woman": Preset(
        pitch=0.9,
        formant=0.97,
        pitch_range=0.8,
        breath=0.7,
        pace=0.88,
        gain=1.57,
        about="an old woman, slow, a little breathless",
    ),
    "man": Preset(pitch=0.58, formant=0.86, pitch_range=0.9, gain=0.76, about="a man, calm and low"),
    "gruff_smith": Preset(
        pitch=0.48,
        formant=0.80,
        pitch_range=0.8,
        breath=0.5,
        pace=0.95,
        gain=1.04,
        about="a gruff man, deep and hoarse",
    ),
    "old_wizard": Preset(
        pitch=0.62,
        formant=0.88,
        pitch_range=1.25,
        breath=0.6,
        pace=0.85,
        gain=0.82,
        about="an old man, slow, with much up and down",
    ),
    "halfling": Preset(pitch=1.3, formant=1.14, pace=1.08, gain=1.34, about="somebody small, high and quick"),
    "ogre": Preset(
        pitch=0.38,
        formant=0.72,
        pitch_range=0.7,
        breath=0.4,
        pace=0.85,
        gain=1.01,
        about="somebody huge, very deep and slow",
    ),
    "whisper": Preset(pitch=0.9, breath=2.0, gain=1.1, about="a woman who whispers"),
}


def load_engine() -> Any:
    """Load the model behind every voice: 8 MB, half a second. One engine serves all characters."""
    native_env.prepare()
    from hibari import Hibari

    return Hibari(threads=1)


class HibariVoice:
    """One character's voice. Thread-safe.

    Args:
        engine: From `load_engine`; shared.
        preset: A key of `PRESETS`.

    Raises:
        InvalidInput: No such preset.
    """

    def __init__(self, engine: Any, preset: str = "heart") -> None:
        if preset not in PRESETS:
            raise InvalidInput(f"no voice preset {preset!r}; {did_you_mean(preset, PRESETS)}")
        self._engine = engine
        self._preset = PRESETS[preset]
        self._reading = threading.Lock()

    def warm_up(self) -> None:
        """Load the pronunciation rules, which takes a third of a second, before the first text."""
        for _ in self.synthesise("Hm. Eldrinax."):
            pass

    def synthesise(self, text: str) -> Iterator[npt.NDArray[np.int16]]:
        """Speak `text`: int16, mono, 24 kHz, one block per sentence, each as soon as it is ready.

        Numbers are read out. Unpronounceable text (empty, punctuation, emoji, other scripts) gives no block. Names may
        have explicit phonemes: `[Eldrinax](/ˈɛldɹɪnæks/)`.
        """
        rng = np.random.default_rng(0)  # the same text gives the same breath noise
        with self._reading:
            sentences = self._engine.phonemize(text) if _HAS_SOUND.search(text) else []
        for sentence in sentences:
            for phonemes in _portions(sentence):
                ids = self._engine.ids(phonemes)
                if len(ids) > 2 and _HAS_SOUND.search(phonemes):
                    yield _as_pcm(self._speak(ids, rng) * self._preset.gain)

    def _speak(self, ids: list[int], rng: np.random.Generator) -> Floats:
        from hibari import dsp

        preset = self._preset
        outputs = self._engine.sess.run(
            None, {"ids": np.asarray([ids], np.int64), "speed": np.asarray([preset.pace], np.float32)}
        )
        harmonic, phase, noise, free, free_phase, f0 = (output[0] for output in outputs)
        if preset.formant != 1.0:
            harmonic, phase, noise, free = (_stretch(s, preset.formant) for s in (harmonic, phase, noise, free))
        if preset.pitch != 1.0 or preset.formant != 1.0:
            free = free - 6.0  # this branch still carries the old pitch: mute it
        wave: Floats = dsp.synth(harmonic, phase, noise + preset.breath, free, free_phase, _repitch(f0, preset), rng)
        return wave


_HAS_SOUND = re.compile(r"[^\W_]")


def _portions(phonemes: str) -> Iterator[str]:
    while len(phonemes) > _MAX_PHONEMES:
        head = phonemes[:_MAX_PHONEMES]
        cut = max(head.rfind(mark) for mark in (",", ";", ":", "—")) + 1 or head.rfind(" ") + 1 or _MAX_PHONEMES
        yield phonemes[:cut].strip()
        phonemes = phonemes[cut:].strip()
    yield phonemes


def _repitch(f0: Floats, preset: Preset) -> Floats:
    voiced = f0 > 40.0
    if not voiced.any():
        return f0
    mean = np.exp(np.mean(np.log(f0[voiced])))
    moved: Floats = f0.copy()
    moved[voiced] = mean * preset.pitch * (f0[voiced] / mean) ** preset.pitch_range
    return moved


def _stretch(spectrum: Floats, factor: float) -> Floats:
    """Bins read at k / factor, shape (bins, frames), interpolated linearly."""
    bins = spectrum.shape[0]
    at = np.clip(np.arange(bins) / factor, 0, bins - 1)
    below = np.floor(at).astype(np.intp)
    above = np.minimum(below + 1, bins - 1)
    weight = (at - below)[:, None].astype(np.float32)
    stretched: Floats = spectrum[below] * (1 - weight) + spectrum[above] * weight
    return stretched


def _as_pcm(wave: Floats) -> npt.NDArray[np.int16]:
    """Convert to int16, full scale at 1. Peaks above 0.8 are compressed, because a clipped vowel cracks."""
    size = np.abs(wave)
    bent = np.where(size > 0.8, 0.8 + 0.2 * np.tanh((size - 0.8) / 0.2), size)
    return (np.sign(wave) * bent * 32767.0).astype(np.int16)
