"""Decide which machine holds a table: no clock, no socket.

The directory has the facts (`directory.py`). Every process that places decides for itself, and the directory admits one
of them, so nobody has to lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from glyphoxa.domain.errors import Unavailable

REPORTS: Final = 8
"""Reports of a node to the directory in the time of a lease."""
MEMORY_FULL: Final = 0.9
"""Share of a machine's memory above which it takes no more tables."""
LAGS_MS: Final = 100.0
"""Delay of a node's event loop (p95) above which it takes no more tables: a listener hears gaps of that length."""


@dataclass(frozen=True, slots=True)
class Node:
    """A process that holds tables, as the directory knows it.

    Attributes:
        url: Base of the addresses of its tables.
        capacity: Tables that it can hold, as measured by `benchmarks.load`.
        tables: Tables that it holds now.
        memory_used: Share of its machine's memory, 0 to 1.
        lag_ms: Delay of its event loop, 95th percentile.
        is_draining: It takes no more tables.
        is_seen: It has reported within the lease's time.
    """

    name: str
    url: str
    capacity: int
    tables: int = 0
    memory_used: float = 0.0
    lag_ms: float = 0.0
    is_draining: bool = False
    is_seen: bool = True

    @property
    def refusal(self) -> str:
        """Why it takes no table now; empty if it does."""
        if not self.is_seen:
            return "does not report"
        if self.is_draining:
            return "is draining"
        if self.tables >= self.capacity:
            return f"holds {self.tables} of {self.capacity} tables"
        if self.memory_used >= MEMORY_FULL:
            return f"uses {self.memory_used:.0%} of its memory"
        return f"lags {self.lag_ms:.0f} ms" if self.lag_ms >= LAGS_MS else ""


def choose(nodes: Iterable[Node], campaign: str) -> Node:
    """Return the node with the smallest share of its capacity in use once it has the table.

    Nodes that are equally full are told apart by a hash of node and campaign, so that several processes that place at
    once, with the same facts, do not all choose the same node.

    Raises:
        Unavailable: No node takes a table; the text says why for each.
    """
    known = list(nodes)
    free = [node for node in known if not node.refusal]
    if not free:
        why = "; ".join(f"{node.name} {node.refusal}" for node in known[:5]) or "there are no nodes"
        more = f"; and {len(known) - 5} more" if known[5:] else ""
        raise Unavailable(f"no node can take the table of {campaign!r}: {why}{more}; add one, or try again later")
    return min(free, key=lambda node: ((node.tables + 1) / node.capacity, _order(node.name, campaign)))


def share_of_lost(nodes: Iterable[Node], name: str, lost: int) -> int:
    """Return how many tables of lost nodes a node takes over now: its part of all free places, rounded up.

    The nodes do not talk about it: each takes its part, and what is left over is shared out at the next report.
    """
    free = {node.name: node.capacity - node.tables for node in nodes if not node.refusal}
    mine = free.get(name, 0)
    return min(mine, -(-lost * mine // sum(free.values()))) if mine else 0


def _order(node: str, campaign: str) -> bytes:
    return blake2b(f"{node}\0{campaign}".encode(), digest_size=8).digest()


def must_close(*, unrenewed_ms: float, lease_ms: float, peers: int, answers: Sequence[bool]) -> bool:
    """Return whether a node has to close its tables, because others may reopen them.

    A table plays on while the database is away: everything said is in the spool. But a node that was cut off may not:
    the others reopen its tables, and there would be two of each. It is cut off if a peer reaches the directory and it
    does not, or if fewer than half of the peers answer.

    Args:
        unrenewed_ms: Since the directory last renewed its leases.
        lease_ms: Validity of a lease.
        peers: Number of the other nodes.
        answers: Those of the peers that answer it now: whether they reach the directory.
    """
    return unrenewed_ms >= lease_ms * 3 / 4 and (any(answers) or 2 * len(answers) < peers)
