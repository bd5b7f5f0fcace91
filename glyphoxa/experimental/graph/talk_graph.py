"""Talk as a memory graph: turns are events, linked by the names that they mention and by the order of time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float32, int64, intp
from numpy.typing import NDArray

from glyphoxa.experimental.graph.memory_graph import Edges, MemoryGraph, Nodes
from glyphoxa.speech.language.words import words

_SHORTEST_NAME = 2
"""Of what is taken for an anchor (memory graph document); in characters."""
_TURNS_BETWEEN_SESSIONS = 30
"""So far apart that no temporal edge joins two sessions."""


@dataclass(frozen=True, slots=True, eq=False)
class TalkGraph:
    """
    Attributes:
        graph: The turns first, in their order, then the names.
        n_turns: Nodes before this are turns.
    """

    graph: MemoryGraph
    n_turns: int
    _names: dict[tuple[str, ...], int]

    def anchors(self, text: str) -> list[int]:
        """Nodes of the names of at least two letters that stand in a text, each once, in their order."""
        spoken = [word.folded for word in words(text)]
        longest = max(map(len, self._names), default=0)
        found = (
            self._names.get(tuple(spoken[first:end]))
            for first in range(len(spoken))
            for end in range(min(first + longest, len(spoken)), first, -1)
        )
        return list(dict.fromkeys(node for node in found if node is not None))


def graph_of_talk(
    ids: Sequence[str],
    tokens: Sequence[Collection[str]],
    names: Sequence[Iterable[str]],
    *,
    sessions: Sequence[int] | NDArray[int64] | None = None,
    vectors: NDArray[float32] | None = None,
) -> TalkGraph:
    """A graph of turns that one viewer may know, in the order in which they were said.

    Args:
        ids: Of the turns.
        tokens: Words by which each is found.
        names: Whom and what each mentions, in any case; its speaker too, if talk of somebody is to lead to what they
            said themselves.
        sessions: Of each turn, never decreasing; None: all are one.
        vectors: Of the turns, shape (turns, dimensions).

    Raises:
        InvalidInput: See `MemoryGraph`.
    """
    n = len(ids)
    of_name: dict[tuple[str, ...], int] = {}
    mentions: list[list[int]] = []
    for mentioned in names:
        keys = (tuple(word.folded for word in words(name)) for name in mentioned)
        mentions.append(
            [of_name.setdefault(key, n + len(of_name)) for key in keys if sum(map(len, key)) >= _SHORTEST_NAME]
        )
    numbers = np.zeros(n, int64) if sessions is None else np.asarray(sessions, int64)
    past = np.cumsum(np.diff(numbers, prepend=numbers[:1]) != 0)
    turns = np.concatenate((np.arange(n) + _TURNS_BETWEEN_SESSIONS * past, np.full(len(of_name), -1))).astype(int64)
    if vectors is not None:
        vectors = np.concatenate((vectors, np.zeros((len(of_name), vectors.shape[1]), float32)))
    pairs = [(turn, node) for turn, mentioned in enumerate(mentions) for node in mentioned]
    graph = MemoryGraph(
        Nodes(
            ids=[*ids, *("name " + " ".join(key) for key in of_name)],
            types=["event"] * n + ["character_sheet"] * len(of_name),
            tokens=[*tokens, *of_name],
            vectors=vectors,
            turns=turns,
            links=[*mentions, *([] for _ in of_name)],
        ),
        Edges(
            np.array([turn for turn, _ in pairs], intp),
            np.array([node for _, node in pairs], intp),
        ),
    )
    return TalkGraph(graph, n, of_name)
