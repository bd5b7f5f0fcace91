"""Whether the exact gate gives what a question calls for, and nothing beside it: PrecisionMemBench.

    python -m benchmarks.precision DIR [--beside 2000] [--arm live]

`DIR` holds `beliefs.seed.json`, `retrieval.cases.json` and `session-retrieval.cases.json` of PrecisionMemBench
(tenurehq/precisionMemBench, MIT, (c) 2026 Jeffrey Flynt). Each turn of a session is a case; what is learned in a turn
is known from the next one on, in later sessions too. The last line printed is a JSON object: `passed` of `cases`,
`session_passed` of `session_cases`, `p50_ms` and `p95_ms` of one question, `failures` (ids of cases, a turn as
"id#turn"); what failed is said on standard error.

A case passes when what it names is in its place: `mustInclude` and `shouldInclude` of pinned facts and of relevant
beliefs in the two together, `mustExclude` in neither, `shouldOnlyInclude` is all that is relevant and not pinned;
open questions stand apart. The text of a persona (`personaPrelude`) is no retrieval and is not looked at.

With `--arm live` the same is asked over the path of a turn, with a database: see `benchmarks.precision_live`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter_ns
from typing import Final

from benchmarks.memory_words import invented_name
from benchmarks.names import percentile
from benchmarks.precision_cases import BELIEFS, CASES, EVERYWHERE, SESSIONS, Belief, Case, read_beliefs, read_cases
from benchmarks.precision_gate import Given, PinningGate
from benchmarks.precision_live import Live
from benchmarks.turn_world import a_directory
from glyphoxa.adapters.local import native_env
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.observability import log
from glyphoxa.recall.entities.gate import Named

_TIMES: Final = 20
"""Each question is timed so often; one alone is too short for a clock."""


@dataclass(slots=True)
class Figures:
    passed: int = 0
    cases: int = 0
    session_passed: int = 0
    session_cases: int = 0
    times_ms: list[float] = field(default_factory=list)
    complaints: dict[str, list[str]] = field(default_factory=dict)
    """What was wrong, by the case."""

    def count(self, case: Case, complaints: list[str]) -> None:
        if case.is_session:
            self.session_cases += 1
            self.session_passed += not complaints
        else:
            self.cases += 1
            self.passed += not complaints
        if complaints:
            self.complaints[case.name] = complaints


class Memory:
    """All that is believed, in one gate; who asks sees what is his and counts in his scopes."""

    def __init__(self, beliefs: Iterable[Belief], beside: Iterable[Named] = ()) -> None:
        self._beliefs: dict[str, Belief] = {}
        self._gate = PinningGate(beside)
        for belief in beliefs:
            self.learn(belief)

    def learn(self, belief: Belief) -> None:
        self._beliefs[belief.item.id] = belief
        self._gate.put(belief.item, belief.pinned)

    def learn_aliases(self, belief_id: str, aliases: tuple[str, ...]) -> None:
        """
        Raises:
            InvalidInput: There is no such belief.
        """
        belief = self._beliefs.get(belief_id)
        if belief is None:
            raise InvalidInput(f"{SESSIONS}: gives aliases to {belief_id!r}, which is no belief")
        self.learn(replace(belief, item=replace(belief.item, names=(*belief.item.names, *aliases))))

    def ask(self, case: Case) -> Given:
        scopes = case.scopes - {EVERYWHERE}

        def may_see(item: Named) -> bool:
            belief = self._beliefs.get(item.id)
            return belief is None or (belief.user == case.user and not scopes.isdisjoint(belief.scopes))

        return self._gate.ask(case.question, may_see=may_see, limit=case.limit)


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        beliefs, cases = read_beliefs(options.directory), read_cases(options.directory)
        beside = invented(options.beside)
        if options.arm == "live":
            native_env.prepare()
            log.set_up(level="WARNING")
            figures = asyncio.run(measure_live(beliefs, cases, beside=beside))
        else:
            figures = measure(beliefs, cases, beside=beside)
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, complaints in figures.complaints.items():
        print(f"{name}: {'; '.join(complaints)}", file=sys.stderr)
    print(
        json.dumps(
            {
                "passed": figures.passed,
                "cases": figures.cases,
                "session_passed": figures.session_passed,
                "session_cases": figures.session_cases,
                "p50_ms": round(percentile(figures.times_ms, 50), 3),
                "p95_ms": round(percentile(figures.times_ms, 95), 3),
                "beside": options.beside,
                "failures": list(figures.complaints),
            }
        )
    )
    return 0


def measure(beliefs: Iterable[Belief], cases: Iterable[Case], *, beside: Iterable[Named] = ()) -> Figures:
    """Ask every question in order; what it teaches is believed from the next one on.

    Args:
        beside: Held beside the beliefs, and seen by all: for the time it takes to ask among many.
    """
    memory = Memory(beliefs, beside)
    figures = Figures()
    for case in cases:
        for _ in range(_TIMES):
            started = perf_counter_ns()
            given = memory.ask(case)
            figures.times_ms.append((perf_counter_ns() - started) / 1e6)
        figures.count(case, case.complaints(given))
        for belief in case.taught:
            memory.learn(belief)
        for belief_id, aliases in (case.renamed or {}).items():
            memory.learn_aliases(belief_id, aliases)
    return figures


async def measure_live(beliefs: Sequence[Belief], cases: Sequence[Case], *, beside: Iterable[Named] = ()) -> Figures:
    """The same at a table. Each question is asked once, and timed from its text to its prompt."""
    live = Live(beliefs, cases, beside)
    figures = Figures(times_ms=live.times_ms)
    with a_directory() as directory:
        try:
            await live.open(directory)
            for case in cases:
                figures.count(case, case.complaints(await live.ask(case)))
                await live.learn(case.taught, case.renamed or {})
        finally:
            await live.close()
    return figures


def invented(n: int) -> list[Named]:
    """Entities with two invented names each, the same for every run."""
    dice = random.Random("beside the beliefs")
    kinds = [dice.choice(ENTITY_TYPES) for _ in range(n)]
    return [
        Named(f"invented {number}", (invented_name(dice, kind), invented_name(dice, kind)), kind)
        for number, kind in enumerate(kinds)
    ]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR", help=f"holds {BELIEFS}, {CASES}, {SESSIONS}")
    parser.add_argument("--beside", type=int, default=0, metavar="N", help="invented entities beside the beliefs")
    parser.add_argument("--arm", choices=("gate", "live"), default="gate", help="the gate alone, or the path of a turn")
    return parser


if __name__ == "__main__":
    sys.exit(main())
