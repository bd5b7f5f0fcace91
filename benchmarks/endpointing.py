"""When a turn is over: how long each rule waits for it, against how often it cuts a speaker off in the middle.

Each line of the set is spoken as a whole by one of the shipped voices. The sound is then opened at the marked places
and a pause is put in, so the melody in front of the pause is that of a sentence that goes on. At every pause the
shipped recogniser transcribes what was said so far, Smart Turn judges the sound, and each rule says how long it would
wait. A pause that lasts longer is a false cut-off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from time import process_time

import numpy as np
from pipecat.audio.turn.smart_turn.local_smart_turn_v3 import LocalSmartTurnAnalyzerV3

from benchmarks.endpointing_speech import RATE_HZ, Line, Speaker, read_lines
from glyphoxa.adapters.local.whisper import Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.turns.unfinished import sounds_unfinished

DATA = Path(__file__).parent / "data" / "endpointing"
SEEN_MS = 200
"""A pause is noticed after so much silence: earlier no rule can end a turn."""
TODAY = (480, 900)
WAITS_MS = (300, 360, 420, 480, 540, 600, 700, 800, 900, 1_000, 1_200, 1_400)
LIKELY = (0.1, 0.3, 0.5, 0.7, 0.9)
END_MS = 480
"""Rules are compared at the wait that the product has behind a finished sentence."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A place where a speaker falls silent.

    Attributes:
        lasts_ms: None at the end of the line.
        complete: How likely the turn is over by its sound, 0 to 1: Smart Turn's.
    """

    line: int
    text: str
    lasts_ms: int | None
    complete: float


Rule = Callable[[Silence], int]


@dataclass(frozen=True, slots=True)
class Figures:
    """
    Attributes:
        cut_percent: Lines with pauses that were cut off at least once.
        pauses_percent: Pauses that were taken for an end.
        wait_ms: The wait behind the end of a line, on the average.
    """

    cut_percent: float
    pauses_percent: float
    wait_ms: float
    wait_p50_ms: float
    wait_p95_ms: float


def silences(lines: Sequence[Line], whisper: Whisper) -> tuple[list[Silence], dict[str, float]]:
    """Every pause and end of the lines, with what is known at each; and the processor time of a judgement, in ms."""
    speaker, analyzer = Speaker(), LocalSmartTurnAnalyzerV3()
    analyzer.set_sample_rate(RATE_HZ)
    found: list[Silence] = []
    cost: dict[str, list[float]] = {"transcript": [], "smart_turn": []}
    for number, line in enumerate(lines):
        print(f"\r{number + 1} of {len(lines)}", end="", file=sys.stderr, flush=True)
        heard = np.zeros(0, np.int16)
        for part, lasts_ms in zip(speaker.parts_of(line, number), (*line.pauses_ms, None), strict=True):
            heard = np.concatenate((heard, part))
            began_s = process_time()
            sound = np.concatenate((_quiet(SEEN_MS), heard, _quiet(SEEN_MS)))
            text = whisper.transcribe(sound).text
            cost["transcript"].append(process_time() - began_s)
            began_s = process_time()
            complete = asyncio.run(_complete(analyzer, sound))
            cost["smart_turn"].append(process_time() - began_s)
            found.append(Silence(number, text, lasts_ms, complete))
            heard = np.concatenate((heard, _quiet(lasts_ms or 0)))
    print(file=sys.stderr)
    return found, {name: round(median(times) * 1_000, 1) for name, times in cost.items()}


def by_silence(wait_ms: int) -> Rule:
    return lambda _: wait_ms


def by_words(end_ms: int, unfinished_ms: int) -> Rule:
    """What the product does."""
    return lambda silence: unfinished_ms if sounds_unfinished(silence.text) else end_ms


def by_sound(end_ms: int, unfinished_ms: int, likely: float) -> Rule:
    return lambda silence: end_ms if silence.complete >= likely else unfinished_ms


def by_both(end_ms: int, unfinished_ms: int, likely: float) -> Rule:
    """Either may say that more is to come."""

    def rule(silence: Silence) -> int:
        return unfinished_ms if sounds_unfinished(silence.text) or silence.complete < likely else end_ms

    return rule


def figures(rule: Rule, found: Sequence[Silence]) -> Figures:
    pauses = [silence for silence in found if silence.lasts_ms is not None]
    cut = [silence for silence in pauses if (silence.lasts_ms or 0) > rule(silence)]
    waits = [rule(silence) for silence in found if silence.lasts_ms is None]
    with_pauses = {silence.line for silence in pauses}
    return Figures(
        cut_percent=round(100 * len({silence.line for silence in cut}) / max(1, len(with_pauses)), 1),
        pauses_percent=round(100 * len(cut) / max(1, len(pauses)), 1),
        wait_ms=round(fmean(waits)),
        wait_p50_ms=median(waits),
        wait_p95_ms=float(np.percentile(waits, 95)),
    )


def families() -> Iterator[tuple[str, str, Rule]]:
    """Each kind of rule with each of its settings."""
    for wait_ms in WAITS_MS:
        yield "silence", f"{wait_ms}", by_silence(wait_ms)
    for unfinished_ms in (wait for wait in WAITS_MS if wait >= END_MS):
        yield "words", f"{END_MS}/{unfinished_ms}", by_words(END_MS, unfinished_ms)
        for likely in LIKELY:
            yield "smart turn", f"{END_MS}/{unfinished_ms} at {likely}", by_sound(END_MS, unfinished_ms, likely)
            yield "both", f"{END_MS}/{unfinished_ms} at {likely}", by_both(END_MS, unfinished_ms, likely)


def best(found: Sequence[Silence], *, within_ms: float) -> dict[str, dict[str, object]]:
    """Of each kind of rule the setting that cuts least, of those whose average wait is no longer."""
    chosen: dict[str, tuple[Figures, str]] = {}
    for family, setting, rule in families():
        told = figures(rule, found)
        if told.wait_ms <= within_ms and (family not in chosen or told.cut_percent < chosen[family][0].cut_percent):
            chosen[family] = (told, setting)
    return {family: {"setting": setting, **_shown(told)} for family, (told, setting) in chosen.items()}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endpointing", description=__doc__)
    parser.add_argument("--half", choices=("tune", "test"), default="test")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N lines")
    parser.add_argument("--silences", type=Path, metavar="FILE", help="write every pause and what was made of it")
    options = parser.parse_args(argv)
    lines = read_lines(DATA / f"{options.half}.txt")[: options.limit]
    found, cost_ms = silences(lines, Whisper(WeightStore().path("whisper-tiny.en"), threads=1))
    if options.silences is not None:
        rows = (json.dumps({"line": s.line, "text": s.text, "ms": s.lasts_ms, "complete": s.complete}) for s in found)
        options.silences.write_text("\n".join(rows) + "\n", "utf-8")
    today = figures(by_words(*TODAY), found)
    print(
        json.dumps(
            {
                "lines": len(lines),
                "pauses": sum(silence.lasts_ms is not None for silence in found),
                "today": _shown(today),
                "best_at_the_same_wait": best(found, within_ms=today.wait_ms),
                "best_within_700_ms": best(found, within_ms=700),
                "cost_ms": cost_ms,
            }
        )
    )
    return 0


def _shown(told: Figures) -> dict[str, object]:
    return {name: getattr(told, name) for name in Figures.__slots__}


def _quiet(ms: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return np.zeros(RATE_HZ * ms // 1_000, np.int16)


async def _complete(analyzer: LocalSmartTurnAnalyzerV3, sound: np.ndarray[tuple[int], np.dtype[np.int16]]) -> float:
    analyzer.clear()  # type: ignore[no-untyped-call]
    analyzer.append_audio(sound.tobytes(), True)
    _, judged = await analyzer.analyze_end_of_turn()
    return float(getattr(judged, "probability", 0.0))


if __name__ == "__main__":
    sys.exit(main())
