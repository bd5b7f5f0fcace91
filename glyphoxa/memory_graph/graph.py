"""The memory graph: one viewer's nodes and edges as arrays, built once, asked often; and the transcript as one.

A graph holds what one viewer may know and nothing else: degrees, frequencies and who was met with whom are counted in
it, so that what somebody else knows changes nothing of what this one recalls.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy import bool_, float32, float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.language.words import words
from glyphoxa.memory_graph.diffusion import Edges, joined, semantic_layer, temporal_layer
from glyphoxa.memory_graph.settings import MemoryGraphSettings
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.view import ViewColumns

_CO_OCCURRENCE: Final = 0.1
_SHORTEST_NAME: Final = 2
"""Of what is taken for an anchor (memory graph document); in characters."""
_TURNS_BETWEEN_SESSIONS: Final = 30
"""So far apart that no temporal edge joins two sessions."""

Read: TypeAlias = tuple[str, tuple[str, ...]]
"""Of a row of the transcript's index: the utterance's id, and the names that stand in it."""


class MemoryGraph:
    """n nodes: events, entities, facts, rules; one place each in every column.

    An edge to a node that has no time of its own, as an entity has none, says also what its source is about.

    Args:
        ids: No two are equal.
        types: "event", "character_sheet", "location_state", "rule_constraint" or any other.
        edges: Source and target, as places of nodes, and type; see `glyphoxa.memory_graph.diffusion.CONDUCTANCE`.
        turns: Shape (n,), when each happened, counted over all sessions; negative for what has no time. None: nothing
            has.
        vectors: Shape (n, dimensions), of unit length; a row of zeros has no meaning yet. None: none has.
    """

    def __init__(
        self,
        ids: Sequence[str],
        types: Sequence[str],
        edges: Sequence[tuple[int, int, str]] = (),
        *,
        turns: NDArray[int64] | None = None,
        vectors: NDArray[float32] | None = None,
    ) -> None:
        n = len(ids)
        self.ids = tuple(ids)
        self.type_names = tuple(sorted(set(types)))
        code = {name: at for at, name in enumerate(self.type_names)}
        self.types: NDArray[intp] = np.array([code[kind] for kind in types], intp)
        """Shape (n,), places in `type_names`."""
        self.ties: NDArray[intp] = np.empty(n, intp)
        self.ties[sorted(range(n), key=self.ids.__getitem__)] = np.arange(n)
        """Shape (n,), the order of the ids: equal scores come in it, wherever a node is stored."""
        self.vectors = vectors
        self.turns: NDArray[int64] = np.full(n, -1, int64) if turns is None else turns
        pairs = {(node, entity) for node, entity, _ in edges if self.turns[entity] < 0 and node != entity}
        self._about = np.array(sorted(pairs), intp).reshape(-1, 2)
        nodes, entities = self._about.T
        active = self.turns.copy()
        np.maximum.at(active, entities, self.turns[nodes])
        self.last_active = active.copy()
        np.maximum.at(self.last_active, nodes, active[entities])
        """Shape (n,), the turn in which a node or an entity that it is about was last mentioned; negative: never."""
        self._semantic = semantic_layer(edges)
        self._temporal = temporal_layer(self.turns, ties=self.ties)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def latest_turn(self) -> int:
        return max(0, int(self.last_active.max(initial=0)))

    def edges(self, settings: MemoryGraphSettings) -> Edges:
        """Of the layers that the settings want."""
        layers = ((self._semantic, settings.semantic_edges), (self._temporal, settings.temporal_edges))
        return joined([layer for layer, is_on in layers if is_on])

    def cosines(self, vector: NDArray[np.floating]) -> NDArray[float64]:
        """Of each node's meaning and a vector's, shape (n,); 0 where one of them has none."""
        length = float(np.linalg.norm(vector))
        if self.vectors is None or length == 0:
            return np.zeros(len(self))
        return (self.vectors @ (vector / length).astype(float32)).astype(float64)

    def fade(self, settings: MemoryGraphSettings) -> NDArray[float64]:
        """What is left of each node by the turns since it or an entity that it is about was last mentioned, shape (n,):
        one half after a half-life. All of what never was: it is timeless.
        """
        half_lives = np.array([settings.half_life_turns(name) for name in self.type_names], float64)
        distances = np.where(self.last_active < 0, 0, self.latest_turn - self.last_active)
        return np.asarray(np.exp2(-distances / half_lives[self.types]), float64)

    def touched(self, anchors: Sequence[int]) -> NDArray[bool_]:
        """The anchors and what is about one of them, shape (n,)."""
        found = np.zeros(len(self), bool_)
        found[list(anchors)] = True
        nodes, entities = self._about.T
        found[nodes[found[entities]]] = True
        return found

    def co_occurrence(self, anchors: Sequence[int]) -> NDArray[float64]:
        """Shape (n,): the sum over pairs of one of the anchors and another entity that the node is, or is
        about, of .1 ln(1 + how many nodes are about both). The document sets no bound.
        """
        nodes, entities = self._about.T
        met = np.zeros(len(self))
        for anchor in set(anchors):
            is_about = np.zeros(len(self), bool_)
            is_about[nodes[entities == anchor]] = True
            together = np.bincount(entities[is_about[nodes]], minlength=len(self))
            together[anchor] = 0
            met += np.log1p(together)
        of_nodes = np.bincount(nodes, met[entities], minlength=len(self))
        return np.asarray(_CO_OCCURRENCE * (met + of_nodes), float64)


class TalkGraph(MemoryGraph):
    """Turns that one viewer may know, in the order in which they were said, then the names that stand in them.

    Turns are events, linked by names and by time. Nodes before `n_turns` are turns.

    Args:
        ids: Of the turns.
        names: Whom and what each mentions, in any case; its speaker too, if talk of somebody is to lead to what they
            said themselves.
        sessions: Of each turn, never decreasing; None: all are one.
        vectors: Of the turns, shape (turns, dimensions).
    """

    def __init__(
        self,
        ids: Sequence[str],
        names: Sequence[Iterable[str]],
        *,
        sessions: NDArray[int64] | None = None,
        vectors: NDArray[float32] | None = None,
    ) -> None:
        n = self.n_turns = len(ids)
        self._names: dict[tuple[str, ...], int] = {}
        mentions: list[tuple[int, int, str]] = []
        for turn, mentioned in enumerate(names):
            for name in mentioned:
                key = tuple(word.folded for word in words(name))
                if sum(map(len, key)) >= _SHORTEST_NAME:
                    mentions.append((turn, self._names.setdefault(key, n + len(self._names)), "mentions"))
        numbers = np.zeros(n, int64) if sessions is None else sessions
        past = np.cumsum(np.diff(numbers, prepend=numbers[:1]) != 0)
        if vectors is not None:
            vectors = np.concatenate((vectors, np.zeros((len(self._names), vectors.shape[1]), float32)))
        super().__init__(
            [*ids, *("name " + " ".join(key) for key in self._names)],
            ["event"] * n + ["character_sheet"] * len(self._names),
            mentions,
            turns=np.append(np.arange(n) + _TURNS_BETWEEN_SESSIONS * past, np.full(len(self._names), -1)),
            vectors=vectors,
        )

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


def graph_of_view(index: TalkIndex, columns: ViewColumns, *, read: MutableMapping[int, Read]) -> TalkGraph:
    """A graph of a view's turns, in its order, with the names that stand in them.

    Args:
        read: What was read of the index's rows before; what is read now is added. A row never changes.
    """
    turns: list[Read] = []
    for row in columns.rows.tolist():
        turn = read.get(row)
        if turn is None:
            said = index.said(row)
            turn = read[row] = (said.utterance_id, (said.speaker_name, *_names_in(said.text)))
        turns.append(turn)
    vectors = index.vectors_at(columns, range(len(columns)))
    return TalkGraph(
        [utterance for utterance, _ in turns],
        [names for _, names in turns],
        sessions=columns.sessions.astype(int64),
        vectors=vectors if vectors.any() else None,
    )


def _names_in(text: str) -> list[str]:
    """What is written like a name inside a sentence."""
    return [word.text for word in words(text) if word.is_capital and not word.opens and len(word.folded) > 1]
