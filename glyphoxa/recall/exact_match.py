"""Find exactly what a question names, no more and no less.

Similarity always finds something, and so returns what nobody asked for. Names do not. A question calls for

    whatever it names, in whole words, with one typo forgiven   (`NameReader`)
    and, for a relation or an event, whoever takes part in it

as far as the viewer may see it and it still holds. What was superseded or resolved, what the viewer may not know, and
what is not valid at that time is removed before names are matched, so it hides nothing and hints at nothing. A name
inside a longer one ("Tankard" in "Rusty Tankard") does not match, unless a relation connects the two ("Marek" in
"Marek's wife"). A question without a name calls for nothing, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import ALWAYS, Validity
from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.language.words import words
from glyphoxa.names.naming import ARTICLES, Entry, Speech
from glyphoxa.names.reader import Mention, NameReader


@dataclass(frozen=True, slots=True)
class Named:
    """Something that can be asked for by name: an entity, a relation, a fact, a belief.

    Attributes:
        names: Its own name first, then its aliases; none for items that only accompany others.
        kind: The type of an entity: persons and places have short forms.
        participants: Ids of both ends of a relation.
        part_of: The participant of a relation that brings the others along: for participants of a battle, the battle.
        has_ended: It was superseded or resolved, and is never returned.
    """

    id: str
    names: tuple[str, ...] = ()
    kind: str = ""
    participants: tuple[str, ...] = ()
    part_of: str = ""
    has_ended: bool = False
    validity: Validity = ALWAYS

    def holds_at(self, at_ms: int | None) -> bool:
        """Return whether it holds at a time; None means now."""
        start, end = self.validity.from_ms, self.validity.to_ms
        if self.has_ended or (at_ms is None and end is not None):
            return False
        return at_ms is None or ((start is None or start <= at_ms) and (end is None or at_ms < end))


@dataclass(frozen=True, slots=True)
class CalledFor:
    """An item that a question calls for, and why.

    Attributes:
        why: "named 'k8s'", "'Reedis' is one letter from 'Redis'", "takes part in 'auth'".
        is_named: The question itself names it.
    """

    item: Named
    why: str
    is_named: bool = True


MaySee: TypeAlias = Callable[[Named], bool]


def everything(_: Named) -> bool:
    """Accept every item: for viewers who see everything, or where scopes were applied before."""
    return True


class ExactGate:
    """The items that can be called for. One thread makes changes and look-ups; a change costs as much as its names.

    No answer depends on the order in which items were added.
    """

    def __init__(self, items: Iterable[Named] = (), *, language: str = "en") -> None:
        # No sounds: transcripts are corrected before.
        self._names = NameReader(Speech(vocabulary_of(language), None, lambda _: ""))
        self._items: dict[str, Named] = {}
        self._relations_of: dict[str, set[str]] = {}
        self._parts_of: dict[str, set[str]] = {}
        for item in items:
            self.put(item)

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Named) -> None:
        """Add an item, in place of one with the same id."""
        self.remove(item.id)
        self._items[item.id] = item
        for participant in item.participants:
            self._relations_of.setdefault(participant, set()).add(item.id)
        if item.part_of:
            self._parts_of.setdefault(item.part_of, set()).add(item.id)
        if item.names:
            own, *others = item.names
            bare = filter(None, map(_without_article, item.names))
            self._names.put(Entry(own, EntityId(item.id), item.kind, (*others, *bare)))

    def remove(self, item_id: str) -> None:
        """Remove an item; does nothing if it is unknown."""
        item = self._items.pop(item_id, None)
        if item is None:
            return
        for participant in item.participants:
            _discard(self._relations_of, participant, item_id)
        if item.part_of:
            _discard(self._parts_of, item.part_of, item_id)
        self._names.remove(EntityId(item_id))

    def ask(self, question: str, *, may_see: MaySee = everything, at_ms: int | None = None) -> tuple[CalledFor, ...]:
        """Return what a question calls for, each once, in the order of their names; participants of relations last.

        Args:
            may_see: Applied first: what the viewer may not see changes nothing of the answer.
            at_ms: The time that the question is about, session time; None for now.
        """

        def is_live(item_id: str) -> bool:
            item = self._items.get(item_id)
            return item is not None and item.holds_at(at_ms) and may_see(item)

        return tuple(self._called(question, is_live))

    def _called(self, question: str, is_live: Callable[[str], bool]) -> Iterator[CalledFor]:
        named: dict[str, Mention] = {}
        for mention in self._outermost(self._names.mentions(question, is_live), is_live):
            named.setdefault(mention.name.entity_id, mention)
        for bearer, mention in named.items():
            heard, name = question[mention.start : mention.end], mention.name.text
            why = f"{heard!r} is one letter from {name!r}" if mention.is_typo else f"named {heard!r}"
            yield CalledFor(self._items[bearer], why)
        brought = dict.fromkeys(named)
        for bearer, mention in named.items():
            for participant in self._brought_by(bearer, is_live):
                if participant not in brought and is_live(participant):
                    brought[participant] = None
                    yield CalledFor(self._items[participant], f"takes part in {mention.name.text!r}", is_named=False)

    def _brought_by(self, bearer: str, is_live: Callable[[str], bool]) -> Iterator[str]:
        yield from self._items[bearer].participants
        for part in sorted(self._parts_of.get(bearer, ())):
            if is_live(part):
                yield from self._items[part].participants

    def _outermost(self, mentions: Iterable[Mention], is_live: Callable[[str], bool]) -> Iterator[Mention]:
        """Skip names that occur only inside a longer one."""
        widest: Mention | None = None
        around: list[Mention] = []
        for one in mentions:
            if widest is None or one.first > widest.last:
                widest, around = one, []
            elif one.last > widest.last:
                widest = one
            if all(
                self._belong_together(one.name.entity_id, other.name.entity_id, is_live)
                for other in around
                if one.is_inside(other)
            ):
                yield one
            around.append(one)

    def _belong_together(self, one: str, other: str, is_live: Callable[[str], bool]) -> bool:
        if one == other or one in self._items[other].participants or other in self._items[one].participants:
            return True
        common = self._relations_of.get(one, set()) & self._relations_of.get(other, set())
        return any(is_live(relation) for relation in common)


def _discard(sets: dict[str, set[str]], key: str, member: str) -> None:
    # A participant may be named twice.
    held = sets.get(key, set())
    held.discard(member)
    if not held:
        sets.pop(key, None)


def _without_article(name: str) -> str:
    """Return "Rusty Tankard" for "The Rusty Tankard"; nothing if a single word is left: "the Tower" is any tower."""
    parts = words(name)
    return name[parts[1].start :] if len(parts) > 2 and parts[0].folded in ARTICLES else ""
