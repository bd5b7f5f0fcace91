"""Lines with pauses inside them, spoken."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.signal import resample_poly

from glyphoxa.adapters.local.hibari_voice import HibariVoice, load_engine
from glyphoxa.domain.errors import InvalidInput

RATE_HZ = 16_000
VOICES = ("heart", "young_woman", "old_woman", "man")
MARK = "|"
_VOICE_RATE_HZ = 24_000
_STEP = RATE_HZ // 100
_NEAR_S = 0.3
_MEDIAN_MS, _SPREAD = 600, 0.45
"""Of the pauses: log-normal, as pauses within turns are in recorded talk (M. Heldner and J. Edlund, Pauses, gaps and
overlaps in conversations, Journal of Phonetics 38, 2010). The two figures are assumptions of this set.
"""
_SHORTEST_MS, _LONGEST_MS = 250, 2_000

Sound = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Line:
    """
    Attributes:
        parts: What is said between the pauses.
        pauses_ms: How long each is: one fewer than parts.
    """

    parts: tuple[str, ...]
    pauses_ms: tuple[int, ...]

    @property
    def text(self) -> str:
        return " ".join(self.parts)


def read_lines(path: Path) -> list[Line]:
    """The same file gives the same pauses.

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
    """Says each line in one of the shipped voices."""

    def __init__(self) -> None:
        engine = load_engine()
        self._voices = [HibariVoice(engine, preset) for preset in VOICES]

    def parts_of(self, line: Line, number: int) -> list[Sound]:
        """The sound of each part: cut from the whole line, so that what is in front of a pause sounds like it."""
        voice = self._voices[number % len(self._voices)]
        whole = np.concatenate(list(voice.synthesise(line.text)))
        sound = trimmed(resample_poly(whole.astype(np.float64), RATE_HZ, _VOICE_RATE_HZ))
        return np.split(sound, list(_cuts(sound, line.parts)))


def trimmed(sound: npt.NDArray[np.float64]) -> Sound:
    """Without the quiet before and behind the voice: what is 46 dB below its loudest."""
    loudness = _loudness(sound)
    voiced = np.flatnonzero(loudness > loudness.max() * 0.005)
    return sound[voiced[0] * _STEP : (voiced[-1] + 1) * _STEP].astype(np.int16)


def _cuts(sound: Sound, parts: Sequence[str]) -> Iterator[int]:
    """Samples at which the parts end: the quietest place near where each would end if every letter took as long."""
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
