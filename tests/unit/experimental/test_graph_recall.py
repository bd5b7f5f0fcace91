"""Recall over a memory graph, stage by stage, and over talk as a graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import bool_, float32, intp
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.experimental.graph.memory_graph import Edges, MemoryGraph, Nodes
from glyphoxa.experimental.graph.question import GraphQuestion, Recollection
from glyphoxa.experimental.graph.recall import recall
from glyphoxa.experimental.graph.settings import STAGES, GraphRecallSettings
from glyphoxa.experimental.graph.talk_graph import TalkGraph, graph_of_talk
from tests.support.proof import n_examples

OFF = GraphRecallSettings()
ALL = GraphRecallSettings().with_stages(*STAGES)


def only(*stages: str, **changes: object) -> GraphRecallSettings:
    return GraphRecallSettings(**{**dict.fromkeys(stages, True), **changes})  # type: ignore[arg-type]


def ids(found: Recollection) -> list[str]:
    return [hit.id for hit in found.hits]


def edges(*pairs: tuple[int, int, str]) -> Edges:
    return Edges(
        np.array([source for source, _, _ in pairs], intp),
        np.array([target for _, target, _ in pairs], intp),
        [kind for _, _, kind in pairs],
    )


def feast() -> MemoryGraph:
    """Mira, who gave a feast at which the duke was poisoned; a dragon that has nothing to do with it; a rule."""
    return MemoryGraph(
        Nodes(
            ids=["mira", "feast", "poisoning", "dragon", "no magic"],
            types=["character_sheet", "event", "event", "event", "rule_constraint"],
            tokens=[{"mira", "cook"}, {"mira", "feast"}, {"duke", "poison"}, {"dragon", "hill"}, {"magic"}],
            vectors=np.array([[1, 0, 0], [0.8, 0.6, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], float32),
            turns=np.array([-1, 10, 11, 60, -1]),
            links=[[], [0], [], [], []],
        ),
        edges((1, 0, "involved_in"), (2, 1, "advances")),
    )


def vector(*numbers: float) -> NDArray[float32]:
    return np.array(numbers, float32)


# -- the base


def test_with_every_stage_off_words_and_meaning_decide() -> None:
    found = recall(feast(), GraphQuestion(tokens=["mira", "feast"], vector=vector(1, 0, 0)), OFF)
    assert ids(found) == ["feast", "mira"]
    assert found.hits[0].why == {"base": pytest.approx(0.5 * 1.0 + 0.5 * 0.8)}
    assert found.hits[1].score == pytest.approx(0.5 * 0.5 + 0.5 * 1.0)


def test_one_arm_alone_is_enough() -> None:
    assert ids(recall(feast(), GraphQuestion(tokens=["dragon"]), OFF)) == ["dragon"]
    assert ids(recall(feast(), GraphQuestion(vector=vector(0, 0, 2)), OFF)) == ["dragon"]


def test_a_ranking_made_elsewhere_can_be_built_upon() -> None:
    base = np.array([0.0, 0.0, 5.0, 10.0, 0.0])
    found = recall(feast(), GraphQuestion(tokens=["mira"], base=base), OFF)
    assert [(hit.id, hit.score) for hit in found.hits] == [("dragon", 1.0), ("poisoning", 0.5)]


def test_nothing_that_bears_on_a_question_is_nothing() -> None:
    for question in (
        GraphQuestion(),
        GraphQuestion(tokens=["turnip"]),
        GraphQuestion(vector=vector(0, 0, 0)),
        GraphQuestion(vector=vector(-1, -1, -1)),
    ):
        assert recall(feast(), question, OFF).hits == ()
        assert recall(feast(), question, ALL).hits == ()


# -- the stages


def test_the_pre_filter_leaves_the_nearest_only() -> None:
    question = GraphQuestion(vector=vector(0.9, 0.5, 0.1))
    assert len(recall(feast(), question, OFF).hits) == 4
    assert len(recall(feast(), question, only("vector_prefilter", vector_top_k=2)).hits) == 2


def test_energy_reaches_what_no_word_and_no_meaning_does() -> None:
    question = GraphQuestion(tokens=["cook"])
    assert ids(recall(feast(), question, OFF)) == ["mira"]
    assert ids(recall(feast(), question, only("diffusion"))) == ["mira", "feast"]
    found = recall(feast(), question, only("diffusion", refractory=1.0))
    assert ids(found) == ["mira", "feast", "poisoning"]
    assert found.hits[1].why["energy"] == pytest.approx(0.63 * 0.6 * 0.5)


def test_what_a_seed_began_with_is_not_counted_twice() -> None:
    first, second = recall(feast(), GraphQuestion(tokens=["cook"]), only("diffusion")).hits
    assert first.score == 1.0
    assert first.why == {"base": 1.0, "energy": 1.0}
    assert second.score == second.why["diffusion"] == pytest.approx(0.3 * 0.189 / 2)


def test_a_name_in_the_question_is_a_seed() -> None:
    found = recall(feast(), GraphQuestion(anchors=[0]), only("diffusion", forgetting=False))
    assert found.hits[0].why["energy"] == 2.0
    assert ids(found)[1] == "feast"


def test_each_layer_of_edges_can_be_left_out() -> None:
    question = GraphQuestion(tokens=["poison"])
    assert ids(recall(feast(), question, only("diffusion", semantic_edges=False))) == ["poisoning", "feast"]
    neither = only("diffusion", semantic_edges=False, temporal_edges=False)
    assert ids(recall(feast(), question, neither)) == ["poisoning"]


def test_what_its_people_were_long_not_heard_of_in_fades() -> None:
    fresh = recall(feast(), GraphQuestion(tokens=["cook"], now=10), only("diffusion"))
    faded = recall(feast(), GraphQuestion(tokens=["cook"], now=110), only("diffusion"))
    energy = [dict(found.hits[1].why)["energy"] for found in (fresh, faded)]
    assert energy[1] == pytest.approx(energy[0] / 4)


def test_the_hybrid_score_says_what_it_is_made_of() -> None:
    question = GraphQuestion(tokens=["mira", "cook"], vector=vector(1, 0, 0), anchors=[0], now=10)
    found = recall(feast(), question, only("hybrid_score"))
    assert found.hits[0].why == pytest.approx({"vector": 0.25, "lexical": 0.35, "anchor": 0.10, "recency": 0.10})
    assert found.hits[0].score == pytest.approx(0.80)
    by_id = {hit.id: hit for hit in found.hits}
    assert by_id["feast"].why == pytest.approx({"vector": 0.28, "lexical": 0.075, "anchor": 0.05, "recency": 0.15})


def test_whom_one_often_meets_together_comes_along() -> None:
    nodes = Nodes(
        ids=["mira", "borin", "thain", "a", "b", "c"],
        types=["character_sheet"] * 3 + ["event"] * 3,
        tokens=[{"mira"}, {"borin"}, {"thain"}, {"quarrel"}, {"quarrel"}, {"quarrel"}],
        links=[[], [], [], [0, 1], [0, 1], [0, 2]],
    )
    question = GraphQuestion(tokens=["quarrel"], anchors=[0])
    found = {hit.id: hit for hit in recall(MemoryGraph(nodes), question, only("hybrid_score", "co_occurrence")).hits}
    assert found["a"].why["co_occurrence"] == pytest.approx(0.1 * np.log(3))
    assert found["c"].why["co_occurrence"] == pytest.approx(0.1 * np.log(2))
    without = recall(MemoryGraph(nodes), question, only("hybrid_score"))
    assert all("co_occurrence" not in hit.why for hit in without.hits)


def test_a_topic_that_is_asked_for_and_not_covered_is_lifted() -> None:
    of_feast, of_dragon = [1.0, 0, 0, 0], [0, 0, 0, 1.0]
    graph = MemoryGraph(
        Nodes(
            ids=list("abcdef"),
            types=["event"] * 6,
            tokens=[{"feast", "mira"}] * 5 + [{"mira"}],
            vectors=np.array([of_feast] * 5 + [of_dragon], float32),
        )
    )
    question = GraphQuestion(tokens=["mira", "feast"], vector=vector(1, 0, 0, 1))
    lifted = recall(graph, question, only("topics", lexical_share=0.1))
    assert ids(lifted)[0] == "f" != ids(recall(graph, question, OFF))[0]
    assert lifted.hits[0].why["topics"] == pytest.approx(0.6 * (1 / 3 - 0.95 / 5.95), abs=0.01)


def test_what_of_the_question_is_not_covered_is_searched_for_again() -> None:
    question = GraphQuestion(tokens=["feast"], vector=vector(1, 0, 1), cosines=np.zeros(5))
    found = {hit.id: hit for hit in recall(feast(), question, only("residual", max_results=1, pool_factor=1)).hits}
    assert set(found) == {"feast"}
    found = {hit.id: hit for hit in recall(feast(), question, only("residual")).hits}
    assert set(found) == {"feast", "dragon", "mira"}
    assert found["dragon"].score == found["dragon"].why["residual"] <= 0.5


def test_what_says_the_same_makes_room_for_what_does_not() -> None:
    graph = MemoryGraph(
        Nodes(
            ids=["a", "same as a", "other"],
            types=["event"] * 3,
            tokens=[{"mira", "feast", "duke"}, {"mira", "feast"}, {"mira"}],
            vectors=np.array([[1, 0], [1, 0], [0, 1]], float32),
        )
    )
    question = GraphQuestion(tokens=["mira", "feast", "duke"])
    assert ids(recall(graph, question, only(max_results=2))) == ["a", "same as a"]
    found = recall(graph, question, only("diversity", max_results=2))
    assert ids(found) == ["a", "other"]
    assert found.hits[1].why["novelty"] == pytest.approx((1 / 3) ** 2)


def test_events_leave_room_for_the_rest() -> None:
    graph = MemoryGraph(
        Nodes(
            ids=[*"abcd", "rule"],
            types=["event"] * 4 + ["rule_constraint"],
            tokens=[{"mira", "feast"}] * 4 + [{"mira"}],
        )
    )
    question = GraphQuestion(tokens=["mira", "feast"])
    assert ids(recall(graph, question, only("per_type_cap"))) == ["a", "b", "c", "rule"]


# -- what may be recalled


def test_what_may_not_be_recalled_still_leads_on() -> None:
    among = np.array([True, False, True, True, True])
    found = recall(feast(), GraphQuestion(tokens=["cook"], among=among), only("diffusion", refractory=1.0))
    assert ids(found) == ["mira", "poisoning"]


def test_what_was_said_in_the_last_rounds_is_in_the_prompt_already() -> None:
    question = GraphQuestion(tokens=["feast", "poison"], now=11)
    assert ids(recall(feast(), question, only(exclude_recent_rounds=1))) == ["feast"]
    assert ids(recall(feast(), question, only(exclude_recent_rounds=2))) == []
    by_residual = GraphQuestion(vector=vector(0, 1, 0), cosines=np.array([0.1, 0, 0, 0, 0]), now=11)
    assert "poisoning" not in ids(recall(feast(), by_residual, only("residual", exclude_recent_rounds=2)))


def test_a_result_is_no_longer_than_asked_for() -> None:
    graph = MemoryGraph(Nodes([f"{at:02}" for at in range(40)], ["event"] * 40, [{"mira"}] * 40))
    assert len(recall(graph, GraphQuestion(tokens=["mira"]), ALL).hits) == 3
    assert len(recall(graph, GraphQuestion(tokens=["mira"]), OFF).hits) == 15


# -- degenerate input


def test_a_stage_that_cannot_be_done_is_left_out_and_told() -> None:
    graph = MemoryGraph(Nodes(["a"], ["event"], [{"mira"}]))
    found = recall(graph, GraphQuestion(tokens=["mira"]), ALL)
    assert ids(found) == ["a"]
    assert found.left_out == (
        "topics: the question has no vector",
        "residual: the question has no vector",
        "diversity: no node has a vector",
    )
    with_vector = recall(graph, GraphQuestion(tokens=["mira"], vector=vector(1)), only("topics"))
    assert with_vector.left_out == ("topics: no node has a vector",)


def test_an_empty_graph_answers() -> None:
    assert recall(MemoryGraph(Nodes([], [])), GraphQuestion(tokens=["mira"]), ALL).hits == ()


def test_one_node_without_edges_answers() -> None:
    graph = MemoryGraph(Nodes(["a"], ["event"], [{"mira"}], np.array([[3.0, 4.0]], float32), np.array([0])))
    found = recall(graph, GraphQuestion(tokens=["mira"], vector=vector(0.6, 0.8)), ALL)
    assert ids(found) == ["a"]
    assert found.hits[0].why["vector"] == pytest.approx(0.35)


def test_a_turn_that_is_not_embedded_yet_counts_as_far() -> None:
    cosines = np.array([np.nan, 0.5, np.nan, 0.2, np.nan])
    assert ids(recall(feast(), GraphQuestion(cosines=cosines), OFF)) == ["feast", "dragon"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (GraphQuestion(vector=vector(1, 0)), r"the question's vector has shape \(2,\); the graph's have 3 dimensions"),
        (GraphQuestion(vector=vector(1, 0, np.nan)), "the question's vector has a number that is not finite"),
        (GraphQuestion(vector=vector(1, 0), cosines=np.zeros(5)), "the graph's have 3 dimensions"),
        (GraphQuestion(base=np.zeros(4)), r"base of a question to a memory graph has shape \(4,\); valid: \(5,\)"),
        (GraphQuestion(base=np.full(5, np.nan)), "base of a question to a memory graph has a number that is not"),
        (GraphQuestion(cosines=np.full(5, np.inf)), "cosines of a question .* not finite"),
        (
            GraphQuestion(among=np.ones(5)),  # type: ignore[arg-type]
            "among of a question to a memory graph is of float64; valid: bool",
        ),
        (GraphQuestion(anchors=[5]), "an anchor of a question is node 5; valid: 0 to 4"),
    ],
)
def test_a_question_that_does_not_fit_the_graph_is_refused(question: GraphQuestion, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        recall(feast(), question, OFF)


@pytest.mark.parametrize(
    ("nodes", "wrong_edges", "message"),
    [
        (Nodes(["a", "a"], ["event"] * 2), None, "an id stands twice"),
        (Nodes(["a"], []), None, "types of a memory graph has 0 entries; valid: one for each of its 1 nodes"),
        (Nodes(["a"], ["event"], vectors=np.zeros((2, 3), float32)), None, "vectors of a memory graph has 2 entries"),
        (Nodes(["a"], ["event"], vectors=np.zeros(1, float32)), None, r"have shape \(1,\); valid: \(nodes, dimensions"),
        (Nodes(["a"], ["event"], vectors=np.full((1, 2), np.nan, float32)), None, "has a number that is not finite"),
        (Nodes(["a"], ["event"], links=[[1]]), None, "a link of a memory graph leads to node 1; valid: 0 to 0"),
        (Nodes(["a"], ["event"]), edges((0, -1, "related")), "an edge of a memory graph leads to node -1"),
    ],
)
def test_a_graph_that_does_not_fit_together_is_refused(nodes: Nodes, wrong_edges: Edges | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        MemoryGraph(nodes, wrong_edges)


# -- where a node is stored changes nothing


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, tuple[str, ...]]:
    return (
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(2, 25)),
        tuple(draw(st.sets(st.sampled_from(STAGES)))),
    )


@given(tables())
@settings(max_examples=n_examples(60))
def test_the_same_is_recalled_in_whatever_order_nodes_and_edges_are_stored(
    table: tuple[int, int, tuple[str, ...]],
) -> None:
    seed, n, stages = table
    random = np.random.default_rng(seed)
    kinds = random.choice(["event", "character_sheet", "rule_constraint"], n)
    tokens = [set(random.choice(list("abcdefg"), 3)) for _ in range(n)]
    # Few values, so that there are ties, and sums of them are exact whatever their order.
    vectors = random.choice([-0.5, 0.5], (n, 4)).astype(float32)
    turns = random.integers(-1, 12, n)
    sources, targets = random.integers(0, n, 2 * n), random.integers(0, n, 2 * n)
    links = [set(random.integers(0, n, 2).tolist()) for _ in range(n)]
    question_vector = random.choice([-0.5, 0.5], 4).astype(float32)
    anchors = random.integers(0, n, 2).tolist()

    def answer(order: NDArray[intp], edge_order: NDArray[intp]) -> list[tuple[str, float]]:
        place = np.argsort(order)
        graph = MemoryGraph(
            Nodes(
                [f"n{at}" for at in order],
                kinds[order].tolist(),
                [tokens[at] for at in order],
                vectors[order],
                turns[order],
                [[int(place[entity]) for entity in links[at]] for at in order],
            ),
            Edges(place[sources[edge_order]], place[targets[edge_order]]),
        )
        question = GraphQuestion(["a", "b", "c"], question_vector, [int(place[at]) for at in anchors])
        found = recall(graph, question, OFF.with_stages(*stages))
        return [(hit.id, round(hit.score, 6)) for hit in found.hits]

    stored = answer(np.arange(n), np.arange(2 * n))
    assert answer(random.permutation(n), random.permutation(2 * n)) == stored


# -- talk


def talk() -> TalkGraph:
    return graph_of_talk(
        ids=["u1", "u2", "u3", "u4"],
        tokens=[{"grimjaw", "sword"}, {"fine", "steel"}, {"rain"}, {"ordered", "grimjaw"}],
        names=[["Grimjaw"], [], ["The Sunken Inn"], ["Grimjaw", "sunken inn"]],
        sessions=[0, 0, 0, 1],
    )


def turns_of(of_talk: TalkGraph) -> NDArray[bool_]:
    is_turn: NDArray[bool_] = np.arange(len(of_talk.graph)) < of_talk.n_turns
    return is_turn


def test_turns_come_first_and_names_behind_them() -> None:
    of_talk = talk()
    assert of_talk.graph.ids == ("u1", "u2", "u3", "u4", "name grimjaw", "name the sunken inn", "name sunken inn")
    assert of_talk.n_turns == 4
    assert of_talk.anchors("What of GRIMJAW and the Sunken Inn, Grimjaw's place?") == [4, 5, 6]
    assert of_talk.anchors("") == []


def test_a_turn_leads_to_its_neighbours_and_to_others_that_mention_the_same() -> None:
    of_talk = talk()
    question = GraphQuestion(tokens=["sword"], among=turns_of(of_talk))
    freely = only("diffusion", refractory=1.0, forgetting=False)
    assert ids(recall(of_talk.graph, question, freely)) == ["u1", "u2", "u3", "u4"]


def test_a_name_that_is_asked_for_leads_to_the_turns_that_mention_it() -> None:
    of_talk = talk()
    question = GraphQuestion(anchors=of_talk.anchors("Grimjaw?"), among=turns_of(of_talk))
    assert set(ids(recall(of_talk.graph, question, only("diffusion")))) >= {"u1", "u4"}


def test_time_does_not_lead_from_one_session_to_the_next() -> None:
    of_talk = talk()
    question = GraphQuestion(tokens=["rain"], among=turns_of(of_talk))
    freely = only("diffusion", refractory=1.0, forgetting=False, semantic_edges=False)
    assert ids(recall(of_talk.graph, question, freely)) == ["u3", "u2", "u1"]


def test_talk_may_have_meanings_and_may_be_empty() -> None:
    vectors = np.eye(2, dtype=float32)
    of_talk = graph_of_talk(["u1", "u2"], [["a"], ["b"]], [["Mira"], []], vectors=vectors)
    found = recall(of_talk.graph, GraphQuestion(vector=vector(0, 1), among=turns_of(of_talk)), ALL)
    assert ids(found)[0] == "u2"
    empty = graph_of_talk([], [], [])
    assert recall(empty.graph, GraphQuestion(tokens=["a"]), ALL).hits == ()
