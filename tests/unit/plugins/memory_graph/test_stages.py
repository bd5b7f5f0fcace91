"""Each stage of recall over the memory graph, alone: by hand, and against a slow way to the same answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import float64, int64, intp
from numpy.typing import NDArray
from pydantic import ValidationError

from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.plugins.memory_graph.stages import (
    Edges,
    best,
    diverse,
    semantic_layer,
    spread,
    temporal_layer,
    topic_boosts,
)

Edge = tuple[int, int, str]
KINDS = ("involved_in", "updates", "related", "mentions", "contradicts", "owes")


def weights_of(edges: Edges) -> dict[tuple[int, int], float]:
    return {(int(source), int(target)): float(weight) for source, target, weight in zip(*edges, strict=True)}


def temporal(turns: list[int]) -> Edges:
    return temporal_layer(np.array(turns, int64), ties=np.arange(len(turns)))


def held(
    seeds: list[float], edges: list[Edge], *, fade: NDArray[float64] | float = 1.0, **measures: float
) -> list[float]:
    """The energy of each node after one step, unless `diffusion_steps` says otherwise."""
    settings = MemoryGraphSettings(**{"diffusion_steps": 1, **measures})  # type: ignore[arg-type]
    energy = spread(np.array(seeds), semantic_layer(edges), settings, ties=np.arange(len(seeds)), fade=fade)
    return energy.held.tolist()  # type: ignore[no-any-return]


# -- adjacency


@pytest.mark.parametrize(
    ("edges", "weights"),
    [
        ([(0, 1, "involved_in"), (1, 2, "Owes")], {(0, 1): 0.9, (1, 0): 0.63, (1, 2): 0.4, (2, 1): 0.28}),
        (
            [(0, 1, "mentions"), (0, 1, "updates"), (1, 0, "evidence"), (1, 1, "updates")],
            {(0, 1): 0.8, (1, 0): 0.56},
        ),
        ([(0, 1, "related"), (0, 1, "contradicts")], {(0, 1): -0.5, (1, 0): -0.35}),
        ([], {}),
    ],
    ids=["both ways, back weaker", "the strongest counts, none to itself", "of two as strong what inhibits", "none"],
)
def test_edges_lead_both_ways_and_the_strongest_counts(
    edges: list[Edge], weights: dict[tuple[int, int], float]
) -> None:
    assert weights_of(semantic_layer(edges)) == pytest.approx(weights)


def test_what_came_next_in_time_is_tied_and_what_came_long_after_is_not() -> None:
    found = weights_of(temporal([4, -1, 3, 28]))
    assert found == pytest.approx({(0, 2): 0.5 * math.exp(-0.1), (2, 0): 0.5 * math.exp(-0.1)})
    assert (0, 3) in weights_of(temporal([4, -1, 3, 27]))


# -- diffusion


@pytest.mark.parametrize(
    ("seeds", "edges", "measures", "energy"),
    [
        ([1.0, 0], [(0, 1, "involved_in")], {}, [1.0, 0.9 * 0.6]),
        ([0, 0, 0, 1.0], [(at, 3, "involved_in") for at in range(3)], {}, [0.63 * 0.6 * 3**-0.55] * 3 + [1.0]),
        (
            [2.0, 0, 0],
            [(0, 1, "involved_in"), (1, 2, "involved_in")],
            {"diffusion_steps": 2},
            [2.0, 1.08, 1.08 * 0.9 * 0.6 * 2**-0.55 * 0.15],
        ),
        ([1.0, 0], [(0, 1, "contradicts")], {}, [1.0, -0.5 * 0.6]),
        ([1.0, 0], [(0, 1, "updates")], {"teleport_probability": 0.25}, [1.0, 0.75 * 0.8 * 0.6]),
        ([0.0, 0], [(0, 1, "updates")], {}, [0.0, 0]),
        ([0, 0.5, 0], [], {}, [0, 0.5, 0]),
    ],
    ids=[
        "a neighbour holds what is left on the way",
        "what everything leads to passes little on",
        "what had its say is quieter in the next step",
        "a contradiction takes energy away",
        "teleport is applied once",
        "without seeds",
        "without edges",
    ],
)
def test_energy_spreads(seeds: list[float], edges: list[Edge], measures: dict[str, float], energy: list[float]) -> None:
    assert held(seeds, edges, **measures) == pytest.approx(energy)


def test_the_best_are_the_same_wherever_they_are_stored() -> None:
    scores, ties = np.array([0.5, 0.1 + 0.2, 0.3, 0.5]), np.array([3, 2, 1, 0])
    assert best(scores, np.arange(4), most=3, ties=ties).tolist() == [3, 0, 2]
    assert best(scores, np.array([1, 2]), most=2, ties=ties).tolist() == [2, 1]
    assert best(scores, np.array([], intp), most=5, ties=ties).tolist() == []


# -- topics


def test_what_speaks_of_a_topic_that_is_asked_for_and_little_covered_is_lifted() -> None:
    dragon, feast = np.eye(6)[0], np.eye(6)[3]
    vectors = np.array([dragon, dragon, dragon, dragon, feast])
    boosts = topic_boosts(vectors, (dragon + feast) / math.sqrt(2), np.array([1.0, 0.9, 0.9, 0.8, 0.2]))
    assert boosts[4] == pytest.approx(min(0.3, 0.6 * (0.5 - 0.2 / 3.8)), abs=0.01)
    assert boosts[:4] == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(
    ("vectors", "question", "scores"),
    [
        (np.eye(4), np.ones(4), np.ones(4)),
        (np.concatenate((np.eye(4), np.zeros((6, 4)))), np.ones(4), np.ones(10)),
        (np.eye(6), np.zeros(6), np.ones(6)),
        (np.eye(6), np.ones(6), np.zeros(6)),
    ],
    ids=["four candidates", "four with a meaning", "question without one", "no score"],
)
def test_where_there_is_too_little_nothing_is_lifted(
    vectors: NDArray[float64], question: NDArray[float64], scores: NDArray[float64]
) -> None:
    assert not topic_boosts(vectors, question, scores).any()


@given(st.integers(0, 2**32 - 1), st.integers(5, 14))
def test_a_lift_is_bounded_and_the_same_every_time(seed: int, m: int) -> None:
    random = np.random.default_rng(seed)
    vectors, question, scores = random.normal(size=(m, 6)), random.normal(size=6), random.uniform(0, 1, m)
    boosts = topic_boosts(vectors, question, scores)
    assert ((boosts >= 0) & (boosts <= 0.3)).all()
    assert (boosts == topic_boosts(vectors, question, scores)).all()


# -- diversity


def naive(qualities: NDArray[float64], vectors: NDArray[float64], target: int) -> list[int]:
    """Each time the one that makes the largest determinant with those that are taken."""
    kernel = qualities[:, None] * (vectors @ vectors.T) * qualities
    np.fill_diagonal(kernel, qualities**2)
    taken: list[int] = []
    while len(taken) < target:
        free = [at for at in range(len(qualities)) if at not in taken]
        dets = {at: float(np.linalg.det(kernel[np.ix_([*taken, at], [*taken, at])])) for at in free}
        taken.append(max(free, key=lambda at: dets[at]))
    return taken


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_the_diverse_set_is_the_one_that_determinants_choose(seed: int, m: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(m, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    qualities = np.sort(random.uniform(0.3, 1.0, m))[::-1]
    order, added = diverse(qualities, vectors, target=m)
    assert order.tolist() == naive(qualities, vectors, m)
    kernel = qualities[:, None] * (vectors @ vectors.T) * qualities
    np.fill_diagonal(kernel, qualities**2)
    for taken in range(1, m + 1):
        volume = np.linalg.det(kernel[np.ix_(order[:taken], order[:taken])])
        assert math.prod(added[:taken]) == pytest.approx(volume, rel=1e-6, abs=1e-12)


# -- settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"vector_top_k": 0},
        {"diffusion_steps": 11},
        {"diffusion_decay": 1.4},
        {"teleport_probability": math.nan},
        {"max_query_chars": -5},
        {"half_lives_turns": {"event": 0}},
        {"stages": ["difusion"]},
        {"diffusion_step": 2},
    ],
)
def test_a_setting_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MemoryGraphSettings(**wrong)  # type: ignore[arg-type]
