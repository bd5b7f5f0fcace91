"""Percentiles of operations that are timed one after the other, as a table's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Final, TypeAlias

import numpy as np

from benchmarks.memory_cpu import CpuClock
from glyphoxa.domain.errors import Unavailable

Call: TypeAlias = Callable[[], Awaitable[int]]
"""Does it once; returns how much it found."""

TARGETS_MS: Final[Mapping[str, float]] = {
    "identity_snapshot": 3.0,
    "neighbours_1": 2.0,
    "neighbours_3": 8.0,
    "graph_rag": 15.0,
    "append": 5.0,
}
"""At 95 of 100, on two cores."""
TURNS_PER_S_TARGET: Final = 2_000
RECALL_TARGET: Final = 95.0


@dataclass(frozen=True, slots=True)
class Operation:
    """
    Attributes:
        prepare: Chooses what the n-th call asks for, other things each time; that is not timed.
        samples: How many are timed at most; None for as many as the others.
    """

    name: str
    prepare: Callable[[int], Call]
    samples: int | None = None


@dataclass(slots=True)
class Timings:
    """
    Attributes:
        cpu_ms: Time on a processor, here and in the server.
        found: How much each call found. What finds nothing is often quick: a figure of it says little.
        given_up: Calls that had no answer within the product's own deadline; the time until then is counted.
    """

    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    given_up: int = 0


async def timed(operation: Operation, *, samples: int, warm_up: int, cpu: CpuClock | None = None) -> Timings:
    """The first `warm_up` calls fill caches and prepare statements; they are not counted."""
    timings, clock = Timings(), cpu or CpuClock()
    n_calls = min(samples, operation.samples or samples)
    for n in range(warm_up + n_calls):
        call = operation.prepare(n)
        cpu_began, began = clock.start(), perf_counter_ns()
        try:
            found = await call()
        except Unavailable:
            found = 0
            timings.given_up += n >= warm_up
        took_ns, cpu_took_ns = perf_counter_ns() - began, clock.since_ns(cpu_began)
        if n >= warm_up:
            timings.ms.append(took_ns / 1e6)
            timings.cpu_ms.append(cpu_took_ns / 1e6)
            timings.found.append(found)
    return timings


def percentiles(ms: Sequence[float]) -> dict[str, float]:
    """Empty when there is nothing."""
    if not ms:
        return {}
    p50, p95, p99 = np.percentile(np.asarray(ms), [50, 95, 99])
    return {"p50_ms": round(float(p50), 3), "p95_ms": round(float(p95), 3), "p99_ms": round(float(p99), 3)}


def summary(timings: Timings) -> dict[str, float]:
    """Percentiles, also of time on a processor where that is known; the number of calls, how much they found in the
    mean, how many of 100 found nothing, and how many had no answer in time.
    """
    if not timings.ms:
        return {}
    found = np.asarray(timings.found)
    on_cpu = percentiles(timings.cpu_ms) if any(timings.cpu_ms) else {}
    return {
        **percentiles(timings.ms),
        **{f"cpu_{name}": ms for name, ms in on_cpu.items()},
        "calls": len(timings.ms),
        "found": round(float(found.mean()), 1),
        "empty_percent": round(float((found == 0).mean() * 100), 1),
        "given_up": timings.given_up,
    }


def missed(figures: Mapping[str, object]) -> list[str]:
    """Sentences about the targets that these figures do not reach."""
    complaints = []
    for name, target in TARGETS_MS.items():
        measured = figures.get(name)
        if isinstance(measured, dict) and measured.get("p95_ms", 0.0) > target:
            complaints.append(f"{name}: {measured['p95_ms']} ms at p95, target {target:g}")
    speed, recall = figures.get("turns_per_s"), figures.get("filtered_recall_at_10")
    if isinstance(speed, int | float) and speed < TURNS_PER_S_TARGET:
        complaints.append(f"load: {speed} turns/s, target {TURNS_PER_S_TARGET}")
    if isinstance(recall, int | float) and recall < RECALL_TARGET:
        complaints.append(f"filtered recall: {recall}, target {RECALL_TARGET:g}")
    return complaints
