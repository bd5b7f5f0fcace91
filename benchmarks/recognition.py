"""Compare models of speech recognition on spoken lines, with and without the names of the set as a glossary.

    python -m benchmarks.recognition FILE --language TAG --model NAME --voice COMMAND [--voice COMMAND]

FILE is a set of `benchmarks/data/recognition`, or one of `benchmarks/data/listeners`: then the figures say how many of
the words stop an NPC that speaks, as they are written and as each model heard each voice. Each command speaks one line:
it writes the WAV file `{wav}` from `{text}`, for example `espeak-ng -v de -w {wav} {text}`.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from rapidfuzz.distance import Levenshtein
from scipy.signal import resample_poly

from benchmarks.listeners import Line as ListenerLine
from benchmarks.listeners import figures as listener_figures
from benchmarks.listeners import read as read_listeners
from benchmarks.runner import command, run, tell
from glyphoxa.adapters.local.whisper import SAMPLE_RATE_HZ, Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.language.lexicon import primary_language
from glyphoxa.language.words import fold, words
from glyphoxa.turns.barge_in import cuts_off

_LINE_MS = 3_500
"""Length of the recordings whose time is measured."""
_TIMED = 7
_QUIET_MS = 300

Sound = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Line:
    """
    Attributes:
        spoken: Words of the text, folded.
    """

    text: str
    spoken: tuple[str, ...]
    names: tuple[str, ...]


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    if options.lines.suffix == ".tsv":
        return listeners(options, directory)
    names, lines = read_lines(options.lines)
    sounds = [
        [speak(voice, line.text, directory / f"{v}-{n}.wav") for n, line in enumerate(lines)]
        for v, voice in enumerate(options.voice)
    ]
    found: dict[str, Any] = {"lines": len(lines), "voices": len(options.voice)}
    for model in options.model:
        whisper = Whisper(WeightStore().path(model), language=options.language)
        whisper.warm_up()
        for kind, glossary in (("glossary", f"Names: {', '.join(names)}."), ("plain", "")):
            tell(f"{model}, {kind}")
            found[f"{model}, {kind}"] = figures(whisper, lines, sounds, glossary)
    return found


def listeners(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Return which words stop an NPC: as written, and as each model heard each voice."""
    lines = [line for line in read_listeners(options.lines) if line.language == primary_language(options.language)]
    found: dict[str, Any] = {"lines": len(lines), "written": stops(lines, [line.text for line in lines])}
    for model in options.model:
        whisper = Whisper(WeightStore().path(model), language=options.language)
        whisper.warm_up()
        for number, voice in enumerate(options.voice):
            sounds = (speak(voice, line.text, directory / "line.wav") for line in lines)
            heard = [whisper.transcribe(sound).text for sound in sounds]
            found[f"{model}, voice {number + 1}"] = stops(lines, heard)
            for line, text in zip(lines, heard, strict=True):
                if cuts_off(text) is not line.stops:
                    tell(f"  {line.text!r} was heard as {text!r}")
    return found


def stops(lines: Sequence[ListenerLine], texts: Sequence[str]) -> dict[str, float | None]:
    return listener_figures(lines, [cuts_off(text) for text in texts])


def figures(
    whisper: Whisper, lines: Sequence[Line], sounds: Sequence[Sequence[Sound]], glossary: str
) -> dict[str, float]:
    """Return the word error rates of lines without and with names, and the names that are right, in percent."""
    wrong = {False: 0, True: 0}
    n_words = {False: 0, True: 0}
    n_names = n_right = 0
    for voice in sounds:
        for line, sound in zip(lines, voice, strict=True):
            heard = folded(whisper.transcribe(sound, glossary).text)
            wrong[bool(line.names)] += Levenshtein.distance(line.spoken, heard)
            n_words[bool(line.names)] += len(line.spoken)
            n_names += len(line.names)
            n_right += sum(name in heard for name in line.names)
    return {
        "wer_plain": round(100 * wrong[False] / max(1, n_words[False]), 1),
        "wer_names": round(100 * wrong[True] / max(1, n_words[True]), 1),
        "names_right": round(100 * n_right / max(1, n_names), 1),
        "line_cpu_ms": round(median(cpu_ms(whisper, sound, glossary) for sound in sounds[0][:_TIMED])),
    }


def cpu_ms(whisper: Whisper, sound: Sound, glossary: str) -> float:
    """Return the processor time of all threads for the first seconds of a recording."""
    began_s = process_time()
    whisper.transcribe(np.resize(sound, SAMPLE_RATE_HZ * _LINE_MS // 1_000), glossary)
    return (process_time() - began_s) * 1_000


def read_lines(path: Path) -> tuple[list[str], list[Line]]:
    """Return the names and the lines of a set.

    Raises:
        InvalidInput: It is not a file with `names` and `lines`.
    """
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
        names, texts = [str(name) for name in found["names"]], [str(text) for text in found["lines"]]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path}: not a file with `names` and `lines`: {error}") from None
    return names, [_line(text, names) for text in texts]


def _line(text: str, names: Sequence[str]) -> Line:
    spoken = folded(text)
    return Line(text, spoken, tuple(name for name in map(fold, names) for _ in range(spoken.count(name))))


def folded(text: str) -> tuple[str, ...]:
    return tuple(fold(word.text) for word in words(text))


def speak(voice: str, text: str, path: Path) -> Sound:
    """Return a line at 16 kHz, with a pause before and after it.

    Raises:
        InvalidInput: The command fails.
    """
    arguments = [each.format(wav=path, text=text) for each in shlex.split(voice)]
    try:
        subprocess.run(arguments, check=True, capture_output=True)
        with wave.open(str(path), "rb") as file:
            rate_hz = file.getframerate()
            sound = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    except (OSError, subprocess.CalledProcessError, wave.Error) as error:
        raise InvalidInput(f"--voice {voice!r}: {error}") from None
    at_16_khz = resample_poly(sound.astype(np.float64), SAMPLE_RATE_HZ, rate_hz).clip(-32_768, 32_767)
    quiet = np.zeros(SAMPLE_RATE_HZ * _QUIET_MS // 1_000, np.int16)
    return np.concatenate((quiet, at_16_khz.astype(np.int16), quiet))


def _options() -> argparse.ArgumentParser:
    parser = command("recognition", __doc__)
    parser.add_argument("lines", type=Path, metavar="FILE", help="names and lines (YAML), or listeners' words (TSV)")
    parser.add_argument("--language", default="en", metavar="TAG", help="of the lines; default en")
    parser.add_argument("--model", action="append", required=True, metavar="NAME", help="as in `glyphoxa models list`")
    parser.add_argument("--voice", action="append", required=True, metavar="COMMAND", help="speaks one line")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
