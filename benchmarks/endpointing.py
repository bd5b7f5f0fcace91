"""Measure the rule for the end of a turn: how long it waits, and how often it cuts a speaker off.

    python -m benchmarks.endpointing [--half tune|test] [--limit N] [--silences FILE]

One of the shipped voices speaks each line of the set as a whole. The audio is then cut at the marked places and a pause
is inserted, so the melody before the pause is that of an unfinished sentence. At every pause the shipped recogniser
transcribes the words so far, and the rule states its wait. If the pause lasts longer, the rule cut the speaker off.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import resample_poly

from benchmarks.runner import command, positive, run, tell, to_write, write_rows
from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine
from glyphoxa.adapters.local.whisper import Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import PlayerId
from glyphoxa.turns.endpointing import Endpointing

DATA = Path(__file__).parent / "data" / "endpointing"
SEEN_MS = 200
"""A pause is detected after this much silence; no rule can end a turn earlier."""
RULE = Endpointing(PlayerId("speaker"))
"""The product's rule, with its default waits."""
RATE_HZ = 16_000
VOICES = ("heart", "young_woman", "old_woman", "man")
MARK = "|"
_VOICE_RATE_HZ = 24_000
_STEP = RATE_HZ // 100
_NEAR_S = 0.3
_MEDIAN_MS, _SPREAD = 600, 0.45
"""Distribution of the pauses: log-normal, as pauses within turns are in recorded conversations (M. Heldner and J.
Edlund, Pauses, gaps and overlaps in conversations, Journal of Phonetics 38, 2010). The two figures are assumptions of
this set."""
_SHORTEST_MS, _LONGEST_MS = 250, 2_000

Sound = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Silence:
    """A place where a speaker pauses or ends.

    Attributes:
        text: The transcript up to it.
        lasts_ms: None at the end of the line.
    """

    line: int
    text: str
    lasts_ms: int | None


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    lines = read_lines(DATA / f"{options.half}.txt")[: options.limit]
    found, transcript_ms = silences(lines, Whisper(WeightStore().path("whisper-tiny.en"), threads=1))
    if options.silences is not None:
        write_rows(options.silences, map(asdict, found))
    return {
        "lines": len(lines),
        "pauses": sum(silence.lasts_ms is not None for silence in found),
        "today": figures(found),
        "cost_ms": {"transcript": transcript_ms},
    }


def silences(lines: Sequence[Line], whisper: Whisper) -> tuple[list[Silence], float]:
    """Return all pauses and ends of the lines, and the median processor time of a transcript in ms."""
    speaker = Speaker()
    found: list[Silence] = []
    took_s: list[float] = []
    for number, line in enumerate(lines):
        tell(f"{number + 1} of {len(lines)}")
        heard = np.zeros(0, np.int16)
        for part, lasts_ms in zip(speaker.parts_of(line, number), (*line.pauses_ms, None), strict=True):
            heard = np.concatenate((heard, part))
            began_s = process_time()
            text = whisper.transcribe(np.concatenate((_quiet(SEEN_MS), heard, _quiet(SEEN_MS)))).text
            took_s.append(process_time() - began_s)
            found.append(Silence(number, text, lasts_ms))
            heard = np.concatenate((heard, _quiet(lasts_ms or 0)))
    return found, round(median(took_s) * 1_000, 1)


