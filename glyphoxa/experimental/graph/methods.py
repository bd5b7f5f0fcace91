"""How recall is done: by a language model, by the pipeline, or by both.

    HYBRID         the pipeline alone
    HYBRID_RERANK  its hits, reordered by a reranker
    HYBRID_LLM     its hits, filtered by a language model
    LLM            a language model picks, and may ask for the neighbours of what it sees, for some rounds

No method that asks a language model is allowed on the voice path. Where a model or a reranker fails, the
pipeline's hits stand, and what failed is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy import bool_, float64
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.experimental.graph.best import best
from glyphoxa.experimental.graph.choosing import ChoiceRequest, NodeChoice, NodeChooser
from glyphoxa.experimental.graph.memory_graph import MemoryGraph
from glyphoxa.experimental.graph.question import GraphQuestion, Hit, Recollection
from glyphoxa.experimental.graph.recall import recall
from glyphoxa.experimental.graph.reranking import Reranker, reranked
from glyphoxa.experimental.graph.settings import GraphRecallSettings


class RecallMethod(StrEnum):
    LLM = "llm"
    HYBRID = "hybrid"
    HYBRID_RERANK = "hybrid_rerank"
    HYBRID_LLM = "hybrid_llm"

    @property
    def asks_a_model(self) -> bool:
        return self in (RecallMethod.LLM, RecallMethod.HYBRID_LLM)


class RecallPath(StrEnum):
    """For what recall is done."""

    VOICE = "voice"
    """A turn: somebody waits for the answer."""
    DEEP = "deep"
    """An NPC was asked to think about it."""


def check_method(
    method: RecallMethod,
    *,
    path: RecallPath,
    has_reranker: bool = False,
    has_chooser: bool = False,
) -> None:
    """
    Raises:
        InvalidInput: The method cannot be used there, or lacks what it asks.
    """
    if path is RecallPath.VOICE and method.asks_a_model:
        valid = ", ".join(other for other in RecallMethod if not other.asks_a_model)
        raise InvalidInput(f"recall by {method} asks a language model; valid on the voice path: {valid}")
    if method.asks_a_model and not has_chooser:
        raise InvalidInput(
            f"recall by {method} needs a language model, and recall.llm names none; valid without: hybrid"
        )
    if method is RecallMethod.HYBRID_RERANK and not has_reranker:
        raise InvalidInput(f"recall by {method} needs recall.rerank, which names nobody; valid without: hybrid")


class Exploration:
    """Rounds in which a chooser is shown nodes, and may ask for the neighbours of some. Nobody is asked here:
    `shown` is what is to be shown next, `take` takes the answer, until `shown` is empty.

    No node is shown twice. What was chosen stays chosen, in the order in which it was.

    Args:
        start: Nodes of the first round, best first.
        neighbours: Of a node, the nearest first.
        rounds: At most.
        lines: Nodes shown in a round, at most.
    """

    def __init__(
        self, start: Sequence[int], neighbours: Callable[[int], Sequence[int]], *, rounds: int, lines: int
    ) -> None:
        self._neighbours = neighbours
        self._rounds = rounds
        self._lines = lines
        self._round = 1
        self.chosen: dict[int, int] = {}
        """Nodes, in the order in which they were chosen, and in which round."""
        self.shown = tuple(dict.fromkeys(start))[:lines]
        self._seen = set(self.shown)

    @property
    def may_open(self) -> bool:
        """Whether there is a round after this one."""
        return self._round < self._rounds

    def take(self, choice: NodeChoice) -> None:
        """The answer to `shown`."""
        for index in choice.chosen:
            self.chosen.setdefault(self.shown[index], self._round)
        opened: dict[int, None] = {}
        if self.may_open:
            for index in choice.opened:
                opened |= dict.fromkeys(node for node in self._neighbours(self.shown[index]) if node not in self._seen)
        self._round += 1
        self.shown = tuple(opened)[: self._lines]
        self._seen.update(self.shown)


@dataclass(frozen=True, slots=True, eq=False)
class GraphRecall:
    """Recall over one viewer's memory graph, by any method.

    Attributes:
        text_of: A node as it is told to a model.
    """

    graph: MemoryGraph
    text_of: Callable[[int], str]
    settings: GraphRecallSettings = field(default_factory=GraphRecallSettings)
    reranker: Reranker | None = None
    chooser: NodeChooser | None = None

    async def recall(  # noqa: PLR0913 - what a language model is shown comes from two sides
        self,
        question: GraphQuestion,
        text: str,
        *,
        method: RecallMethod = RecallMethod.HYBRID,
        path: RecallPath,
        recent: Sequence[str] = (),
        world_info: str = "",
    ) -> Recollection:
        """
        Args:
            question: What the pipeline is asked.
            text: What was asked, in words.
            recent: What was said before, oldest first.

        Raises:
            InvalidInput: See `check_method` and `glyphoxa.experimental.graph.recall.recall`.
        """
        check_method(method, path=path, has_reranker=self.reranker is not None, has_chooser=self.chooser is not None)
        found = recall(self.graph, question, self.settings)
        if method is RecallMethod.HYBRID_RERANK and self.reranker is not None:
            return await reranked(
                text[-self.settings.max_query_chars :],  # what was said last matters most
                found,
                self.text_of,
                self.reranker,
                deadline_ms=self.settings.rerank_deadline_ms,
            )
        if method.asks_a_model and self.chooser is not None:
            asked = self._asked(text, recent, world_info)
            if method is RecallMethod.LLM:
                return await self._explored(question, found, asked, self.chooser)
            return await self._filtered(found, asked, self.chooser)
        return found

    def _asked(self, text: str, recent: Sequence[str], world_info: str) -> ChoiceRequest:
        settings = self.settings
        visible = tuple(recent[-settings.visible_recent_messages :]) if settings.visible_recent_messages else ()
        return ChoiceRequest(
            text[-settings.max_query_chars :], visible, world_info if settings.include_world_info else ""
        )

    async def _filtered(self, found: Recollection, asked: ChoiceRequest, chooser: NodeChooser) -> Recollection:
        if not found.hits:
            return found
        lines = [self.text_of(hit.node) for hit in found.hits]
        try:
            choice = await chooser.choose(asked, lines, deadline_ms=self.settings.llm_deadline_ms)
        except GlyphoxaError as error:
            return _without_model(found, error)
        return replace(found, hits=tuple(_chosen(found.hits[index], round_=1) for index in choice.chosen))

    async def _explored(
        self, question: GraphQuestion, found: Recollection, asked: ChoiceRequest, chooser: NodeChooser
    ) -> Recollection:
        settings = self.settings
        may_be_recalled = question.recallable(self.graph, exclude_rounds=settings.exclude_recent_rounds)
        start = recall(self.graph, question, replace(settings, max_results=settings.llm_lines))
        hits = {hit.node: hit for hit in start.hits}
        exploration = Exploration(
            (*hits, *self._latest(may_be_recalled)),
            lambda node: self._neighbours(node, may_be_recalled),
            rounds=settings.llm_rounds,
            lines=settings.llm_lines,
        )
        while exploration.shown:
            lines = [self.text_of(node) for node in exploration.shown]
            try:
                choice = await chooser.choose(
                    replace(asked, may_open=exploration.may_open), lines, deadline_ms=settings.llm_deadline_ms
                )
            except GlyphoxaError as error:
                found = _without_model(found, error)
                if not exploration.chosen:
                    return found
                break
            exploration.take(choice)
        chosen = (
            _chosen(hits.get(node) or Hit(node, self.graph.ids[node], 0.0), round_=round_)
            for node, round_ in exploration.chosen.items()
        )
        return replace(found, hits=tuple(chosen)[: settings.max_results])

    def _latest(self, may_be_recalled: NDArray[bool_]) -> list[int]:
        """What was heard of last: it fills the first round up, and is all of it when the pipeline finds nothing."""
        graph = self.graph
        nodes = np.flatnonzero(may_be_recalled)
        latest = best(graph.last_active.astype(float64), most=self.settings.llm_lines, ties=graph.ties, among=nodes)
        return [int(node) for node in latest]

    def _neighbours(self, node: int, may_be_recalled: NDArray[bool_]) -> list[int]:
        """What may be recalled next to a node, then what lies behind those that may not, as turns lie behind a name."""
        adjacency = self.graph.adjacency(semantic=self.settings.semantic_edges, temporal=self.settings.temporal_edges)
        direct = adjacency.neighbours(node)
        behind = (far for near in direct if not may_be_recalled[near] for far in adjacency.neighbours(near))
        nearest = (near for near in (*direct, *behind) if may_be_recalled[near] and near != node)
        return list(dict.fromkeys(nearest))


def _chosen(hit: Hit, *, round_: int) -> Hit:
    return replace(hit, why={**hit.why, "round": float(round_)})


def _without_model(found: Recollection, error: GlyphoxaError) -> Recollection:
    return replace(found, left_out=(*found.left_out, f"language model: {error}"))
