"""Energy spreads from what a question touches along what it leads to.

Spreading activation (Collins & Loftus, 1975) in the form of the memory graph document, "Parallel Energy-Decay Spreading
Activation". One step:

    E'(j) = sum over i of E(i) w(i, j) decay inflow(i) rest(i)       for all that hold energy
    E'(j) *= fade(j);  kept within -2 to 2;  none if under 0.01
    E' = (1 - a) E' + a E0                                             if there is a teleport probability a
    the `top_k` largest go on

`inflow(i) = in-degree(i) ** -0.55`: what everything leads to says little. `rest(i)` is 0.15 for what was among the 15
largest after an earlier step: it has had its say. What comes out is the largest magnitude that each node ever held, the
seeds' own energy included. Teleport is applied once, to what has spread; it is what makes it personalised (PageRank of
the seeds), `top_k` is what keeps it sparse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import float64, intp
from numpy.typing import NDArray

from glyphoxa.experimental.graph.adjacency import Adjacency
from glyphoxa.experimental.graph.best import best

MOST_ENERGY = 2.0
LEAST_ENERGY = 0.01
_IN_DEGREE_EXPONENT = 0.55
_RESTING_TOP = 15


@dataclass(frozen=True, slots=True, eq=False)
class Energy:
    """The largest magnitude that each node held, shape (n,), from -2 to 2; 0 where none came.

    Attributes:
        held: What a seed began with is part of it.
        received: Of what came along edges (or by teleport) alone.
    """

    held: NDArray[float64]
    received: NDArray[float64]


def spread(  # noqa: PLR0913 - the measures of one spreading
    seeds: NDArray[float64],
    adjacency: Adjacency,
    *,
    ties: NDArray[intp],
    steps: int = 2,
    decay: float = 0.6,
    top_k: int = 100,
    teleport: float = 0.0,
    refractory: float = 0.15,
    fade: NDArray[float64] | None = None,
) -> Energy:
    """
    Args:
        seeds: Shape (n,): energy to begin with.
        ties: Shape (n,): which of two that hold as much comes first; a number that no other has.
        fade: Shape (n,): what is left of energy that comes to a node, 0 to 1; None: all of it.
    """
    start = _kept(np.clip(seeds, -MOST_ENERGY, MOST_ENERGY), top_k, ties)
    energy, received = start, np.zeros_like(start)
    rest = np.ones(len(seeds))
    inflow = np.maximum(adjacency.in_degrees, 1) ** -_IN_DEGREE_EXPONENT
    for _ in range(steps):
        firing = np.flatnonzero(energy)
        if not len(firing):
            break
        edges, places = adjacency.edges_of(firing)
        sent = energy[firing] * inflow[firing] * rest[firing] * decay
        energy = np.bincount(
            adjacency.targets[edges], sent[places] * adjacency.weights[edges], minlength=len(seeds)
        ).astype(float64)
        if fade is not None:
            energy *= fade
        energy = np.clip(energy, -MOST_ENERGY, MOST_ENERGY)
        energy[np.abs(energy) < LEAST_ENERGY] = 0.0
        if teleport > 0:
            energy = (1 - teleport) * energy + teleport * start
            energy[np.abs(energy) < LEAST_ENERGY] = 0.0
        energy = _kept(energy, top_k, ties)
        received = _larger(received, energy)
        rest[best(np.abs(energy), most=_RESTING_TOP, ties=ties, among=np.flatnonzero(energy))] = refractory
    return Energy(_larger(start, received), received)


def fading(distances: NDArray[float64], half_lives: NDArray[float64]) -> NDArray[float64]:
    """What is left after so many turns, shape (n,): one half after a half-life, all of what never fades.

    Args:
        distances: Turns since the last activity, at least 0.
        half_lives: In turns; infinite for what never fades.
    """
    left: NDArray[float64] = np.exp2(-distances / half_lives)
    return left


def _larger(one: NDArray[float64], other: NDArray[float64]) -> NDArray[float64]:
    return np.where(np.abs(other) > np.abs(one), other, one)


def _kept(energy: NDArray[float64], top_k: int, ties: NDArray[intp]) -> NDArray[float64]:
    holding = np.flatnonzero(energy)
    if len(holding) <= top_k:
        return energy
    kept = np.zeros_like(energy)
    largest = best(np.abs(energy), most=top_k, ties=ties, among=holding)
    kept[largest] = energy[largest]
    return kept
