"""Along what memories lead to each other, in two layers: what is related, and what came one after another.

Conductances, the share of the reverse direction and the temporal edges are the memory graph document's; that
contradictions inhibit is its idea too, how strongly is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy import float64, int64, intp
from numpy.typing import NDArray

CONDUCTANCE: Final[Mapping[str, float]] = MappingProxyType(
    {
        "involved_in": 0.9,
        "updates": 0.8,
        "occurred_at": 0.7,
        "advances": 0.6,
        "related": 0.5,
        "mentions": 0.4,
        "evidence": 0.3,
        "contradicts": -0.5,
    }
)
OTHER_CONDUCTANCE: Final = 0.4
REVERSE: Final = 0.7
_NEXT_IN_TIME = 0.5
_TURNS_APART = 10.0
_LEAST_NEXT_IN_TIME = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """Directed edges in compressed sparse rows, by where they come from.

    Attributes:
        starts: Shape (n + 1,): the edges of node i are `starts[i]:starts[i + 1]`.
        targets: Shape (edges,), ascending within a node.
        weights: Shape (edges,), negative where one inhibits the other.
        in_degrees: Shape (n,).
    """

    starts: NDArray[int64]
    targets: NDArray[intp]
    weights: NDArray[float64]
    in_degrees: NDArray[int64]

    def __len__(self) -> int:
        return len(self.in_degrees)

    def edges_of(self, nodes: NDArray[intp]) -> tuple[NDArray[intp], NDArray[intp]]:
        """Where the edges of those nodes are, and which of `nodes` each comes from (its place, not its index)."""
        starts, counts = self.starts[nodes], self.starts[nodes + 1] - self.starts[nodes]
        places = np.repeat(np.arange(len(nodes)), counts)
        first = np.cumsum(counts) - counts
        return np.arange(int(counts.sum())) - first[places] + starts[places], places

    def neighbours(self, node: int) -> list[int]:
        """Nodes that this one excites, the most strongly tied first."""
        edges = slice(int(self.starts[node]), int(self.starts[node + 1]))
        targets, weights = self.targets[edges], self.weights[edges]
        order = np.argsort(-weights, kind="stable")
        return [int(target) for target in targets[order][weights[order] > 0]]


def semantic_layer(
    n: int, sources: NDArray[intp], targets: NDArray[intp], types: Sequence[str] | None = None
) -> Adjacency:
    """Edges in both directions, the reverse one weaker. Of several between the same two nodes in one direction the
    strongest counts, of two as strong the one that inhibits; none leads from a node to itself.

    Args:
        types: Of each edge, in any case; None: all are "mentions".
    """
    if types is None:
        weights = np.full(len(sources), CONDUCTANCE["mentions"])
    else:
        of_type = {kind: CONDUCTANCE.get(kind.lower(), OTHER_CONDUCTANCE) for kind in set(types)}
        weights = np.array([of_type[kind] for kind in types], float64)
    return _strongest(
        n,
        np.concatenate((sources, targets)),
        np.concatenate((targets, sources)),
        np.concatenate((weights, REVERSE * weights)),
    )


def temporal_layer(turns: NDArray[int64], *, ties: NDArray[intp]) -> Adjacency:
    """Edges between what happened next to each other, both ways, weaker the more turns lie between.

    Args:
        turns: Shape (n,): when; negative for what has no time.
        ties: Shape (n,): which is first of those in the same turn, a number that no other has.
    """
    timed = np.flatnonzero(turns >= 0)
    timed = timed[np.lexsort((ties[timed], turns[timed]))]
    earlier, later = timed[:-1], timed[1:]
    weights = _NEXT_IN_TIME * np.exp(-(turns[later] - turns[earlier]) / _TURNS_APART)
    near = weights >= _LEAST_NEXT_IN_TIME
    earlier, later, weights = earlier[near], later[near], weights[near]
    return _strongest(
        len(turns),
        np.concatenate((earlier, later)),
        np.concatenate((later, earlier)),
        np.concatenate((weights, weights)),
    )


def both(semantic: Adjacency, temporal: Adjacency) -> Adjacency:
    """Two layers over the same nodes; where both have an edge, both lead."""
    n = len(semantic)
    sources = np.concatenate([np.repeat(np.arange(n), np.diff(layer.starts)) for layer in (semantic, temporal)])
    targets = np.concatenate((semantic.targets, temporal.targets))
    weights = np.concatenate((semantic.weights, temporal.weights))
    order = np.lexsort((targets, sources))
    return rows(n, sources[order], targets[order], weights[order])


def rows(n: int, sources: NDArray[intp], targets: NDArray[intp], weights: NDArray[float64] | None = None) -> Adjacency:
    """Edges as they are, sorted by source already, all of weight 1 if None is given."""
    starts = np.zeros(n + 1, int64)
    np.cumsum(np.bincount(sources, minlength=n), out=starts[1:])
    weights = np.ones(len(targets)) if weights is None else weights
    return Adjacency(starts, targets, weights, np.bincount(targets, minlength=n).astype(int64))


def _strongest(n: int, sources: NDArray[intp], targets: NDArray[intp], weights: NDArray[float64]) -> Adjacency:
    order = np.lexsort((weights, -np.abs(weights), targets, sources))
    order = order[sources[order] != targets[order]]
    sources, targets, weights = sources[order], targets[order], weights[order]
    if len(sources):
        first = np.r_[True, (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])]
        sources, targets, weights = sources[first], targets[first], weights[first]
    return rows(n, sources, targets, weights)
