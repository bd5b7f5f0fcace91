"""Recall over the memory graph: its stages one after another, each behind its switch.

    words, vectors ─▶ base ─▶ seeds ─▶ diffusion ─▶ hybrid score ─▶ topics ─▶ residual ─▶ diversity ─▶ cap ─▶ hits
                     (pre-filter)(anchors)  (two layers)

With every stage off what comes out is the base ranking. Pure and deterministic: no model is asked, and where a node is
stored changes nothing. Reranking and the methods that ask a language model are in
`glyphoxa.experimental.graph.methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy import bool_, float32, float64, intp
from numpy.typing import NDArray

from glyphoxa.experimental.graph.base_ranking import base_scores, lexical_scores, spread_out, vector_scores
from glyphoxa.experimental.graph.best import best
from glyphoxa.experimental.graph.diffusion import MOST_ENERGY, Energy, spread
from glyphoxa.experimental.graph.diversity import capped_per_type, diverse
from glyphoxa.experimental.graph.hybrid_score import OTHER, WEIGHTS, Signals, SignalWeights, hybrid_scores
from glyphoxa.experimental.graph.memory_graph import MemoryGraph
from glyphoxa.experimental.graph.question import GraphQuestion, Hit, Recollection
from glyphoxa.experimental.graph.residual import residual_of
from glyphoxa.experimental.graph.settings import GraphRecallSettings
from glyphoxa.experimental.graph.topics import topic_boosts

ANCHOR_ENERGY = 2.0
"""Of what the question names (memory graph document)."""
_RESIDUAL_HITS = 10
_RESIDUAL_LEAST = 0.1
_RESIDUAL_SHARE = 0.5


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
        question.check(graph)
        self.graph, self.question, self.settings, self.weights = graph, question, settings, weights
        self.now = question.asked_in(graph)
        self.may_be_recalled = question.recallable(graph, exclude_rounds=settings.exclude_recent_rounds)
        self.parts: dict[str, NDArray[float64]] = {}
        self.left_out: list[str] = []

    def run(self) -> Recollection:
        graph, settings = self.graph, self.settings
        if not len(graph):
            return Recollection(())
        vector, lexical = vector_scores(graph, self.question, settings), lexical_scores(graph, self.question)
        base = base_scores(graph, self.question, settings, vector=vector, lexical=lexical)
        energy = (
            self._energy(base, vector) if settings.diffusion else Energy(np.zeros(len(graph)), np.zeros(len(graph)))
        )
        candidates = self._candidates(vector, lexical, base, energy.held)
        scores = np.zeros(len(graph))
        if settings.hybrid_score:
            scores[candidates] = self._hybrid(candidates, vector, lexical, energy.held)
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

    def _energy(self, base: NDArray[float64], vector: NDArray[float64]) -> Energy:
        settings, ties = self.settings, self.graph.ties
        seeds = np.zeros(len(self.graph))
        source = vector if settings.vector_prefilter and vector.any() else base
        nearest = best(source, most=settings.vector_top_k, ties=ties, among=np.flatnonzero(source))
        seeds[nearest] = source[nearest]
        seeds[list(self.question.anchors)] = ANCHOR_ENERGY
        energy = spread(
            seeds,
            self.graph.adjacency(semantic=settings.semantic_edges, temporal=settings.temporal_edges),
            ties=ties,
            steps=settings.diffusion_steps,
            decay=settings.diffusion_decay,
            top_k=settings.diffusion_top_k,
            teleport=settings.teleport_probability,
            refractory=settings.refractory,
            fade=self.fade if settings.forgetting else None,
        )
        self.parts["energy"] = energy.held
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

    def _plain(self, at: NDArray[intp], base: NDArray[float64], energy: Energy) -> NDArray[float64]:
        """What came along edges counts as much as energy does in the hybrid score. What seeds of the base began with
        does not: it is of the base already, and would keep all that was reached behind them.
        """
        came = energy.received.copy()
        came[list(self.question.anchors)] = energy.held[list(self.question.anchors)]
        of_type = np.array([self.weights.get(name, OTHER).diffusion for name in self.graph.type_names])
        share = of_type[self.graph.types[at]] * came[at] / MOST_ENERGY
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
        order, added = diverse(
            spread_out(scores[pool]),
            self.graph.vectors[pool],
            target=target,
            relevance=self.settings.diversity_relevance,
        )
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
