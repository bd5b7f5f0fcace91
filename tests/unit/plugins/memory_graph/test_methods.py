"""Who recalls: the pipeline, a reranker, a language model; and what happens when one of them cannot."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import Unparseable, validated
from glyphoxa.config.provider_sections import MemoryGraphSettings, RecallMethod
from glyphoxa.domain.errors import Unavailable
from glyphoxa.plugins.memory_graph.graph import MemoryGraph, Said, TalkGraph
from glyphoxa.plugins.memory_graph.pipeline import GraphQuestion, Recollection
from glyphoxa.plugins.memory_graph.recall_methods import GraphRecall, MemoriesChosen, picked_in
from tests.support.memory_graph import PickingLlm, RerankerTwin

TEXTS = ("Mira gave a feast.", "The duke died at the feast.", "Rain fell.", "A dragon was seen.")


def chain(
    method: RecallMethod = "hybrid", *, llm: PickingLlm | None = None, reranker: RerankerTwin | None = None,
    until: float | None = None, **settings: Any,
) -> GraphRecall:  # fmt: skip
    """A feast, a death that came of it, rain, a dragon; each leads to the next."""
    graph = MemoryGraph(
        ["feast", "death", "rain", "dragon"],
        ["event"] * 4,
        [(at, at + 1, "mentions") for at in range(3)],
        turns=np.array([0, 100, 200, 300]),
    )
    settings["method"] = method
    return GraphRecall(
        graph, TEXTS.__getitem__, MemoryGraphSettings(**settings), reranker, llm and ModelAsker(llm, retries=0), until
    )


def ranked(base: Sequence[float], **more: Any) -> GraphQuestion:
    return GraphQuestion(np.array(base, float), np.zeros(len(base)), np.zeros(len(base)), **more)


FEAST = ranked([1, 0.5, 0, 0])


def ids(found: Recollection) -> list[str]:
    return [hit.id for hit in found.hits]


# -- reranking


async def test_a_reranker_counts_more_than_the_pipeline() -> None:
    found = await chain("hybrid_rerank", reranker=RerankerTwin([-3.0, 8.0])).recall(FEAST, "Who died?")
    assert ids(found) == ["death", "feast"]
    assert [hit.score for hit in found.hits] == pytest.approx([0.6, 0.4])
    assert found.hits[0].why == {"base": 0.5, "algorithm": 0.0, "reranker": 1.0}


async def test_of_a_long_question_a_reranker_gets_the_end() -> None:
    reranker = RerankerTwin()
    await chain("hybrid_rerank", reranker=reranker).recall(FEAST, "x" * 900 + "y")
    assert reranker.asked == [("x" * 799 + "y", [TEXTS[0], TEXTS[1]])]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Unavailable("model 'rank' does not answer"), "rerank: model 'rank' does not answer"),
        (KeyError("scores"), "rerank: KeyError('scores')"),
        ("never", "rerank: it did not answer within 1 ms"),
        ([1.0], "rerank: it gave no number to each of 2 texts"),
        ([1.0, math.nan], "rerank: it gave no number to each of 2 texts"),
        ([[1.0, 2.0], [3.0]], "rerank: ValueError"),
        (["good", "bad"], "rerank: ValueError"),
    ],
)
async def test_a_reranker_that_fails_changes_nothing_and_it_is_told(answer: object, reason: str) -> None:
    deadline_ms = 1 if answer == "never" else 1_000
    recall = chain("hybrid_rerank", reranker=RerankerTwin(answer), rerank_deadline_ms=deadline_ms)
    found = await recall.recall(FEAST, "Who died?")
    assert ids(found) == ["feast", "death"]
    assert found.left_out[0].startswith(reason)


@pytest.mark.parametrize("method", ["hybrid_rerank", "hybrid_llm", "llm"])
async def test_nobody_is_asked_when_no_time_is_left(method: RecallMethod) -> None:
    reranker, llm = RerankerTwin(), PickingLlm()
    passed = asyncio.get_running_loop().time() - 1
    found = await chain(method, reranker=reranker, llm=llm, until=passed).recall(FEAST, "Who died?")
    assert ids(found) == ["feast", "death"]
    assert found.left_out[0].endswith("no time was left to ask it")
    assert not reranker.asked
    assert not llm.prompts


# -- a language model filters


async def test_a_language_model_filters_what_the_pipeline_found() -> None:
    found = await chain("hybrid_llm", llm=PickingLlm([([TEXTS[1]], [])])).recall(FEAST, "Who died?")
    assert ids(found) == ["death"]
    assert found.hits[0].why == {"base": 0.5, "round": 1.0}


@pytest.mark.parametrize("method", ["hybrid_llm", "llm"])
@pytest.mark.parametrize("error", [Unavailable("the model is busy"), Unparseable("the answer is not JSON")])
async def test_without_its_answer_the_pipelines_stands(method: RecallMethod, error: Exception) -> None:
    found = await chain(method, llm=PickingLlm([error])).recall(FEAST, "Who died?")
    assert ids(found) == ["feast", "death"]
    assert found.left_out == (f"language model: {error}",)


@pytest.mark.parametrize(
    ("settings", "question", "recent", "world"),
    [
        ({}, "x" * 800, [f"message {at}" for at in range(4, 9)], "Magic is forbidden."),
        ({"max_query_chars": 5, "visible_recent_messages": 0, "include_world_info": False}, "x" * 5, [], ""),
    ],
)
async def test_it_is_shown_the_last_messages_the_world_and_the_end_of_the_question(
    settings: dict[str, Any], question: str, recent: list[str], world: str
) -> None:
    llm = PickingLlm()
    await chain("hybrid_llm", llm=llm, **settings).recall(
        FEAST, "x" * 900, recent=[f"message {at}" for at in range(9)], world="Magic is forbidden."
    )
    assert llm.prompts == [chain().question(question, TEXTS[:2], recent=recent, world=world).user]
    assert llm.deadlines_ms == [30_000]


# -- a language model explores


async def test_a_language_model_may_ask_for_the_neighbours_of_what_it_sees() -> None:
    llm = PickingLlm([([TEXTS[0]], [TEXTS[1]]), ([], [TEXTS[2]]), ([TEXTS[3]], [TEXTS[3]])])
    found = await chain("llm", llm=llm, llm_lines=2).recall(FEAST, "What came of it?")
    assert llm.shown == [[TEXTS[0], TEXTS[1]], [TEXTS[2]], [TEXTS[3]]]
    assert ["last round" in shown for shown in llm.prompts] == [False, False, True]
    assert [(hit.id, hit.why["round"]) for hit in found.hits] == [("feast", 1.0), ("dragon", 3.0)]


async def test_what_is_recent_fills_the_first_round_up() -> None:
    llm = PickingLlm([([TEXTS[3]], [])])
    assert ids(await chain("llm", llm=llm).recall(FEAST, "What is new?")) == ["dragon"]
    assert llm.shown == [[TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[2]]]


async def test_no_memory_is_shown_twice_and_what_was_chosen_stays_in_its_order() -> None:
    llm = PickingLlm([(["died", "gave"], ["gave", "died"]), (["Rain"], ["Rain"])])
    found = await chain("llm", llm=llm, llm_lines=2, llm_rounds=2).recall(FEAST, "What came of it?")
    assert llm.shown == [[TEXTS[0], TEXTS[1]], [TEXTS[2]]]
    assert ids(found) == ["death", "feast", "rain"]


async def test_a_language_model_is_not_shown_what_may_not_be_recalled() -> None:
    llm = PickingLlm([([], [TEXTS[0]])])
    question = ranked([1, 0.5, 0, 0], among=np.array([True, False, False, False]))
    await chain("llm", llm=llm).recall(question, "Who died?")
    assert llm.shown == [[TEXTS[0]]]


async def test_name_leads_to_the_turns_that_mention_it() -> None:
    said = [Said("u1", "Grimjaw", ""), Said("u2", "", ""), Said("u3", "Grimjaw", "")]
    of_talk = TalkGraph(said, sessions=np.array([0, 1, 2]))
    texts = ("a sword", "rain", "steel", "Grimjaw")
    llm = PickingLlm([([], ["a sword"]), (["steel"], [])])
    settings = MemoryGraphSettings(method="llm", llm_lines=1)
    question = ranked([1, 0, 0, 0], among=np.arange(4) < of_talk.n_turns)
    assert ids(
        await GraphRecall(of_talk, texts.__getitem__, settings, llm=ModelAsker(llm)).recall(question, "Whose?")
    ) == ["u3"]


# -- what the model is told, and what is taken of its answer


@pytest.mark.parametrize(
    "answer",
    [
        {"chosen": [0], "open": []},
        {"chosen": [3], "open": []},
        {"chosen": ["1"], "open": []},
        {"chosen": [True], "open": []},
        {"chosen": [1.0], "open": []},
        {"chosen": 1, "open": []},
        {"chosen": [1]},
        {"chosen": [1], "open": [9]},
    ],
)
def test_an_answer_that_is_no_list_of_shown_numbers_is_not_taken(answer: Mapping[str, Any]) -> None:
    with pytest.raises(Unparseable):
        picked_in(validated(MemoriesChosen, answer), [7, 8])
