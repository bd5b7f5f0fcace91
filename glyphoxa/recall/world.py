"""Hold a campaign's world in memory, and query it for a viewer, without awaiting anything.

    the world's state ──▶ names and relations ──▶ named entities that the viewer may know
          ▲                                            │
          └── events, by the world's own rules         └──▶ facts that the viewer may know about them

What a viewer may not know is removed before names are matched: it hides no name, corrects no typo and connects nothing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import count, islice
from math import inf
from typing import Final, Generic, TypeVar

from loguru import logger

from glyphoxa.actors.limits import SharedRead
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId
from glyphoxa.domain.knowledge import DM, MEANING, TOOK_PART, Fact, Viewer, Visibility
from glyphoxa.language.facts import DESCRIPTION, fact_text, spoken, texts_of
from glyphoxa.language.language_data import vocabulary_of
from glyphoxa.language.relations import RelationWords
from glyphoxa.language.roles import ARTICLES
from glyphoxa.language.text import Text
from glyphoxa.language.words import fold, words
from glyphoxa.names.naming import Called, Entry, Resolver, Speech, without_article
from glyphoxa.names.reader import SURE_LETTERS, Mention, NameReader
from glyphoxa.recall.facts import is_secret
from glyphoxa.recall.time_reader import MOST_CHARACTERS
from glyphoxa.recall.vectors import ABOUT_IT, AT_HAND, MOST_TEXTS, NOTHING_NEAR, QuestionVectors, TextVectors
from glyphoxa.transcript.sessions import EPISODE, episode_of, is_episode
from glyphoxa.world.event_log import WorldEvent, apply
from glyphoxa.world.graph import IdentitySnapshot, Known, Reached, WorldFeed, may_know, new_events
from glyphoxa.world.state import Changes, WorldEntity, WorldState

# -- by name
#
# What a question names, no more and no less. Similarity always finds something, and so returns what nobody asked for.
# Names do not. A question calls for
#
#     whatever it names, in whole words, with one typo forgiven   (`NameReader`)
#     and, for an event, whoever takes part in it
#
# as far as the viewer may see it and it still holds. What was superseded or resolved, what the viewer may not know, and
# what is not valid at that time is removed before names are matched, so it hides nothing and hints at nothing. A name
# inside a longer one ("Tankard" in "Rusty Tankard") does not match, unless a relation connects the two ("Marek" in
# "Marek's wife"). A question without a name calls for nothing, however long it is.


@dataclass(frozen=True, slots=True)
class ViewerWorld:
    """Entities and facts of a world that a viewer may know, and that hold at one time.

    Attributes:
        until_ms: When the first of the facts begins or ends to hold.
    """

    entities: Mapping[EntityId, Entity] = field(default_factory=dict)
    facts: Sequence[Fact] = ()
    until_ms: float = inf


NOTHING_KNOWN: Final = ViewerWorld()


@dataclass(frozen=True, slots=True, eq=False)
class WorldSnapshot:
    """A world's rows at one moment, whoever may know them, for work in another thread."""

    entities: Mapping[EntityId, WorldEntity]
    facts: Sequence[Fact]

    def known_to(self, viewer: Viewer, now_ms: int) -> ViewerWorld:
        entities = {id_: each for id_, each in self.entities.items() if each.visibility.is_visible_to(viewer)}

        def visibility_of(entity: EntityId) -> Visibility | None:
            found = entities.get(entity)
            return None if found is None else found.visibility

        known = [fact for fact in self.facts if may_know(viewer, fact, visibility_of)]
        facts = tuple(fact for fact in known if fact.validity.holds(now_ms))
        until_ms = _same_until(known, now_ms)
        return ViewerWorld({id_: _entity(each) for id_, each in entities.items()}, facts, until_ms)


@dataclass(frozen=True, slots=True)
class KnownByName:
    """An entity that a question calls for.

    Attributes:
        known: The facts that the viewer may know and that hold now.
        why: "named 'the smith'", "'Reedis' is one letter from 'Redis'", "takes part in 'the feud'".
        is_named: The question itself names it.
        similarity: How near to the question a fact is that was found by its meaning.
    """

    known: Known
    why: str
    is_named: bool = True
    similarity: float | None = None


