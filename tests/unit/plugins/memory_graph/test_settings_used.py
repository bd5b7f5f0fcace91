"""Every setting of the memory graph changes what is found, or what a model is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.domain.knowledge import Recalled, RecalledUtterance
from glyphoxa.plugins.memory_graph.deep_recall import DeepRecall
from glyphoxa.recall.recall import Recall
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.transcript.ports import TalkQuery
from tests.support.builders import CAMPAIGN, SMITH
from tests.support.memory_graph import GRAPH_STAGES, PickingLlm, RerankerTwin
from tests.support.recalled import PATIENT
from tests.support.talk_feed import FeedTwin, an_embedder_of_words, said
from tests.unit.plugins.memory_graph.test_known_graph import Known

WORDS = ("sister", "sails", "storm", "harbour", "rain", "sword", "ferry", "crown", "debt", "rope")
TALK = [
    said(
        f"u{n}",
        f"{WORDS[n % 10]} and {WORDS[n * n % 7]} of {'Ilvara' if n % 5 == 0 else 'Joren' if n % 3 == 0 else 'them'}.",
        session=f"s{1 + n // 20}",
        ordinal=n % 20 + 1,
        speaker=("Tamsin", "Orla")[n % 2],
        at_ms=1_000 * n,
    )
    for n in range(60)
]
ASKED = "Did Ilvara, my sister, lose the sword in the storm, and what did she tell you of the harbour that night?"
DIFFUSION = {"stages": ("diffusion",)}
SCORE = {"stages": ("hybrid_score",)}
BY_LLM = {"method": "llm", "llm_rounds": 3, "llm_lines": 8}
FILTER = {"method": "hybrid_llm"}
RERANK = {"method": "hybrid_rerank"}
CASES: dict[str, tuple[dict[str, Any], object]] = {
    "method": ({}, "hybrid_llm"),
    "stages": ({}, ("diffusion",)),
    "semantic_edges": (DIFFUSION, False),
    "temporal_edges": (DIFFUSION, False),
    "forgetting": (DIFFUSION, False),
    "vector_top_k": ({"stages": ("vector_prefilter", "hybrid_score")}, 2),
    "diffusion_steps": (DIFFUSION, 1),
    "diffusion_decay": (DIFFUSION, 0.1),
    "diffusion_top_k": (DIFFUSION, 3),
    "teleport_probability": (DIFFUSION, 0.5),
    "refractory": (DIFFUSION, 1.0),
    "half_lives_turns": (SCORE, {"event": 1.0}),
    "pool_factor": ({"stages": ("hybrid_score", "diversity"), "vector_top_k": 1}, 1),
    "diversity_relevance": ({"stages": ("diversity",)}, 16),
    "cap_of_type": ({"stages": ("per_type_cap",)}, 1),
    "max_results": (RERANK, 40),
    "max_query_chars": (RERANK, 10),
    "rerank_deadline_ms": ({**RERANK, "is_silent": True}, 1),
    "visible_recent_messages": (FILTER, 1),
    "exclude_recent_rounds": ({}, 30),
    "include_world_info": (FILTER, False),
    "llm_rounds": (BY_LLM, 1),
    "llm_lines": (BY_LLM, 3),
    "llm_deadline_ms": (FILTER, 77),
}


def outcome(chosen: dict[str, Any]) -> object:
    """Return what is found, what models are asked, and with which deadlines."""
    feed = FeedTwin()
    feed.tell(*TALK)
    recall = Recall(Transcripts(feed, embedder=an_embedder_of_words()), settings=PATIENT, now_ms=lambda: 20_000_000)
    llm = PickingLlm([(("Ilvara",), ("Ilvara", "Joren"))])
    reranker = RerankerTwin("never" if chosen.pop("is_silent", False) else None)

    async def found() -> tuple[tuple[Recalled, ...], tuple[str, ...]]:
        settings = MemoryGraphSettings(**chosen)
        known = {"recent": lambda _: ["Tamsin: hello", "Orla: good day"], "world": lambda _: "It is winter."}
        deep = DeepRecall(recall, knowledge=Known(), settings=settings, llm=ModelAsker(llm), reranker=reranker, **known)
        answer = await deep.search(CAMPAIGN, SMITH, TalkQuery(ASKED, limit=12))
        return answer.items, answer.left_out

    items, left_out = asyncio.run(found())
    signals = [one.signals for one in items if isinstance(one, RecalledUtterance)]
    return [one.text for one in items], signals, left_out, llm.prompts, llm.deadlines_ms, reranker.asked


def test_every_setting_has_a_case() -> None:
    assert set(CASES) == set(MemoryGraphSettings.model_fields)


@pytest.mark.parametrize("name", CASES)
def test_setting_reaches_the_search(name: str) -> None:
    base, value = CASES[name]
    assert MemoryGraphSettings.model_fields[name].default != value
    assert outcome({**base}) == outcome({**base})
    assert outcome({**base, name: value}) != outcome({**base})


@pytest.mark.parametrize("stage", [stage for stage in GRAPH_STAGES if stage != "residual"])  # see test_pipeline
def test_stage_reaches_the_search(stage: str) -> None:
    beside = {"vector_prefilter": ("diffusion",), "co_occurrence": ("hybrid_score",)}.get(stage, ())
    chosen = {"vector_top_k": 3, "cap_of_type": 2, "max_results": 10}
    assert outcome({**chosen, "stages": (*beside, stage)}) != outcome({**chosen, "stages": beside})
