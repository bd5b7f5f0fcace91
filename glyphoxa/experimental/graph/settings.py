"""Everything about recall over the memory graph that can be set, and a switch for each stage.

The numbers are those of the memory graph document. Every stage is off until it is measured to win:
`GraphRecallSettings().with_stages(*STAGES)` is the whole pipeline as the document has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from typing import Any, Final

from glyphoxa.domain.errors import InvalidInput, did_you_mean

STAGES: Final = (
    *("vector_prefilter", "diffusion", "hybrid_score", "co_occurrence"),
    *("topics", "residual", "diversity", "per_type_cap"),
)
"""Switches in the order of the pipeline."""

HALF_LIVES_TURNS: Final[Mapping[str, float]] = MappingProxyType(
    {"event": 50.0, "character_sheet": 200.0, "location_state": 100.0, "rule_constraint": inf}
)
OTHER_HALF_LIFE_TURNS: Final = 50.0
_PARTS: Final = ("semantic_edges", "temporal_edges", "forgetting", "include_world_info")

_WHOLE: Final[Mapping[str, tuple[int, int, str]]] = MappingProxyType(
    {
        "vector_top_k": (1, 1_000, ""),
        "diffusion_steps": (1, 10, ""),
        "diffusion_top_k": (1, 10_000, ""),
        "pool_factor": (1, 20, ""),
        "diversity_relevance": (1, 32, ""),
        "cap_of_type": (1, 200, ""),
        "max_results": (1, 200, ""),
        "max_query_chars": (1, 10_000, " characters"),
        "rerank_deadline_ms": (1, 60_000, " milliseconds"),
        "visible_recent_messages": (0, 100, ""),
        "exclude_recent_rounds": (0, 1_000, " turns"),
        "llm_rounds": (1, 10, ""),
        "llm_lines": (1, 200, ""),
        "llm_deadline_ms": (1, 600_000, " milliseconds"),
    }
)
_SHARES: Final = ("diffusion_decay", "teleport_probability", "refractory", "lexical_share")


@dataclass(frozen=True, slots=True)
class GraphRecallSettings:
    """
    Attributes:
        vector_prefilter: Only the `vector_top_k` nearest have a vector score and are seeds; off: every
            node has its cosine, and the best of the base ranking are seeds.
        diffusion: Spreading activation.
        semantic_edges, temporal_edges: The two layers of edges.
        forgetting: Energy fades with the turns since anything was heard of a node's entities.
        hybrid_score: One score of all signals; off: the base ranking, to which energy is added.
        co_occurrence: Part of the hybrid score, and nothing without it: entities often met together with one that is
            asked about.
        topics: Topics that candidates say too little of are lifted (NMF).
        residual: What no candidate speaks of is searched for again (FISTA).
        diversity: Candidates that resemble each other make room for others (DPP).
        per_type_cap: At most `cap_of_type` of each type.
        vector_top_k: So many of the nearest pass the pre-filter.
        diffusion_steps, diffusion_decay, diffusion_top_k, teleport_probability: Of diffusion. Top-K is per step.
        refractory: What one of the 15 most energetic nodes of a step passes on in those after it. As small as it is,
            little gets further than one edge unless more than 15 are reached; 1 lets all go on.
        half_lives_turns: By type, for forgetting and recency; `math.inf` never fades.
        lexical_share: Of words in the base ranking; the rest is of vectors.
        pool_factor: The stages after scoring work on this many times `max_results`.
        diversity_relevance: The power of the score that is a candidate's quality in the diverse set. At 1, the
            document's, being unlike the others counts for much; the higher, the more it takes to be let before better
            ones.
        cap_of_type: See `per_type_cap`.
        max_results: At most.
        max_query_chars: Of what a reranker or a language model is asked; the end of a longer question is kept.
        visible_recent_messages: That a language model which recalls is shown.
        exclude_recent_rounds: What was said in so many last turns is not recalled.
        include_world_info: A language model which recalls is shown the world's lasting notes.
        llm_rounds: How often it may be asked for one question.
        llm_lines: Memories that it is shown in one round.
        llm_deadline_ms: For one answer.
    """

    vector_prefilter: bool = False
    diffusion: bool = False
    semantic_edges: bool = True
    temporal_edges: bool = True
    forgetting: bool = True
    hybrid_score: bool = False
    co_occurrence: bool = False
    topics: bool = False
    residual: bool = False
    diversity: bool = False
    per_type_cap: bool = False
    vector_top_k: int = 20
    diffusion_steps: int = 2
    diffusion_decay: float = 0.6
    diffusion_top_k: int = 100
    teleport_probability: float = 0.0
    refractory: float = 0.15
    half_lives_turns: Mapping[str, float] = field(default_factory=lambda: HALF_LIVES_TURNS)
    lexical_share: float = 0.5
    pool_factor: int = 3
    diversity_relevance: int = 1
    cap_of_type: int = 3
    max_results: int = 15
    max_query_chars: int = 800
    rerank_deadline_ms: int = 1_000
    visible_recent_messages: int = 5
    exclude_recent_rounds: int = 0
    include_world_info: bool = True
    llm_rounds: int = 3
    llm_lines: int = 40
    llm_deadline_ms: int = 30_000

    def __post_init__(self) -> None:
        for name, (low, high, unit) in _WHOLE.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise InvalidInput(f"recall.{name} is {value!r}; valid: a whole number from {low} to {high}{unit}")
        for name in _SHARES:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise InvalidInput(f"recall.{name} is {value!r}; valid: a number from 0 to 1")
        for name in (*STAGES, *_PARTS):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"recall.{name} is {getattr(self, name)!r}; valid: true, false")
        for kind, turns in self.half_lives_turns.items():
            if not turns > 0:
                raise InvalidInput(f"recall.half_lives_turns of {kind!r} is {turns}; valid: more than 0 turns")

    def with_stages(self, *stages: str) -> GraphRecallSettings:
        """These stages on and the others off.

        Raises:
            InvalidInput: There is no such stage.
        """
        for stage in stages:
            if stage not in STAGES:
                raise InvalidInput(f"recall has no stage {stage!r}; {did_you_mean(stage, STAGES)}")
        on: dict[str, Any] = {stage: stage in stages for stage in STAGES}
        return replace(self, **on)
