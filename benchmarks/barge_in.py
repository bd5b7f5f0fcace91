"""Measure how soon an NPC is silent when a player speaks over it.

    python -m benchmarks.barge_in [--turns 20] [--stt-final-ms 20] [--words-only]

A player asks, an NPC answers at length, and half a second into the answer another player speaks. The time is from when
their voice has lasted 250 ms to the end of the NPC's last sound. benchmarks/README.md describes the figures.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.provider_process import Delays, Recorded, demo_recordings, providers, questions
from benchmarks.runner import command, not_negative, percentile, positive, rss_mb, run, tell
from benchmarks.table import PAUSE_MS, TURN_PATIENCE_S, Players, Size, cloud_settings, opened, players, write_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.domain.budgets import BARGE_IN_MS
from glyphoxa.domain.turn_record import TurnRecord

REPLY = " ".join(f"That is what I was told, and I keep it in mind for day number {n}." for n in range(1, 4))
_INTO_ANSWER_S = 0.5


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    campaign = write_campaign(directory, Size(npcs=2, speakers=2, history_entries=0))
    recordings = questions(demo_recordings(), to=["Korvald", "Marigund"])
    async with AsyncExitStack() as stack:
        delays = Delays(stt_final_ms=options.stt_final_ms)
        addresses = await stack.enter_async_context(providers(recordings, delays, reply=REPLY))
        settings = cloud_settings(campaign, directory / "data", addresses, end_of_turn_ms=PAUSE_MS)
        if options.words_only:
            settings = settings.model_copy(update={"turns": settings.turns.model_copy(update={"barge_in_ms": 0})})
        return figures(await play(settings, recordings, n_turns=options.turns))


@dataclass(frozen=True, slots=True)
class CutOff:
    """An answer that a player spoke over.

    Attributes:
        voice_ms: When the player's voice had lasted 250 ms.
        silent_ms: When the NPC's last sound ended; None if it was not interrupted.
        record: The answer's; None if the table gave none in time.
    """

    voice_ms: float
    silent_ms: float | None
    record: TurnRecord | None

    @property
    def silenced_after_ms(self) -> float | None:
        return None if self.silent_ms is None else self.silent_ms - self.voice_ms


async def play(settings: Settings, recordings: Sequence[Recorded], *, n_turns: int) -> list[CutOff]:
    async with opened(settings) as table, players(table, table.campaign.players) as people:
        cuts = []
        for n in range(n_turns):
            asked, over = recordings[n % len(recordings)], recordings[(n + 1) % len(recordings)]
            cuts.append(await _cut_off(people, asked, over))
            tell(f"  answer {n:3d}  {cuts[-1].silenced_after_ms or float('nan'):6.0f} ms")
        return cuts


async def _cut_off(people: Players, asked: Recorded, over: Recorded) -> CutOff:
    listener = people.listener
    await people.table.wait_until_quiet()
    listener.forget()
    await people.microphones[0].speak(asked)
    async with asyncio.timeout(TURN_PATIENCE_S):
        await listener.begun.wait()
    await asyncio.sleep(_INTO_ANSWER_S)
    ended_ms = await people.microphones[1].speak(over)
    voice_ms = ended_ms - over.voiced_until_ms + over.voiced_from_ms + BARGE_IN_MS
    try:
        async with asyncio.timeout(TURN_PATIENCE_S):
            await listener.over.wait()
    except TimeoutError:
        return CutOff(voice_ms, None, None)
    return CutOff(voice_ms, listener.silent_ms, listener.record)


def figures(cuts: Sequence[CutOff]) -> dict[str, Any]:
    """Return the keys of the benchmark, in milliseconds."""
    silenced = [cut.silenced_after_ms for cut in cuts if cut.silenced_after_ms is not None]
    recorded = [ms for cut in cuts if cut.record is not None and (ms := cut.record.silenced_after_ms) is not None]
    return {
        "silenced_p50_ms": percentile(silenced, 50),
        "silenced_p95_ms": percentile(silenced, 95),
        "recorded_p50_ms": percentile(recorded, 50),
        "recorded_p95_ms": percentile(recorded, 95),
        "outcomes": dict(Counter(cut.record.outcome.value if cut.record else "none" for cut in cuts)),
        "turns": len(cuts),
        "rss_mb": rss_mb(),
    }


def _options() -> argparse.ArgumentParser:
    parser = command("barge_in", __doc__)
    parser.add_argument("--turns", type=positive, default=20)
    parser.add_argument("--stt-final-ms", type=not_negative, default=20.0, help="pause to final transcript")
    parser.add_argument("--words-only", action="store_true", help="as with turns.barge_in_ms: 0")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
