"""Spread activation: energy flows from what a question touches along a two-layer adjacency list.

One layer of edges is semantic (related nodes), the other temporal (consecutive events). Conductances, the share of the
reverse direction and the temporal edges are those of the memory graph document. Inhibition by contradictions is its
idea too; the strength is ours.

Spreading activation (Collins & Loftus, 1975) is in the form of the document, "Parallel Energy-Decay Spreading
Activation" (PEDSA). One step:

    E'(j) = sum over i of E(i) w(i, j) decay inflow(i) rest(i)       for all that hold energy
    E'(j) *= fade(j);  kept within -2 to 2;  none if under 0.01
    E' = (1 - a) E' + a E0                                             if there is a teleport probability a
    the `top_k` largest go on

`inflow(i) = in-degree(i) ** -0.55`: a node to which everything leads carries little information. `rest(i)` is 0.15 for
a node that was among the 15 largest after an earlier step. The result is the largest magnitude that each node ever
held, the seeds' own energy included. Teleport is applied once, to what has spread. It makes the result personalised
(PageRank of the seeds); `top_k` keeps it sparse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy import float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.config.provider_sections import MemoryGraphSettings

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
_OTHER_CONDUCTANCE: Final = 0.4
_REVERSE: Final = 0.7
_NEXT_IN_TIME: Final = 0.5
_TURNS_APART: Final = 10.0
_LEAST_NEXT_IN_TIME: Final = 0.05

MOST_ENERGY: Final = 2.0
_LEAST_ENERGY: Final = 0.01
_IN_DEGREE_EXPONENT: Final = 0.55
_RESTING_TOP: Final = 15

_DIGITS: Final = 9
"""Sums in another order differ in the last bits; values that differ only there count as equal."""


class Edges(NamedTuple):
    """Directed edges: source, target and weight, which is negative for inhibition."""

    sources: NDArray[intp]
    targets: NDArray[intp]
    weights: NDArray[float64]

    def neighbours(self, node: int) -> list[int]:
        """Return nodes that this one excites, the strongest edges first."""
        excites = (self.sources == node) & (self.weights > 0)
        targets, weights = self.targets[excites], self.weights[excites]
        return [int(target) for target in targets[np.lexsort((targets, -weights))]]


def joined(layers: Sequence[Edges]) -> Edges:
    """Return the edges of all layers; if two layers have an edge, both count."""
    nothing = Edges(np.zeros(0, intp), np.zeros(0, intp), np.zeros(0))
    return Edges(*(np.concatenate(column) for column in zip(nothing, *layers, strict=True)))


def semantic_layer(edges: Sequence[tuple[int, int, str]]) -> Edges:
    """Return edges in both directions, the reverse one weaker.

    Of several between the same two nodes in one direction the strongest counts, and of equals the inhibiting one. There
    are no edges from a node to itself.

    Args:
        edges: Source, target, and type, in any case; see `CONDUCTANCE`.
    """
    of_type = {kind: CONDUCTANCE.get(kind.lower(), _OTHER_CONDUCTANCE) for kind in {kind for *_, kind in edges}}
    ends = np.array([(source, target) for source, target, _ in edges if source != target], intp).reshape(-1, 2)
    there = np.array([of_type[kind] for source, target, kind in edges if source != target], float64)
    sources, targets = np.concatenate((ends, ends[:, ::-1])).T
    weights = np.concatenate((there, _REVERSE * there))
    order = np.lexsort((weights, -np.abs(weights), targets, sources))
    _, first = np.unique(np.column_stack((sources, targets))[order], axis=0, return_index=True)
    strongest = order[first]
    return Edges(sources[strongest], targets[strongest], weights[strongest])


def temporal_layer(turns: NDArray[int64], *, ties: NDArray[intp]) -> Edges:
    """Return edges between neighbouring events, both ways, weaker the more turns lie between.

    Args:
        turns: Shape (n,): when; negative for a node without a time.
        ties: Shape (n,): order of nodes in the same turn, unique numbers.
    """
    timed = np.flatnonzero(turns >= 0)
    timed = timed[np.lexsort((ties[timed], turns[timed]))]
    earlier, later = timed[:-1], timed[1:]
    weights = _NEXT_IN_TIME * np.exp(-(turns[later] - turns[earlier]) / _TURNS_APART)
    near = weights >= _LEAST_NEXT_IN_TIME
    earlier, later, weights = earlier[near], later[near], weights[near]
    return Edges(np.append(earlier, later), np.append(later, earlier), np.append(weights, weights))


class Energy(NamedTuple):
    """The largest magnitude that each node held, shape (n,), from -2 to 2; 0 for a node without energy.

    Attributes:
        held: Includes a seed's own energy.
        received: Only what came along edges (or by teleport).
    """

    held: NDArray[float64]
    received: NDArray[float64]


def spread(
    seeds: NDArray[float64],
    edges: Edges,
    settings: MemoryGraphSettings,
    *,
    ties: NDArray[intp],
    fade: NDArray[float64] | float = 1.0,
) -> Energy:
    """
    Args:
        seeds: Shape (n,): initial energy.
        ties: Shape (n,): order of nodes with equal energy, unique numbers.
        fade: Shape (n,): the share of incoming energy that a node keeps, 0 to 1.
    """
    top_k, teleport = settings.diffusion_top_k, settings.teleport_probability
    start = largest(np.clip(seeds, -MOST_ENERGY, MOST_ENERGY), most=top_k, ties=ties)
    energy, received = start, np.zeros_like(start)
    rest = np.ones(len(seeds))
    inflow = np.maximum(np.bincount(edges.targets, minlength=len(seeds)), 1) ** -_IN_DEGREE_EXPONENT
    for _ in range(settings.diffusion_steps):
        sent = energy * inflow * rest * settings.diffusion_decay
        came = np.bincount(edges.targets, sent[edges.sources] * edges.weights, minlength=len(seeds))
        energy = _without_traces(np.clip(came * fade, -MOST_ENERGY, MOST_ENERGY))
        if teleport > 0:
            energy = _without_traces((1 - teleport) * energy + teleport * start)
        energy = largest(energy, most=top_k, ties=ties)
        received = _larger(received, energy)
        rest[largest(energy, most=_RESTING_TOP, ties=ties) != 0] = settings.refractory
    return Energy(_larger(start, received), received)


def best(scores: NDArray[float64], among: NDArray[intp], *, most: int, ties: NDArray[intp]) -> NDArray[intp]:
    """Return the indices `among` with the highest scores, best first, in an order that does not depend on storage.

    Args:
        scores: Shape (n,).
        ties: Shape (n,), unique numbers; among equals the lower comes first.
    """
    return among[np.lexsort((ties[among], -np.round(scores[among], _DIGITS)))][:most]


def largest(values: NDArray[float64], *, most: int, ties: NDArray[intp]) -> NDArray[float64]:
    """Return the values of the largest magnitude; the others become 0."""
    found = np.zeros_like(values)
    at = best(np.abs(values), np.flatnonzero(values), most=most, ties=ties)
    found[at] = values[at]
    return found


def _without_traces(energy: NDArray[float64]) -> NDArray[float64]:
    return np.where(np.abs(energy) < _LEAST_ENERGY, 0.0, energy)


def _larger(one: NDArray[float64], other: NDArray[float64]) -> NDArray[float64]:
    return np.where(np.abs(other) > np.abs(one), other, one)
