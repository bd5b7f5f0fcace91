"""All settings of the memory graph: the recall method, its stages, and the numbers of each stage.

The defaults of the numbers are those of the memory graph document. Stages are off until one is measured to win.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from glyphoxa.config.sections import Section

RecallMethod = Literal["hybrid", "hybrid_llm", "llm", "hybrid_rerank"]
RecallStage = Literal[
    "vector_prefilter",
    "diffusion",
    "hybrid_score",
    "co_occurrence",
    "topics",
    "residual",
    "diversity",
    "per_type_cap",
]

HALF_LIVES_TURNS: Final[Mapping[str, float]] = MappingProxyType(
    {"event": 50.0, "character_sheet": 200.0, "location_state": 100.0, "rule_constraint": inf}
)

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class MemoryGraphSettings(Section):
    """
    Attributes:
        method: `hybrid`: words, meaning and the structure of the transcript. `hybrid_llm`: a language model filters the
            results of `hybrid`. `llm`: a language model selects memories and may ask for their neighbours.
            `hybrid_rerank`: a reranker reorders the results of `hybrid`. Default: `llm` if `recall.llm` is not `local`,
            otherwise `hybrid_rerank` if `recall.rerank` is set, otherwise `hybrid`.
        stages: Stages of the memory graph to turn on. None is on by default, because no measurement shows a gain.
        semantic_edges: Diffusion follows edges between turns and the names in them.
        temporal_edges: Diffusion follows edges between consecutive turns.
        forgetting: Energy decreases with the turns since a node's entities were last mentioned.
        vector_top_k: How many nearest results pass the vector pre-filter, and how many seeds diffusion has.
        diffusion_steps: Steps of spreading activation.
        diffusion_decay: Share of the energy that an edge passes on.
        diffusion_top_k: How many nodes keep energy after each step.
        teleport_probability: Share of the energy that returns to the seeds in each step.
        refractory: Share of its energy that one of the 15 most energetic nodes of a step passes on in later steps. 1
            passes on all.
        half_lives_turns: Half-life in turns by type of node, for forgetting and recency. Default: event 50,
            character_sheet 200, location_state 100, others 50; rule_constraint never fades.
        pool_factor: The stages after scoring work on this many times the wanted number of results.
        diversity_relevance: Exponent of a candidate's score in the diverse set. 1 is the published value; higher values
            favour good candidates over dissimilar ones.
        cap_of_type: Most results of one type, with the stage `per_type_cap`.
        max_results: Least number of results that a reranker or a filtering language model receives.
        max_query_chars: Characters of the question, counted from its end, that a reranker or a language model receives.
        rerank_deadline_ms: Deadline for one answer of the reranker.
        visible_recent_messages: Recent messages that the language model receives.
        exclude_recent_rounds: Latest turns that are not recalled.
        include_world_info: Send the language model what is in every prompt of the NPC.
        llm_rounds: Rounds of one question with the method `llm`. Default for a local model: 2.
        llm_lines: Memories in one round. Default for a local model: 16.
        llm_deadline_ms: Deadline for one answer of the language model.
    """

    method: RecallMethod | None = None
    stages: tuple[RecallStage, ...] = ()
    semantic_edges: bool = True
    temporal_edges: bool = True
    forgetting: bool = True
    vector_top_k: Annotated[int, Field(ge=1, le=1_000)] = 20
    diffusion_steps: Annotated[int, Field(ge=1, le=10)] = 2
    diffusion_decay: _Share = 0.6
    diffusion_top_k: Annotated[int, Field(ge=1, le=10_000)] = 100
    teleport_probability: _Share = 0.0
    refractory: _Share = 0.15
    half_lives_turns: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    pool_factor: Annotated[int, Field(ge=1, le=20)] = 3
    diversity_relevance: Annotated[int, Field(ge=1, le=32)] = 1
    cap_of_type: Annotated[int, Field(ge=1, le=200)] = 3
    max_results: Annotated[int, Field(ge=1, le=200)] = 15
    max_query_chars: Annotated[int, Field(ge=1, le=10_000)] = 800
    rerank_deadline_ms: Annotated[int, Field(ge=1, le=60_000)] = 1_000
    visible_recent_messages: Annotated[int, Field(ge=0, le=100)] = 5
    exclude_recent_rounds: Annotated[int, Field(ge=0, le=1_000)] = 0
    include_world_info: bool = True
    llm_rounds: Annotated[int, Field(ge=1, le=10)] = 3
    llm_lines: Annotated[int, Field(ge=1, le=200)] = 40
    llm_deadline_ms: Annotated[int, Field(ge=1, le=600_000)] = 30_000

    @property
    def searches_by(self) -> RecallMethod:
        return self.method or "hybrid"

    @property
    def asks_a_model(self) -> bool:
        return self.searches_by in ("hybrid_llm", "llm")

    def half_life_turns(self, kind: str) -> float:
        """Return the half-life of nodes of this type."""
        return self.half_lives_turns.get(kind, HALF_LIVES_TURNS.get(kind, 50.0))
