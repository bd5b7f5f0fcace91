"""Measure how many tables one machine carries: concurrent live sessions in one process, and their cost.

    python -m benchmarks.load [--sessions 4] [--minutes 3] [--speakers 4] [--npcs 3] [--history-entries 1000]

benchmarks/README.md describes the figures and how they are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provider_process import Addresses, Delays, Recorded, demo_recordings, providers, questions
from benchmarks.runner import above_zero, command, not_negative_count, percentile, positive, rss_mb, run, set_up, tell
from benchmarks.table import (
    KEY_VARIABLE,
    PAUSE_MS,
    Size,
    TurnHeard,
    cloud_settings,
    load_history,
    players,
    write_campaign,
)
from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.app import engines
from glyphoxa.app.memory import open_store_for
from glyphoxa.app.models import load_local_models
from glyphoxa.app.table import TableBuilder
from glyphoxa.app.transcript_reader import open_reader
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import NpcSilent, TableEvent
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ
from glyphoxa.observability import measure_lag

REPLY = "That much I know, friend. Ask the others, they were there when the bridge fell. I only heard the noise of it."
LONGEST_MS = 20.0
"""A longer gap is a dropout."""
_BYTES_PER_S = OUTPUT_RATE_HZ * 2
_SAMPLE_S = 1.0
_SETTLED = 1 / 3
"""Share of the time during which caches fill, so that growth of memory means nothing."""


@dataclass(slots=True)
class Heard:
    """The results of all tables."""

    turns: list[TurnHeard] = field(default_factory=list)
    dropouts_ms: list[float] = field(default_factory=list)
    lags_s: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Dropouts:
    """Audio that arrives after the listener has played all earlier audio, within one answer.

    Attributes:
        lasted_ms: The length of each dropout.
    """

    lasted_ms: list[float] = field(default_factory=list)
    _played_until_s: dict[NpcId, float] = field(default_factory=dict)

    def ends(self, npc: NpcId) -> None:
        """End an NPC's answer, so that the silence after it is not counted."""
        self._played_until_s.pop(npc, None)

    def sound(self, npc: NpcId, n_bytes: int, *, at_s: float) -> None:
        """Take a piece of an NPC's audio, mono s16le."""
        lasts_s = n_bytes / _BYTES_PER_S
        due_s = self._played_until_s.get(npc)
        late_ms = 0.0 if due_s is None else (at_s - due_s) * 1_000
        if due_s is None or late_ms > 0:
            due_s = at_s
        if late_ms > LONGEST_MS:
            self.lasted_ms.append(late_ms)
        self._played_until_s[npc] = due_s + lasts_s


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


async def measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    recordings = questions(demo_recordings(), to=["Korvald", "Marigund"])
    size = Size(options.npcs, options.speakers, options.history_entries)
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(providers(recordings, Delays(), reply=REPLY))
        all_settings = await tables_with_history(directory, size, options.sessions, addresses)
        shares = [all_settings[n :: options.processes] for n in range(options.processes)]
        begin = partial(_played, recordings=recordings, minutes=options.minutes)
        if options.processes == 1:
            heard, samples = await begin(shares[0])
        else:
            try:
                heard, samples = together(await asyncio.to_thread(_in_processes, begin, shares))
            finally:  # a thread that waits for them cannot be cancelled
                for process in multiprocessing.active_children():
                    process.terminate()
    return figures(heard, samples, n_sessions=options.sessions, minutes=options.minutes)


async def _played(
    all_settings: Sequence[Settings],
    *,
    recordings: Sequence[Recorded],
    minutes: float,
    all_open: Callable[[], object] = lambda: None,
) -> tuple[Heard, list[Sample]]:
    """Play the tables of one process.

    Args:
        all_open: Waits until the tables of all processes are open.
    """
    heard = Heard()
    async with ClosingStack() as closing:
        tables = await open_tables(all_settings, closing)
        tell(f"{len(tables)} tables are open")
        await asyncio.to_thread(all_open)
        lag = asyncio.create_task(measure_lag(heard.lags_s.append, every_s=0.05))
        until_s = time.monotonic() + minutes * 60
        watch = asyncio.create_task(_watch(until_s))
        await asyncio.gather(*(play(table, n, recordings, heard, until_s) for n, table in enumerate(tables)))
        samples = await watch
        lag.cancel()
    return heard, samples


Begin = Callable[..., Coroutine[Any, Any, tuple[Heard, "list[Sample]"]]]


