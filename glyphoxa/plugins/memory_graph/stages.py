"""Compute the stages of recall over the memory graph: spread activation, then diversify what was found.

Activation is energy that flows from what a question touches along a two-layer adjacency list. One layer of edges is
semantic (related nodes), the other temporal (consecutive events). Conductances, the share of the reverse direction and
the temporal edges are those of the memory graph document. Inhibition by contradictions is its idea too; the strength is
ours.

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

Results are diversified by topics (NMF), residual search (FISTA) and a diverse subset (DPP). The number of topics, their
boost, lambda, the iterations, and when to search again are those of the memory graph document, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy import float32, float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.config.provider_sections import MemoryGraphSettings

_DIGITS: Final = 9
"""Sums in another order differ in the last bits; values that differ only there count as equal."""

# Activation

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


# Diversity

_MOST_TOPICS: Final = 4
_LEAST_TOPICS: Final = 2
_LEAST_CANDIDATES: Final = 5
_UPDATES: Final = 50
_SEED: Final = 2001
_TINY: Final = 1e-9
_GAIN: Final = 0.6
_MOST_BOOST: Final = 0.3

LAMBDA: Final = 0.1
ITERATIONS: Final = 30
SEARCH_AGAIN_OVER: Final = 0.3
"""Share of the question that no candidate covers."""


def topic_boosts(
    vectors: NDArray[np.floating], question: NDArray[np.floating], scores: NDArray[float64]
) -> NDArray[float64]:
    """Boost candidates about topics of the question that the candidates cover too little.

    Returns what each of m candidates gets on top of its score, shape (m,), 0 to 0.3; 0 if fewer than five have a
    vector, or if the question has none. Vectors are signed and the factors are not, so magnitudes are factorised, also
    the question's.

    Args:
        vectors: Shape (m, dimensions); zeros without one.
        scores: Shape (m,), how much each candidate counts for the coverage; below 0 as 0.
    """
    boosts = np.zeros(len(vectors))
    known = np.flatnonzero(np.any(vectors != 0, axis=1))
    asked = np.abs(np.asarray(question, float64))
    weights = np.maximum(scores[known], 0.0)
    if len(known) < _LEAST_CANDIDATES or not asked.any() or not weights.any():
        return boosts
    n_topics = min(_MOST_TOPICS, max(_LEAST_TOPICS, len(known) // 2))
    w, h = factorised(np.abs(vectors[known]), n_topics)
    topics = h.astype(float64)
    shares = w * np.linalg.norm(topics, axis=1)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
    wanted = topics @ asked / np.maximum(np.linalg.norm(topics, axis=1), _TINY)
    wanted /= max(float(wanted.sum()), _TINY)
    covered = weights @ shares / weights.sum()
    boosts[known] = np.minimum(_MOST_BOOST, _GAIN * shares @ np.maximum(0.0, wanted - covered))
    return boosts


def factorised(values: NDArray[np.floating], n_topics: int) -> tuple[NDArray[float32], NDArray[float32]]:
    """Factorise a matrix without negative values, by multiplicative updates (Lee & Seung, 2001).

    W of shape (m, topics) and H of shape (topics, dimensions), W H near to `values`. Deterministic.
    """
    random = np.random.default_rng(_SEED)
    scale = np.sqrt(max(float(values.mean()), _TINY) / n_topics)
    values = values.astype(float32)
    w = (scale * random.uniform(0.5, 1.5, (len(values), n_topics))).astype(float32)
    h = (scale * random.uniform(0.5, 1.5, (n_topics, values.shape[1]))).astype(float32)
    for _ in range(_UPDATES):
        h *= (w.T @ values) / (w.T @ w @ h + _TINY)
        w *= (values @ h.T) / (w @ (h @ h.T) + _TINY)
    return w, h


def residual_of(question: NDArray[np.floating], candidates: NDArray[np.floating]) -> NDArray[float64]:
    """Return the part of a question that its candidates do not cover, shape (dimensions,), to search for it again.

    The question's vector is composed of the candidates' as sparsely as possible; the rest is the residual: min over w
    of 1/2 |q - C'w|^2 + lambda |w|_1, by FISTA (Beck & Teboulle, 2009).

    Args:
        question: Shape (dimensions,); of any length. Of a zero vector nothing is left.
        candidates: Shape (m, dimensions), of unit length or zeros.
    """
    q, c = np.asarray(question, float64), np.asarray(candidates, float64)
    length = max(float(np.linalg.norm(q)), _TINY)
    return np.asarray(length * (q / length - _fista(c @ c.T, c @ q / length) @ c), float64)


def _fista(gram: NDArray[float64], target: NDArray[float64]) -> NDArray[float64]:
    """Candidates are few and dimensions many, so all steps use their products.

    FISTA's objective may rise between steps. The best weights seen are returned (as in its monotone variant, Beck &
    Teboulle, 2009b), so the answer is never worse than none of the candidates.
    """
    best = weights = images = ahead = image_ahead = np.zeros(len(target))
    step = 1 / max(float(np.linalg.eigvalsh(gram).max(initial=0.0)), _TINY)
    momentum, least = 1.0, 0.0
    for _ in range(ITERATIONS):
        moved = ahead - step * (image_ahead - target)
        following = np.sign(moved) * np.maximum(np.abs(moved) - LAMBDA * step, 0.0)
        image = gram @ following
        cost = float(following @ (image / 2 - target) + LAMBDA * np.abs(following).sum())
        if cost < least:
            best, least = following, cost
        grown = (1 + sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / grown
        ahead = following + push * (following - weights)
        image_ahead = image + push * (image - images)
        weights, images, momentum = following, image, grown
    return best


def diverse(
    qualities: NDArray[float64], vectors: NDArray[np.floating], *, target: int, relevance: int = 1
) -> tuple[NDArray[intp], NDArray[float64]]:
    """Select a diverse subset: greedy MAP of a determinantal point process (DPP).

    By incremental Cholesky (Chen, Zhang & Zhou, 2018): with a kernel L_ij = q_i cos(i, j) q_j, each step takes what
    adds most to the determinant of the selection. Returns the places of `target` candidates in the order of selection,
    and what each added (its conditional variance). When nothing adds anything, the best of the others follow, adding 0.

    Args:
        qualities: Shape (m,), 0 to 1, best first; 0 counts as next to nothing.
        vectors: Shape (m, dimensions), of unit length; zeros are similar to nothing.
        relevance: The power of the qualities; the trade-off between relevance and diversity.
    """
    m = len(qualities)
    target = min(target, m)
    # The kernel's variance of a candidate is its quality squared times the remaining part of its direction. Kept apart,
    # in logarithms, small qualities do not harm the sums.
    quality = 2 * relevance * np.log(np.maximum(qualities, _TINY))
    units = np.asarray(vectors, float64)
    alike = units @ units.T
    np.fill_diagonal(alike, 1.0)
    rows = np.zeros((target, m))
    left = np.ones(m)
    is_free = np.ones(m, bool)
    taken: list[int] = []
    added: list[float] = []
    while len(taken) < target:
        gain = np.where(is_free & (left > _TINY), quality + np.log(np.maximum(left, _TINY)), -np.inf)
        # Of equal gains, the better candidate is taken.
        place = int(np.argmax(np.round(gain, _DIGITS)))
        if np.isneginf(gain[place]):
            break
        step = len(taken)
        row = (alike[place] - rows[:step, place] @ rows[:step]) / np.sqrt(left[place])
        added.append(float(np.exp(gain[place])))
        taken.append(place)
        is_free[place] = False
        rows[step] = row
        left = np.maximum(left - row**2, 0.0)
    others = np.flatnonzero(is_free)[: target - len(taken)]
    return np.concatenate((np.array(taken, intp), others)), np.array(added + [0.0] * len(others))