def entry_of(entity: WorldEntity, also: Iterable[str] = ()) -> Entry:
    """Return an entity with all names that a question may use, other names included, and those without an article."""
    names = (*entity.aliases, *also)
    # "the Tower" is any tower.
    bare = (name for name in map(without_article, (entity.name, *names)) if len(words(name)) > 1)
    return Entry(entity.name, entity.id, entity.type, (*names, *bare))


def _ties(known: Known) -> Iterator[tuple[Fact, Entity]]:
    return ((fact, other) for fact, other in known.relations if fact.status == "accepted")


# -- words
#
# Facts found by the words of their text: "When does the gate close?" names nobody, but a town's description answers it.

LEAST_WORDS: Final = 3
"""Words of a text that a question finds by itself. A shorter value is found by its entity's name."""
_LEAST_SHARED: Final = 2
_LEAST_SHARE: Final = 0.6
"""Share of the significant words of a question."""
_MOST_ALIKE: Final = 2
"""Texts with the single word of a question. If there are more, the word is not specific enough."""
_MOST_LOOKED_AT: Final = 64
K = TypeVar("K", bound=str)


@dataclass(slots=True)
class WordIndex(Generic[K]):
    """An inverted index of texts by the stems of their words."""

    language: str
    _having: dict[str, set[K]] = field(default_factory=dict)
    _of: dict[K, frozenset[str]] = field(default_factory=dict)

    def put(self, key: K, text: str) -> None:
        """Set a text."""
        self.drop(key)
        stems = self._of[key] = Text.of(text).telling(self.language)
        for stem in stems:
            self._having.setdefault(stem, set()).add(key)

    def drop(self, key: K) -> None:
        """Remove a text; does nothing if it is unknown."""
        for stem in self._of.pop(key, ()):
            having = self._having[stem]
            having.discard(key)
            if not having:
                del self._having[stem]

    def having(self, stem: str) -> Collection[K]:
        """Return the texts with a word of this stem."""
        return self._having.get(stem, ())

    def beginning(self, letters: tuple[str, ...]) -> Iterator[K]:
        """Yield the texts with a word that begins with one of these letters, once for each such stem."""
        return (key for stem, having in self._having.items() if stem.startswith(letters) for key in having)

    def find(self, question: str, *, may_see: Callable[[K], bool], most: int) -> dict[K, str]:
        """Return texts that share enough words with a question, those with most of them first, each with their stems.

        Args:
            may_see: A refused text is not found and prevents no other from being found.
        """
        asked = dict.fromkeys(Text.of(question).stems(self.language))
        shared: Counter[K] = Counter()
        for stem in asked:
            shared.update(self._having.get(stem, ()))
        if len(asked) == 1:
            few = [key for key in sorted(shared) if may_see(key)] if len(shared) <= _MOST_LOOKED_AT else []
            return self._told(few[:most] if len(few) <= _MOST_ALIKE else [], asked)
        wanted = max(_LEAST_SHARED, _LEAST_SHARE * len(asked))
        ranked = sorted((key for key, n in shared.items() if n >= wanted), key=lambda key: (-shared[key], key))
        return self._told(islice((key for key in ranked[:_MOST_LOOKED_AT] if may_see(key)), most), asked)

    def _told(self, keys: Iterable[K], asked: Iterable[str]) -> dict[K, str]:
        return {key: ", ".join(stem for stem in asked if stem in self._of[key]) for key in keys}


_MOST_KEPT: Final = 256
"""Cached results for viewers, because each partial transcript asks again; a capital has a thousand facts."""
_MOST_BROUGHT: Final = 8
"""The participants of a battle may be an army, and no prompt has room for it."""


_MOST_INJECTED: Final = 64
"""Entities of types that are in each prompt. The budget of a prompt has room for fewer."""
_MOST_BY_WORDS: Final = 2
_MOST_BY_MEANING: Final = 3
_MOST_RELATIONS: Final = 5_000
"""Relations of one level of a path that are looked at: about 5 ms."""
_MOST_NAMED: Final = 16
_COMMON: Final = 100
"""Facts with a word that make it too common to find any."""
_LONG: Final = 4
"""Letters of a word of a name that few other names have: not "of"."""
_ANYBODY: Final = NpcId("")
"""A viewer who may know only what everybody may."""
_Way = dict[EntityId, tuple[Fact, EntityId] | None]
"""The entities reached from one end of a path, each with the relation to one that is nearer to the end."""


