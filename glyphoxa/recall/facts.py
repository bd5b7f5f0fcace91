"""The exact gate for what an NPC knows of the world.

Scope and validity are decided before anything comes here. Two steps: who or what is named in a question (`ExactGate`
over `named_entity` and `named_relation`: see `named_world`), and which of the facts about it the question asks for
(`facts_asked`): "Who owns the Rusty Tankard?" is answered by its owner and not by its description. A question that
asks for nothing in particular, or for what is not known, narrows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, Literal

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.language.lexicon import lexicon, primary_language
from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.language.words import words
from glyphoxa.recall.gate import Named
from glyphoxa.world.graph import Known
from glyphoxa.world.state import WorldEntity

# -- asked predicates
#
# Which relation or attribute a question asks for: "who owns", "where is", "whose daughter".
#
# Words of asking by language, and for everything else that a campaign calls its relations and attributes, their own
# words ("What is Marek's occupation?", "Who is he sworn to?" for SWORN_TO). The words of names say nothing: nobody asks
# for an owner who asks about "Owner's CircuitBreaker". Without the words of a language only the own words count.

Side = Literal["subject", "object", "either"]
"""Where in the claim the one stands that the question names: of who owns the inn, the inn is the object."""

SHORT_ASK: Final = 12
"""A factual question has no more words; what is longer says more than it asks."""


@dataclass(frozen=True, slots=True)
class AskedPredicates:
    """What of somebody is asked.

    Attributes:
        sides: The predicates that are asked for, in capitals, each with the place of the one who is named.
        is_short: It asks, and says little beside.
    """

    sides: Mapping[str, Side]
    is_short: bool

    def side_of(self, predicate: str) -> Side | None:
        return self.sides.get(predicate.upper())


def asked_predicates(
    question: str, *, names: Iterable[str], predicates: Iterable[str], language: str = "en"
) -> AskedPredicates:
    """
    Args:
        names: Of those whom the question names: their words are not words of asking.
        predicates: All that could be asked for.
    """
    spoken = words(question)
    heard = _without_names([word.full for word in spoken], names)
    sides: dict[str, Side] = {}
    phrases = _phrases_of(primary_language(language))
    at = 0
    while at < len(heard):
        length, side, asked = _longest_at(heard, at, phrases)
        sides.update({each.upper(): side for each in asked if each.upper() not in sides})
        at += length
    for predicate in predicates:
        own = _own_words(predicate, language)
        if predicate.upper() not in sides and own and own <= set(heard):
            sides[predicate.upper()] = "either"
    return AskedPredicates(sides, _words_said(heard) <= SHORT_ASK)


_Phrases = Mapping[str, Sequence[tuple[tuple[str, ...], Side, tuple[str, ...]]]]
_BREAK: Final = ""
"""Stands where a name was."""


def _longest_at(heard: Sequence[str], at: int, phrases: _Phrases) -> tuple[int, Side, tuple[str, ...]]:
    for parts, side, asked in phrases.get(heard[at], ()):
        if tuple(heard[at : at + len(parts)]) == parts:
            return len(parts), side, asked
    return 1, "either", ()


@cache
def _phrases_of(language: str) -> _Phrases:
    """By their first word, the longest first."""
    phrases: dict[str, list[tuple[tuple[str, ...], Side, tuple[str, ...]]]] = {}
    for listed, side, predicates in lexicon("recall", language).value("asks") or ():
        for phrase in listed.split("|"):
            parts = tuple(word.full for word in words(phrase))
            phrases.setdefault(parts[0], []).append((parts, side, tuple(predicates.split(", "))))
    for same_start in phrases.values():
        same_start.sort(key=lambda each: -len(each[0]))
    return phrases


def _without_names(heard: Sequence[str], names: Iterable[str]) -> list[str]:
    left = list(heard)
    for name in sorted(names, key=len, reverse=True):
        parts = [word.full for word in words(name)]
        at = 0
        while parts and at + len(parts) <= len(left):
            window = left[at : at + len(parts)]
            if window == parts or (window[:-1] == parts[:-1] and window[-1] == parts[-1] + "s"):
                left[at : at + len(parts)] = [_BREAK]
            at += 1
    return left


def _words_said(heard: Sequence[str]) -> int:
    return sum(word != _BREAK for word in heard)


@lru_cache(4096)
def _own_words(predicate: str, language: str) -> frozenset[str]:
    """Of SWORN_TO, "sworn"."""
    stop = vocabulary_of(language).stop
    spelled = words(predicate.replace("_", " "))
    return frozenset(word.full for word in spelled if word.full not in stop)


TOOK_PART: Final = "PARTICIPATED_IN"
_LOCATED_AT: Final = "LOCATED_AT"
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
    return is_asked and (predicate != _LOCATED_AT or _stands_right(fact, entity, asked))


def _stands_right(fact: Fact, entity: EntityId, asked: AskedPredicates) -> bool:
    side = asked.side_of(fact.claim.predicate)
    return side == "either" or entity == (fact.claim.subject if side == "subject" else fact.claim.object)


def _rather(
    relations: list[tuple[Fact, Entity]], is_better: Callable[[tuple[Fact, Entity]], bool]
) -> list[tuple[Fact, Entity]]:
    return [each for each in relations if is_better(each)] or relations


def _is_secret(fact: Fact) -> bool:
    return fact.visibility.scope in ("secret", "hidden")
