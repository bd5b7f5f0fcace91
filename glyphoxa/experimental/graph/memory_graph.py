"""What recall over the memory graph works on: one viewer's nodes and edges as arrays, built once, asked often.

A graph holds what one viewer may know and nothing else: degrees, frequencies and who was met with whom are counted in
it, so that what somebody else knows changes nothing of what this one recalls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy import bool_, float32, float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.experimental.graph.adjacency import Adjacency, both, rows, semantic_layer, temporal_layer
from glyphoxa.experimental.graph.diffusion import fading
from glyphoxa.experimental.graph.settings import OTHER_HALF_LIFE_TURNS

_UNIT = 1e-3
_CO_OCCURRENCE = 0.1
_MOST_ANCHORS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """n nodes: events, entities, facts, rules; one place each in every column.

    Attributes:
        ids: No two are equal.
        types: "event", "character_sheet", "location_state", "rule_constraint" or any other.
        tokens: By which words a node is found; empty: by none.
        vectors: Shape (n, dimensions); a row of zeros has no meaning yet. None: none has.
        turns: Shape (n,), when it happened, counted over all sessions; negative for what has no time of its own, as
            an entity has none. None: nothing has.
        links: For each node the entities, as places of nodes, that it is about; empty: none is.
        last_active: Shape (n,), the turn in which a node was last heard of; negative if never. None: that is the
            latest turn of the node and of all that are linked to it.
    """

    ids: Sequence[str]
    types: Sequence[str]
    tokens: Sequence[Collection[str]] = ()
    vectors: NDArray[float32] | None = None
    turns: NDArray[int64] | None = None
    links: Sequence[Collection[int]] = ()
    last_active: NDArray[int64] | None = None


def _no_edges() -> NDArray[intp]:
    return np.zeros(0, intp)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """
    Attributes:
        sources, targets: Places of nodes.
        types: Of each edge, see `glyphoxa.experimental.graph.adjacency.CONDUCTANCE`; None: all are "mentions".
    """

    sources: NDArray[intp] = field(default_factory=_no_edges)
    targets: NDArray[intp] = field(default_factory=_no_edges)
    types: Sequence[str] | None = None


class MemoryGraph:
    """
    Raises:
        InvalidInput: A column's length or a place does not fit, an id stands twice, or a vector has a NaN.
    """

    def __init__(self, nodes: Nodes, edges: Edges | None = None) -> None:
        n = len(nodes.ids)
        _check(nodes, n)
        self.ids = tuple(nodes.ids)
        self.type_names = tuple(sorted(set(nodes.types)))
        code = {name: at for at, name in enumerate(self.type_names)}
        self.types: NDArray[intp] = np.array([code[kind] for kind in nodes.types], intp)
        """Shape (n,), places in `type_names`."""
        self.ties: NDArray[intp] = np.empty(n, intp)
        self.ties[sorted(range(n), key=self.ids.__getitem__)] = np.arange(n)
        """Shape (n,), the order of the ids: equal scores come in it, wherever a node is stored."""
        self.vectors = None if nodes.vectors is None else _of_unit_length(nodes.vectors)
        self.turns: NDArray[int64] = np.full(n, -1, int64) if nodes.turns is None else np.asarray(nodes.turns, int64)
        self._postings = _postings(nodes.tokens)
        self._link_sources, linked = _links(nodes.links, n)
        self._links = rows(n, self._link_sources, linked)
        order = np.lexsort((self._link_sources, linked))
        self._members = rows(n, linked[order], self._link_sources[order])
        self.last_active = self._last_active(nodes.last_active)
        """Shape (n,), the turn in which a node or an entity that it is linked to was last heard of; negative: never."""
        edges = edges or Edges()
        _check_places("an edge", np.concatenate((edges.sources, edges.targets)), n)
        if len(edges.sources) != len(edges.targets) or (
            edges.types is not None and len(edges.types) != len(edges.sources)
        ):
            raise InvalidInput(f"edges have {len(edges.sources)} sources and {len(edges.targets)} targets or types")
        semantic = semantic_layer(n, np.asarray(edges.sources, intp), np.asarray(edges.targets, intp), edges.types)
        temporal = temporal_layer(self.turns, ties=self.ties)
        nothing = semantic_layer(n, _no_edges(), _no_edges())
        self._layers = {
            (True, True): both(semantic, temporal),
            (True, False): semantic,
            (False, True): temporal,
            (False, False): nothing,
        }

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def latest_turn(self) -> int:
        return max(0, int(self.last_active.max(initial=0)))

    def adjacency(self, *, semantic: bool = True, temporal: bool = True) -> Adjacency:
        return self._layers[semantic, temporal]

    def cosines(self, vector: NDArray[float32]) -> NDArray[float64]:
        """Of each node's meaning and a vector's, shape (n,); 0 where one of them has none.

        Raises:
            InvalidInput: It has another number of dimensions, or a NaN.
        """
        self.check_vector(vector)
        if self.vectors is None:
            return np.zeros(len(self))
        length = float(np.linalg.norm(vector))
        if length == 0:
            return np.zeros(len(self))
        return (self.vectors @ (vector / length).astype(float32)).astype(float64)

    def check_vector(self, vector: NDArray[np.floating]) -> None:
        """
        Raises:
            InvalidInput: As in `cosines`.
        """
        if self.vectors is not None and vector.shape != self.vectors.shape[1:]:
            raise InvalidInput(
                f"the question's vector has shape {vector.shape}; the graph's have {self.vectors.shape[1]} dimensions"
            )
        if not np.isfinite(vector).all():
            raise InvalidInput("the question's vector has a number that is not finite")

    def lexical(self, tokens: Collection[str]) -> NDArray[float64]:
        """Which share of the tokens each node has, shape (n,)."""
        asked = set(tokens)
        share = np.zeros(len(self))
        for token in asked:
            places = self._postings.get(token)
            if places is not None:
                share[places] += 1
        return share / max(1, len(asked))

    def fade(self, half_lives_turns: Mapping[str, float], *, now: int) -> NDArray[float64]:
        """What is left of each node by the turns since it or an entity that it is linked to was last heard of, shape
        (n,). All of what has never been: it is timeless.
        """
        half_lives = np.array([half_lives_turns.get(name, OTHER_HALF_LIFE_TURNS) for name in self.type_names], float64)
        distances = np.where(self.last_active < 0, 0, np.maximum(now - self.last_active, 0)).astype(float64)
        return fading(distances, half_lives[self.types])

    def touched(self, anchors: Sequence[int]) -> NDArray[bool_]:
        """The anchors and what is linked to one of them, shape (n,)."""
        found = np.zeros(len(self), bool_)
        for anchor in set(anchors):
            found[anchor] = True
            found[self._linked_to(anchor)] = True
        return found

    def co_occurrence(self, anchors: Sequence[int]) -> NDArray[float64]:
        """Shape (n,), of the first 50 anchors; see `glyphoxa.experimental.graph.hybrid_score.Signals`."""
        met = np.zeros(len(self))
        for anchor in list(dict.fromkeys(anchors))[:_MOST_ANCHORS]:
            links, _ = self._links.edges_of(self._linked_to(anchor))
            together = np.bincount(self._links.targets[links], minlength=len(self))
            together[anchor] = 0
            met += np.log1p(together)
        of_links = np.bincount(self._link_sources, met[self._links.targets], minlength=len(self))
        total: NDArray[float64] = _CO_OCCURRENCE * (met + of_links)
        return total

    def _linked_to(self, entity: int) -> NDArray[intp]:
        members = self._members
        return members.targets[members.starts[entity] : members.starts[entity + 1]]

    def _last_active(self, given: NDArray[int64] | None) -> NDArray[int64]:
        """Of each node or any entity that it is linked to."""
        active = self.turns.copy()
        if given is not None:
            active = np.maximum(active, given)
        else:
            np.maximum.at(active, self._links.targets, self.turns[self._link_sources])
        own = active.copy()
        np.maximum.at(active, self._link_sources, own[self._links.targets])
        return active


def _check(nodes: Nodes, n: int) -> None:
    columns: dict[str, int] = {"types": len(nodes.types)}
    for name, column in (("tokens", nodes.tokens), ("links", nodes.links)):
        if len(column):
            columns[name] = len(column)
    for name, array in (("vectors", nodes.vectors), ("turns", nodes.turns), ("last_active", nodes.last_active)):
        if array is not None:
            columns[name] = len(array)
    for name, length in columns.items():
        if length != n:
            raise InvalidInput(f"{name} of a memory graph has {length} entries; valid: one for each of its {n} nodes")
    if len(set(nodes.ids)) != n:
        raise InvalidInput("an id stands twice in a memory graph; each node has its own")
    if nodes.vectors is not None:
        if nodes.vectors.ndim != 2:
            raise InvalidInput(
                f"vectors of a memory graph have shape {nodes.vectors.shape}; valid: (nodes, dimensions)"
            )
        if not np.isfinite(nodes.vectors).all():
            raise InvalidInput("a vector of a memory graph has a number that is not finite")


def _check_places(what: str, places: NDArray[intp], n: int) -> None:
    wrong = places[(places < 0) | (places >= n)]
    if len(wrong):
        raise InvalidInput(f"{what} of a memory graph leads to node {wrong[0]}; valid: 0 to {n - 1}")


def _of_unit_length(vectors: NDArray[float32]) -> NDArray[float32]:
    lengths = np.linalg.norm(vectors, axis=1)
    if vectors.dtype == float32 and (np.isclose(lengths, 1.0, atol=_UNIT) | (lengths == 0)).all():
        return vectors
    return (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(float32)


def _postings(tokens: Sequence[Collection[str]]) -> dict[str, NDArray[intp]]:
    places: dict[str, list[int]] = {}
    for at, of_node in enumerate(tokens):
        for token in set(of_node):
            places.setdefault(token, []).append(at)
    return {token: np.array(found, intp) for token, found in places.items()}


def _links(links: Sequence[Collection[int]], n: int) -> tuple[NDArray[intp], NDArray[intp]]:
    """Pairs of a node and an entity, each once, in order."""
    pairs = sorted({(node, entity) for node, entities in enumerate(links) for entity in entities if node != entity})
    nodes = np.array([node for node, _ in pairs], intp)
    entities = np.array([entity for _, entity in pairs], intp)
    _check_places("a link", entities, n)
    return nodes, entities
