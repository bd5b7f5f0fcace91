"""Select the facts that a question asks for, from the facts that an NPC knows.

Visibility and validity were applied before. Two steps follow: which entities the question names (`World.by_name`), and
which facts about them it asks for (`facts_asked`). "Who owns the Rusty Tankard?" gets its owner and not its
description. A question that asks for nothing in particular, or for something unknown, selects all facts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, Literal

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.language.language_data import lexicon, primary_language, vocabulary_of
from glyphoxa.language.relations import OTHER_END, RelationType, asked_types, known_type
from glyphoxa.language.text import Text
from glyphoxa.world.graph import Known

# -- asked predicates
#
# Which relation or attribute a question asks for: "who owns", "where is", "whose daughter".
#
# Each language has question phrases. Other relations and attributes of a campaign are found by their own words ("What
# is Marek's occupation?", "Who is he sworn to?" for SWORN_TO). Words inside names do not count: a question about
# "Owner's Rest" does not ask for an owner. In an unknown language, only own words count.

Side = Literal["subject", "object", "either"]
"""Position of the named entity in the claim. In a question for the owner of the inn, the inn is the object."""

SHORT_ASK: Final = 12
"""Most words of a factual question. A longer text contains more than a question."""


@dataclass(frozen=True, slots=True)
class FactsAsked:
    """The predicates that a question asks for, and the facts about an entity that answer it.

    Attributes:
        sides: The requested predicates, in capitals, each with the position of the named entity.
        is_short: The text is a question and contains little else, so only the answer is returned.
        sex: 1 if it asks for a man ("brother"), 2 for a woman.
        answer: The entity with the facts that answer the question, without secrets, which are in the identity of those
            who know them. None if the question selects all facts.
    """

    sides: Mapping[str, Side]
    is_short: bool
    sex: int = 0
    answer: Known | None = None

    def side_of(self, predicate: str) -> Side | None:
        return self.sides.get(predicate.upper())


def asked_predicates(
    question: str, *, names: Iterable[str], predicates: Iterable[str], language: str = "en"
) -> FactsAsked:
    """Find the predicates that a question asks for.

    Args:
        names: Names of the entities in the question; their words are not searched for predicates.
        predicates: All predicates of these entities.
    """
    heard = _without_names(Text.of(question).full, names)
    sides: dict[str, Side] = {}
    sex = 0
    asks = _asks_of(primary_language(language))
    at = 0
    while at < len(heard):
        parts, asked, of_sex = _longest_at(heard, at, asks)
        _ask(sides, asked)
        sex = sex or of_sex
        at += len(parts)
    for predicate in predicates:
        own = _own_words(predicate, language)
        if predicate.upper() in sides:
            continue
        if (side_of_it := _side_of_known(predicate, sides, sex, asked_types(language))) is not None:
            sides[predicate.upper()] = side_of_it
        elif own and own <= set(heard):
            sides[predicate.upper()] = "either"
    n_words = sum(word != _BREAK for word in heard)
    return FactsAsked(sides, n_words <= SHORT_ASK, sex)


_TURNED: Final[Mapping[Side, Side]] = {"subject": "object", "object": "subject", "either": "either"}


def _ask(sides: dict[str, Side], asked: Mapping[str, Side]) -> None:
    """Add predicates; a relation is added from both of its ends."""
    for predicate, side in asked.items():
        sides.setdefault(predicate.upper(), side)
    for predicate, side in asked.items():
        other = OTHER_END.get(predicate.upper())
        if other == predicate.upper():
            sides[other] = "either"
        elif other is not None:
            sides.setdefault(other, _TURNED[side])


def _side_of_known(predicate: str, asked: Mapping[str, Side], sex: int, nouns: _Nouns) -> Side | None:
    """Return the side of a predicate with another spelling: BROTHER_OF, if the question asks for SIBLING_OF.

    Args:
        sex: Sex of the person that the question asks for. A sister's brother is not her sister.
    """
    known = known_type(predicate)
    if known is None:  # an attribute such as "father"
        named = nouns.get(Text.of(predicate).full, ())
        return "either" if any(each.type in asked and sex in (0, each.sex) for each in named) else None
    if (side := asked.get(known.type)) is None:
        return None
    if sex and known.sex and sex != known.sex and side != "subject":
        side = "subject"
    return _TURNED[side] if known.is_turned else side


_Asks = tuple[tuple[str, ...], Mapping[str, Side], int]
"""Words of a question, the predicates that they ask for, and the sex of the person."""
_Nouns = Mapping[tuple[str, ...], Sequence[RelationType]]
_BREAK: Final = "@"
"""Placeholder for a name."""


def _longest_at(heard: Sequence[str], at: int, asks: Mapping[str, Sequence[_Asks]]) -> _Asks:
    for known in asks.get(heard[at], ()):
        if tuple(heard[at : at + len(known[0])]) == known[0]:
            return known
    return (heard[at],), {}, 0


@cache
def _asks_of(language: str) -> Mapping[str, Sequence[_Asks]]:
    """Return phrases by their first word, the longest first, and nouns after them."""
    listed = lexicon("recall", language).value("asks") or ()
    phrases: list[_Asks] = [
        (Text.of(phrase).full, dict.fromkeys(predicates.split(", "), side), 0)
        for same, side, predicates in listed
        for phrase in same.split("|")
    ]
    nouns: list[_Asks] = [
        (noun, dict.fromkeys((each.type for each in types), "object"), types[0].sex)
        for noun, types in asked_types(language).items()
    ]
    found: dict[str, list[_Asks]] = {}
    for asks in (phrases, nouns):
        for each in sorted(asks, key=lambda ask: -len(ask[0])):
            found.setdefault(each[0][0], []).append(each)
    return found


def _without_names(heard: Sequence[str], names: Iterable[str]) -> list[str]:
    left = f" {' '.join(heard)} "
    for name in filter(None, (" ".join(Text.of(name).full) for name in sorted(names, key=len, reverse=True))):
        for form in (name, f"{name}s"):
            left = left.replace(f" {form} ", f" {_BREAK} ")
    return left.split()


@lru_cache(4096)
def _own_words(predicate: str, language: str) -> frozenset[str]:
    """Return the content words of a predicate: "sworn" for SWORN_TO."""
    return frozenset(Text.of(predicate).full) - vocabulary_of(language).stop


LINKED_TO: Final = "LINKED_TO"
"""Relation of imports: a document links to another one, for an unknown reason."""
_LOCATED_AT: Final = "LOCATED_AT"


def facts_asked(known: Known, question: str, *, named: Collection[EntityId] = (), language: str = "en") -> FactsAsked:
    """Return the facts about an entity that a question asks for.

    Facts in the right direction come before others ("who owns the inn" does not ask what the inn owns). Facts between
    two named entities come before those with unnamed ones. A rule that would leave nothing is not applied, except
    for the place of something.

    Args:
        known: The entity and its facts, as the viewer may know them.
        named: All entities in the question.
        language: The language of the question.
    """
    relations = [each for each in known.relations if not is_secret(each[0])]
    attributes = [fact for fact in known.attributes if not is_secret(fact)]
    asked_of = (known.entity, *(other for _, other in relations if other.id in named))
    names = {name for entity in asked_of for name in entity.names}
    predicates = {fact.claim.predicate for fact in (*attributes, *(fact for fact, _ in relations))}
    asked = asked_predicates(question, names=names, predicates=predicates, language=language)
    attributes = [fact for fact in attributes if asked.side_of(fact.claim.predicate)]
    relations = [each for each in relations if _may_answer(each[0], known.entity.id, asked)]
    if not attributes and not relations:
        return asked
    relations = _preferred(relations, lambda each: _fits_side(each[0], known.entity.id, asked))
    relations = _preferred(relations, lambda each: each[1].id in named)
    return replace(asked, answer=replace(known, attributes=tuple(attributes), relations=tuple(relations)))


def _may_answer(fact: Fact, entity: EntityId, asked: FactsAsked) -> bool:
    """Return whether the question asks for this fact. "Who is at the ferry?" does not ask where the ferry is."""
    predicate = fact.claim.predicate
    is_asked = asked.side_of(predicate) is not None
    return is_asked and (predicate != _LOCATED_AT or _fits_side(fact, entity, asked))


def _fits_side(fact: Fact, entity: EntityId, asked: FactsAsked) -> bool:
    side = asked.side_of(fact.claim.predicate)
    return side == "either" or entity == (fact.claim.subject if side == "subject" else fact.claim.object)


def _preferred(
    relations: list[tuple[Fact, Entity]], is_better: Callable[[tuple[Fact, Entity]], bool]
) -> list[tuple[Fact, Entity]]:
    return [each for each in relations if is_better(each)] or relations


def is_secret(fact: Fact) -> bool:
    """Return whether a fact is secret or hidden."""
    return fact.visibility.scope in ("secret", "hidden")