def _quiet(ms: int) -> Sound:
    return np.zeros(RATE_HZ * ms // 1_000, np.int16)


# -- figures


def wait_ms(silence: Silence) -> int:
    """Return the wait by the product's rule."""
    return RULE.wait_ms(silence.text)


def figures(found: Sequence[Silence]) -> dict[str, float]:
    """Return percentages of lines and pauses that were cut off, and the wait after the end of a line."""
    pauses = [silence for silence in found if silence.lasts_ms is not None]
    cut = [silence for silence in pauses if (silence.lasts_ms or 0) > wait_ms(silence)]
    waits = [wait_ms(silence) for silence in found if silence.lasts_ms is None]
    with_pauses = {silence.line for silence in pauses}
    return {
        "cut_percent": round(100 * len({silence.line for silence in cut}) / max(1, len(with_pauses)), 1),
        "pauses_percent": round(100 * len(cut) / max(1, len(pauses)), 1),
        "wait_ms": round(fmean(waits)),
        "wait_p50_ms": median(waits),
        "wait_p95_ms": float(np.percentile(waits, 95)),
    }


# -- spoken lines with pauses


@dataclass(frozen=True, slots=True)
class Line:
    """
    Attributes:
        parts: The words between the pauses.
        pauses_ms: Length of each pause: one fewer than parts.
    """

    parts: tuple[str, ...]
    pauses_ms: tuple[int, ...]

    @property
    def text(self) -> str:
        return " ".join(self.parts)


def read_lines(path: Path) -> list[Line]:
    """Return the lines; the same file gives the same pauses.

    Raises:
        InvalidInput: A line has an empty part.
    """
    lines = []
    for number, row in enumerate(path.read_text("utf-8").splitlines(), 1):
        parts = tuple(part.strip() for part in row.split(MARK))
        if not all(parts):
            raise InvalidInput(f"{path}:{number}: {row!r} has nothing between two pauses; valid: words {MARK} words")
        chance = random.Random(f"{path.stem}:{number}")
        drawn = (chance.lognormvariate(0, _SPREAD) * _MEDIAN_MS for _ in parts[1:])
        lines.append(Line(parts, tuple(round(min(max(ms, _SHORTEST_MS), _LONGEST_MS)) for ms in drawn)))
    return lines


class Speaker:
    """Speaks each line in one of the shipped voices."""

    def __init__(self) -> None:
        engine = load_engine()
        self._voices = [HibariVoice(engine, preset) for preset in VOICES]

    def parts_of(self, line: Line, number: int) -> list[Sound]:
        """Return the audio of each part, cut from the whole line to keep the melody of an unfinished sentence."""
        voice = self._voices[number % len(self._voices)]
        whole = np.concatenate(list(voice.synthesise(line.text)))
        sound = trimmed(resample_poly(whole.astype(np.float64), RATE_HZ, _VOICE_RATE_HZ))
        return np.split(sound, list(_cuts(sound, line.parts)))


def trimmed(sound: npt.NDArray[np.float64]) -> Sound:
    """Remove quiet audio before and after the voice, 46 dB below its loudest."""
    loudness = _loudness(sound)
    voiced = np.flatnonzero(loudness > loudness.max() * 0.005)
    return sound[voiced[0] * _STEP : (voiced[-1] + 1) * _STEP].astype(np.int16)


def _cuts(sound: Sound, parts: Sequence[str]) -> Iterator[int]:
    """Yield samples at which the parts end: the quietest place near where each would end if all letters took equally
    long.
    """
    loudness = _loudness(sound)
    letters = [sum(map(str.isalnum, part)) for part in parts]
    last = 0
    for n in range(1, len(parts)):
        middle = len(loudness) * sum(letters[:n]) // sum(letters)
        near = int(_NEAR_S * RATE_HZ / _STEP)
        begin = max(last + 1, middle - near)
        end = max(begin + 1, min(len(loudness) - 1, middle + near))
        last = begin + int(np.argmin(loudness[begin:end]))
        yield last * _STEP + _STEP // 2


def _loudness(sound: npt.NDArray[np.float64] | Sound) -> npt.NDArray[np.float64]:
    steps = np.asarray(sound[: len(sound) // _STEP * _STEP], np.float64).reshape(-1, _STEP)
    loudness: npt.NDArray[np.float64] = np.sqrt(np.mean(steps * steps, axis=1))
    return loudness


def _options() -> argparse.ArgumentParser:
    parser = command("endpointing", __doc__)
    parser.add_argument("--half", choices=("tune", "test"), default="test")
    parser.add_argument("--limit", type=positive, metavar="N", help="the first N lines")
    parser.add_argument("--silences", type=to_write, metavar="FILE", help="write every pause with its transcript")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
