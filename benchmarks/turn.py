"""How long a player waits for an answer, and how much of it is ours.

    python -m benchmarks.turn [--llm-ttft-ms 200] [--llm-tokens-per-s 80] [--tts-ttfb-ms 80] [--turns 50]
                              [--npcs 3] [--speakers 4] [--history-entries 10000] [--eager] [--local]

The last line printed is a JSON object; what it holds, and how it is measured, stands in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from benchmarks.turn_figures import figures, summary
from benchmarks.turn_play import TurnHeard, players
from benchmarks.turn_providers import Delays, providers
from benchmarks.turn_recordings import Recorded, demo_recordings, questions
from benchmarks.turn_world import (
    EAGER_END_OF_TURN_MS,
    PAUSE_MS,
    Size,
    a_directory,
    cloud_settings,
    load_history,
    local_settings,
    write_campaign,
)
from glyphoxa.adapters.local import native_env
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.observability import log
from glyphoxa.providers.rows import ROWS

STOPPED = 128 + signal.SIGINT
_WARM_UP_TURNS = 1


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    native_env.prepare()
    log.set_up(level="WARNING")
    try:
        with a_directory() as directory:
            print(json.dumps(asyncio.run(stoppable(measure(options, directory)))))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    return 0


async def stoppable(work: Any) -> Any:
    """SIGTERM ends it as Ctrl-C does: everything is closed."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


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
            recordings = questions(recordings, to=_names(options.npcs))
            addresses = await stack.enter_async_context(providers(recordings, delays))
            end_of_turn_ms = EAGER_END_OF_TURN_MS if options.eager else PAUSE_MS
            settings = cloud_settings(campaign, directory / "data", addresses, end_of_turn_ms=end_of_turn_ms)
            # An answer is prepared from the pause on, and not heard before the end of the turn.
            expected_ms = max(end_of_turn_ms, PAUSE_MS + delays.to_first_sound_ms)
        _tell(f"loading {size.history_entries} utterances of the past")
        await load_history(settings, size.history_entries, tell=_tell)
        heard = await play(settings, recordings, turns=options.turns)
    return figures(heard, expected_ms=expected_ms)


async def play(settings: Settings, recordings: Sequence[Recorded], *, turns: int) -> list[TurnHeard]:
    """Open the table as the product does, and ask. The first turn is not counted: it opens connections."""
    from glyphoxa.bootstrap.table import open_table

    table = await open_table(settings, tell=_tell)
    try:
        await table.wait_until_ready()
        async with players(table, table.campaign.players) as people:
            heard: list[TurnHeard] = []
            for n in range(turns + _WARM_UP_TURNS):
                turn = await people.ask(n, recordings[n % len(recordings)])
                _tell(summary(n, turn))
                if n >= _WARM_UP_TURNS:
                    heard.append(turn)
            return heard
    finally:
        await table.close()


def _names(n_npcs: int) -> list[str]:
    return ["Korvald", "Marigund"][:n_npcs]


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def _not_negative(text: str) -> float:
    number = float(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, not {number}")
    return number


def _not_negative_count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, not {number}")
    return number


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn", description="Latency of a turn.")
    parser.add_argument("--llm-ttft-ms", type=_not_negative, default=200.0, help="to the model's first event")
    parser.add_argument("--llm-tokens-per-s", type=_not_negative, default=80.0, help="after it; 0: all at once")
    parser.add_argument("--tts-ttfb-ms", type=_not_negative, default=80.0, help="to the first sound of a clause")
    parser.add_argument("--stt-final-ms", type=_not_negative, default=20.0, help="pause to final transcript")
    parser.add_argument("--turns", type=positive, default=50)
    parser.add_argument("--npcs", type=positive, default=3)
    parser.add_argument("--speakers", type=positive, default=4)
    parser.add_argument("--history-entries", type=_not_negative_count, default=10_000, help="past utterances in memory")
    parser.add_argument("--eager", action="store_true", help="prepare the answer while waiting 480 ms for more")
    parser.add_argument("--local", action="store_true", help="the shipped models instead of stand-ins for providers")
    models = [row.name for row in ROWS if row.kind == "llm" and row.weights]
    parser.add_argument("--llm", choices=models, default="qwen-1.5b", help="with --local")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
