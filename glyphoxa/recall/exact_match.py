"""Find exactly what a question names, no more and no less.

Similarity always finds something, and so returns what nobody asked for. Names do not. A question calls for

    whatever it names, in whole words, with one typo forgiven   (`NameReader`)
    and, for an event, whoever takes part in it

as far as the viewer may see it and it still holds. What was superseded or resolved, what the viewer may not know, and
what is not valid at that time is removed before names are matched, so it hides nothing and hints at nothing. A name
inside a longer one ("Tankard" in "Rusty Tankard") does not match, unless a relation connects the two ("Marek" in
"Marek's wife"). A question without a name calls for nothing, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.language.words import words
from glyphoxa.names.naming import Entry
from glyphoxa.names.reader import IsWanted, Mention, NameReader
from glyphoxa.names.resolve import without_article
from glyphoxa.recall.facts import TOOK_PART
from glyphoxa.world.graph import Known
from glyphoxa.world.state import WorldEntity

KnownOf = Callable[[EntityId], Known | None]
"""Returns what the viewer may know of an entity and what holds; None if there is none for this viewer."""


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


def called_for(question: str, names: NameReader, *, is_wanted: IsWanted, known_of: KnownOf) -> Iterator[KnownByName]:
    """Yield what a question calls for, each once, in the order of their names; participants of events last.

    No answer depends on the order in which names were added.

    Args:
        is_wanted: Selects the entities that the viewer may know: the others change nothing of the answer.
    """
    named: dict[EntityId, Mention] = {}
    for mention in _outermost(names.mentions(question, is_wanted), known_of):
        named.setdefault(mention.name.entity_id, mention)
    found: list[tuple[Mention, Known]] = []
    for entity, mention in named.items():
        if (known := known_of(entity)) is not None:
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
                if (known := known_of(other.id)) is not None:
                    yield KnownByName(known, f"takes part in {mention.name.text!r}", is_named=False)


def _ties(known: Known) -> Iterator[tuple[Fact, Entity]]:
    return ((fact, other) for fact, other in known.relations if fact.status == "accepted")


def _outermost(mentions: Iterable[Mention], known_of: KnownOf) -> Iterator[Mention]:
    """Skip names that occur only inside a longer one."""
    widest: Mention | None = None
    around: list[Mention] = []
    for one in mentions:
        if widest is None or one.first > widest.last:
            widest, around = one, []
        elif one.last > widest.last:
            widest = one
        outer = (other.name.entity_id for other in around if one.is_inside(other))
        if all(_belong_together(one.name.entity_id, other, known_of) for other in outer):
            yield one
        around.append(one)


def _belong_together(one: EntityId, other: EntityId, known_of: KnownOf) -> bool:
    known = known_of(one)
    return one == other or (known is not None and any(tied.id == other for _, tied in _ties(known)))
