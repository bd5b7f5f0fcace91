"""Fail if a change made turns slower, but not because the machine is slow or of another kind.

    python -m benchmarks.gate            compare with benchmarks/baseline.json; exit 1 on a regression
    python -m benchmarks.gate --update   accept the measured values as the new baseline

Every limit is on a ratio of two things that alternate in one process: our table and a bare pipecat pipeline, or a large
campaign and a small one. benchmarks/README.md explains the comparisons.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gate_growth import Growth, names_growth, talk_growth
from benchmarks.load import Heard, open_tables, play, tables_with_history
from benchmarks.provider_process import Delays, Recorded, demo_recordings, providers, questions
from benchmarks.runner import STOPPED, a_directory, command, percentile, positive, set_up, stoppable, tell
from benchmarks.table import PAUSE_MS, Size, cloud_settings, load_history, opened, players, write_campaign
from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.errors import Corrupt, GlyphoxaError, NotFound, Unavailable

UPDATE = "python -m benchmarks.gate --update"


@dataclass(frozen=True, slots=True)
class Limit:
    """A ratio as it was accepted, and how much above it is still noise.

    Attributes:
        ratio: The accepted value.
        tolerance: Added to it; a value above both is a regression.
    """

    ratio: float
    tolerance: float
    meaning: str


BASELINE = Path(__file__).parent / "baseline.json"
FIRST_AUDIO = "first_audio"
STALLS = "stalls"
STALL_MS = 1_500
READING = "reading"
NAMES = "names_growth"
TALK = "talk_growth"
KNOWN = {
    FIRST_AUDIO: Limit(1.0, 0.12, "end of speech to first sound, ours to bare pipecat, the fastest turn of each"),
    # One turn of seven may meet a stall of the machine.
    STALLS: Limit(0.0, 0.2, f"share of turns that came {STALL_MS} ms behind bare pipecat's neighbour, or never"),
    READING: Limit(1.0, 0.15, "first audio (p75) of two tables with 1,000 unread lines each, to the same left unread"),
    NAMES: Limit(1.1, 0.4, "CPU of a turn's decisions among 5,000 names to that among 50"),
    TALK: Limit(1.3, 0.6, "CPU of a recall in 5,000 turns to that in 500, by words and by both, without the model"),
}
PAIRS = 7
RUNS = 3
SIZE = Size(npcs=2, speakers=2, history_entries=500)
UNREAD = Size(npcs=2, speakers=2, history_entries=1_000)
READING_TABLES = 2
READING_S = 25
SHORT_REPLY = "That much I know, friend."
_CHRONICLES = ("none", "rules")
_SLOWER_TURNS = 75
"""Percentile: a fast machine may have read the backlog before half of the turns."""
_WARM_UP_PAIRS = 1
_WITHOUT_PAUSE_MS = PAUSE_MS - 10

Part = Callable[[], dict[str, float]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = command("gate", __doc__)
    parser.add_argument("--update", action="store_true", help="accept the measured values")
    parser.add_argument("--pairs", type=positive, default=PAIRS, help="turns of each arm")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    options = parser.parse_args(argv)
    set_up("ERROR")
    began_s = time.monotonic()
    try:
        if options.update:
            measured = {name: value for part in _parts(options.pairs) for name, value in part().items()}
            write_limits(options.baseline, measured, KNOWN)
            print(f"accepted: {', '.join(f'{name} {ratio:.3f}' for name, ratio in measured.items())}")
            return 0
        limits = read_limits(options.baseline)
        verdicts(dict.fromkeys(KNOWN, 0.0), limits)  # reject a baseline with other keys before it takes a minute
        return int(bool(judge(_parts(options.pairs), limits)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    finally:
        print(f"took {time.monotonic() - began_s:.0f} s", file=sys.stderr)


# -- verdicts


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    measured: float
    limit: Limit

    @property
    def is_regression(self) -> bool:
        return self.measured > self.limit.ratio + self.limit.tolerance

    def __str__(self) -> str:
        """Return one line: the measured value and its limit."""
        # A share may have been 0 when it was accepted.
        change = f"; {100 * (self.measured / self.limit.ratio - 1):+.0f} %" if self.limit.ratio else ""
        line = (
            f"{self.name}: {self.measured:.3f} (accepted {self.limit.ratio:.3f} + {self.limit.tolerance:.3f}{change}), "
            f"{self.limit.meaning}"
        )
        return f"REGRESSION {line}. If this is meant: {UPDATE}" if self.is_regression else f"ok {line}"


def verdicts(measured: Mapping[str, float], limits: Mapping[str, Limit]) -> list[Verdict]:
    """Return a verdict for each ratio.

    Raises:
        NotFound: A limit has no measurement, or the other way round.
    """
    if set(measured) != set(limits):
        odd = ", ".join(sorted(set(measured) ^ set(limits)))
        raise NotFound(f"the baseline and the measurement have different keys: {odd}; {UPDATE}")
    return [Verdict(name, measured[name], limit) for name, limit in limits.items()]


def fastest_ratio(ours: Sequence[float | None], bare: Sequence[float | None]) -> float | None:
    """Compare the fastest turn of each arm, because other work of the machine only ever adds to a turn.

    The fastest fifth is left out: now and then an arm takes a pause for the end of a turn, 100 ms too early. Returns
    None if fewer than half of the pairs are complete.
    """
    pairs = [(a, b) for a, b in zip(ours, bare, strict=True) if a is not None and b is not None and b > 0]
    if 2 * len(pairs) < len(ours) or not pairs:
        return None
    first = len(pairs) // 5
    return sorted(a for a, _ in pairs)[first] / sorted(b for _, b in pairs)[first]


def stalled_share(ours: Sequence[float | None], bare: Sequence[float | None], *, stall_ms: float) -> float:
    """Return the share of pairs in which ours came that much later, or not at all, of pairs with a bare answer.

    The fastest turn does not show these.
    """
    pairs = [(a, b) for a, b in zip(ours, bare, strict=True) if b is not None]
    return sum(a is None or a > b + stall_ms for a, b in pairs) / len(pairs) if pairs else 0.0


def read_limits(path: Path) -> dict[str, Limit]:
    """Return the accepted limits.

    Raises:
        NotFound: There is no such file.
        Corrupt: It has other content.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        return {name: Limit(**entry) for name, entry in document.items()}
    except FileNotFoundError:
        raise NotFound(f"no baseline {path}; make one: {UPDATE}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Corrupt(f"{path} is not a baseline of the gate ({error}); make a new one: {UPDATE}") from None


def write_limits(path: Path, measured: Mapping[str, float], known: Mapping[str, Limit]) -> None:
    """Accept the measured values. Tolerances stay."""
    document = {
        name: {"ratio": round(measured[name], 3), "tolerance": limit.tolerance, "meaning": limit.meaning}
        for name, limit in known.items()
    }
    path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def judge(parts: Sequence[Part], limits: Mapping[str, Limit]) -> set[str]:
    """Print a line for each ratio, and return the names of regressions.

    A regression repeats and a disturbance does not, so a part that fails is measured again, up to three times.
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


# -- measurements


def _parts(pairs: int) -> list[Part]:
    """Return the parts, each measured separately: growth by names and transcript, turns, and turns beside reading."""
    return [_names_growth, _talk_growth, lambda: _turns(pairs), _reading]


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
    """Print figures that depend on the processor and therefore have no limit."""
    print(f"not judged: {what}: {growth.large_ms:.2f} ms of CPU")


def _turns(pairs: int) -> dict[str, float]:
    """Measure both arms of a turn.

    Raises:
        Unavailable: Too few turns were answered.
    """
    with a_directory() as directory:
        write_campaign(directory, SIZE)
        ratio, stalls = asyncio.run(stoppable(_first_audio(directory, pairs=pairs)))
    if ratio is None:
        raise Unavailable("fewer than half of the turns were answered by both arms: the gate cannot judge")
    return {FIRST_AUDIO: ratio, STALLS: stalls}


async def _first_audio(directory: Path, *, pairs: int) -> tuple[float | None, float]:
    from benchmarks.bare_agent import bare_agent

    recordings = _unbroken(demo_recordings())
    ours: list[float | None] = []
    bare: list[float | None] = []
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(providers(recordings, Delays()))
        settings = cloud_settings(directory / "campaign.yaml", directory / "data", addresses, end_of_turn_ms=PAUSE_MS)
        await load_history(settings, SIZE.history_entries)
        table = await stack.enter_async_context(opened(settings))
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
            tell(f"  pair {n}: ours {_ms(ours_ms)}, bare {_ms(theirs_ms)}")
            if n >= _WARM_UP_PAIRS:
                ours.append(ours_ms)
                bare.append(theirs_ms)
    return fastest_ratio(ours, bare), stalled_share(ours, bare, stall_ms=STALL_MS)


def _reading() -> dict[str, float]:
    """Measure turns beside the background reading of a backlog.

    Raises:
        Unavailable: No turn was answered.
    """
    with a_directory() as directory:
        waited = asyncio.run(stoppable(_beside_reading(directory)))
    left, read = (percentile(waited[chronicle], _SLOWER_TURNS) for chronicle in _CHRONICLES)
    if not left or not read:
        raise Unavailable("no turn beside background reading was answered: the gate cannot judge")
    print(f"not judged: first audio of {READING_TABLES} tables: {left:.0f} ms, {read:.0f} ms while a backlog is read")
    return {READING: read / left}


async def _beside_reading(directory: Path) -> dict[str, list[float]]:
    """Return the times to first audio without and with background reading, of the same tables one after the other."""
    recordings = _unbroken(demo_recordings())
    waited: dict[str, list[float]] = {}
    async with AsyncExitStack() as stack:
        addresses = await stack.enter_async_context(providers(recordings, Delays(), reply=SHORT_REPLY))
        all_settings = await tables_with_history(directory, UNREAD, READING_TABLES, addresses)
        for chronicle in _CHRONICLES:
            memory = all_settings[0].memory.model_copy(update={"chronicle": chronicle})
            chosen = [settings.model_copy(update={"memory": memory}) for settings in all_settings]
            heard = Heard()
            async with ClosingStack() as closing:
                tables = await open_tables(chosen, closing, session=chronicle)
                until_s = time.monotonic() + READING_S
                await asyncio.gather(*(play(table, n, recordings, heard, until_s) for n, table in enumerate(tables)))
            waited[chronicle] = [turn.waited_ms for turn in heard.turns if turn.waited_ms is not None]
    return waited


def _unbroken(recordings: Sequence[Recorded]) -> list[Recorded]:
    """Drop recordings with a pause that could end a turn, because bare pipecat does not wait for the rest of a
    sentence.
    """
    asked = questions(recordings, to=["Korvald", "Marigund"])
    return [recorded for recorded in asked if recorded.longest_pause_ms < _WITHOUT_PAUSE_MS]


def _ms(waited_ms: float | None) -> str:
    return "no sound" if waited_ms is None else f"{waited_ms:.0f} ms"


if __name__ == "__main__":
    raise SystemExit(main())
