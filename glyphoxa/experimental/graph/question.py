"""What is asked of a memory graph, and what comes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy import bool_, float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.experimental.graph.memory_graph import MemoryGraph


@dataclass(frozen=True, slots=True, eq=False)
class GraphQuestion:
    """
    Attributes:
        tokens: Its words, as the nodes' are.
        vector: Its meaning, shape (dimensions,); None: not in time, or no embedder.
        anchors: Nodes that it names.
        now: The turn in which it is asked; None: the graph's latest.
        among: Shape (n,): bool: which nodes may be recalled; None: all. The others still pass energy on.
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

    def asked_in(self, graph: MemoryGraph) -> int:
        """The turn."""
        return graph.latest_turn if self.now is None else self.now

    def recallable(self, graph: MemoryGraph, *, exclude_rounds: int) -> NDArray[bool_]:
        """Which nodes may be recalled, shape (n,): those that it allows and that are not of the last rounds."""
        allowed = np.ones(len(graph), bool_) if self.among is None else self.among
        return allowed & ~(graph.turns > self.asked_in(graph) - exclude_rounds) if exclude_rounds else allowed

    def check(self, graph: MemoryGraph) -> None:
        """
        Raises:
            InvalidInput: An array has another shape than the graph's, a number in it is not finite, or an anchor is
                no node.
        """
        n = len(graph)
        arrays = (("cosines", self.cosines), ("lexical", self.lexical), ("base", self.base))
        for name, array in (("among", self.among), *arrays):
            if array is not None and array.shape != (n,):
                raise InvalidInput(f"{name} of a question to a memory graph has shape {array.shape}; valid: ({n},)")
        if self.among is not None and self.among.dtype != bool_:
            raise InvalidInput(f"among of a question to a memory graph is of {self.among.dtype}; valid: bool")
        for name, array in arrays:
            if array is None:
                continue
            if np.isinf(array).any() or (name != "cosines" and np.isnan(array).any()):
                raise InvalidInput(f"{name} of a question to a memory graph has a number that is not finite")
        if self.vector is not None:
            graph.check_vector(self.vector)
        for anchor in self.anchors:
            if not 0 <= anchor < n:
                raise InvalidInput(f"an anchor of a question is node {anchor}; valid: 0 to {n - 1}")


@dataclass(frozen=True, slots=True)
class Hit:
    """
    Attributes:
        node: Its place in the graph.
        why: What spoke for it, by name. "vector", "lexical", "anchor", "recency" and "co_occurrence" are what they
            add to a hybrid score; "base" is the ranking without one; "diffusion" is what energy added, "energy" how
            much there was; "topics" and "residual" what those stages added; "novelty" the variance that it added to
            the diverse set; "algorithm" and "reranker" the two sides of a reranked score, "round" when a
            language model chose it. What is 0 is not there.
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
