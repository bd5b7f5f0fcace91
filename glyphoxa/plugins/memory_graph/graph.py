"""Build the memory graph: one viewer's nodes and edges as arrays, built once and queried often.

A graph contains only what one viewer may know. Degrees, frequencies and co-occurrences are counted in it, so the
knowledge of others does not affect its results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy import bool_, float32, float64, int64, intp
from numpy.typing import NDArray

from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.timeline_writer import NAMED_IN, OCCURRED_AT, PART_OF
from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.domain.campaign import NODE_TYPE_OF, Entity
from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.domain.knowledge import TOOK_PART, Fact, lines_of
from glyphoxa.language.relations import IN_ENGLISH, RelationWords
from glyphoxa.language.text import Text
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.plugins.memory_graph.stages import CONDUCTANCE, Edges, joined, semantic_layer, temporal_layer
from glyphoxa.prompt.select import told_sentence
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.witnessed import ViewColumns
from glyphoxa.recall.world import NOTHING_KNOWN, ViewerWorld
from glyphoxa.transcript.sessions import is_episode

_CO_OCCURRENCE: Final = 0.1
_SHORTEST_NAME: Final = 2
"""Characters of an anchor (memory graph document)."""
_TURNS_BETWEEN_SESSIONS: Final = 30
"""Far enough apart that no temporal edge connects two sessions."""

_EDGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        TOOK_PART: "involved_in",
        NAMED_IN: "involved_in",
        OCCURRED_AT: "occurred_at",
        "LOCATED_AT": "occurred_at",
        PART_OF: "part_of",
    }
)
"""The types of edges of relations; others are `related`, unless they have the name of a type."""
_OF_RULES: Final = "rule_constraint"
_TYPES: Final = ("event", "character_sheet", "location_state")
_TINY: Final = 1e-9

Edge: TypeAlias = tuple[int, int, str]
Link: TypeAlias = tuple[str, str, str]
"""An edge that is stored beside the facts: its type, and the ids of its ends: utterances, entities or facts."""


class Said(NamedTuple):
    """An utterance as a graph reads it."""

    id: UtteranceId
    speaker: str
    text: str


class Named(NamedTuple):
    """The entities in an utterance, and its other names, folded; its speaker is among them."""

    entities: tuple[EntityId, ...]
    names: tuple[tuple[str, ...], ...]


class FactNode(NamedTuple):
    """A fact in a graph: its sentence, and the turns it was learned from or sums up, as far as the viewer heard them.

    Attributes:
        entities: Those that it is about.
    """

    fact: Fact
    text: str
    turns: tuple[int, ...]
    entities: tuple[Entity, ...]

    @property
    def is_summary(self) -> bool:
        return is_episode(self.entities[0])


class MemoryGraph:
    """n nodes: events, entities, facts, rules; each has one place in every column.

    An edge to a node without a time, such as an entity, also means that its source is about that node; an edge from one
    to a node with a time, such as evidence, means the same of its target.

    Args:
        ids: Unique.
        types: "event", "character_sheet", "location_state", "rule_constraint" or any other.
        edges: Source and target, as places of nodes, and type; see `CONDUCTANCE`.
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
        self.rests_on: Mapping[int, Sequence[int]] = {}
        """For a node that repeats others: these."""
        ends = (edge[:2] if self.turns[edge[1]] < 0 else edge[1::-1] for edge in edges)
        pairs = {(node, entity) for node, entity in ends if self.turns[entity] < 0 and node != entity}
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
    """Turns that one viewer may know, in the order in which they were said, then what it knows of the world.

    Turns are events, linked by time, by the entities they name, and by names that are no entity's. Each entity is a
    node, and so is each fact with a sentence: it leads to its entities and to the turns it was learned from. The order
    of nodes: turns, names, entities, facts.

    Args:
        said: The turns.
        sessions: The session of each turn, never decreasing; None: one session.
        vectors: Embeddings of the turns, shape (turns, dimensions).
        known: Entities and facts that the viewer may know.
        links: Those with an end that is not in the graph are skipped.
        before: An earlier graph of the viewer, whose reading of turns is reused.

    Attributes:
        n_turns: Nodes before this one are turns.
        facts: The facts, by node.
        recallable: Shape (n,): turns, and facts that are not in each prompt.
        terms: The terms of the transcript's index in each sentence of a fact.
        postings: The facts that contain a term.
    """

    def __init__(  # noqa: PLR0913 - two memories, and how they are linked and worded
        self,
        said: Sequence[Said],
        *,
        sessions: NDArray[int64] | None = None,
        vectors: NDArray[float32] | None = None,
        known: ViewerWorld = NOTHING_KNOWN,
        links: Iterable[Link] = (),
        words: RelationWords = IN_ENGLISH,
        always_injected: Collection[str] = (),
        before: TalkGraph | None = None,
    ) -> None:
        n = self.n_turns = len(said)
        self.known = known
        people = (each for each in known.entities.values() if not is_episode(each))
        self._gazetteer: Gazetteer = names_of(people, words.language, None if before is None else before._gazetteer)
        earlier = before._read if before is not None and before._gazetteer is self._gazetteer else {}
        self._read: dict[Said, Named] = {each: earlier.get(each) or _named_in(each, self._gazetteer) for each in said}
        named = [self._read[each] for each in said]
        names = dict.fromkeys(name for each in named for name in each.names)
        self._names = {name: n + nth for nth, name in enumerate(names)}
        self._entities = {id_: n + len(names) + nth for nth, id_ in enumerate(known.entities)}
        turns = {each.id: turn for turn, each in enumerate(said)}
        self.facts = self._facts_of(known, turns, words)
        types = {id_: _type_of(each, always_injected) for id_, each in known.entities.items()}
        all_types = ["event"] * n + ["character_sheet"] * len(names) + [*types.values()]
        all_types += [types[fact.entities[0].id] for fact in self.facts.values()]
        ids = [*turns, *("name " + " ".join(name) for name in names), *(f"entity {id_}" for id_ in self._entities)]
        timeless = len(all_types) - n
        if vectors is not None:
            vectors = np.concatenate((vectors, np.zeros((timeless, vectors.shape[1]), float32)))
            for node, fact in self.facts.items():
                middle = vectors[list(fact.turns)].sum(axis=0)
                vectors[node] = middle / max(float(np.linalg.norm(middle)), _TINY)
        numbers = np.zeros(n, int64) if sessions is None else sessions
        past = np.cumsum(np.diff(numbers, prepend=numbers[:1]) != 0)
        super().__init__(
            [*ids, *(f"fact {fact.fact.id}" for fact in self.facts.values())],
            all_types,
            [*self._edges_of_talk(named), *self._edges_of_world(known), *self._linked(links, turns, named)],
            turns=np.append(np.arange(n) + _TURNS_BETWEEN_SESSIONS * past, np.full(timeless, -1)),
            vectors=vectors,
        )
        self.rests_on = {node: fact.turns for node, fact in self.facts.items() if fact.turns}
        self.recallable: NDArray[bool_] = np.arange(len(self)) < n
        for node, fact in self.facts.items():
            self.recallable[node] = not any(each.type in always_injected for each in fact.entities)
        self.terms: dict[str, tuple[str, ...]] = {}
        self.postings: dict[str, list[int]] = {}

    def _edges_of_talk(self, named: Sequence[Named]) -> Iterator[Edge]:
        for turn, each in enumerate(named):
            yield from ((turn, self._names[name], "mentions") for name in each.names)
            yield from ((turn, self._entities[entity], "mentions") for entity in each.entities)
        for node, fact in self.facts.items():
            yield from ((node, turn, "evidence") for turn in fact.turns)

    def _edges_of_world(self, known: ViewerWorld) -> Iterator[Edge]:
        for claim in (fact.claim for fact in known.facts if fact.claim.object is not None):
            kind = _EDGES.get(claim.predicate, claim.predicate.lower())
            kind = kind if kind in CONDUCTANCE or claim.predicate in _EDGES else "related"
            # An event leads to those who took part in it.
            source, target = claim.ends[::-1] if kind == "involved_in" else claim.ends
            yield self._entities[source], self._entities[target], kind
        nodes = {fact.fact.id: node for node, fact in self.facts.items()}
        for node, fact in self.facts.items():
            yield from ((node, self._entities[each.id], "related") for each in fact.entities)
            yield from ((node, nodes[other], "contradicts") for other in fact.fact.disputes if other in nodes)

    def _linked(
        self, links: Iterable[Link], turns: Mapping[UtteranceId, int], named: Sequence[Named]
    ) -> Iterator[Edge]:
        places: dict[str, int] = {fact.fact.id: node for node, fact in self.facts.items()}
        for known in (self._entities, turns):
            places.update(known.items())
        for kind, source, target in links:
            ends = places.get(source), places.get(target)
            if ends[0] is not None and ends[1] is not None and _is_shown(ends[0], ends[1], named):
                yield ends[0], ends[1], kind

    def _facts_of(
        self, known: ViewerWorld, turns: Mapping[UtteranceId, int], words: RelationWords
    ) -> dict[int, FactNode]:
        first = self.n_turns + len(self._names) + len(self._entities)
        found: list[FactNode] = []
        for fact in known.facts:
            ends = tuple(known.entities[end] for end in fact.claim.ends)
            if text := told_sentence(fact, *ends, words=words):
                found.append(FactNode(fact, text, tuple(turns[one] for one in lines_of(fact) if one in turns), ends))
        return {first + nth: fact for nth, fact in enumerate(found)}

    def anchors(self, text: str) -> list[int]:
        """Return nodes of the entities and names in a text, each once: entities by any of their names."""
        spoken = Text.of(text).folded
        longest = max(map(len, self._names), default=0)
        spans = (
            self._names.get(spoken[first:end])
            for first in range(len(spoken))
            for end in range(min(first + longest, len(spoken)), first, -1)
        )
        found = (*(self._entities[each] for each in self._gazetteer.entities_in(text)), *spans)
        return list(dict.fromkeys(node for node in found if node is not None))


