"""The exact gate: what a question calls for by name, no more and no less.

Similarity always finds something, and so brings what nobody asked for. Here the rules are those of names. What a
question calls for is

    whatever is named in it, in whole words, one typo forgiven   (`glyphoxa.recall.entities.names`)
    and, with a relation or an event, whoever takes part in it

as far as the one who asks may see it and it still holds: what was superseded or resolved, what he may not know and
what is not valid at that time is left out before names are looked at, so that it hides nothing and hints at nothing.
A name inside a longer one ("Tankard" in "Rusty Tankard") is not called, unless the two belong together by a relation
("Marek" in "Marek's wife"). A question without a name calls for nothing, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from glyphoxa.domain.knowledge import ALWAYS, Validity
from glyphoxa.recall.entities.names import NameMention, NamesInText


@dataclass(frozen=True, slots=True)
class Named:
    """Something that can be asked for by name: an entity, a relation, a fact, a belief.

    Attributes:
        names: Its own name first, then its aliases; none for what comes along with others only.
        kind: Of an entity, its type: persons and places have short forms.
        participants: Ids of what a relation is between.
        part_of: Of a relation, the one of its participants that the others come along with: of who took part in a
            battle, the battle.
        has_ended: It was superseded or resolved: it is never called for.
    """

    id: str
    names: tuple[str, ...] = ()
    kind: str = ""
    participants: tuple[str, ...] = ()
    part_of: str = ""
    has_ended: bool = False
    validity: Validity = ALWAYS

    def holds_at(self, at_ms: int | None) -> bool:
        """Whether it holds at a time; None for now, when nothing that has an end is told."""
        start, end = self.validity.from_ms, self.validity.to_ms
        if self.has_ended or (at_ms is None and end is not None):
            return False
        return at_ms is None or ((start is None or start <= at_ms) and (end is None or at_ms < end))


@dataclass(frozen=True, slots=True)
class CalledFor:
    """What a question calls for, and why.

    Attributes:
        why: "named 'k8s'", "'Reedis' is one letter from 'Redis'", "takes part in 'auth'".
        is_named: It stands in the question itself.
    """

    item: Named
    why: str
    is_named: bool = True


MaySee: TypeAlias = Callable[[Named], bool]


def everything(_: Named) -> bool:
    """For who sees everything, or where others have decided before who sees what."""
    return True


class ExactGate:
    """What can be called for. Changes and questions come from one thread; a change costs as much as its names.

    No answer depends on the order in which items came in.

    Args:
        language: Of the names and questions.
    """

    def __init__(self, items: Iterable[Named] = (), *, language: str = "en") -> None:
        self._names = NamesInText(language)
        self._items: dict[str, Named] = {}
        self._relations_of: dict[str, set[str]] = {}
        self._parts_of: dict[str, set[str]] = {}
        for item in items:
            self.put(item)

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Named) -> None:
        """Know this item, in the place of one with the same id."""
        self.remove(item.id)
        self._items[item.id] = item
        for participant in item.participants:
            self._relations_of.setdefault(participant, set()).add(item.id)
        if item.part_of:
            self._parts_of.setdefault(item.part_of, set()).add(item.id)
        self._names.put(item.id, item.names, item.kind)

    def remove(self, item_id: str) -> None:
        """Forget an item; nothing happens if there is none."""
        item = self._items.pop(item_id, None)
        if item is None:
            return
        for participant in item.participants:
            _discard(self._relations_of, participant, item_id)
        if item.part_of:
            _discard(self._parts_of, item.part_of, item_id)
        self._names.remove(item_id)

    def ask(self, question: str, *, may_see: MaySee = everything, at_ms: int | None = None) -> tuple[CalledFor, ...]:
        """What a question calls for, each once, in the order in which it is named; participants of relations last.

        Args:
            may_see: Decides before anything else: what may not be seen changes nothing of the answer.
            at_ms: The time that is spoken of, session time; None for now.
        """

        def is_live(item_id: str) -> bool:
            item = self._items.get(item_id)
            return item is not None and item.holds_at(at_ms) and may_see(item)

        return tuple(self._called(question, is_live))

    def _called(self, question: str, is_live: Callable[[str], bool]) -> Iterator[CalledFor]:
        calls = self._outermost(self._names.calls(question, is_live), is_live)
        named: dict[str, NameMention] = {}
        for call in calls:
            named.setdefault(call.bearer, call)
        for bearer, call in named.items():
            yield CalledFor(self._items[bearer], _why(call))
        brought = dict.fromkeys(named)
        for bearer, call in named.items():
            for participant in self._brought_by(bearer, is_live):
                if participant not in brought and is_live(participant):
                    brought[participant] = None
                    yield CalledFor(self._items[participant], f"takes part in {call.name!r}", is_named=False)

    def _brought_by(self, bearer: str, is_live: Callable[[str], bool]) -> Iterator[str]:
        yield from self._items[bearer].participants
        for part in sorted(self._parts_of.get(bearer, ())):
            if is_live(part):
                yield from self._items[part].participants

    def _outermost(self, calls: Sequence[NameMention], is_live: Callable[[str], bool]) -> Iterator[NameMention]:
        """Without names that only stand inside a longer one."""
        widest: NameMention | None = None
        around: list[NameMention] = []
        for call in calls:
            if widest is None or call.first > widest.last:
                widest, around = call, []
            elif call.last > widest.last:
                widest = call
            if all(
                self._belong_together(call.bearer, other.bearer, is_live) for other in around if call.is_inside(other)
            ):
                yield call
            around.append(call)

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


def _why(call: NameMention) -> str:
    return f"{call.heard!r} is one letter from {call.name!r}" if call.is_typo else f"named {call.heard!r}"
