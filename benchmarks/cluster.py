"""Simulate placement and failure in a large cluster, in virtual time, with the rules that the nodes use.

    python -m benchmarks.cluster [--nodes 1000] [--tables 20000] [--seed 1]

benchmarks/README.md describes the figures and the model.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.runner import above_zero, command, percentile, positive, run
from glyphoxa.domain.errors import Unavailable
from glyphoxa.plugins.cluster.placement import REPORTS, Node, choose, share_of_lost
from glyphoxa.plugins.cluster.settings import ClusterSettings

LEASE_S: Final = ClusterSettings().lease_ms / 1_000
HOURS: Final = (9, 7, 5, 3, 2, 2, 2, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 24, 40, 60, 52, 30, 18, 12)
"""Tables that begin in each hour of a day, as weights: groups meet in the evening. An assumption."""
LASTS_H: Final = (2.9, 3.2, 3.4, 3.6, 3.8, 3.9, 4.1, 4.2, 4.4, 4.9)
"""How long an evening lasts, in equal shares. An assumption, too."""
HOUR_S: Final = 3_600.0


@dataclass(slots=True)
class Directory:
    """One database: so many statements at once, each for so long; others wait.

    Attributes:
        free_s: When each of its connections is free.
    """

    statement_s: float
    free_s: list[float]

    def call(self, now_s: float, rng: Random, *, rows: int = 1, row_s: float = 0.0002) -> float:
        """Return when a statement that begins to wait now is done."""
        began_s = max(now_s, heapq.heappop(self.free_s))
        done_s = began_s + rng.expovariate(1 / self.statement_s) + row_s * (rows - 1)
        heapq.heappush(self.free_s, done_s)
        return done_s


@dataclass(slots=True)
class Cluster:
    """The nodes, and what happens to them, in order of time."""

    options: argparse.Namespace
    rng: Random
    nodes: dict[str, Node] = field(default_factory=dict)
    tables: dict[int, str] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    placed_ms: list[float] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)
    reopened_s: list[float] = field(default_factory=list)
    refused: int = 0
    directory: Directory = field(init=False)
    _events: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        options = self.options
        self.directory = Directory(options.statement_ms / 1_000, [0.0] * options.connections)
        for n in range(options.nodes):
            self.nodes[f"n{n}"] = Node(f"n{n}", url="", capacity=options.capacity)

    def at(self, when_s: float, act: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (when_s, next(self._order), act))

    def run(self, until_s: float) -> None:
        while self._events and self._events[0][0] <= until_s:
            now_s, _, act = heapq.heappop(self._events)
            act(now_s)

    def hold(self, table: int, name: str, change: int = 1) -> None:
        node = self.nodes[name]
        self.nodes[name] = replace(node, tables=node.tables + change)
        if change > 0:
            self.tables[table] = name

    def begin(self, table: int, now_s: float) -> None:
        """Place a table: one look at the nodes, and one statement that takes the lease."""
        read_s = self.directory.call(now_s, self.rng)
        try:
            node = choose(self._seen(), str(table))
        except Unavailable:  # as many tables as the cluster holds
            self.refused += 1
            return
        self.hold(table, node.name)
        self.placed_ms.append((self.directory.call(read_s, self.rng) - now_s) * 1_000)
        lasts_s = self.rng.choice(LASTS_H) * self.rng.uniform(0.9, 1.1) * HOUR_S
        self.at(now_s + lasts_s, lambda _: self.end(table))

    def end(self, table: int) -> None:
        name = self.tables.pop(table, None)
        self.lost.discard(table)
        if name in self.nodes:
            self.hold(table, name, -1)

    def _seen(self) -> Sequence[Node]:
        """A sample of the nodes: with thousands the whole list says no more, and takes longer to read."""
        most = self.options.sample
        nodes = list(self.nodes.values())
        return nodes if len(nodes) <= most else self.rng.sample(nodes, most)

    def watch(self, now_s: float) -> None:
        shares = [node.tables / node.capacity for node in self.nodes.values()]
        self.spread.append(max(shares) - sum(shares) / len(shares))
        self.at(now_s + 60, self.watch)

    def lose(self, share: float, now_s: float) -> int:
        """Lose nodes at once; return how many tables they held."""
        gone = set(self.rng.sample(sorted(self.nodes), int(share * len(self.nodes))))
        for name in gone:
            del self.nodes[name]
        self.lost |= {table for table, name in self.tables.items() if name in gone}
        tick_s = LEASE_S / REPORTS
        for name in self.nodes:
            # The lost reported last within one interval; each of the others notices at its own next report.
            self.at(now_s + LEASE_S + self.rng.uniform(0, tick_s), partial(self._report, name, now_s))
        return len(self.lost)

    def _report(self, name: str, lost_s: float, now_s: float) -> None:
        """A node reports, takes its part of the lost tables, and opens them, one at a time in each process."""
        most = share_of_lost(self.nodes.values(), name, len(self.lost))
        taken = [self.lost.pop() for _ in range(min(most, len(self.lost)))]
        done_s = self.directory.call(now_s, self.rng, rows=max(1, len(taken)))
        for n, table in enumerate(taken, start=1):
            self.hold(table, name)
            self.reopened_s.append(done_s + -(-n // self.options.processes) * self.options.open_s - lost_s)
        if self.lost:
            self.at(now_s + LEASE_S / REPORTS, partial(self._report, name, lost_s))


def main(argv: Sequence[str] | None = None) -> int:
    return run(_options().parse_args(argv), measure)


def measure(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    rng = Random(options.seed)
    cluster = Cluster(options, rng)
    # So many begin in a day that the evening's peak has the wanted number at once.
    n_a_day = int(options.tables / _share_at_peak())
    for table in range(n_a_day):
        hour = rng.choices(range(24), HOURS)[0]
        began_s = (hour + rng.random()) * HOUR_S
        cluster.at(began_s, partial(cluster.begin, table))
    cluster.at(0, cluster.watch)
    peak_s = 21.5 * HOUR_S
    cluster.run(peak_s)
    held = len(cluster.tables)
    lost = cluster.lose(options.lost, peak_s)
    cluster.run(peak_s + 60)
    return {
        "nodes": options.nodes,
        "capacity": options.nodes * options.capacity,
        "placed": len(cluster.placed_ms),
        "refused": cluster.refused,
        "placement_p50_ms": percentile(cluster.placed_ms, 50),
        "placement_p99_ms": percentile(cluster.placed_ms, 99),
        "imbalance_p50": percentile(cluster.spread, 50, digits=3),
        "imbalance_max": round(max(cluster.spread), 3),
        "tables_at_loss": held,
        "tables_lost": lost,
        "reopened": len(cluster.reopened_s),
        "reopened_p50_s": percentile(cluster.reopened_s, 50),
        "reopened_p99_s": percentile(cluster.reopened_s, 99),
        "without_a_node": len(cluster.lost),
    }


def _share_at_peak() -> float:
    """Return the share of a day's tables that are open at 21:30."""
    total, open_now = sum(HOURS), 0.0
    for hour, weight in enumerate(HOURS):
        ages_h = [(21.5 - hour - part / 10) for part in range(10)]
        open_now += weight * sum(0 <= age < lasts for age in ages_h for lasts in LASTS_H) / len(ages_h) / len(LASTS_H)
    return open_now / total


def _options() -> argparse.ArgumentParser:
    parser = command("cluster", __doc__)
    parser.add_argument("--nodes", type=positive, default=1_000)
    parser.add_argument("--tables", type=positive, default=20_000, help="at the evening's peak")
    parser.add_argument("--capacity", type=positive, default=30, help="tables of a node, all its processes together")
    parser.add_argument("--processes", type=positive, default=10, help="of a node: each opens one table at a time")
    parser.add_argument("--lost", type=above_zero, default=1 / 3, help="share of the nodes that is lost at the peak")
    parser.add_argument("--sample", type=positive, default=1_000, help="nodes that a placement looks at")
    parser.add_argument("--statement-ms", type=above_zero, default=3.0, help="mean of one statement at the directory")
    parser.add_argument("--connections", type=positive, default=16, help="statements at once at the directory")
    parser.add_argument("--open-s", type=above_zero, default=1.0, help="to open one table on a warm node")
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
