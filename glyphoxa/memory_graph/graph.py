"""Build the memory graph: one viewer's nodes and edges as arrays, built once and queried often.

A graph contains only what one viewer may know. Degrees, frequencies and co-occurrences are counted in it, so the
knowledge of others does not affect its results.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy import bool_, float32, float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.language.text import Text
from glyphoxa.memory_graph.diffusion import Edges, joined, semantic_layer, temporal_layer
from glyphoxa.memory_graph.settings import MemoryGraphSettings
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.witnessed import ViewColumns

_CO_OCCURRENCE: Final = 0.1
_SHORTEST_NAME: Final = 2
"""Characters of an anchor (memory graph document)."""
_TURNS_BETWEEN_SESSIONS: Final = 30
"""Far enough apart that no temporal edge connects two sessions."""

Read: TypeAlias = tuple[str, tuple[str, ...]]
"""For a row of the transcript's index: the utterance's id, and the names in it."""


class MemoryGraph:
    """n nodes: events, entities, facts, rules; each has one place in every column.

    An edge to a node without a time, such as an entity, also means that its source is about that node.

    Args:
        ids: Unique.
        types: "event", "character_sheet", "location_state", "rule_constraint" or any other.
        edges: Source and target, as places of nodes, and type; see `glyphoxa.memory_graph.diffusion.CONDUCTANCE`.
        turns: Shape (n,), when each happened, counted over all sessions; negative for a node without a time. None: no
            node has one.
        vectors: Shape (n, dimensions), of unit length; a row of zeros has no vector yet. None: no node has one.
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
        """Shape (n,), the order of the ids, which decides among equal scores, independent of storage."""
        self.vectors = vectors
        self.turns: NDArray[int64] = np.full(n, -1, int64) if turns is None else turns
        pairs = {(node, entity) for node, entity, _ in edges if self.turns[entity] < 0 and node != entity}
        self._about = np.array(sorted(pairs), intp).reshape(-1, 2)
        nodes, entities = self._about.T
        active = self.turns.copy()
        np.maximum.at(active, entities, self.turns[nodes])
        self.last_active = active.copy()
        np.maximum.at(self.last_active, nodes, active[entities])
        """Shape (n,), the turn in which a node, or an entity that it is about, was last mentioned; negative: never."""
        self._semantic = semantic_layer(edges)
        self._temporal = temporal_layer(self.turns, ties=self.ties)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def latest_turn(self) -> int:
        return max(0, int(self.last_active.max(initial=0)))

    def edges(self, settings: MemoryGraphSettings) -> Edges:
        """Return the edges of the layers that the settings select."""
        layers = ((self._semantic, settings.semantic_edges), (self._temporal, settings.temporal_edges))
        return joined([layer for layer, is_on in layers if is_on])

    def cosines(self, vector: NDArray[np.floating]) -> NDArray[float64]:
        """Return the similarity of each node to a vector, shape (n,); 0 without one of the vectors."""
        length = float(np.linalg.norm(vector))
        if self.vectors is None or length == 0:
            return np.zeros(len(self))
        return (self.vectors @ (vector / length).astype(float32)).astype(float64)

    def fade(self, settings: MemoryGraphSettings) -> NDArray[float64]:
        """Return the share that each node keeps after the turns since its last mention, shape (n,).

        It is one half after a half-life, and counts mentions of the node or an entity that it is about. A node without
        a mention is timeless and keeps all.
        """
        half_lives = np.array([settings.half_life_turns(name) for name in self.type_names], float64)
        distances = np.where(self.last_active < 0, 0, self.latest_turn - self.last_active)
        return np.asarray(np.exp2(-distances / half_lives[self.types]), float64)

    def touched(self, anchors: Sequence[int]) -> NDArray[bool_]:
        """Return the anchors and the nodes that are about one of them, shape (n,)."""
        found = np.zeros(len(self), bool_)
        found[list(anchors)] = True
        nodes, entities = self._about.T
        found[nodes[found[entities]]] = True
        return found

    def co_occurrence(self, anchors: Sequence[int]) -> NDArray[float64]:
        """Return co-occurrence scores, shape (n,).

        Each is the sum over pairs of one of the anchors and another entity that the node is, or is about, of .1 ln(1 +
        number of nodes that are about both). The document sets no bound.
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
    """Turns that one viewer may know, in the order in which they were said, then the names in them.

    Turns are events, linked by names and by time. Nodes before `n_turns` are turns.

    Args:
        ids: Ids of the turns.
        names: The names that each turn mentions, in any case; its speaker too, if a name shall lead to what they said.
        sessions: The session of each turn, never decreasing; None: one session.
        vectors: Embeddings of the turns, shape (turns, dimensions).
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
                key = Text.of(name).folded
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
        """Return nodes of the names in a text with at least two letters, each once, in order."""
        spoken = Text.of(text).folded
        longest = max(map(len, self._names), default=0)
        found = (
            self._names.get(spoken[first:end])
            for first in range(len(spoken))
            for end in range(min(first + longest, len(spoken)), first, -1)
        )
        return list(dict.fromkeys(node for node in found if node is not None))


def graph_of_view(index: TalkIndex, columns: ViewColumns, *, read: MutableMapping[int, Read]) -> TalkGraph:
    """Return a graph of a view's turns, in its order, with the names in them.

    Args:
        read: Cache of the index's rows; new rows are added. A row never changes.
    """
    turns: list[Read] = []
    for row in columns.rows.tolist():
        turn = read.get(row)
        if turn is None:
            said = index.said(row)
            turn = read[row] = (said.utterance_id, (said.speaker_name, *Text.of(said.text).named))
        turns.append(turn)
    vectors = index.vectors_at(columns, range(len(columns)))
    return TalkGraph(
        [utterance for utterance, _ in turns],
        [names for _, names in turns],
        sessions=columns.sessions.astype(int64),
        vectors=vectors if vectors.any() else None,
    )
