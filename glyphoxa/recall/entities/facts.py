"""The exact gate for what an NPC knows of the world.

Scope and validity are decided before anything comes here. Two steps: who or what is named in a question (`ExactGate`
over `named_entity` and `named_relation`: see `named_world`), and which of the facts about it the question asks for
(`facts_asked`): "Who owns the Rusty Tankard?" is answered by its owner and not by its description. A question that
asks for nothing in particular, or for what is not known, narrows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.recall.entities.asked_predicates import AskedPredicates, asked_predicates
from glyphoxa.recall.entities.gate import Named
from glyphoxa.world.api import Known, WorldEntity

TOOK_PART: Final = "PARTICIPATED_IN"
_PLACE: Final = "LOCATED_AT"
_OF_FACT: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class FactsAsked:
    """What of an entity is asked, and the facts that answer it.

    Attributes:
        answer: The entity with the facts that answer, without secrets: they stand in the identity of who keeps them.
            None where the question narrows nothing.
        is_short: The question asks and says little beside: nothing but the answer is called for.
    """

    answer: Known | None = None
    is_short: bool = False


def facts_asked(known: Known, question: str, *, named: Collection[EntityId] = (), language: str = "en") -> FactsAsked:
    """The facts about an entity that a question asks for.

    Facts that stand the right way round come before those that do not ("who owns the inn" is not what the inn owns),
    facts between two who are both named before those with others. Where a stricter rule leaves nothing, it is not
    applied, but for where something is.

    Args:
        known: As the graph gives it, for whoever is asked.
        named: All entities that the question names.
        language: Of the question.
    """
    relations = [(fact, other) for fact, other in known.relations if not _is_secret(fact)]
    attributes = [fact for fact in known.attributes if not _is_secret(fact)]
    names = {known.entity.name, *known.entity.aliases}
    for _, other in relations:
        if other.id in named:
            names.update((other.name, *other.aliases))
    predicates = {fact.claim.predicate for fact in (*attributes, *(fact for fact, _ in relations))}
    asked = asked_predicates(question, names=names, predicates=predicates, language=language)
    attributes = [fact for fact in attributes if asked.side_of(fact.claim.predicate)]
    relations = [each for each in relations if _may_answer(each[0], known.entity.id, asked)]
    if not attributes and not relations:
        return FactsAsked()
    relations = _rather(relations, lambda each: _stands_right(each[0], known.entity.id, asked))
    relations = _rather(relations, lambda each: each[1].id in named)
    answer = replace(known, attributes=tuple(attributes), relations=tuple(relations))
    return FactsAsked(answer, asked.is_short)


def named_entity(entity: Entity | WorldEntity, *also: str) -> Named:
    """
    Args:
        also: What else it is called.
    """
    return Named(entity.id, (entity.name, *entity.aliases, *also), entity.type)


def tie_id(fact_id: str) -> str:
    """Of a fact among entities: no entity has it."""
    return f"{_OF_FACT}{fact_id}"


def named_relation(fact: Fact) -> Named:
    """What ties two entities together: nobody calls it by a name, but a name inside the other's name is meant then, and
    who took part in something comes along with it.
    """
    claim = fact.claim
    ends = (claim.subject,) if claim.object is None else (claim.subject, claim.object)
    whole = claim.object if claim.predicate == TOOK_PART and claim.object is not None else ""
    has_ended = fact.status != "accepted"
    return Named(tie_id(fact.id), (), "", ends, whole, has_ended=has_ended, validity=fact.validity)


def _may_answer(fact: Fact, entity: EntityId, asked: AskedPredicates) -> bool:
    """Whether it is asked for. Who stands at the ferry says nothing of where the ferry is."""
    predicate = fact.claim.predicate
    is_asked = asked.side_of(predicate) is not None
    return is_asked and (predicate != _PLACE or _stands_right(fact, entity, asked))


def _stands_right(fact: Fact, entity: EntityId, asked: AskedPredicates) -> bool:
    side = asked.side_of(fact.claim.predicate)
    return side == "either" or entity == (fact.claim.subject if side == "subject" else fact.claim.object)


def _rather(
    relations: list[tuple[Fact, Entity]], is_better: Callable[[tuple[Fact, Entity]], bool]
) -> list[tuple[Fact, Entity]]:
    return [each for each in relations if is_better(each)] or relations


def _is_secret(fact: Fact) -> bool:
    return fact.visibility.scope in ("secret", "hidden")