class World:
    """A campaign's world. Changes and queries come from one thread.

    Args:
        state: Complete, except for ended facts. This object takes ownership of it.
        now_ms: Session time.
        also_called: Other names of entities; those of unknown entities are ignored.
        is_new: No event has happened yet.

    Attributes:
        past: Another object whenever the DM has decided on what is told of past sessions.
    """

    def __init__(
        self,
        state: WorldState,
        *,
        now_ms: Callable[[], int],
        language: str = "en",
        also_called: Mapping[EntityId, Sequence[str]] | None = None,
        is_new: bool = True,
    ) -> None:
        self._state = state
        self._now_ms = now_ms
        self._language = language
        self._also_called = also_called or {}
        self._is_new = is_new
        # No sounds: transcripts are corrected before.
        self._names = NameReader(Speech(vocabulary_of(language), lambda _: (), lambda _: ""))
        self._worded = WordIndex[FactId](language)
        self._fact_words = WordIndex[FactId](language)
        self._name_words = WordIndex[EntityId](language)
        self._words = RelationWords(language)
        self._texts: dict[str, dict[FactId, Fact]] = {}
        self._texts_of: dict[FactId, Iterable[str]] = {}
        self._changed: set[EntityId] = set()
        self._coined: set[EntityId] = set()
        self._entities: dict[EntityId, Entity] = {}
        self._around: dict[EntityId, tuple[Known, Sequence[Fact]]] = {}
        self._of_type: dict[str, list[tuple[str, EntityId]]] = {}
        self._kept: dict[tuple[Viewer, EntityId], tuple[Known, float]] = {}
        self._snapshot: WorldSnapshot | None = None
        self.past = object()
        self._follow(Changes(entities_put=tuple(state.entities.values()), facts_put=tuple(state.facts.values())))

    @property
    def texts(self) -> Collection[str]:
        """The texts by whose meaning facts are found."""
        return self._texts.keys()

    @property
    def is_empty(self) -> bool:
        """Return whether it never had an entity, as before a campaign is stored."""
        return self._is_new and not self._state.entities

    def take(self, events: Iterable[WorldEvent]) -> None:
        """Apply new events.

        Raises:
            ValueError: An event refers to earlier ones, so the world must be read again.
        """
        is_decided = False
        for event in events:
            apply(self._state, event)
            self._is_new, is_decided = False, is_decided or event.cause.by == "dm"
        self._kept.clear()
        self._snapshot = None
        self._follow(changes := self._state.changes())
        about = {fact.claim.subject for fact in (*changes.facts_put, *(past.fact for past in changes.ended_put))}
        about.update(changes.entities_gone, (each.id for each in changes.entities_put))
        if is_decided and any(each.startswith(f"{EPISODE}-") for each in about):
            self.past = object()

    def by_name(
        self,
        viewer: Viewer,
        question: str,
        *,
        nearest: Mapping[str, float] = NOTHING_NEAR,
        at_hand: Collection[EntityId] = (),
    ) -> list[KnownByName]:
        """Return whom a question names, in order; then participants, then facts by words and by meaning.

        Args:
            question: Only the end of a long one counts.
            nearest: Texts near to the question, see `TextVectors.nearest`.
            at_hand: The NPC's own entity and its place, to which questions refer without a name.
        """
        brought = count(1)
        called = self._called_for(viewer, question[-MOST_CHARACTERS:])
        found = [one for one in called if one.is_named or next(brought) <= _MOST_BROUGHT]
        found += self._by_words(viewer, question, {one.known.entity.id for one in found})
        return [*found, *self._by_meaning(viewer, nearest, at_hand)]

    def _called_for(self, viewer: Viewer, question: str) -> Iterator[KnownByName]:
        """Yield what a question calls for, each once, in the order of their names; participants of events last.

        No answer depends on the order in which names were added. Entities that the viewer may not know change nothing.
        """

        def is_wanted(entity: EntityId) -> bool:
            return self._state.entities[entity].visibility.is_visible_to(viewer)

        named: dict[EntityId, Mention] = {}
        for mention in self._outermost(viewer, self._names.mentions(question, is_wanted)):
            named.setdefault(mention.name.entity_id, mention)
        found: list[tuple[Mention, Known]] = []
        for entity, mention in named.items():
            if (known := self.known(viewer, entity)) is not None:
                found.append((mention, known))
                heard, name = question[mention.start : mention.end], mention.name.text
                yield KnownByName(
                    known, f"{heard!r} is one letter from {name!r}" if mention.is_typo else f"named {heard!r}"
                )
        brought = set(named)
        for mention, event in found:
            for fact, other in _ties(event):
                if fact.claim.predicate == TOOK_PART and fact.claim.subject == other.id and other.id not in brought:
                    brought.add(other.id)
                    if (known := self.known(viewer, other.id)) is not None:
                        yield KnownByName(known, f"takes part in {mention.name.text!r}", is_named=False)

    def _outermost(self, viewer: Viewer, mentions: Iterable[Mention]) -> Iterator[Mention]:
        """Skip names that occur only inside a longer one."""
        widest: Mention | None = None
        around: list[Mention] = []
        for one in mentions:
            if widest is None or one.first > widest.last:
                widest, around = one, []
            elif one.last > widest.last:
                widest = one
            outer = (other.name.entity_id for other in around if one.is_inside(other))
            if all(self._belong_together(viewer, one.name.entity_id, other) for other in outer):
                yield one
            around.append(one)

    def _belong_together(self, viewer: Viewer, one: EntityId, other: EntityId) -> bool:
        known = self.known(viewer, one)
        return one == other or (known is not None and any(tied.id == other for _, tied in _ties(known)))

    def _by_meaning(
        self, viewer: Viewer, nearest: Mapping[str, float], at_hand: Collection[EntityId]
    ) -> list[KnownByName]:
        """Find facts that are near to a question in meaning, the nearest first."""
        found: list[KnownByName] = []
        for text, nearness in nearest.items():
            for fact in self._texts.get(text, {}).values():
                node = self._state.entity(fact.claim.subject)
                near = nearness + AT_HAND * (node is not None and node.id in at_hand)
                if node is None or near < ABOUT_IT or not self._may_see(viewer, fact):
                    continue
                known = self._with_facts(node.id, [fact])
                found.append(KnownByName(known, f"its meaning: {near:.2f}", is_named=False, similarity=near))
        return sorted(found, key=lambda one: -(one.similarity or 0.0))[:_MOST_BY_MEANING]

    def _by_words(self, viewer: Viewer, question: str, named: Collection[EntityId]) -> Iterable[KnownByName]:
        """Find facts by the question's words, about entities that the question does not name."""
        facts = self._state.facts

        def may_see(fact: FactId) -> bool:
            return facts[fact].claim.subject not in named and self._may_see(viewer, facts[fact])

        shared = self._worded.find(question[-MOST_CHARACTERS:], may_see=may_see, most=_MOST_BY_WORDS)
        for fact, stems in shared.items():
            node = self._state.entity(facts[fact].claim.subject)
            if node is not None:
                yield KnownByName(Known(self._entities[node.id], (facts[fact],)), f"its words: {stems}", is_named=False)

    def known(self, viewer: Viewer, entity: EntityId) -> Known | None:
        """Return what a viewer may know of an entity now; None if there is none for this viewer.

        Args:
            entity: Also the id of an entity that was merged into it.
        """
        own = self._state.resolve(entity)
        kept = self._kept.get((viewer, own))
        if kept is not None and self._now_ms() < kept[1]:
            return kept[0]
        if self._visible(viewer, own) is None:
            return None
        known, guarded = self._around.get(own) or self._read_around(own)
        if unseen := {fact.id for fact in guarded if not self._may_see(viewer, fact)}:
            attributes = [fact for fact in known.attributes if fact.id not in unseen]
            relations = [each for each in known.relations if each[0].id not in unseen]
            known = Known(known.entity, tuple(attributes), tuple(relations))
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[viewer, own] = known, _same_until(guarded, self._now_ms())
        return known

    def _read_around(self, entity: EntityId) -> tuple[Known, Sequence[Fact]]:
        """Return an entity with all its facts, and those of them that not everybody may know at all times."""
        facts = self._state.touching(entity)
        guarded = [fact for fact in facts if not (fact.validity.is_open and self._may_see(_ANYBODY, fact))]
        found = self._around[entity] = self._with_facts(entity, facts), guarded
        return found

    def _with_facts(self, entity: EntityId, facts: Iterable[Fact]) -> Known:
        """Return an entity with facts about it, in order."""
        attributes: list[Fact] = []
        relations: list[tuple[Fact, Entity]] = []
        for fact in facts:
            claim = fact.claim
            if claim.object is None:
                attributes.append(fact)
            elif (other := self._entities.get(claim.ends[claim.subject == entity])) is not None:
                relations.append((fact, other))
        attributes.sort(key=lambda fact: (fact.claim.predicate, fact.seq, fact.id))
        relations.sort(key=lambda each: (each[0].claim.predicate, each[1].name, each[0].id))
        return Known(self._entities[entity], tuple(attributes), tuple(relations))

    def summary(self, npc: NpcId, session: SessionId) -> str | None:
        """Return what an NPC may know of a session's summary; None if there is none."""
        known = self.known(npc, episode := episode_of(session))
        if known is None or known.entity.id != episode or known.entity.type != "event":
            return None
        facts = [(fact.claim.predicate, fact.claim.content) for fact in known.attributes]  # the latest is last
        texts = [str(content) for predicate, content in facts if predicate == "summary"]
        return texts[-1] if texts and ("kind", EPISODE) in facts else None

    def entity(self, viewer: Viewer, entity: EntityId) -> Entity | None:
        """Return an entity, or the one it was merged into, without its attributes; None if none for this viewer."""
        node = self._visible(viewer, entity)
        return None if node is None else self._entities[node.id]

    def entities(self, viewer: Viewer, *, of_type: str = "") -> Iterator[Entity]:
        """Yield the entities that a viewer may know of, in any order, but none that holds the summary of a session.

        Args:
            of_type: Only entities of this type; empty for all.
        """
        ids = (id_ for _, id_ in self._of_type.get(of_type, ())) if of_type else self._entities
        return self._listed(viewer, ids, of_type)

    def called(self, viewer: Viewer, name: str, *, of_type: str = "") -> Entity | None:
        """Return the entity with this name, else with this alias, else with either but for an article."""
        bare = fold(without_article(name))
        spellings = (fold(name), bare, *(f"{article}{bare}" for article in ARTICLES))
        bearers = {each.entity_id for spelling in spellings for each in self._names.claims.get(spelling, ())}
        found = sorted(self._listed(viewer, bearers, of_type), key=lambda one: (one.type, one.name, one.id))
        return Resolver(found, self._all_names, campaign="", what="entity").exact_or_bare(name)

    def like(self, viewer: Viewer, name: str, *, of_type: str = "") -> list[Entity]:
        """Return the entities with a word in their names that begins as a long word of a name does.

        A misspelt name is among them: few people misspell the first letters.
        """
        spelled = [word for word in Text.of(without_article(name)).folded if len(word) >= SURE_LETTERS]
        long = [word for word in spelled if len(word) >= _LONG] or spelled
        letters = tuple(word[:SURE_LETTERS] for word in long)
        return list(self._listed(viewer, set(self._name_words.beginning(letters)), of_type))

    def _listed(self, viewer: Viewer, ids: Iterable[EntityId], of_type: str) -> Iterator[Entity]:
        for each in ids:
            node = self._state.entities[each]
            if of_type in ("", node.type) and node.visibility.is_visible_to(viewer):
                found = self._entities[each]
                if not is_episode(found):
                    yield found

    def _all_names(self, one: Entity) -> Called:
        return Called(one.id, (one.name,), (*one.aliases, *self._also_called.get(one.id, ())), one.type)

    def facts(
        self, viewer: Viewer, text: str, *, is_wanted: Callable[[Fact], bool] = lambda _: True, limit: int = 50
    ) -> list[Fact]:
        """Return the facts that share a word with a text, in their own words or in the names of their entities.

        Those with the most words first, then the latest. A word that very many facts of the viewer contain ("know")
        finds none, unless nothing else does. If very many names share a word, the ones with the most words count.
        """
        shared, common = Counter[FactId](), Counter[FactId]()
        named = Counter[EntityId]()
        for stem in sorted(Text.of(text[-MOST_CHARACTERS:]).telling(self._language)):
            known = [fact for fact in self._fact_words.having(stem) if self._may_see(viewer, self._state.facts[fact])]
            (shared if len(known) < _COMMON else common).update(known)
            named.update(one for one in self._name_words.having(stem) if self._visible(viewer, one) is not None)
        for entity in nsmallest(_MOST_NAMED, named, key=lambda one: (-named[one], one)):
            touching = (fact for fact in self._state.touching(entity) if self._may_see(viewer, fact))
            shared.update({fact.id: named[entity] for fact in touching})
        n_words = shared or common
        found = (self._state.facts[fact] for fact in n_words)
        return nsmallest(
            limit,
            filter(is_wanted, found),
            key=lambda fact: (-n_words[fact.id], -(fact.provenance.at_ms or 0), -fact.seq, fact.id),
        )

    def has_word(self, viewer: Viewer, word: str) -> bool:
        """Return whether the viewer knows of an entity with this word, in lower case, in its name."""
        stems = Text.of(word).telling(self._language)
        bearers = self._name_words.having(min(stems)) if stems else self._state.entities
        alike = (
            each for each in map(self._state.entities.__getitem__, bearers) if word in each.name.casefold().split()
        )
        return any(each.visibility.is_visible_to(viewer) for each in alike)

    def fact(self, fact: FactId, viewer: Viewer = DM) -> Fact | None:
        """Return a current fact; None if there is none for this viewer."""
        found = self._state.facts.get(fact)
        return found if found is not None and (viewer is DM or self._may_see(viewer, found)) else None

    def snapshot(self) -> WorldSnapshot:
        """Return the world as it is now; the same object until it changes."""
        if self._snapshot is None:
            also = self._also_called
            self._snapshot = WorldSnapshot(
                {
                    id_: replace(each, aliases=(*each.aliases, *also[id_])) if id_ in also else each
                    for id_, each in self._state.entities.items()
                },
                tuple(self._state.facts.values()),
            )
        return self._snapshot

    def identity(self, npc: NpcId, entity: EntityId, *, always: Set[str] = frozenset()) -> IdentitySnapshot | None:
        """Return what an NPC knows of itself; None if there is no such entity for it.

        Args:
            entity: The NPC's own entity.
            always: Types of entities that are in each prompt, with what the NPC knows of them.
        """
        known = self.known(npc, entity)
        if known is None:
            return None
        secrets = tuple(fact for fact in self._state.secrets_of(npc) if self._may_see(npc, fact))
        others = (one for type_ in sorted(always) for one in self.entities(npc, of_type=type_) if one.id != entity)
        shown = (self.known(npc, one.id) for one in islice(others, _MOST_INJECTED))
        return IdentitySnapshot(known, secrets, tuple(filter(None, shown)))

    def path(
        self, viewer: Viewer, source: EntityId, target: EntityId, *, max_depth: int = 6
    ) -> list[tuple[Fact, Entity]] | None:
        """Return a shortest chain of relations that hold now, each with the entity it leads to.

        None if there is none, or none among the first relations that are looked at; `[]` from an entity to itself.
        """
        found = [self._visible(viewer, end) for end in (source, target)]
        ends = [node.id for node in found if node is not None]
        if len(ends) < len(found):
            return None
        # Both ends search, the one with fewer entities first: two citizens meet in their capital, and neither looks at
        # all the others.
        ways: list[_Way] = [{end: None} for end in ends]
        levels = [{end} for end in ends]
        met = levels[0] & levels[1]
        for _ in range(0 if met else max_depth):
            one, other = sorted((0, 1), key=lambda side: (len(levels[side]), len(ways[side])))
            levels[one] = self._next_level(viewer, levels[one], ways[one])
            if met := levels[one] & ways[other].keys():
                break
        if not met:
            return None
        there, back = (list(_way_to_end(way, min(met))) for way in ways)
        leads_to = [*((fact, reached) for fact, reached, _ in reversed(there)), *((fact, end) for fact, _, end in back)]
        return [(fact, self._entities[reached]) for fact, reached in leads_to]

    def reach(
        self,
        viewer: Viewer,
        entity: EntityId,
        *,
        depth: int,
        limit: int | None = None,
        most_relations: int | None = _MOST_RELATIONS,
    ) -> list[Reached]:
        """Return the entities at most so many relations away, with the entity itself: by depth, then name.

        Only over accepted relations that hold now, and over entities that the viewer may know of. An NPC's visible
        subgraph is `reach(npc, its own entity, depth=1)`; `known` returns the relations.

        Args:
            limit: Maximum number of entities.
            most_relations: Maximum number at each depth; None looks at all, which may take long.
        """
        start = self._visible(viewer, entity)
        if start is None:
            return []
        found = [Reached(self._entities[start.id], 0)]
        way: _Way = {start.id: None}
        level = {start.id}
        for distance in range(1, depth + 1):
            level = self._next_level(viewer, level, way, most_relations)
            reached = (Reached(self._entities[each], distance) for each in level)
            found += sorted(reached, key=lambda one: (one.entity.name, one.entity.id))
            if not level or (limit is not None and len(found) >= limit):
                break
        return found[:limit]

    def _visible(self, viewer: Viewer, entity: EntityId) -> WorldEntity | None:
        """Return an entity, or the one it was merged into; None if there is none for this viewer."""
        node = self._state.entity(entity)
        return node if node is not None and node.visibility.is_visible_to(viewer) else None

    def _next_level(
        self, viewer: Viewer, level: Iterable[EntityId], way: _Way, most_relations: int | None = _MOST_RELATIONS
    ) -> set[EntityId]:
        """Return the entities that are one relation away from a level and not on the way, and add them to it."""
        found: _Way = {}
        relations = ((entity, fact) for entity in sorted(level) for fact in self._state.touching(entity))
        for entity, fact in islice(relations, most_relations):
            other = fact.claim.ends[-1] if fact.claim.subject == entity else fact.claim.subject
            is_new = other not in way and other not in found and other in self._state.entities
            if is_new and fact.status == "accepted" and self._may_see(viewer, fact):
                found[other] = fact, entity
        way |= found
        return set(found)

    def terms(self, viewer: Viewer) -> list[tuple[str, str]]:
        """Return the terms coined in play that a viewer may know, each with its accepted meaning or "".

        Terms with a meaning come first, then the newest.
        """
        found: list[tuple[bool, int, str, str]] = []
        for entity in self._coined:
            known = self.known(viewer, entity)
            if known is not None:
                meanings = (fact for fact in known.attributes if fact.claim.predicate == MEANING)
                meaning = next((spoken(fact) for fact in meanings if not is_secret(fact)), "")
                last = max((fact.seq for fact in self._state.touching(entity)), default=0)
                found.append((not meaning, -last, known.entity.name, meaning))
        return [(term, meaning) for *_, term, meaning in sorted(found)]

    def _may_see(self, viewer: Viewer, fact: Fact) -> bool:
        if not may_know(viewer, fact, self._state.visibility_of):
            return False
        return fact.validity.is_open or fact.validity.holds(self._now_ms())

    def _follow(self, changes: Changes) -> None:
        if changes.entities_put or changes.entities_gone or changes.facts_gone:
            self._around.clear()
        # Removed facts first, because a fact may have moved to another entity.
        for gone in changes.facts_gone:
            self._drop_text(gone)
            self._worded.drop(gone)
            self._fact_words.drop(gone)
        for entity in changes.entities_gone:
            self._untype(entity)
            self._names.remove(entity)
            self._name_words.drop(entity)
            self._coined.discard(entity)
        for put in changes.entities_put:
            self._put_entity(put)
        for fact in changes.facts_put:
            self._put_fact(fact)
        self._put_texts()
        self._state.begin()

    def _put_texts(self) -> None:
        """Put the texts of all facts of changed entities, whose names and descriptions are in them."""
        for entity in self._changed:
            facts = self._state.touching(entity) if self._state.entity(entity) is not None else []
            described = next((fact for fact in facts if fact.claim.predicate == DESCRIPTION), None)
            for fact in facts:
                self._drop_text(fact.id)
                if len(self._texts) < MOST_TEXTS and fact.status == "accepted" and not is_secret(fact):
                    self._put_text(fact, described)
        self._changed.clear()

    def _put_text(self, fact: Fact, described: Fact | None) -> None:
        claim = fact.claim
        ends = [end for each in claim.ends if (end := self._entities.get(each)) is not None]
        if claim.predicate == TOOK_PART or len(ends) < len(claim.ends) or any(map(is_episode, ends)):
            return
        is_described = described is not None and described.visibility == fact.visibility
        about = spoken(described) if is_described and described is not None else ""
        texts = texts_of(fact, ends[0], ends[1] if len(ends) > 1 else None, described=about, words=self._words)
        self._texts_of[fact.id] = tuple(texts)
        for text, shown in texts.items():
            self._texts.setdefault(text, {})[fact.id] = shown

    def _drop_text(self, fact: FactId) -> None:
        for text in self._texts_of.pop(fact, ()):
            having = self._texts[text]
            del having[fact]
            if not having:
                del self._texts[text]

    def _untype(self, entity: EntityId) -> None:
        if (before := self._entities.pop(entity, None)) is not None:
            of_type = self._of_type[before.type]
            del of_type[bisect_left(of_type, (before.name, entity))]

    def _put_entity(self, entity: WorldEntity) -> None:
        self._changed.add(entity.id)
        self._untype(entity.id)
        self._entities[entity.id] = _entity(entity)
        insort(self._of_type.setdefault(entity.type, []), (entity.name, entity.id))
        if entity.type == "concept" and entity.is_of_talk:
            self._coined.add(entity.id)
        else:
            self._coined.discard(entity.id)
        also_called = self._also_called.get(entity.id, ())
        self._names.put(entry_of(entity, also_called))
        self._name_words.put(entity.id, " ".join((*entity.names, *also_called)))

    def _put_fact(self, fact: Fact) -> None:
        self._changed.add(fact.claim.subject)
        for end in fact.claim.ends:
            self._around.pop(end, None)
        self._fact_words.put(fact.id, fact_text(fact))
        is_open = fact.claim.object is None and fact.status == "accepted" and fact.visibility.scope != "secret"
        if is_open and len((text := spoken(fact)).split()) >= LEAST_WORDS:
            self._worded.put(fact.id, text)
        else:
            self._worded.drop(fact.id)


