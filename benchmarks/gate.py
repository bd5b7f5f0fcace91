"""Fails when a change made turns slower, and not when the machine is slow or of another kind.

    python -m benchmarks.gate            compare with benchmarks/baseline.json; exit 1 on a regression
    python -m benchmarks.gate --update   accept what is measured now as the new baseline
    python -m benchmarks.gate --prove    show that it fails for a real regression and passes on a busy machine

Every limit is on a ratio of two things that take turns in one process: our table and a bare pipecat pipeline, or a
large campaign and a small one. benchmarks/README.md says what is compared, and why.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.gate_rules import Limit, fastest_ratio, read_limits, stalled_share, verdicts, write_limits
from benchmarks.growth import Growth, names_growth, talk_growth
from benchmarks.turn import STOPPED, positive, stoppable
from benchmarks.turn_play import players
from benchmarks.turn_providers import Delays, providers
from benchmarks.turn_recordings import Recorded, demo_recordings, questions
from benchmarks.turn_world import PAUSE_MS, Size, a_directory, cloud_settings, load_history, write_campaign
from glyphoxa.adapters.local import native_env
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.ports import HotContext
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.recalled import RecalledTalk
from glyphoxa.observability import log
from glyphoxa.recall.recall import Recall
from glyphoxa.speech.correction.corrector import Corrected, Corrector
from glyphoxa.transcript.ports import TalkQuery

BASELINE = Path(__file__).parent / "baseline.json"
FIRST_AUDIO = "first_audio"
STALLS = "stalls"
STALL_MS = 1_500
NAMES = "names_growth"
TALK = "talk_growth"
KNOWN = {
    FIRST_AUDIO: Limit(1.0, 0.12, "end of speech to first sound, ours to bare pipecat, the fastest turn of each"),
    # One turn of seven may meet a stall of the machine.
    STALLS: Limit(0.0, 0.2, f"share of turns that came {STALL_MS} ms behind bare pipecat's neighbour, or never"),
    NAMES: Limit(1.1, 0.4, "CPU of a turn's decisions among 5,000 names to that among 50"),
    TALK: Limit(1.3, 0.6, "CPU of a recall in 5,000 turns to that in 500, by words and by both, without the model"),
}
PAIRS = 7
RUNS = 3
SIZE = Size(npcs=2, speakers=2, history_entries=500)
INJECTED_DELAY_S = 0.12
_WARM_UP_PAIRS = 1
_WITHOUT_PAUSE_MS = PAUSE_MS - 10

Part = Callable[[], dict[str, float]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description="The latency gate.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--update", action="store_true", help="accept what is measured now")
    action.add_argument("--prove", action="store_true", help="show what makes it fail and what does not")
    parser.add_argument("--pairs", type=positive, default=PAIRS, help="turns of each arm")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    options = parser.parse_args(argv)
    native_env.prepare()
    log.set_up(level="ERROR")
    began_s = time.monotonic()
    try:
        if options.update:
            measured = {name: value for part in _parts(options.pairs) for name, value in part().items()}
            write_limits(options.baseline, measured, KNOWN)
            print(f"accepted: {', '.join(f'{name} {ratio:.3f}' for name, ratio in measured.items())}")
            return 0
        limits = read_limits(options.baseline)
        verdicts(dict.fromkeys(KNOWN, 0.0), limits)  # a baseline about other things is refused before it takes a minute
        return prove(limits, pairs=options.pairs) if options.prove else int(bool(judge(_parts(options.pairs), limits)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    finally:
        print(f"took {time.monotonic() - began_s:.0f} s", file=sys.stderr)


def judge(parts: Sequence[Part], limits: Mapping[str, Limit]) -> set[str]:
    """Print a line for each ratio, and return the names of those that are regressions.

    A regression is there in each run, and a disturbance is not: a part that fails is measured again, up to three times.
    """
    regressions: set[str] = set()
    for part in parts:
        for run in range(1, RUNS + 1):
            measured = part()
            found = verdicts(measured, {name: limits[name] for name in measured})
            failed = {verdict.name: f"{verdict.measured:.3f}" for verdict in found if verdict.is_regression}
            if not failed:
                break
            print(f"above the limit in run {run} of {RUNS}: {failed}", file=sys.stderr, flush=True)
        for verdict in found:
            print(verdict, flush=True)
        regressions |= set(failed)
    return regressions


def prove(limits: Mapping[str, Limit], *, pairs: int) -> int:
    """Four runs: three that must fail, one that must not. 0 when all go as they must."""
    names, talk, turns = parts = _parts(pairs)
    as_expected = True
    for title, circumstances, affected, expected in (
        ("120 ms more in the assembly of the context", _slow_context(), [turns], {FIRST_AUDIO}),
        ("a scan of all names in the corrector", _scan_of_names(), [names], {NAMES}),
        ("all talk looked through word by word at each recall", _scan_of_talk(), [talk], {TALK}),
        ("two processes that keep the processor busy", _busy_machine(), parts, set()),
    ):
        print(f"{title}:")
        with circumstances:
            failed = judge(affected, limits)
        as_expected &= failed == expected
        print(f"{'as it must be' if failed == expected else 'NOT as it must be'}: {sorted(failed) or 'passes'}")
    return 0 if as_expected else 1


def _parts(pairs: int) -> list[Part]:
    """What is measured, each part by itself: growth by names, growth by talk, and turns."""
    return [_names_growth, _talk_growth, lambda: _turns(pairs)]


def _names_growth() -> dict[str, float]:
    with a_directory() as directory:
        growth = names_growth(read_campaign(write_campaign(directory, SIZE)).campaign)
    _report("decisions of a turn", growth)
    return {NAMES: growth.ratio}


def _talk_growth() -> dict[str, float]:
    growth = talk_growth()
    _report("recall", growth)
    return {TALK: growth.ratio}


def _report(what: str, growth: Growth) -> None:
    """Print what depends on the processor, and therefore has no limit."""
    print(f"not judged: {what}: {growth.large_ms:.2f} ms of CPU, {growth.large_yardsticks:.3f} yardsticks")


def _turns(pairs: int) -> dict[str, float]:
    """Raises:
    Unavailable: Too few turns were answered to say anything.
    """
    with a_directory() as directory:
        write_campaign(directory, SIZE)
        ratio, stalls = asyncio.run(stoppable(_first_audio(directory, pairs=pairs)))
    if ratio is None:
        raise Unavailable("fewer than half of the turns were answered by both arms: the gate cannot judge")
    return {FIRST_AUDIO: ratio, STALLS: stalls}


async def _first_audio(directory: Path, *, pairs: int) -> tuple[float | None, float]:
    from benchmarks.turn_bare import bare_agent
    from glyphoxa.bootstrap.table import open_table

    recordings = _unbroken(demo_recordings())
    ours: list[float | None] = []
    bare: list[float | None] = []
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(providers(recordings, Delays()))
        settings = cloud_settings(directory / "campaign.yaml", directory / "data", addresses, end_of_turn_ms=PAUSE_MS)
        await load_history(settings, SIZE.history_entries, tell=lambda _: None)
        table = await open_table(settings, tell=lambda _: None)
        stack.push_async_callback(table.close)
        await table.wait_until_ready()
        people = await stack.enter_async_context(players(table, table.campaign.players))
        agent = await stack.enter_async_context(bare_agent(settings))
        for n in range(pairs + _WARM_UP_PAIRS):
            recorded = recordings[n % len(recordings)]
            if n % 2:
                theirs_ms = await agent.ask(recorded)
                ours_ms = (await people.ask(n, recorded)).waited_ms
            else:
                ours_ms = (await people.ask(n, recorded)).waited_ms
                theirs_ms = await agent.ask(recorded)
            print(f"  pair {n}: ours {_ms(ours_ms)}, bare {_ms(theirs_ms)}", file=sys.stderr, flush=True)
            if n >= _WARM_UP_PAIRS:
                ours.append(ours_ms)
                bare.append(theirs_ms)
    return fastest_ratio(ours, bare), stalled_share(ours, bare, stall_ms=STALL_MS)


def _unbroken(recordings: Sequence[Recorded]) -> list[Recorded]:
    """Without a pause that could end a turn: bare pipecat does not wait for the rest of a sentence."""
    asked = questions(recordings, to=["Korvald", "Marigund"])
    return [recorded for recorded in asked if recorded.longest_pause_ms < _WITHOUT_PAUSE_MS]


def _ms(waited_ms: float | None) -> str:
    return "no sound" if waited_ms is None else f"{waited_ms:.0f} ms"


@contextmanager
def _replaced(owner: type, name: str, slower: Callable[..., Any]) -> Iterator[None]:
    real = getattr(owner, name)
    setattr(owner, name, slower)
    try:
        yield
    finally:
        setattr(owner, name, real)


def _slow_context() -> AbstractContextManager[None]:
    real = HotContextAssembly.gather

    async def slow(*given: Any, **more: Any) -> HotContext:
        await asyncio.sleep(INJECTED_DELAY_S)
        return await real(*given, **more)

    return _replaced(HotContextAssembly, "gather", slow)


def _scan_of_names() -> AbstractContextManager[None]:
    """Hold every transcript against every name: what an index is there to avoid."""
    real = Corrector.correct

    def slow(self: Corrector, text: str, **more: Any) -> Corrected:
        letters = set(text.lower())
        max(self.gazetteer.names, key=lambda name: len(letters & set(name.joined)))
        return real(self, text, **more)

    return _replaced(Corrector, "correct", slow)


def _scan_of_talk() -> AbstractContextManager[None]:
    """Hold every question against all that was said: what an index is there to avoid."""
    real = Recall.recall_nowait

    def slow(self: Recall, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        index = self.talk_cache.index(campaign)
        asked = set(query.text.lower().split())
        if index is not None:
            max(range(len(index)), key=lambda row: len(asked & set(index.text(row).lower().split())))
        return real(self, campaign, npc, query)

    return _replaced(Recall, "recall_nowait", slow)


def _spin(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == parent:
        sum(range(100_000))


@contextmanager
def _busy_machine(n_processes: int = 2) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    spinning = [context.Process(target=_spin, args=(os.getpid(),), daemon=True) for _ in range(n_processes)]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.terminate()
            process.join()


if __name__ == "__main__":
    raise SystemExit(main())
