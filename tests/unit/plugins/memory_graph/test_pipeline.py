"""Recall over a memory graph, stage by stage, and over talk as a graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import bool_, float32, float64, intp
from numpy.typing import NDArray

from glyphoxa.config.provider_sections import MemoryGraphSettings, RecallStage
from glyphoxa.plugins.memory_graph.graph import MemoryGraph, Said, TalkGraph
from glyphoxa.plugins.memory_graph.pipeline import GraphQuestion, Recollection, recall
from tests.support.memory_graph import GRAPH_STAGES
from tests.support.proof import n_examples

OFF = MemoryGraphSettings()
ALL = MemoryGraphSettings(stages=GRAPH_STAGES)
FEAST = ["mira cook", "mira feast", "duke poison", "dragon hill", "magic"]
"""Words of the nodes of the feast."""


def only(*stages: RecallStage, **changes: object) -> MemoryGraphSettings:
    return MemoryGraphSettings(stages=stages, **changes)  # type: ignore[arg-type]


def ids(found: Recollection) -> list[str]:
    return [hit.id for hit in found.hits]


def feast(*, latest: int = 60) -> MemoryGraph:
    """Mira, who gave a feast at which the duke was poisoned; a dragon that has nothing to do with it; a rule."""
    return MemoryGraph(
        ["mira", "feast", "poisoning", "dragon", "no magic"],
        ["character_sheet", "event", "event", "event", "rule_constraint"],
        [(1, 0, "involved_in"), (2, 1, "advances")],
        turns=np.array([-1, 10, 11, latest, -1]),
        vectors=np.array([[1, 0, 0], [0.8, 0.6, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], float32),
    )


def vector(*numbers: float) -> NDArray[float32]:
    return np.array(numbers, float32)


def question(
    graph: MemoryGraph,
    asked: str = "",
    meaning: NDArray[float32] | None = None,
    *,
    words: Sequence[str] = FEAST,
    anchors: Sequence[int] = (),
    among: NDArray[bool_] | None = None,
) -> GraphQuestion:
    """Half of its ranking is of the words that a node shares with it, half of their meanings."""
    wanted = asked.split()
    lexical = shares(words, wanted, n=len(graph))
    cosines = np.zeros(len(graph)) if meaning is None else graph.cosines(meaning)
    base = 0.5 * highest_1(lexical) + 0.5 * highest_1(np.maximum(cosines, 0))
    return GraphQuestion(base, lexical, cosines, meaning, anchors, among)


def shares(words: Sequence[str], wanted: Collection[str], *, n: int) -> NDArray[float64]:
    found = [len(set(wanted) & set(of_node.split())) / max(1, len(wanted)) for of_node in words]
    return np.array(found + [0.0] * (n - len(found)))


def highest_1(values: NDArray[float64]) -> NDArray[float64]:
    return values / max(values.max(initial=0), 1e-9)


# -- the base


def test_with_every_stage_off_the_ranking_of_the_question_decides() -> None:
    graph = feast()
    found = recall(graph, question(graph, "mira feast", vector(1, 0, 0)), OFF)
    assert ids(found) == ["feast", "mira"]
    assert [hit.why for hit in found.hits] == [{"base": 1.0}, {"base": pytest.approx(0.75 / 0.9)}]


@pytest.mark.parametrize("settings", [OFF, ALL], ids=["off", "all"])
@pytest.mark.parametrize(
    ("asked", "meaning"), [("", None), ("turnip", None), ("", vector(0, 0, 0)), ("", vector(-1, -1, -1))]
)
def test_nothing_that_bears_on_a_question_is_nothing(
    asked: str, meaning: NDArray[float32] | None, settings: MemoryGraphSettings
) -> None:
    assert recall(feast(), question(feast(), asked, meaning), settings).hits == ()


# -- the stages


def test_energy_reaches_what_no_word_and_no_meaning_does() -> None:
    graph = feast()
    asked = question(graph, "cook")
    assert ids(recall(graph, asked, OFF)) == ["mira"]
    assert ids(recall(graph, asked, only("diffusion"))) == ["mira", "feast"]
    found = recall(graph, asked, only("diffusion", refractory=1.0))
    assert ids(found) == ["mira", "feast", "poisoning"]
    assert found.hits[1].why["energy"] == pytest.approx(0.63 * 0.6 * 0.5)


def test_a_name_in_the_question_is_a_seed() -> None:
    found = recall(feast(), question(feast(), anchors=[0]), only("diffusion", forgetting=False))
    assert found.hits[0].why["energy"] == 2.0
    assert ids(found)[1] == "feast"


@pytest.mark.parametrize(("half_lives", "left"), [({}, 1 / 4), ({"event": 100}, 1 / 2), ({"event": np.inf}, 1)])
def test_what_its_people_were_long_not_heard_of_in_fades(half_lives: dict[str, float], left: float) -> None:
    energy = [
        recall(graph, question(graph, "cook"), only("diffusion", half_lives_turns=half_lives)).hits[1].why["energy"]
        for graph in (feast(latest=10), feast(latest=110))
    ]
    assert energy[1] == pytest.approx(energy[0] * left, rel=0.02)


def test_the_hybrid_score_says_what_it_is_made_of() -> None:
    graph = feast(latest=10)
    asked = question(graph, "mira cook", vector(1, 0, 0), anchors=[0])
    found = {hit.id: hit for hit in recall(graph, asked, only("hybrid_score", half_lives_turns={"event": 1e9})).hits}
    assert found["mira"].why == pytest.approx(
        {"vector": 0.25, "lexical": 0.35, "anchor": 0.10, "recency": 0.10}, rel=0.01
    )
    assert found["mira"].score == pytest.approx(0.80, rel=0.01)
    assert found["feast"].why == pytest.approx({"vector": 0.28, "lexical": 0.075, "anchor": 0.05, "recency": 0.15})


def test_whom_one_often_meets_together_comes_along() -> None:
    graph = MemoryGraph(
        ["mira", "borin", "thain", "a", "b", "c"],
        ["character_sheet"] * 3 + ["event"] * 3,
        [(3, 0, "mentions"), (3, 1, "mentions"), (4, 0, "mentions"), (4, 1, "mentions"), (5, 0, "mentions"),
         (5, 2, "mentions")],
        turns=np.array([-1, -1, -1, 0, 1, 2]),
    )  # fmt: skip
    asked = question(graph, "quarrel", words=["", "", "", *["quarrel"] * 3], anchors=[0])
    found = {hit.id: hit for hit in recall(graph, asked, only("hybrid_score", "co_occurrence")).hits}
    assert found["a"].why["co_occurrence"] == pytest.approx(0.1 * np.log(3))
    assert found["c"].why["co_occurrence"] == pytest.approx(0.1 * np.log(2))
    assert all("co_occurrence" not in hit.why for hit in recall(graph, asked, only("hybrid_score")).hits)


def test_what_of_the_question_is_not_covered_is_searched_for_again() -> None:
    lexical = shares(FEAST, ["feast"], n=5)
    asked = GraphQuestion(lexical, lexical, np.zeros(5), vector(1, 0, 1))
    found = {hit.id: hit for hit in recall(feast(), asked, only("residual", max_results=1, pool_factor=1)).hits}
    assert set(found) == {"feast"}
    found = {hit.id: hit for hit in recall(feast(), asked, only("residual")).hits}
    assert set(found) == {"feast", "dragon", "mira"}
    assert found["dragon"].score == found["dragon"].why["residual"] <= 0.5


def test_of_each_type_only_the_first_stay() -> None:
    graph = MemoryGraph([*"abcd", "rule", "z"], ["event"] * 4 + ["rule_constraint"] * 2)
    asked = question(graph, "mira feast", words=["mira feast"] * 4 + ["mira", "mira"])
    assert ids(recall(graph, asked, only("per_type_cap"))) == ["a", "b", "c", "rule", "z"]
    assert ids(recall(graph, asked, only("per_type_cap", cap_of_type=1))) == ["a", "rule"]


# -- what may be recalled


def test_what_may_not_be_recalled_still_leads_on() -> None:
    asked = question(feast(), "cook", among=np.array([True, False, True, True, True]))
    assert ids(recall(feast(), asked, only("diffusion", refractory=1.0))) == ["mira", "poisoning"]


def test_what_was_said_in_the_last_rounds_is_in_the_prompt_already() -> None:
    graph = feast(latest=0)
    asked = question(graph, "feast poison")
    assert ids(recall(graph, asked, only(exclude_recent_rounds=1))) == ["feast"]
    assert ids(recall(graph, asked, only(exclude_recent_rounds=2))) == []
    cosines = np.array([0.1, 0, 0, 0, 0])
    by_residual = GraphQuestion(cosines, np.zeros(5), cosines, vector(0, 1, 0))
    assert "poisoning" not in ids(recall(graph, by_residual, only("residual", exclude_recent_rounds=2)))


# -- degenerate input


def test_a_stage_that_cannot_be_done_is_left_out_and_told() -> None:
    graph = MemoryGraph(["a"], ["event"])
    found = recall(graph, question(graph, "mira", words=["mira"]), ALL)
    assert ids(found) == ["a"]
    assert found.left_out == (
        "topics: the question has no vector",
        "residual: the question has no vector",
        "diversity: no node has a vector",
    )
    with_vector = GraphQuestion(np.ones(1), np.ones(1), np.zeros(1), vector(1))
    assert recall(graph, with_vector, only("topics")).left_out == ("topics: no node has a vector",)


def test_an_empty_graph_and_one_node_without_edges_answer() -> None:
    empty = MemoryGraph([], [])
    assert recall(empty, question(empty, "mira", words=[]), ALL).hits == ()
    graph = MemoryGraph(["a"], ["event"], turns=np.array([0]), vectors=np.array([[0.6, 0.8]], float32))
    found = recall(graph, question(graph, "mira", vector(0.6, 0.8), words=["mira"]), ALL)
    assert ids(found) == ["a"]
    assert found.hits[0].why["vector"] == pytest.approx(0.35)


def test_a_turn_that_is_not_embedded_yet_counts_as_far() -> None:
    cosines = np.array([np.nan, 0.5, np.nan, 0.2, np.nan])
    found = recall(feast(), GraphQuestion(np.ones(5), np.zeros(5), cosines), only("hybrid_score"))
    assert [hit.id for hit in found.hits if "vector" in hit.why] == ["feast", "dragon"]


# -- where a node is stored changes nothing


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, tuple[RecallStage, ...]]:
    return (
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(2, 25)),
        tuple(draw(st.sets(st.sampled_from(GRAPH_STAGES)))),
    )


@given(tables())
@settings(max_examples=n_examples(60))
def test_the_same_is_recalled_in_whatever_order_nodes_and_edges_are_stored(
    table: tuple[int, int, tuple[RecallStage, ...]],
) -> None:
    seed, n, stages = table
    random = np.random.default_rng(seed)
    kinds = random.choice(["event", "character_sheet", "rule_constraint"], n)
    # Few values, so that there are ties, and sums of them are exact whatever their order.
    words = [" ".join(random.choice(list("abcdefg"), 3)) for _ in range(n)]
    vectors = random.choice([-0.5, 0.5], (n, 4)).astype(float32)
    turns = random.integers(-1, 12, n)
    ends = random.integers(0, n, (2 * n, 2))
    meaning = random.choice([-0.5, 0.5], 4).astype(float32)
    anchors = random.integers(0, n, 2).tolist()

    def answer(order: NDArray[intp], edge_order: NDArray[intp]) -> list[tuple[str, float]]:
        place = np.argsort(order)
        graph = MemoryGraph(
            [f"n{at}" for at in order],
            kinds[order].tolist(),
            [(int(place[source]), int(place[target]), "mentions") for source, target in ends[edge_order]],
            turns=turns[order],
            vectors=vectors[order],
        )
        asked = question(
            graph, "a b c", meaning, words=[words[at] for at in order], anchors=[int(place[at]) for at in anchors]
        )
        found = recall(graph, asked, only(*stages))
        return [(hit.id, round(hit.score, 6)) for hit in found.hits]

    stored = answer(np.arange(n), np.arange(2 * n))
    assert answer(random.permutation(n), random.permutation(2 * n)) == stored


# -- talk

TALK = ["grimjaw sword", "fine steel", "rain", "ordered grimjaw"]


def talk() -> TalkGraph:
    return TalkGraph(
        [
            Said("u1", "Ash", "here is Grimjaw"),
            Said("u2", "Birk", "fine steel"),
            Said("u3", "The Sunken Inn", "it rains"),
            Said("u4", "Dana", "they say Grimjaw ordered it"),
        ],
        sessions=np.array([0, 0, 0, 1]),
    )


def asked_of(of_talk: TalkGraph, asked: str) -> GraphQuestion:
    among = np.arange(len(of_talk)) < of_talk.n_turns
    return question(of_talk, asked, words=TALK, anchors=of_talk.anchors(asked), among=among)


def test_turns_come_first_and_names_behind_them() -> None:
    of_talk = talk()
    names = ("name grimjaw", "name ash", "name birk", "name the sunken inn", "name dana")
    assert of_talk.ids == ("u1", "u2", "u3", "u4", *names)
    assert of_talk.n_turns == 4
    assert of_talk.anchors("What of GRIMJAW and the Sunken Inn, Grimjaw's place?") == [4, 7]
    assert of_talk.anchors("") == []


@pytest.mark.parametrize(
    ("asked", "semantic", "found"),
    [
        ("sword", True, ["u1", "u2", "u3", "u4"]),
        ("rain", False, ["u3", "u2", "u1"]),
    ],
    ids=["to its neighbours and to others that mention the same", "in time not to the next session"],
)
def test_a_turn_leads_on(asked: str, semantic: bool, found: list[str]) -> None:
    freely = only("diffusion", refractory=1.0, forgetting=False, semantic_edges=semantic)
    assert ids(recall(talk(), asked_of(talk(), asked), freely)) == found


def test_a_name_that_is_asked_for_leads_to_the_turns_that_mention_it() -> None:
    assert set(ids(recall(talk(), asked_of(talk(), "Grimjaw?"), only("diffusion")))) >= {"u1", "u4"}