def _in_processes(begin: Begin, shares: Sequence[Sequence[Settings]]) -> list[tuple[Heard, list[Sample]]]:
    """Play each share of the tables in a process of its own, all at the same time.

    Raises:
        Unavailable: A process failed.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(shares))
    ends, processes = [], []
    for share in shares:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_process, args=(begin, share, barrier, theirs))
        process.start()
        theirs.close()
        ends.append(ours)
        processes.append(process)
    try:
        return [end.recv() for end in ends]
    except EOFError:
        barrier.abort()
        raise Unavailable("a process with tables failed; its message is above") from None
    finally:
        for process in processes:
            process.join()


def _process(begin: Begin, share: Sequence[Settings], barrier: Barrier, end: Connection) -> None:
    set_up()
    os.environ[KEY_VARIABLE] = "benchmark"
    end.send(asyncio.run(begin(share, all_open=barrier.wait)))
    end.close()


def together(results: Sequence[tuple[Heard, list[Sample]]]) -> tuple[Heard, list[Sample]]:
    """Return what all processes heard, and their use of the machine together, second by second."""
    heard = Heard()
    for each, _ in results:
        heard.turns += each.turns
        heard.dropouts_ms += each.dropouts_ms
        heard.lags_s += each.lags_s
    rounds = zip(*(samples for _, samples in results), strict=False)
    samples = [Sample(at[0].at_s, sum(one.rss_mb for one in at), sum(one.cpu_s for one in at)) for at in rounds]
    return heard, samples


async def tables_with_history(directory: Path, size: Size, n_tables: int, addresses: Addresses) -> list[Settings]:
    """Write a campaign for each table, and store its past utterances, embedded and unread, in one database."""
    all_settings = []
    for n in range(n_tables):
        own = directory / f"session-{n}"
        own.mkdir()
        campaign = write_campaign(own, size, name=f"Table {n}")
        all_settings.append(cloud_settings(campaign, directory / "data", addresses, end_of_turn_ms=PAUSE_MS))
    for settings in all_settings:
        await load_history(settings, size.history_entries)
    return all_settings


async def open_tables(
    all_settings: Sequence[Settings], stack: ClosingStack, *, session: str = "load"
) -> list[TableSession]:
    """Open all tables in this process, with one set of models, one database and one reader, as a host of several.

    Args:
        session: Prefix of the ids of their sessions.
    """
    local = await load_local_models(all_settings[0], stack, slots=1, tell=tell)
    store = await open_store_for(all_settings[0], local, stack)
    reader = open_reader(all_settings[0], store, stack)
    tables = []
    for n, settings in enumerate(all_settings):
        assert settings.campaign is not None
        campaign = read_campaign(settings.campaign).campaign
        builder = TableBuilder(
            settings=settings.model_copy(update={"data_dir": settings.campaign.parent}),
            campaign=campaign,
            session=SessionId(f"{session}-{n}"),
            local=local,
            store=store,
            mouths={npc.engine: engines.find_mouth(npc.engine, files={}) for npc in campaign.npcs},
            stack=stack,
        )
        tables.append(await builder.open(reader, tell=lambda _: None))
    for table in tables:
        await table.wait_until_ready()
    return tables


async def play(table: TableSession, n: int, recordings: Sequence[Recorded], heard: Heard, until_s: float) -> None:
    """Ask one question after the other until the time is over. The first is not counted: it opens connections."""
    dropouts = Dropouts()

    def on_event(event: TableEvent) -> None:
        if isinstance(event, NpcSilent):
            dropouts.ends(event.npc)

    ends = [
        table.subscribe(on_event),
        table.add_sink(lambda npc, pcm: dropouts.sound(npc, len(pcm), at_s=time.monotonic())),
    ]
    async with players(table, table.campaign.players) as people:
        asked = n
        while time.monotonic() < until_s:
            turn = await people.ask(asked, recordings[asked % len(recordings)])
            if asked > n:
                heard.turns.append(turn)
            asked += 1
        await table.wait_until_quiet()
    for end in ends:
        end()
    heard.dropouts_ms += dropouts.lasted_ms


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of this process.

    Attributes:
        cpu_s: Used so far, all threads.
    """

    at_s: float
    rss_mb: float
    cpu_s: float


async def _watch(until_s: float) -> list[Sample]:
    samples: list[Sample] = []
    while True:
        samples.append(Sample(time.monotonic(), rss_mb(), time.process_time()))
        if samples[-1].at_s >= until_s:
            return samples
        await asyncio.sleep(_SAMPLE_S)


def figures(heard: Heard, samples: Sequence[Sample], *, n_sessions: int, minutes: float) -> dict[str, Any]:
    waited = [turn.waited_ms for turn in heard.turns if turn.waited_ms is not None]
    took_s = samples[-1].at_s - samples[0].at_s
    cpu_percent = 100 * (samples[-1].cpu_s - samples[0].cpu_s) / max(took_s, 1e-9)
    return {
        "sessions": n_sessions,
        "minutes": minutes,
        "first_audio_p50_ms": percentile(waited, 50),
        "first_audio_p95_ms": percentile(waited, 95),
        "cpu_percent": round(cpu_percent, 1),
        "cpu_percent_per_session": round(cpu_percent / n_sessions, 1),
        "rss_mb": round(samples[-1].rss_mb, 1),
        "audio_gaps": len(heard.dropouts_ms),
        "longest_gap_ms": round(max(heard.dropouts_ms, default=0.0), 1),
        "rss_growth_mb_per_hour": growth_mb_per_hour(samples),
        "turns": len(heard.turns),
        "outcomes": dict(Counter(turn.outcome for turn in heard.turns)),
        "loop_lag_p99_ms": percentile([lag * 1_000 for lag in heard.lags_s], 99),
    }


def growth_mb_per_hour(samples: Sequence[Sample]) -> float | None:
    """Return the slope of a line through the samples, without those of the start; None for too few."""
    settled = samples[int(len(samples) * _SETTLED) :]
    if len(settled) < 3:
        return None
    slope, _ = np.polyfit([sample.at_s for sample in settled], [sample.rss_mb for sample in settled], 1)
    return round(float(slope) * 3_600, 1)


def _options() -> argparse.ArgumentParser:
    parser = command("load", __doc__)
    parser.add_argument("--sessions", type=positive, default=4)
    parser.add_argument("--processes", type=positive, default=1, help="that share the sessions")
    parser.add_argument("--minutes", type=above_zero, default=3.0)
    parser.add_argument("--speakers", type=positive, default=4, help="of each session")
    parser.add_argument("--npcs", type=positive, default=3, help="of each session")
    parser.add_argument("--history-entries", type=not_negative_count, default=1_000, help="past utterances of each")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
