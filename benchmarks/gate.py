"""Fails when a change made turns slower, and not when the machine is slow.

    python -m benchmarks.gate            compare with benchmarks/baseline.json; exit 1 on a regression
    python -m benchmarks.gate --update   accept what is measured now as the new baseline
    python -m benchmarks.gate --prove    show that it fails for a real regression and passes on a busy machine

Our table and a bare pipecat pipeline answer the same recordings with the same stand-ins for providers, taking turns
in one process. benchmarks/README.md says what is compared, and why.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gate_rules import Limit, paired_ratio, read_limits, stalled_share, verdicts, write_limits
from benchmarks.recall_cost import recall_cost
from benchmarks.turn import STOPPED, positive, stoppable
from benchmarks.turn_cost import Correct, SlowDown, turn_cost
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
from glyphoxa.speech.names.gazetteer import Gazetteer
from glyphoxa.transcript.ports import TalkQuery

BASELINE = Path(__file__).parent / "baseline.json"
FIRST_AUDIO = "first_audio"
STALLS = "stalls"
STALL_MS = 1_500
DECISIONS = "decisions"
RECALL = "recall"
KNOWN = {
    FIRST_AUDIO: Limit(1.0, 0.11, "end of speech to first sound, ours to bare pipecat, median of neighbours"),
    # One turn of seven may meet a stall of the machine.
    STALLS: Limit(0.0, 0.2, f"share of turns that came {STALL_MS} ms behind bare pipecat's neighbour, or never"),
    DECISIONS: Limit(0.25, 0.15, "CPU of a turn's decisions (names, keywords, address, prompt), in yardsticks"),
    RECALL: Limit(
        0.34, 0.45, "CPU of a recall over 2,500 turns, by words and by both, without the model, in yardsticks"
    ),
}
PAIRS = 7
SIZE = Size(npcs=2, speakers=2, history_entries=500)
INJECTED_DELAY_S = 0.12
_WARM_UP_PAIRS = 1
_WITHOUT_PAUSE_MS = PAUSE_MS - 10


@dataclass(frozen=True, slots=True)
class Fault:
    """A regression put in on purpose. None: the code as it is."""

    slow_context: bool = False
    slow_names: bool = False
    slow_recall: bool = False


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
    try:
        if options.prove:
            return prove(options.baseline, pairs=options.pairs)
        measured = measure(pairs=options.pairs)
        if options.update:
            write_limits(options.baseline, measured, KNOWN)
            print(f"accepted: {', '.join(f'{name} {ratio:.3f}' for name, ratio in measured.items())}")
            return 0
        return judge(measured, options.baseline)
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED


def judge(measured: dict[str, float], baseline: Path) -> int:
    """Print a line for each ratio. 1 when one of them is a regression."""
    found = verdicts(measured, read_limits(baseline))
    for verdict in found:
        print(verdict)
    return int(any(verdict.is_regression for verdict in found))


def prove(baseline: Path, *, pairs: int) -> int:
    """Four runs: three that must fail, one that must not. 0 when all go as they must."""
    read_limits(baseline)
    as_expected = True
    for title, fault, busy, expected in (
        ("120 ms more in the assembly of the context", Fault(slow_context=True), False, {FIRST_AUDIO}),
        ("a scan of all names in the corrector", Fault(slow_names=True), False, {DECISIONS}),
        ("all talk looked through word by word at each recall", Fault(slow_recall=True), False, {RECALL}),
        ("two processes that keep the processor busy", Fault(), True, set()),
    ):
        print(f"{title}:")
        with _busy_machine() if busy else contextlib.nullcontext():
            measured = measure(pairs=pairs, fault=fault)
        found = verdicts(measured, read_limits(baseline))
        for verdict in found:
            print(f"  {verdict}")
        failed = {verdict.name for verdict in found if verdict.is_regression}
        as_expected &= failed == expected
        print(f"  {'as it must be' if failed == expected else 'NOT as it must be'}: {sorted(failed) or 'passes'}")
    return 0 if as_expected else 1


def measure(*, pairs: int, fault: Fault = Fault()) -> dict[str, float]:
    """Raises:
    Unavailable: Too few turns were answered to say anything.
    """
    with a_directory() as directory:
        campaign = read_campaign(write_campaign(directory, SIZE)).campaign
        cost = turn_cost(campaign, slow_down=_scan_of_names() if fault.slow_names else None)
        of_recall = recall_cost(slow_down=_look_through_all_talk if fault.slow_recall else None)
        ratio, stalls = asyncio.run(stoppable(_first_audio(directory, pairs=pairs, fault=fault)))
    if ratio is None:
        raise Unavailable("fewer than half of the turns were answered by both arms: the gate cannot judge")
    return {FIRST_AUDIO: ratio, STALLS: stalls, DECISIONS: cost, RECALL: of_recall}


async def _first_audio(directory: Path, *, pairs: int, fault: Fault) -> tuple[float | None, float]:
    from benchmarks.turn_bare import bare_agent
    from glyphoxa.bootstrap.table import open_table

    recordings = _unbroken(demo_recordings())
    ours: list[float | None] = []
    bare: list[float | None] = []
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(providers(recordings, Delays()))
        settings = cloud_settings(directory / "campaign.yaml", directory / "data", addresses, end_of_turn_ms=PAUSE_MS)
        await load_history(settings, SIZE.history_entries, tell=lambda _: None)
        if fault.slow_context:
            stack.enter_context(_slow_context())
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
    return paired_ratio(ours, bare), stalled_share(ours, bare, stall_ms=STALL_MS)


def _unbroken(recordings: Sequence[Recorded]) -> list[Recorded]:
    """Without a pause that could end a turn: bare pipecat does not wait for the rest of a sentence."""
    asked = questions(recordings, to=["Korvald", "Marigund"])
    return [recorded for recorded in asked if recorded.longest_pause_ms < _WITHOUT_PAUSE_MS]


def _ms(waited_ms: float | None) -> str:
    return "no sound" if waited_ms is None else f"{waited_ms:.0f} ms"


@contextmanager
def _slow_context() -> Iterator[None]:
    real = HotContextAssembly.gather

    async def slow(
        self: HotContextAssembly, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0
    ) -> HotContext:
        await asyncio.sleep(INJECTED_DELAY_S)
        return await real(self, npc, question, asker=asker, within_ms=within_ms)

    HotContextAssembly.gather = slow  # type: ignore[method-assign]
    try:
        yield
    finally:
        HotContextAssembly.gather = real  # type: ignore[method-assign]


def _scan_of_names() -> SlowDown:
    """Every word is held against every name: what an index is there to avoid."""

    def slow_down(correct: Correct, names: Gazetteer) -> Correct:
        joined = [name.joined for name in names.names]

        def scan(text: str) -> object:
            for word in text.lower().split():
                max(joined, key=lambda name: len(set(name) & set(word)))
            return correct(text)

        return scan  # type: ignore[return-value]

    return slow_down


def _look_through_all_talk(recall: Recall) -> None:
    """What an index is there to avoid."""
    real = recall.recall_nowait

    def slow(campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        index = recall.talk_cache.index(campaign)
        asked = set(query.text.lower().split())
        if index is not None:
            max(range(len(index)), key=lambda row: len(asked & set(index.said(row).text.lower().split())))
        return real(campaign, npc, query)

    recall.recall_nowait = slow  # type: ignore[method-assign] # it takes what the real one takes


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
