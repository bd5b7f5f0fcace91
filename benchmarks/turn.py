"""Measure how long a player waits for an answer, and how much of it is ours.

    python -m benchmarks.turn [--llm-ttft-ms 200] [--llm-tokens-per-s 80] [--tts-ttfb-ms 80] [--turns 50]
                              [--npcs 3] [--speakers 4] [--history-entries 10000] [--eager] [--local]
                              [--node]

benchmarks/README.md describes the figures and how they are measured.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from benchmarks.provider_process import Delays, Recorded, demo_recordings, providers, questions
from benchmarks.runner import command, not_negative, not_negative_count, percentile, positive, rss_mb, run, tell
from benchmarks.table import (
    EAGER_END_OF_TURN_MS,
    PAUSE_MS,
    Size,
    TurnHeard,
    cloud_settings,
    load_history,
    local_settings,
    opened,
    opened_on_node,
    players,
    write_campaign,
)
from glyphoxa.domain.turn_record import Stage
from glyphoxa.npc.session import TableSession
from glyphoxa.providers.registry import ROWS

_WARM_UP_TURNS = 1
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


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    size = Size(options.npcs, options.speakers, options.history_entries)
    campaign = write_campaign(directory, size)
    delays = Delays(options.stt_final_ms, options.llm_ttft_ms, options.llm_tokens_per_s, options.tts_ttfb_ms)
    async with AsyncExitStack() as stack:
        recordings = demo_recordings()
        if options.local:
            settings = local_settings(campaign, directory / "data", options.llm)
            expected_ms = float(settings.turns.end_of_turn_ms)
        else:
            recordings = questions(recordings, to=["Korvald", "Marigund"][: options.npcs])
            addresses = await stack.enter_async_context(providers(recordings, delays))
            end_of_turn_ms = EAGER_END_OF_TURN_MS if options.eager else PAUSE_MS
            settings = cloud_settings(campaign, directory / "data", addresses, end_of_turn_ms=end_of_turn_ms)
            # An answer is prepared from the pause on, and not heard before the end of the turn.
            expected_ms = max(end_of_turn_ms, PAUSE_MS + delays.to_first_sound_ms)
        await load_history(settings, size.history_entries)
        opening = opened_on_node(settings) if options.node else opened(settings)
        heard = await play(opening, recordings, turns=options.turns)
    return figures(heard, expected_ms=expected_ms)


async def play(
    opening: AbstractAsyncContextManager[TableSession], recordings: Sequence[Recorded], *, turns: int
) -> list[TurnHeard]:
    """Open the table as the product does, and ask. The first turn is not counted: it opens connections."""
    async with opening as table, players(table, table.campaign.players) as people:
        heard: list[TurnHeard] = []
        for n in range(turns + _WARM_UP_TURNS):
            turn = await people.ask(n, recordings[n % len(recordings)])
            tell(summary(n, turn))
            if n >= _WARM_UP_TURNS:
                heard.append(turn)
        return heard


def figures(turns: Sequence[TurnHeard], *, expected_ms: float) -> dict[str, Any]:
    """Return the keys of the benchmark, in milliseconds.

    Args:
        expected_ms: End of speech to first sound if only the wait and the providers took time.
    """
    waited = [heard.waited_ms for heard in turns if heard.waited_ms is not None]
    stages = stage_times(turns)
    context = stages.get("context", [])
    return {
        "first_audio_p50_ms": percentile(waited, 50),
        "first_audio_p95_ms": percentile(waited, 95),
        "overhead_p50_ms": percentile([ms - expected_ms for ms in waited], 50),
        "overhead_p95_ms": percentile([ms - expected_ms for ms in waited], 95),
        "stages": {name: {"p50": percentile(ms, 50), "p95": percentile(ms, 95)} for name, ms in stages.items()},
        "hot_context_p50_ms": percentile(context, 50),
        "hot_context_p95_ms": percentile(context, 95),
        "outcomes": dict(Counter(heard.outcome for heard in turns)),
        "discarded_tokens": sum(heard.record.discarded_tokens for heard in turns if heard.record is not None),
        "turns": len(turns),
        "rss_mb": rss_mb(),
    }


def stage_times(turns: Sequence[TurnHeard]) -> dict[str, list[float]]:
    """Return how long each step took, by step. `detector` is the delay of the detected end of speech."""
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
    """Return a line for people."""
    record = heard.record
    waited = f"{heard.waited_ms:6.0f} ms" if heard.waited_ms is not None else "   no sound"
    if record is None:
        return f"  turn {number:3d}  {waited}  no outcome"
    omitted = f"  left out: {', '.join(record.prompt.omitted)}" if record.prompt.omitted else ""
    return f"  turn {number:3d}  {waited}  {record.outcome.value:12s} {record.speaker_name} -> {record.npc_id}{omitted}"


def _options() -> argparse.ArgumentParser:
    parser = command("turn", __doc__)
    parser.add_argument("--llm-ttft-ms", type=not_negative, default=200.0, help="to the model's first event")
    parser.add_argument("--llm-tokens-per-s", type=not_negative, default=80.0, help="after it; 0: all at once")
    parser.add_argument("--tts-ttfb-ms", type=not_negative, default=80.0, help="to the first sound of a clause")
    parser.add_argument("--stt-final-ms", type=not_negative, default=20.0, help="pause to final transcript")
    parser.add_argument("--turns", type=positive, default=50)
    parser.add_argument("--npcs", type=positive, default=3)
    parser.add_argument("--speakers", type=positive, default=4)
    parser.add_argument("--history-entries", type=not_negative_count, default=10_000, help="past utterances in memory")
    parser.add_argument("--eager", action="store_true", help="prepare the answer while waiting 480 ms for more")
    parser.add_argument("--local", action="store_true", help="the shipped models instead of stand-ins for providers")
    parser.add_argument("--node", action="store_true", help="on a node of a cluster, not in a process alone")
    models = [row.name for row in ROWS if row.kind == "llm" and row.weights]
    parser.add_argument("--llm", choices=models, default="qwen-1.5b", help="with --local")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