def _same_until(facts: Iterable[Fact], now_ms: int) -> float:
    """Return the time at which one of these facts begins or ends to hold next."""
    times = (at for fact in facts for at in (fact.validity.from_ms, fact.validity.to_ms))
    return min((at for at in times if at is not None and at > now_ms), default=inf)


def _way_to_end(way: _Way, reached: EntityId) -> Iterator[tuple[Fact, EntityId, EntityId]]:
    """Yield the relations back to the end, each with the entity that it was reached by and the next one."""
    while (step := way[reached]) is not None:
        fact, nearer = step
        yield fact, reached, nearer
        reached = nearer


def _entity(entity: WorldEntity) -> Entity:
    """Return an entity without its attributes, which are facts."""
    return Entity(entity.id, entity.type, entity.name, entity.aliases)


# -- world of a campaign
#
# A world changes only by events, in one order. Most refreshes find none. Events that refer to earlier ones (an undo, a
# rollback), or more than a few events, cause a complete read. Until it ends, nothing is returned, because retracted or
# hidden facts must not be.


class WorldMemory:
    """A campaign's world in memory, kept up to date with its events. One of 10,000 entities takes about 60 MB.

    Args:
        now_ms: Session time.
        meanings: None: facts are found by names and words only.

    Attributes:
        meanings: Vectors of the texts of the world, and of those of its author.
        reading: Reads it; to be closed.
        world: The state of the last read; None before it, and while it may contain what was retracted.
    """

    def __init__(
        self, feed: WorldFeed, campaign: CampaignId, *, now_ms: Callable[[], int], meanings: TextVectors | None = None
    ) -> None:
        self.meanings = meanings or TextVectors(None, QuestionVectors(None))
        self.world: World | None = None
        self._feed = feed
        self._campaign = campaign
        self._now_ms = now_ms
        self._last: WorldEvent | None = None
        self.reading = SharedRead(self._read)

    async def refresh(self) -> World:
        """Apply all events so far; on first use, read everything. See `SharedRead.wait`.

        Raises:
            Unavailable: The database is unreachable, and the memory is unchanged; or this object was closed.
        """
        await self.reading.wait()
        if self.world is None:
            raise Unavailable(f"{self._campaign} is not in memory")
        return self.world

    async def _read(self) -> None:
        if self.world is not None and await self._take_new(self.world):
            return
        self.world = None
        read = await self._feed.read(self._campaign)
        self.world = await asyncio.to_thread(
            World,
            read.state,
            now_ms=self._now_ms,
            language=read.language,
            also_called=read.also_called,
            is_new=read.last is None,
        )
        self._last = read.last
        self.meanings.learn(self.world.texts)

    async def _take_new(self, world: World) -> bool:
        """Return False if the world must be read again."""
        new = await new_events(
            lambda seq, limit: self._feed.events(self._campaign, after=seq - 1, limit=limit), self._last
        )
        if new is None or (self._last is None and not new):
            return False  # without an event, there was perhaps no campaign yet, and so no language
        if not new:
            return True
        try:
            world.take(new)
        except Exception:
            # Whatever the error, half of the events may be applied by now.
            logger.exception("what happened in {} cannot be applied; its world is read again", self._campaign)
            return False
        self._last = new[-1]
        self.meanings.learn(world.texts)
        return True