def _named_in(said: Said, names: Gazetteer) -> Named:
    text = Text.of(said.text)
    mentions = names.mentions_in(text.words)
    inside = {at for each in mentions for at in range(each.first, each.last + 1)}
    speaker = names.entities_in(said.speaker)
    others = [Text.of(word.text).folded for at, word in enumerate(text.words) if word.is_named and at not in inside]
    others += [] if speaker else [Text.of(said.speaker).folded]
    found = dict.fromkeys(name for name in others if sum(map(len, name)) >= _SHORTEST_NAME)
    return Named(tuple(dict.fromkeys((*speaker, *(each.name.entity_id for each in mentions)))), tuple(found))


def _type_of(entity: Entity, always_injected: Collection[str]) -> str:
    """Return the type of node of an entity, as the memory graph document names them."""
    kind = NODE_TYPE_OF.get(entity.type, entity.type)
    return _OF_RULES if entity.type in always_injected else kind if kind in _TYPES else "other"


def _is_shown(source: int, target: int, named: Sequence[Named]) -> bool:
    """Return whether the viewer knows why two turns are linked: they share a name. Other links are always shown."""
    if source >= len(named) or target >= len(named):
        return True
    one, other = named[source], named[target]
    return not set(one.entities).isdisjoint(other.entities) or not set(one.names).isdisjoint(other.names)


def graph_of_view(
    index: TalkIndex,
    columns: ViewColumns,
    known: Callable[[], ViewerWorld],
    *,
    before: TalkGraph | None = None,
    **more: Any,
) -> TalkGraph:
    """Return a graph of a view's turns, in its order, and of what its viewer knows.

    Args:
        before, more: See `TalkGraph`.
    """
    vectors = index.vectors_at(columns, range(len(columns)))
    graph = TalkGraph(
        [Said(said.utterance_id, said.speaker_name, said.text) for said in map(index.said, columns.rows.tolist())],
        sessions=columns.sessions.astype(int64),
        vectors=vectors if vectors.any() else None,
        known=known(),
        before=before,
        **more,
    )
    earlier = {} if before is None else before.terms
    for node, fact in graph.facts.items():
        terms = graph.terms[fact.text] = earlier.get(fact.text) or tuple(index.terms.of_turn("", fact.text))
        for term in terms:
            graph.postings.setdefault(term, []).append(node)
    return graph
