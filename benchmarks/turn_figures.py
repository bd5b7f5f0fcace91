"""From turns that were heard to the figures of the benchmark."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.turn_play import TurnHeard
from glyphoxa.domain.turn import Stage, TurnRecord

_STEPS = (
    ("transcript", Stage.SPEECH_END, Stage.TRANSCRIPT_FINAL),
    ("corrected", Stage.TRANSCRIPT_FINAL, Stage.CORRECTED),
    ("addressed", Stage.CORRECTED, Stage.ADDRESSED),
    ("context", Stage.ADDRESSED, Stage.CONTEXT_READY),
    ("first_token", Stage.CONTEXT_READY, Stage.FIRST_TOKEN),
    ("first_sentence", Stage.FIRST_TOKEN, Stage.FIRST_SENTENCE),
    ("first_audio", Stage.FIRST_SENTENCE, Stage.FIRST_AUDIO),
    ("turn_end", Stage.SPEECH_END, Stage.TURN_END),
)


def figures(turns: Sequence[TurnHeard], *, expected_ms: float) -> dict[str, Any]:
    """The keys of the benchmark, in milliseconds.

    Args:
        expected_ms: End of speech to first sound if only the wait and the providers took time.
    """
    waited = [heard.waited_ms for heard in turns if heard.waited_ms is not None]
    stages = stage_times(turns)
    first_p50, first_p95 = percentiles(waited)
    over_p50, over_p95 = percentiles([ms - expected_ms for ms in waited])
    context_p50, context_p95 = percentiles(stages.get("context", []))
    return {
        "first_audio_p50_ms": first_p50,
        "first_audio_p95_ms": first_p95,
        "overhead_p50_ms": over_p50,
        "overhead_p95_ms": over_p95,
        "stages": {name: dict(zip(("p50", "p95"), percentiles(ms), strict=True)) for name, ms in stages.items()},
        "hot_context_p50_ms": context_p50,
        "hot_context_p95_ms": context_p95,
        "outcomes": dict(Counter(heard.record.outcome.value if heard.record else "none" for heard in turns)),
        "turns": len(turns),
        "rss_mb": rss_mb(),
    }


def stage_times(turns: Sequence[TurnHeard]) -> dict[str, list[float]]:
    """How long each step took, by step. `detector` is how far the detector's end of speech is behind the true one."""
    times: dict[str, list[float]] = {}
    for heard in turns:
        if heard.record is None or heard.first_audio_ms is None:
            continue
        at = heard.record.stages
        if Stage.SPEECH_END in at:
            times.setdefault("detector", []).append(at[Stage.SPEECH_END] - heard.speech_end_ms)
        for name, begin, end in _STEPS:
            if begin in at and end in at:
                times.setdefault(name, []).append(at[end] - at[begin])
    return times


def summary(number: int, heard: TurnHeard) -> str:
    """A line for people."""
    record: TurnRecord | None = heard.record
    waited = f"{heard.waited_ms:6.0f} ms" if heard.waited_ms is not None else "   no sound"
    if record is None:
        return f"  turn {number:3d}  {waited}  no outcome"
    omitted = f"  left out: {', '.join(record.omitted)}" if record.omitted else ""
    return f"  turn {number:3d}  {waited}  {record.outcome.value:12s} {record.speaker_name} -> {record.npc_id}{omitted}"


def percentiles(ms: Sequence[float]) -> tuple[float | None, float | None]:
    """p50 and p95, None of nothing."""
    if not ms:
        return None, None
    p50, p95 = np.percentile(np.asarray(ms), [50, 95])
    return round(float(p50), 1), round(float(p95), 1)


def rss_mb() -> float:
    """Of this process: now where the system tells it, else the most it ever was."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return round(int(line.split()[1]) / 1024, 1)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
