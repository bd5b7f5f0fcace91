"""Recall over the memory graph: its stages one after another, each behind its switch (R-387 to R-397).

    words, vectors ─▶ base ─▶ seeds ─▶ diffusion ─▶ hybrid score ─▶ topics ─▶ residual ─▶ diversity ─▶ cap ─▶ hits
                     (pre-filter)(anchors)  (two layers)

With every stage off what comes out is the base ranking. Pure and deterministic: no model is asked, and where a node is
stored changes nothing (R-376). Reranking and the methods that ask a language model are in
`glyphoxa.memory.recall.methods`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy import bool_, float32, float64, intp
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.memory.fusion import fuse_ranks
from glyphoxa.memory.recall.best import best
from glyphoxa.memory.recall.diffusion import MOST_ENERGY, spread
from glyphoxa.memory.recall.diversity import capped_per_type, diverse
from glyphoxa.memory.recall.hybrid_score import OTHER, WEIGHTS, Signals, SignalWeights, hybrid_scores
from glyphoxa.memory.recall.memory_graph import MemoryGraph
from glyphoxa.memory.recall.residual import residual_of
from glyphoxa.memory.recall.settings import GraphRecallSettings
from glyphoxa.memory.recall.topics import topic_boosts

ANCHOR_ENERGY = 2.0
"""Of what the question names (memory graph document)."""
_FUSED_RANKS = 100
_RESIDUAL_HITS = 10
_RESIDUAL_LEAST = 0.1
_RESIDUAL_SHARE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class GraphQuestion:
    """
    Attributes:
        tokens: Its words, as the nodes' are.
        vector: Its meaning, shape (dimensions,); None: not in time, or no embedder.
        anchors: Nodes that it names.
        now: The turn in which it is asked; None: the graph's latest.
        among: Shape (n,): which nodes may be recalled; None: all. The others still pass energy on.
        cosines: Shape (n,), in place of those of `vector`; NaN for what has no meaning yet.
        lexical: Shape (n,), at least 0, of any scale: in place of the share of `tokens`; spread from 0 to 1.
        base: Shape (n,), at least 0, of any scale: a ranking made elsewhere, in place of the fusion of words and
            vectors; spread from 0 to 1. The hybrid score does not look at it, but seeds are taken from it.
    """

    tokens: Collection[str] = ()
    vector: NDArray[float32] | None = None
    anchors: Sequence[int] = ()
    now: int | None = None
    among: NDArray[bool_] | None = None
    cosines: NDArray[np.floating] | None = None
    lexical: NDArray[np.floating] | None = None
    base: NDArray[np.floating] | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """
    Attributes:
        node: Its place in the graph.
        why: What spoke for it, by name. "vector", "lexical", "anchor", "recency" and "co_occurrence" are what they
            add to a hybrid score; "base" is the ranking without one; "diffusion" is what energy added, "energy" how
            much there was; "topics" and "residual" what those stages added; "novelty" the variance that it added to
            the diverse set; "algorithm" and "reranker" the two sides of a reranked score. What is 0 is not there.
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
        left_out: Stages that were asked for and could not be done, each with its reason.
    """

    hits: tuple[Hit, ...]
    left_out: tuple[str, ...] = ()


def recall(
    graph: MemoryGraph,
    question: GraphQuestion,
    settings: GraphRecallSettings,
    *,
    weights: Mapping[str, SignalWeights] = WEIGHTS,
) -> Recollection:
    """What of a graph bears on a question. Empty when nothing does.

    Args:
        weights: Of the signals, by type of node.

    Raises:
        InvalidInput: An array has another shape than the graph's, a number in it is not finite, or an anchor is no
            node.
    """
    return _Recall(graph, question, settings, weights).run()


class _Recall:
    """One question on its way through the stages."""

    def __init__(
        self,
        graph: MemoryGraph,
        question: GraphQuestion,
        settings: GraphRecallSettings,
        weights: Mapping[str, SignalWeights],
    ) -> None:
        _check(graph, question)
        self.graph, self.question, self.settings, self.weights = graph, question, settings, weights
        self.now = graph.latest_turn if question.now is None else question.now
        self.may_be_recalled = self._may_be_recalled()
        self.parts: dict[str, NDArray[float64]] = {}
        self.left_out: list[str] = []

    def run(self) -> Recollection:
        graph, settings = self.graph, self.settings
        if not len(graph):
            return Recollection(())
        vector, lexical = self._vector_scores(), self._lexical_scores()
        base = self._base(vector, lexical)
        energy = self._energy(base, vector) if settings.diffusion else np.zeros(len(graph))
        candidates = self._candidates(vector, lexical, base, energy)
        scores = np.zeros(len(graph))
        if settings.hybrid_score:
            scores[candidates] = self._hybrid(candidates, vector, lexical, energy)
        else:
            scores[candidates] = self._plain(candidates, base, energy)
        pool = self._pool(scores, candidates)
        if settings.topics:
            pool = self._with_topics(scores, pool)
        if settings.residual:
            pool = self._with_residual(scores, pool)
        if settings.diversity:
            pool = self._diverse(scores, pool)
        if settings.per_type_cap:
            pool = pool[capped_per_type(self.graph.types[pool], most=settings.cap_of_type)]
        return Recollection(
            tuple(self._hit(int(node), scores) for node in pool[: settings.max_results]), tuple(self.left_out)
        )

    # -- what speaks for a node

    @cached_property
    def fade(self) -> NDArray[float64]:
        return self.graph.fade(self.settings.half_lives_turns, now=self.now)

    def _may_be_recalled(self) -> NDArray[bool_]:
        allowed = np.ones(len(self.graph), bool_) if self.question.among is None else self.question.among
        rounds = self.settings.exclude_recent_rounds
        return allowed & ~(self.graph.turns > self.now - rounds) if rounds else allowed

    def _vector_scores(self) -> NDArray[float64]:
        question = self.question
        if question.cosines is not None:
            cosines = np.nan_to_num(np.asarray(question.cosines, float64))
        elif question.vector is not None:
            cosines = self.graph.cosines(question.vector)
        else:
            cosines = np.zeros(len(self.graph))
        cosines = np.maximum(cosines, 0.0)
        if not self.settings.vector_prefilter:
            return cosines
        near = np.flatnonzero(cosines)
        nearest = best(cosines, most=self.settings.vector_top_k, ties=self.graph.ties, among=near)
        filtered = np.zeros_like(cosines)
        filtered[nearest] = cosines[nearest]
        return filtered

    def _lexical_scores(self) -> NDArray[float64]:
        if self.question.lexical is not None:
            return _spread(self.question.lexical)
        return self.graph.lexical(self.question.tokens)

    def _base(self, vector: NDArray[float64], lexical: NDArray[float64]) -> NDArray[float64]:
        if self.question.base is not None:
            return _spread(self.question.base)
        if self.settings.fusion == "ranks":
            return self._by_ranks(vector, lexical)
        share = self.settings.lexical_share
        if not lexical.any() or not vector.any():
            return _spread(vector + lexical)
        return share * _spread(lexical) + (1 - share) * _spread(vector)

    def _by_ranks(self, *arms: NDArray[float64]) -> NDArray[float64]:
        rankings = [
            [int(at) for at in best(arm, most=_FUSED_RANKS, ties=self.graph.ties, among=np.flatnonzero(arm))]
            for arm in arms
        ]
        fused = np.zeros(len(self.graph))
        for node, score in fuse_ranks(rankings):
            fused[node] = score
        return _spread(fused)

    def _energy(self, base: NDArray[float64], vector: NDArray[float64]) -> NDArray[float64]:
        settings, ties = self.settings, self.graph.ties
        seeds = np.zeros(len(self.graph))
        source = vector if settings.vector_prefilter and vector.any() else base
        nearest = best(source, most=settings.vector_top_k, ties=ties, among=np.flatnonzero(source))
        seeds[nearest] = source[nearest]
        seeds[list(self.question.anchors)] = ANCHOR_ENERGY
        self.parts["energy"] = energy = spread(
            seeds,
            self.graph.adjacency(semantic=settings.semantic_edges, temporal=settings.temporal_edges),
            ties=ties,
            steps=settings.diffusion_steps,
            decay=settings.diffusion_decay,
            top_k=settings.diffusion_top_k,
            teleport=settings.teleport_probability,
            fade=self.fade if settings.forgetting else None,
        )
        return energy

    def _candidates(self, *signals: NDArray[float64]) -> NDArray[intp]:
        speaks = np.zeros(len(self.graph), bool_)
        for signal in signals:
            speaks |= signal != 0
        if self.settings.hybrid_score:
            speaks[list(self.question.anchors)] = True
        return np.flatnonzero(speaks & self.may_be_recalled)

    # -- the score

    def _hybrid(
        self, at: NDArray[intp], vector: NDArray[float64], lexical: NDArray[float64], energy: NDArray[float64]
    ) -> NDArray[float64]:
        graph, anchors = self.graph, self.question.anchors
        met = np.zeros(len(at))
        if self.settings.co_occurrence and len(anchors):
            met = graph.co_occurrence(anchors)[at]
        signals = Signals(
            vector=vector[at],
            energy=energy[at],
            lexical=lexical[at],
            anchor=graph.touched(anchors)[at].astype(float64),
            recency=self.fade[at],
            co_occurrence=met,
        )
        parts = hybrid_scores(signals, graph.types[at], graph.type_names, self.weights)
        for name, part in parts.items():
            self._note(name, at, part)
        total: NDArray[float64] = np.sum(list(parts.values()), axis=0)
        return total

    def _plain(self, at: NDArray[intp], base: NDArray[float64], energy: NDArray[float64]) -> NDArray[float64]:
        """Energy counts as much as it does in the hybrid score."""
        of_type = np.array([self.weights.get(name, OTHER).diffusion for name in self.graph.type_names])
        share = of_type[self.graph.types[at]] * energy[at] / MOST_ENERGY
        self._note("base", at, base[at])
        self._note("diffusion", at, share)
        return base[at] + share

    def _pool(self, scores: NDArray[float64], candidates: NDArray[intp]) -> NDArray[intp]:
        worth = candidates[scores[candidates] > 0]
        most = max(self.settings.pool_factor * self.settings.max_results, self.settings.vector_top_k)
        return best(scores, most=most, ties=self.graph.ties, among=worth)

    # -- the stages after it: each changes scores and gives back the pool in its new order

    def _with_topics(self, scores: NDArray[float64], pool: NDArray[intp]) -> NDArray[intp]:
        meaning = self._meanings("topics", pool)
        if meaning is None:
            return pool
        boosts = topic_boosts(meaning[0], meaning[1], scores[pool])
        scores[pool] += boosts
        self._note("topics", pool, boosts)
        return best(scores, most=len(pool), ties=self.graph.ties, among=pool)

    def _with_residual(self, scores: NDArray[float64], pool: NDArray[intp]) -> NDArray[intp]:
        meaning = self._meanings("residual", pool)
        if meaning is None:
            return pool
        residual = residual_of(meaning[1], meaning[0])
        if not residual.searches_again:
            return pool
        again = self.graph.cosines(residual.vector.astype(float32))
        again[pool] = 0.0
        near = np.flatnonzero((again >= _RESIDUAL_LEAST) & self.may_be_recalled)
        found = best(again, most=_RESIDUAL_HITS, ties=self.graph.ties, among=near)
        gains = np.maximum(_RESIDUAL_SHARE * again[found] - np.maximum(scores[found], 0.0), 0.0)
        scores[found] = np.maximum(scores[found], 0.0) + gains
        self._note("residual", found, gains)
        pool = np.concatenate((pool, found))
        return best(scores, most=len(pool), ties=self.graph.ties, among=pool)

    def _diverse(self, scores: NDArray[float64], pool: NDArray[intp]) -> NDArray[intp]:
        if self.graph.vectors is None:
            self.left_out.append("diversity: no node has a vector")
            return pool
        if not len(pool):
            return pool
        target = len(pool) if self.settings.per_type_cap else self.settings.max_results
        order, added = diverse(_spread(scores[pool]), self.graph.vectors[pool], target=target)
        self._note("novelty", pool[order], added)
        return pool[order]

    def _meanings(self, stage: str, pool: NDArray[intp]) -> tuple[NDArray[np.floating], NDArray[np.floating]] | None:
        """The vectors of the pool, and the question's."""
        if self.question.vector is None:
            self.left_out.append(f"{stage}: the question has no vector")
        elif self.graph.vectors is None:
            self.left_out.append(f"{stage}: no node has a vector")
        elif len(pool):
            return self.graph.vectors[pool], self.question.vector
        return None

    # -- why

    def _note(self, name: str, at: NDArray[intp], values: NDArray[float64]) -> None:
        part = self.parts.setdefault(name, np.zeros(len(self.graph)))
        part[at] = values

    def _hit(self, node: int, scores: NDArray[float64]) -> Hit:
        why = {name: float(part[node]) for name, part in self.parts.items() if part[node] != 0}
        return Hit(node, self.graph.ids[node], float(scores[node]), why)


def _spread(values: NDArray[np.floating]) -> NDArray[float64]:
    """The highest becomes 1, what is below 0 becomes 0."""
    least = np.maximum(np.asarray(values, float64), 0.0)
    high = least.max(initial=0.0)
    return least / high if high > 0 else least


def _check(graph: MemoryGraph, question: GraphQuestion) -> None:
    n = len(graph)
    for name in ("among", "cosines", "lexical", "base"):
        array = getattr(question, name)
        if array is None:
            continue
        if array.shape != (n,):
            raise InvalidInput(f"{name} of a question to a memory graph has shape {array.shape}; valid: ({n},)")
        if name != "among" and not (np.isfinite(array) | (np.isnan(array) & (name == "cosines"))).all():
            raise InvalidInput(f"{name} of a question to a memory graph has a number that is not finite")
    for anchor in question.anchors:
        if not 0 <= anchor < n:
            raise InvalidInput(f"an anchor of a question is node {anchor}; valid: 0 to {n - 1}")
