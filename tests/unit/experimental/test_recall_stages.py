"""Each stage of recall over the memory graph, alone: by hand, and against a slow way to the same answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.experimental.graph.adjacency import Adjacency, both, semantic_layer, temporal_layer
from glyphoxa.experimental.graph.best import best
from glyphoxa.experimental.graph.diffusion import fading, spread
from glyphoxa.experimental.graph.diversity import capped_per_type, diverse
from glyphoxa.experimental.graph.hybrid_score import Signals, hybrid_scores
from glyphoxa.experimental.graph.residual import ITERATIONS, LAMBDA, residual_of
from glyphoxa.experimental.graph.settings import STAGES, GraphRecallSettings
from glyphoxa.experimental.graph.topics import factorised, topic_boosts

Edge = tuple[int, int, str]
KINDS = ("involved_in", "updates", "related", "mentions", "contradicts", "owes")


def layer(n: int, edges: Iterable[Edge]) -> Adjacency:
    listed = list(edges)
    return semantic_layer(
        n,
        np.array([source for source, _, _ in listed], intp),
        np.array([target for _, target, _ in listed], intp),
        [kind for _, _, kind in listed],
    )


def weights_of(adjacency: Adjacency) -> dict[tuple[int, int], float]:
    return {
        (node, int(adjacency.targets[at])): float(adjacency.weights[at])
        for node in range(len(adjacency))
        for at in range(adjacency.starts[node], adjacency.starts[node + 1])
    }


def temporal(turns: list[int]) -> Adjacency:
    return temporal_layer(np.array(turns, int64), ties=np.arange(len(turns)))


# -- adjacency


def test_an_edge_leads_both_ways_and_back_it_is_weaker() -> None:
    assert weights_of(layer(3, [(0, 1, "involved_in"), (1, 2, "Owes")])) == pytest.approx(
        {(0, 1): 0.9, (1, 0): 0.63, (1, 2): 0.4, (2, 1): 0.28}
    )


def test_of_several_edges_between_two_the_strongest_counts_and_none_leads_to_itself() -> None:
    edges = [(0, 1, "mentions"), (0, 1, "updates"), (1, 0, "evidence"), (1, 1, "updates")]
    assert weights_of(layer(2, edges)) == pytest.approx({(0, 1): 0.8, (1, 0): 0.56})


def test_of_two_as_strong_the_one_that_inhibits_counts() -> None:
    assert weights_of(layer(2, [(0, 1, "related"), (0, 1, "contradicts")]))[0, 1] == -0.5


def test_what_came_next_in_time_is_tied_and_what_came_long_after_is_not() -> None:
    found = weights_of(temporal([4, -1, 3, 28]))
    assert found == pytest.approx({(0, 2): 0.5 * math.exp(-0.1), (2, 0): 0.5 * math.exp(-0.1)})
    assert (0, 3) in weights_of(temporal([4, -1, 3, 27]))


def test_two_layers_add_up_in_what_leads_to_a_node() -> None:
    joined = both(layer(2, [(0, 1, "related")]), temporal([0, 1]))
    assert joined.in_degrees.tolist() == [2, 2]
    assert sorted(joined.weights) == pytest.approx(sorted([0.5, 0.35, *[0.5 * math.exp(-0.1)] * 2]))


def test_neighbours_are_those_that_a_node_excites_nearest_first() -> None:
    edges = [(0, 1, "mentions"), (0, 2, "updates"), (0, 3, "contradicts")]
    assert layer(4, edges).neighbours(0) == [2, 1]


# -- diffusion


def slow_spread(
    seeds: NDArray[float64],
    edges: list[tuple[int, int, float]],
    *,
    steps: int,
    decay: float,
    top_k: int,
    teleport: float,
    fade: NDArray[float64],
) -> dict[int, float]:
    """Spreading activation as the document tells it, one edge at a time."""

    def largest(energy: dict[int, float], most: int) -> list[int]:
        return sorted(energy, key=lambda node: (-abs(round(energy[node], 9)), node))[:most]

    def clamped(value: float) -> float:
        return max(-2.0, min(2.0, value))

    start = {node: clamped(value) for node, value in enumerate(seeds) if value}
    start = {node: start[node] for node in largest(start, top_k)}
    energy, reached = dict(start), dict(start)
    in_degree: dict[int, int] = {}
    for _, target, _ in edges:
        in_degree[target] = in_degree.get(target, 0) + 1
    tired: set[int] = set()
    for _ in range(steps):
        following: dict[int, float] = {}
        for source, target, weight in edges:
            penalty = max(1, in_degree.get(source, 0)) ** -0.55
            sent = energy.get(source, 0.0) * weight * decay * penalty * (0.15 if source in tired else 1.0)
            following[target] = following.get(target, 0.0) + sent
        following = {node: clamped(value * fade[node]) for node, value in following.items()}
        following = {node: value for node, value in following.items() if abs(value) >= 0.01}
        if teleport:
            nodes = {*following, *start}
            following = {
                node: (1 - teleport) * following.get(node, 0.0) + teleport * start.get(node, 0.0) for node in nodes
            }
            following = {node: value for node, value in following.items() if abs(value) >= 0.01}
        energy = {node: following[node] for node in largest(following, top_k)}
        for node, value in energy.items():
            if abs(value) > abs(reached.get(node, 0.0)):
                reached[node] = value
        tired.update(largest(energy, 15))
    return reached


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Edge], list[float]]:
    n = draw(st.integers(2, 30))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from(KINDS)), max_size=80))
    seeds = draw(st.lists(st.sampled_from([0.0, 0.0, 0.3, 0.71, 2.0, 9.0]), min_size=n, max_size=n))
    return n, edges, seeds


def test_a_neighbour_holds_what_is_left_on_the_way() -> None:
    adjacency = layer(2, [(0, 1, "involved_in")])
    energy = spread(np.array([1.0, 0.0]), adjacency, ties=np.arange(2), steps=1).held
    assert energy.tolist() == pytest.approx([1.0, 0.9 * 0.6])


def test_what_everything_leads_to_passes_little_on() -> None:
    hub = layer(6, [(at, 5, "involved_in") for at in range(5)])
    energy = spread(np.array([0, 0, 0, 0, 0, 1.0]), hub, ties=np.arange(6), steps=1).held
    assert energy[0] == pytest.approx(0.63 * 0.6 * 5**-0.55)


def test_what_had_its_say_is_quieter_in_the_next_step() -> None:
    chain = layer(3, [(0, 1, "involved_in"), (1, 2, "involved_in")])
    energy = spread(np.array([2.0, 0, 0]), chain, ties=np.arange(3), steps=2).held
    at_one = 2.0 * 0.9 * 0.6
    assert energy[1] == pytest.approx(at_one)
    assert energy[2] == pytest.approx(at_one * 0.9 * 0.6 * 2**-0.55 * 0.15)


def test_a_contradiction_takes_energy_away() -> None:
    energy = spread(np.array([1.0, 0]), layer(2, [(0, 1, "contradicts")]), ties=np.arange(2), steps=1).held
    assert energy[1] == pytest.approx(-0.5 * 0.6)


def test_what_nobody_has_heard_of_for_a_half_life_keeps_half() -> None:
    half = fading(np.array([50.0, 0.0, 1e9]), np.array([50.0, 50.0, math.inf]))
    assert half.tolist() == [0.5, 1.0, 1.0]
    energy = spread(np.array([0, 1.0]), layer(2, [(1, 0, "updates")]), ties=np.arange(2), steps=1, fade=half[:2]).held
    assert energy[0] == pytest.approx(0.8 * 0.6 * 0.5)


def test_teleport_brings_energy_back_to_where_it_came_from_and_is_applied_once() -> None:
    adjacency = layer(2, [(0, 1, "updates")])
    energy = spread(np.array([1.0, 0]), adjacency, ties=np.arange(2), steps=1, teleport=0.25).held
    assert energy.tolist() == pytest.approx([1.0, 0.75 * 0.8 * 0.6])


@given(graphs(), st.integers(1, 4), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 30), st.sampled_from([0.6, 1.0]))
def test_energy_spreads_as_the_slow_reference_has_it_and_stays_within_its_bounds(
    graph: tuple[int, list[Edge], list[float]], steps: int, teleport: float, top_k: int, decay: float
) -> None:
    n, edges, listed = graph
    adjacency = both(layer(n, edges), temporal([at // 2 if at % 3 else -1 for at in range(n)]))
    seeds = np.array(listed)
    fade = fading(np.arange(n, dtype=float64), np.full(n, 10.0))
    energy = spread(
        seeds, adjacency, ties=np.arange(n), steps=steps, decay=decay, top_k=top_k, teleport=teleport, fade=fade
    ).held
    sources = np.repeat(np.arange(n), np.diff(adjacency.starts))
    all_edges = list(zip(sources.tolist(), adjacency.targets.tolist(), adjacency.weights.tolist(), strict=True))
    expected = slow_spread(seeds, all_edges, steps=steps, decay=decay, top_k=top_k, teleport=teleport, fade=fade)
    assert energy == pytest.approx(np.array([expected.get(node, 0.0) for node in range(n)]), abs=1e-8)
    assert (np.abs(energy) <= 2.0).all()


def test_without_seeds_or_edges_nothing_spreads() -> None:
    nothing = layer(3, [])
    assert not spread(np.zeros(3), nothing, ties=np.arange(3)).held.any()
    energy = spread(np.array([0, 0.5, 0]), nothing, ties=np.arange(3))
    assert energy.held.tolist() == [0, 0.5, 0]
    assert not energy.received.any()


def test_the_best_are_the_same_wherever_they_are_stored() -> None:
    scores, ties = np.array([0.5, 0.1 + 0.2, 0.3, 0.5]), np.array([3, 2, 1, 0])
    assert best(scores, most=3, ties=ties).tolist() == [3, 0, 2]
    assert best(scores, most=2, ties=ties, among=np.array([1, 2])).tolist() == [2, 1]
    assert best(scores, most=5, ties=ties, among=np.array([], intp)).tolist() == []


# -- hybrid score


def test_each_type_weighs_the_signals_its_own_way() -> None:
    one = np.ones(3)
    signals = Signals(vector=one, energy=2 * one, lexical=one, anchor=one, recency=one, co_occurrence=0.2 * one)
    parts = hybrid_scores(signals, np.array([0, 1, 2]), ["event", "rule_constraint", "weather"])
    assert sum(parts.values()) == pytest.approx(np.array([1.2, 0.95, 1.2]))
    assert parts["vector"].tolist() == [0.35, 0.25, 0.30]
    assert parts["recency"].tolist() == [0.15, 0.0, 0.15]
    assert parts["diffusion"].tolist() == [0.30, 0.10, 0.25]


# -- topics


def test_the_factors_are_near_to_what_they_factorise_and_never_negative() -> None:
    random = np.random.default_rng(5)
    values = random.uniform(0, 1, (9, 2)) @ random.uniform(0, 1, (2, 12))
    w, h = factorised(values, 2)
    assert (w >= 0).all()
    assert (h >= 0).all()
    assert np.linalg.norm(values - w @ h) < 0.1 * np.linalg.norm(values)


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


# -- residual


def objective(q: NDArray[float64], c: NDArray[float64], w: NDArray[float64]) -> float:
    return float(((q - w @ c) ** 2).sum() / 2 + LAMBDA * np.abs(w).sum())


def by_coordinates(q: NDArray[float64], c: NDArray[float64]) -> NDArray[float64]:
    """Coordinate descent: another way to the same least."""
    w = np.zeros(len(c))
    for _ in range(3_000):
        for at, row in enumerate(c):
            length = row @ row
            if length:
                pull = row @ (q - w @ c) + length * w[at]
                w[at] = math.copysign(max(abs(pull) - LAMBDA, 0.0), pull) / length
    return w


def test_what_the_candidates_say_is_taken_from_the_question_but_for_lambda() -> None:
    residual = residual_of(np.array([0.6, 0.8, 0.0]), np.array([[1.0, 0, 0]]))
    assert residual.weights == pytest.approx([0.5])
    assert residual.vector == pytest.approx([0.1, 0.8, 0.0])
    assert residual.searches_again


def test_a_question_that_is_fully_covered_is_not_searched_again() -> None:
    residual = residual_of(np.array([0.0, 3.0]), np.eye(2))
    assert residual.share == pytest.approx(0.1)
    assert not residual.searches_again


def test_a_question_of_which_nothing_is_covered_is_left_as_it_is() -> None:
    for candidates in (np.zeros((2, 2)), np.zeros((0, 2))):
        residual = residual_of(np.array([0.0, 3.0]), candidates)
        assert residual.vector.tolist() == [0.0, 3.0]
        assert residual.share == 1.0


def test_a_question_without_meaning_leaves_nothing_to_search_for() -> None:
    assert not residual_of(np.zeros(3), np.eye(3)).searches_again


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 8))
def test_the_weights_are_near_the_least_that_another_method_finds(seed: int, m: int, dimensions: int) -> None:
    random = np.random.default_rng(seed)
    c = random.normal(size=(m, dimensions))
    c /= np.linalg.norm(c, axis=1, keepdims=True)
    q = random.normal(size=dimensions)
    q /= np.linalg.norm(q)
    found = residual_of(q, c)
    there = by_coordinates(q, c)
    cost, least = objective(q, c, found.weights), objective(q, c, there)
    # What Beck & Teboulle prove (theorem 4.4) for a step of 1 / L, of which the power iteration keeps a margin.
    bound = 2 * 1.1 * np.linalg.eigvalsh(c @ c.T)[-1] * (there @ there) / (ITERATIONS + 1) ** 2
    assert cost <= objective(q, c, np.zeros(m)) + 1e-12
    assert least - 1e-9 <= cost <= least + bound + 1e-9
    assert found.vector == pytest.approx(q - found.weights @ c)


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


def test_the_more_relevance_counts_the_more_it_takes_to_be_let_before_what_is_better() -> None:
    vectors = np.array([[1.0, 0], [0.8, 0.6], [0, 1.0]])
    qualities = np.array([1.0, 0.9, 0.6])
    assert diverse(qualities, vectors, target=3)[0].tolist() == [0, 2, 1]
    order, added = diverse(qualities, vectors, target=2, relevance=8)
    assert order.tolist() == [0, 1]
    assert added.tolist() == pytest.approx([1.0, 0.9**16 * 0.36])


def test_what_says_the_same_comes_last() -> None:
    vectors = np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    order, added = diverse(np.array([1.0, 0.9, 0.5]), vectors, target=3)
    assert order.tolist() == [0, 2, 1]
    assert added.tolist() == pytest.approx([1.0, 0.25, 0.0])


def test_without_meanings_the_best_stay_first() -> None:
    order, _ = diverse(np.array([1.0, 0.9, 0.5, -0.1]), np.zeros((4, 2)), target=4)
    assert order.tolist() == [0, 1, 2, 3]
    assert diverse(np.array([0.7]), np.zeros((1, 2)), target=5)[0].tolist() == [0]
    assert diverse(np.zeros(0), np.zeros((0, 2)), target=5)[0].tolist() == []


def test_of_each_type_only_the_first_three_stay() -> None:
    types = ["event", "event", "rule", "event", "event", "rule"]
    assert capped_per_type(types) == [0, 1, 2, 3, 5]
    assert capped_per_type(types, most=1) == [0, 2]


# -- settings


def test_every_stage_is_off_and_the_numbers_are_the_documents() -> None:
    settings = GraphRecallSettings()
    assert not any(getattr(settings, stage) for stage in STAGES)
    assert (settings.vector_top_k, settings.diffusion_steps, settings.diffusion_decay) == (20, 2, 0.6)
    assert (settings.diffusion_top_k, settings.teleport_probability) == (100, 0.0)
    assert (settings.visible_recent_messages, settings.exclude_recent_rounds) == (5, 0)
    assert settings.include_world_info
    assert all(getattr(GraphRecallSettings().with_stages(*STAGES), stage) for stage in STAGES)


def test_stages_are_switched_by_name() -> None:
    for on in combinations(STAGES, 2):
        settings = GraphRecallSettings().with_stages(*STAGES).with_stages(*on)
        assert tuple(stage for stage in STAGES if getattr(settings, stage)) == on
    with pytest.raises(InvalidInput, match="no stage 'difusion'; did you mean 'diffusion'"):
        GraphRecallSettings().with_stages("difusion")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vector_top_k": 0}, "recall.vector_top_k is 0; valid: a whole number from 1 to 1000"),
        ({"vector_top_k": True}, "recall.vector_top_k is True"),
        ({"diffusion_steps": 2.0}, "recall.diffusion_steps is 2.0; valid: a whole number from 1 to 10"),
        ({"diffusion_decay": 1.4}, "recall.diffusion_decay is 1.4; valid: a number from 0 to 1"),
        ({"teleport_probability": math.nan}, "recall.teleport_probability is nan"),
        ({"max_query_chars": -5}, "valid: a whole number from 1 to 10000 characters"),
        ({"diffusion": "yes"}, "recall.diffusion is 'yes'; valid: true, false"),
        ({"half_lives_turns": {"event": 0}}, "recall.half_lives_turns of 'event' is 0; valid: more than 0 turns"),
    ],
)
def test_a_setting_that_cannot_be_is_told_with_what_can(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message.replace("(", r"\(")):
        GraphRecallSettings(**wrong)  # type: ignore[arg-type]
