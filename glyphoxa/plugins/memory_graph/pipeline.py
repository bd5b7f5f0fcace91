"""Recall over the memory graph: its stages in order, each active only if the settings name it.

    ranking ─▶ seeds ─▶ diffusion ─▶ hybrid score ─▶ topics ─▶ residual ─▶ diversity ─▶ cap ─▶ hits
      (pre-filter)(anchors)  (two layers)

Without stages, the result is the question's own ranking. Pure and deterministic: no model is asked, and the result does
not depend on where a node is stored. Reranking and the methods with a language model are in
`glyphoxa.plugins.memory_graph.recall_methods`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy import bool_, float32, float64, intp
from numpy.typing import NDArray

from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.plugins.memory_graph.graph import MemoryGraph
from glyphoxa.plugins.memory_graph.stages import (
    MOST_ENERGY,
    SEARCH_AGAIN_OVER,
    Energy,
    best,
    diverse,
    largest,
    residual_of,
    spread,
    topic_boosts,
)

Scores: TypeAlias = NDArray[float64]
"""Shape (n,): one for each node."""

_ANCHOR_ENERGY: Final = 2.0
"""Energy of nodes that the question names (memory graph document)."""
_RESIDUAL_HITS: Final = 10
_RESIDUAL_LEAST: Final = 0.1
_RESIDUAL_SHARE: Final = 0.5


class SignalWeights(NamedTuple):
    """The weight of each signal in the hybrid score."""

    vector: float
    diffusion: float
    lexical: float
    anchor: float
    recency: float


WEIGHTS: Final[Mapping[str, SignalWeights]] = MappingProxyType(
    {
        "event": SignalWeights(0.35, 0.30, 0.15, 0.05, 0.15),
        "character_sheet": SignalWeights(0.25, 0.20, 0.35, 0.10, 0.10),
        "location_state": SignalWeights(0.30, 0.25, 0.30, 0.05, 0.10),
        "rule_constraint": SignalWeights(0.25, 0.10, 0.35, 0.05, 0.0),
    }
)
"""The numbers of the memory graph document, by type of node."""
_OTHER_WEIGHTS: Final = SignalWeights(0.30, 0.25, 0.25, 0.05, 0.15)


@dataclass(frozen=True, slots=True, eq=False)
class GraphQuestion:
    """
    Attributes:
        base: Shape (n,), at least 0, of any scale: the ranking on which the stages build. The hybrid score does not use
            it, but seeds are taken from it.
        lexical: Shape (n,), at least 0, of any scale: how well the words of each node match.
        cosines: Shape (n,), similarity of each node to the question; NaN for a node without a vector.
        vector: The question's, shape (dimensions,); None: late, or no embedder.
        anchors: Nodes that it names.
        among: Shape (n,): which nodes may be recalled; None: all. The others still pass energy on.
    """

    base: NDArray[np.floating]
    lexical: NDArray[np.floating]
    cosines: NDArray[np.floating]
    vector: NDArray[float32] | None = None
    anchors: Sequence[int] = ()
    among: NDArray[bool_] | None = None

    def recallable(self, graph: MemoryGraph, settings: MemoryGraphSettings) -> NDArray[bool_]:
        """Return which nodes may be recalled, shape (n,): allowed ones that are not of the last rounds."""
        allowed = np.ones(len(graph), bool_) if self.among is None else self.among
        rounds = settings.exclude_recent_rounds
        return allowed & ~(graph.turns > graph.latest_turn - rounds) if rounds else allowed


@dataclass(frozen=True, slots=True)
class Hit:
    """
    Attributes:
        node: Its place in the graph.
        why: Reasons by name. "vector", "lexical", "anchor", "recency" and "co_occurrence" are what they add to a hybrid
            score; "base" is the ranking without one; "diffusion" is what energy added, "energy" how much there was;
            "topics" and "residual" what those stages added; "novelty" the variance that it added to the diverse set;
            "algorithm" and "reranker" the two sides of a reranked score, "round" when a language model chose it. Zeros
            are omitted.
    """

    node: int
    id: str
    score: float
    why: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recollection:
    """
    Attributes:
        hits: Best first.
        left_out: Stages that were requested and failed, each with its reason.
    """

    hits: tuple[Hit, ...]
    left_out: tuple[str, ...] = ()

    def without(self, stage: str, reason: object) -> Recollection:
        """Return the same hits, with a note that the stage failed."""
        return replace(self, left_out=(*self.left_out, f"{stage}: {reason}"))


def recall(graph: MemoryGraph, question: GraphQuestion, settings: MemoryGraphSettings) -> Recollection:
    """Return the nodes that bear on a question. Empty if there are none."""
    return _Recall(graph, question, settings).run() if len(graph) else Recollection(())


class _Recall:
    """One question on its way through the stages."""

    def __init__(self, graph: MemoryGraph, question: GraphQuestion, settings: MemoryGraphSettings) -> None:
        self._graph, self._question, self._settings = graph, question, settings
        self._may_be_recalled = question.recallable(graph, settings)
        self._scores = np.zeros(len(graph))
        self._parts: dict[str, Scores] = {}
        self._left_out: list[str] = []

    def run(self) -> Recollection:
        stages, settings = self._settings.stages, self._settings
        base, lexical, vector = spread_out(self._question.base), spread_out(self._question.lexical), self._vector()
        nothing = np.zeros(len(self._graph))
        energy = self._energy(base, vector) if "diffusion" in stages else Energy(nothing, nothing)
        if "hybrid_score" in stages:
            self._hybrid(base, lexical, vector, energy.held)
        else:
            self._plain(base, energy)
        most = max(settings.pool_factor * settings.max_results, settings.vector_top_k)
        pool = self._best(most, np.flatnonzero(self._scores > 0))
        for stage, select in (
            ("topics", self._with_topics),
            ("residual", self._with_residual),
            ("diversity", self._diverse),
            ("per_type_cap", self._capped),
        ):
            if stage in stages and len(pool):
                pool = select(pool)
        hits = [self._hit(node) for node in self._without_repeats(pool.tolist())[: settings.max_results]]
        return Recollection(tuple(hits), tuple(self._left_out))

    # -- evidence for a node

    def _vector(self) -> Scores:
        """Return similarities, at least 0, shape (n,); with the pre-filter 0 for all but the nearest."""
        cosines = np.maximum(np.nan_to_num(np.asarray(self._question.cosines, float64)), 0.0)
        most = self._settings.vector_top_k if "vector_prefilter" in self._settings.stages else len(cosines)
        return largest(cosines, most=most, ties=self._graph.ties)

    def _energy(self, base: Scores, vector: Scores) -> Energy:
        graph, settings = self._graph, self._settings
        source = vector if "vector_prefilter" in settings.stages and vector.any() else base
        seeds = largest(source, most=settings.vector_top_k, ties=graph.ties)
        seeds[list(self._question.anchors)] = _ANCHOR_ENERGY
        fade = graph.fade(settings) if settings.forgetting else 1.0
        energy = spread(seeds, graph.edges(settings), settings, ties=graph.ties, fade=fade)
        self._parts["energy"] = energy.held
        return energy

    # -- the score

    def _hybrid(self, base: Scores, lexical: Scores, vector: Scores, energy: Scores) -> None:
        """Compute one score of all signals, with a weight for each by the type of node."""
        graph, anchors = self._graph, self._question.anchors
        speaks = (base != 0) | (lexical != 0) | (vector != 0) | (energy != 0)
        speaks[list(anchors)] = True
        speaks &= self._may_be_recalled
        weights = self._weights()
        parts = {
            "vector": weights.vector * vector,
            "diffusion": weights.diffusion * energy / MOST_ENERGY,
            "lexical": weights.lexical * lexical,
            "anchor": weights.anchor * graph.touched(anchors),
            "recency": weights.recency * graph.fade(self._settings),
        }
        if "co_occurrence" in self._settings.stages:
            parts["co_occurrence"] = graph.co_occurrence(anchors)
        self._parts |= {name: np.where(speaks, part, 0.0) for name, part in parts.items()}
        self._scores = np.sum([self._parts[name] for name in parts], axis=0)

    def _plain(self, base: Scores, energy: Energy) -> None:
        """Add what came along edges, weighted like energy in the hybrid score.

        The seeds' own energy is not added: it is part of the base already, and would keep everything reached from them
        below.
        """
        came = energy.received.copy()
        came[list(self._question.anchors)] = energy.held[list(self._question.anchors)]
        share = self._weights().diffusion * came / MOST_ENERGY
        self._parts |= {"base": base, "diffusion": share}
        self._scores = np.where(self._may_be_recalled, base + share, 0.0)

    def _weights(self) -> SignalWeights:
        """Return the weights of each node, each of shape (n,)."""
        table = np.array([WEIGHTS.get(name, _OTHER_WEIGHTS) for name in self._graph.type_names], float64)
        return SignalWeights(*table[self._graph.types].T)

    # -- the stages after it: each changes scores and returns the pool in its new order

    def _with_topics(self, pool: NDArray[intp]) -> NDArray[intp]:
        meaning = self._meaning("topics")
        if meaning is None:
            return pool
        vectors, question = meaning
        self._add("topics", pool, topic_boosts(vectors[pool], question, self._scores[pool]))
        return self._best(len(pool), pool)

    def _with_residual(self, pool: NDArray[intp]) -> NDArray[intp]:
        meaning = self._meaning("residual")
        if meaning is None:
            return pool
        vectors, question = meaning
        rest = residual_of(question, vectors[pool])
        if np.linalg.norm(rest) <= SEARCH_AGAIN_OVER * np.linalg.norm(question):
            return pool
        again = self._graph.cosines(rest)
        again[pool] = 0.0
        near = np.flatnonzero((again >= _RESIDUAL_LEAST) & self._may_be_recalled)
        found = best(again, near, most=_RESIDUAL_HITS, ties=self._graph.ties)
        self._add("residual", found, np.maximum(_RESIDUAL_SHARE * again[found] - self._scores[found], 0.0))
        pool = np.append(pool, found)
        return self._best(len(pool), pool)

    def _diverse(self, pool: NDArray[intp]) -> NDArray[intp]:
        settings, vectors = self._settings, self._graph.vectors
        if vectors is None:
            self._left_out.append("diversity: no node has a vector")
            return pool
        target = len(pool) if "per_type_cap" in settings.stages else settings.max_results
        qualities = spread_out(self._scores[pool])
        order, added = diverse(qualities, vectors[pool], target=target, relevance=settings.diversity_relevance)
        self._parts["novelty"] = np.zeros(len(self._graph))
        self._parts["novelty"][pool[order]] = added
        return pool[order]

    def _capped(self, pool: NDArray[intp]) -> NDArray[intp]:
        """Return the first hits of each type, which the makers of the memory graph used instead of the three stages
        before.
        """
        types = self._graph.types[pool]
        before = np.array([np.count_nonzero(types[:at] == kind) for at, kind in enumerate(types)])
        return pool[before < self._settings.cap_of_type]

    def _meaning(self, stage: str) -> tuple[NDArray[float32], NDArray[float32]] | None:
        """Return the vectors of the nodes, and the question's."""
        question, vectors = self._question.vector, self._graph.vectors
        if question is not None and vectors is not None:
            return vectors, question
        who = "the question has no vector" if question is None else "no node has a vector"
        self._left_out.append(f"{stage}: {who}")
        return None

    # -- order and reasons

    def _without_repeats(self, pool: Sequence[int]) -> list[int]:
        """Leave out what only repeats better hits, as a fact does the utterance that it was learned from."""
        rank = {node: nth for nth, node in enumerate(pool)}
        return [
            node
            for nth, node in enumerate(pool)
            if not (lines := self._graph.rests_on.get(node)) or any(rank.get(line, nth) >= nth for line in lines)
        ]

    def _best(self, most: int, among: NDArray[intp]) -> NDArray[intp]:
        return best(self._scores, among, most=most, ties=self._graph.ties)

    def _add(self, name: str, at: NDArray[intp], values: NDArray[float64]) -> None:
        part = self._parts[name] = np.zeros(len(self._graph))
        part[at] = values
        self._scores += part

    def _hit(self, node: int) -> Hit:
        why = {name: float(part[node]) for name, part in self._parts.items() if part[node] != 0}
        return Hit(node, self._graph.ids[node], float(self._scores[node]), why)


def spread_out(values: NDArray[np.floating]) -> NDArray[float64]:
    """Scale values so that the highest becomes 1 and negative ones become 0."""
    least = np.maximum(np.asarray(values, float64), 0.0)
    high = least.max(initial=0.0)
    return least / high if high > 0 else least
