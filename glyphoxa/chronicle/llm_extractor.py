"""Extraction with a language model in addition to the rules.

The rules read first. The model is asked once for what they missed, and its answer is merged: each name is looked up
before a new one is added, and each claim is checked. A rejected part is reported with a reason that never quotes the
transcript.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field, SkipValidation

from glyphoxa.chat.asker import ModelAsker, QuestionLimits
from glyphoxa.chat.questions import JsonSchema, ModelAnswer, ModelQuestion, OneOf, Unparseable, take_each
from glyphoxa.chronicle.effects import MAX_NAME_CHARS, MAX_VALUE_CHARS, folded
from glyphoxa.chronicle.llm_task import (
    ClaimRejected,
    LineNumber,
    VisibleLines,
    numbered,
    numbered_line,
    visible_lines,
)
from glyphoxa.chronicle.rules_extractor import RulesExtractor, meant_in
from glyphoxa.chronicle.statements import FACT_KINDS, KIN_BY_TYPE, RELATION_TYPES, fits, least_of, verbatim
from glyphoxa.chronicle.talk import (
    STORED,
    ExtractedEntity,
    ExtractedFact,
    ExtractedRelation,
    Extraction,
    Kind,
    KnownEntity,
    NumberedUtterance,
    SceneTalk,
)
from glyphoxa.chronicle.utterance_nodes import said_in_words
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, ENTITY_TYPES, NodeType, Schema
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, UtteranceId
from glyphoxa.language.language_data import texts
from glyphoxa.language.prompt_quotes import in_one_line
from glyphoxa.language.text import Text
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import Gazetteer

RELATIONS: Final = tuple(
    each for each in RELATION_TYPES if each not in ("RELATED_TO", "KNOWS", "COMPANION_OF", "EMPLOYER_OF")
)
"""Without vague ones and the reverse of another."""
CONFIDENCE: Final = {"certain": 0.65, "likely": 0.55, "unsure": 0.4}
"""Words instead of numbers, because a model answers 0.9 to everything. Even "certain" needs review by the DM, unless
`memory.auto_accept` is lower.
"""
_NOT_ASKED: Final = ("aliases", "summary")
"""Fields that are filled without the model: another name of an entity, and the words of an event."""
_MAX_BEFORE: Final = 8
"""Lines before a stretch that resolve its pronouns."""


def _line(longest: int) -> AfterValidator:
    """Accept text of up to this many characters, in one line."""

    def check(text: str) -> str:
        line = in_one_line(text)
        if not 0 < len(line) <= longest or not line.isprintable() or not fold(line):
            raise ValueError("it is no line of text")
        return line

    return AfterValidator(check)


Name: TypeAlias = Annotated[str, _line(MAX_NAME_CHARS)]
Evidence: TypeAlias = Annotated[list[LineNumber], Field(json_schema_extra={"maxItems": 3})]
Confidence: TypeAlias = Annotated[str, OneOf(tuple(CONFIDENCE))]


class FoundEntity(ModelAnswer):
    """An entity that a model found. Its name must be in the lines."""

    name: Name
    type: Name


class FoundRelation(ModelAnswer):
    """A relation that a model found, between two names."""

    source: Name
    type: Annotated[str, OneOf(RELATIONS)]
    target: Name
    lines: Evidence
    confidence: Confidence


class FoundFact(ModelAnswer):
    """Something that a model found about a name."""

    subject: Name
    about: Name
    value: Annotated[str, _line(MAX_VALUE_CHARS)]
    lines: Evidence
    confidence: Confidence


class TalkFindings(ModelAnswer):
    """An answer of a model. Each part is validated when it is merged, so that a bad one costs no other."""

    entities: list[SkipValidation[FoundEntity]]
    relationships: list[SkipValidation[FoundRelation]]
    facts: list[SkipValidation[FoundFact]]


@dataclass(frozen=True, slots=True)
class TalkQuestion:
    """The question to a model about a stretch.

    Attributes:
        lines: The numbered lines; the first is number 1.
        max_found: Limit for each kind.
        types: Types of entities that take part, with what extraction fills for each.
        n_left: Lines of the stretch that did not fit.
    """

    prompt: ModelQuestion[TalkFindings]
    talk: SceneTalk
    lines: tuple[NumberedUtterance, ...]
    max_found: int
    types: Mapping[str, NodeType]
    n_left: int = 0


def subjects_of(types: Mapping[str, NodeType]) -> tuple[str, ...]:
    """Return what a fact may be about if these types take part: the usual kinds, and their fields."""
    fields = (field for node in types.values() for field in node.fields if field not in _NOT_ASKED)
    return tuple(dict.fromkeys((*FACT_KINDS, *fields)))


def question_about(talk: SceneTalk, limits: QuestionLimits, schema: Schema = DEFAULT_SCHEMA) -> TalkQuestion | None:
    """Return the prompt, without out-of-character and off-record lines. None: no line to learn from is left.

    Types that do not take part in this stretch are not in it, so that the model cannot name them.
    """
    said, before = visible_lines(talk.said), visible_lines(talk.before[-_MAX_BEFORE:])
    sizes = [len(numbered_line(0, each)) + 3 for each in (*said, *reversed(before))]
    n_shown = sum(size <= limits.max_chars for size in accumulate(sizes))
    n_fit = min(n_shown, len(said))
    if talk.is_context(each.utterance.id for each in said[:n_fit]):
        return None
    n_before = n_shown - n_fit
    lines = (*before[len(before) - n_before :], *said[:n_fit])
    text, prompt = numbered(lines), texts("tasks", talk.language).value("extraction")
    types = schema.taking_part(range(said[0].ordinal, said[-1].ordinal + 1))
    context = [str(number) for number, each in enumerate(lines, start=1) if talk.is_context([each.utterance.id])]
    if context:
        text = f"{prompt['context'].format(lines=', '.join(context))}\n{text}"
    # At the end, so that a prompt cache keeps the rest.
    own = {name: node for name, node in types.items() if node != DEFAULT_SCHEMA.of_entity(name)}
    text = "\n".join((text, *(_told(name, node, prompt) for name, node in own.items())))
    question = ModelQuestion(TalkFindings, prompt["system"], text, _limits(len(lines), limits, types))
    return TalkQuestion(question, talk, lines, limits.max_found, types, len(said) - n_fit)


def _told(name: str, node: NodeType, prompt: Mapping[str, str]) -> str:
    """Describe a type to the model, in one line."""
    fields = ", ".join(field for field in node.fields if field not in _NOT_ASKED)
    told = prompt["fields"].format(type=name, fields=fields) if fields else prompt["type"].format(type=name)
    return in_one_line(f"{told} {node.instructions}".strip())


def _limits(n_lines: int, limits: QuestionLimits, types: Mapping[str, NodeType]) -> Mapping[str, JsonSchema]:
    """Return the limits of `TalkFindings` in one question."""
    found: dict[str, JsonSchema] = {each: {"maxItems": limits.max_found} for each in TalkFindings.model_fields}
    found |= {f"{each}.*.lines.*": {"maximum": n_lines} for each in ("relationships", "facts")}
    found |= {"entities.*.type": {"enum": [*types]}, "facts.*.about": {"enum": [*subjects_of(types)]}}
    if limits.max_text_chars is not None:
        texts_of = {"entities": ("name",), "relationships": ("source", "target"), "facts": ("subject", "value")}
        longest = {"maxLength": limits.max_text_chars}
        found |= {f"{each}.*.{field}": longest for each, fields in texts_of.items() for field in fields}
    return found


@dataclass(frozen=True, slots=True)
class LlmExtractor:
    """An `Extractor` that adds the findings of a model to those of the rules.

    If the model is unreachable, late or returns an invalid answer, only its findings are missing.

    Args:
        nobody: See `RulesExtractor`.
        schema: The campaign's.
    """

    rules: RulesExtractor
    asking: ModelAsker
    nobody: Iterable[str] = ()
    schema: Schema = DEFAULT_SCHEMA

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        found = await self.rules.extract(talk, known)
        question = question_about(talk, self.asking.limits, self.schema)
        if question is None:
            return found
        if question.n_left:
            found = noted(found, f"{question.n_left} lines of the stretch did not fit into the prompt")
        try:
            answer = await self.asking.ask(question.prompt)
        except (Unavailable, Unparseable) as error:
            return noted(found, f"read by rules only: {error}")
        before = KnownBefore(known, self.rules.names, found, frozenset(map(folded, self.nobody)))
        return await asyncio.to_thread(lambda: Merging(question, before).merge(answer))


def noted(found: Extraction, why: str) -> Extraction:
    """Add a reason why something was rejected."""
    return replace(found, refused=(*found.refused, why))


_MAX_LINES: Final = 6
"""A claim with more lines of evidence is a summary."""
_OF_SEVERAL: Final = ("occupation", "status", "price")
"""Facts that may concern several people in one line. Others, such as a promise, have one subject."""
_MIN_BY_SOUND: Final = 5
_ANOTHER: Final = "somebody else of this name is meant"
_KIN: Final[dict[str, frozenset[str]]] = {
    type_: frozenset(fold(word) for each in both for word in KIN_BY_TYPE[each])
    for both in (("PARENT_OF", "CHILD_OF"), ("SIBLING_OF",), ("MARRIED_TO",), ("MENTOR_OF", "APPRENTICE_OF"))
    for type_ in both
}
"""Words required as evidence of a relation, because small models connect everyone who talks."""


@dataclass(frozen=True, slots=True)
class KnownBefore:
    """The knowledge before the model's answer, from the campaign and the rules.

    Attributes:
        names: Index of `entities` by sound.
        nobody: Normalised names of speakers outside the story.
    """

    entities: Sequence[KnownEntity]
    names: Gazetteer
    found: Extraction
    nobody: frozenset[str] = frozenset()


class Merging:
    """Merges one answer into the findings so far.

    Args:
        is_exact: See `VisibleLines`.
    """

    def __init__(self, question: TalkQuestion, known: KnownBefore, *, is_exact: bool = False) -> None:
        self._known = known
        self._asked = question
        self._heard = VisibleLines(question.lines, question.talk.language, is_exact=is_exact)
        self._only_meant: set[str] = set()
        """Keys that only claims mention. They are dropped if no claim remains."""
        self._by_id = {entity.id: entity for entity in known.entities}
        self._entities = {each.key: each for each in known.found.entities}
        self._relations = list(known.found.relations)
        self._facts = list(known.found.facts)
        self._refused = list(known.found.refused)
        self._key_by_name: dict[str, str] = {}
        for each in known.found.entities:
            self._call(each)

    def merge(self, answer: TalkFindings) -> Extraction:
        """Return the findings of both, with the reasons for rejected parts."""
        most, refused = self._asked.max_found, self._refused
        refused += take_each(answer.entities, FoundEntity, self._entity, what="the model's entities", most=most)
        refused += take_each(
            answer.relationships, FoundRelation, self._relation, what="the model's relationships", most=most
        )
        refused += take_each(answer.facts, FoundFact, self._fact, what="the model's facts", most=most)
        used = {key for one in self._relations for key in (one.source, one.target)}
        used.update(one.subject for one in self._facts)
        entities = tuple(each for key, each in self._entities.items() if key in used or key not in self._only_meant)
        return Extraction(entities, tuple(self._relations), tuple(self._facts), tuple(self._refused))

    def _entity(self, found: FoundEntity) -> None:
        name = found.name
        if found.type not in self._asked.types:
            raise ClaimRejected("its type is not requested")
        key = self._key(name, found.type)
        if key is not None:
            is_new = self._entities[key].known is None
            if is_new and found.type not in ENTITY_TYPES:  # a type that the rules do not know
                self._entities[key] = replace(self._entities[key], type=found.type)
            return
        if folded(name) in self._known.nobody:
            return
        lines = self._heard.naming(name)
        if not lines:
            raise ClaimRejected("nobody said this name")
        if not self._heard.writes(name):
            raise ClaimRejected("these words are not used as a name")
        self._add(ExtractedEntity(f"new:{fold(name)}", name, found.type, _ids(lines), CONFIDENCE["certain"]))

    def _relation(self, found: FoundRelation) -> None:
        type_, source, target = found.type, self._end(found.source), self._end(found.target)
        if source == target:
            raise ClaimRejected("an entity cannot be related to itself")
        rests_on = self._named_in(self._lines(found.lines), source, target)
        words = {word for line in rests_on for word in Text.of(line.utterance.text).folded}
        if type_ in _KIN and _KIN[type_].isdisjoint(words):
            raise ClaimRejected(f"no word of its evidence says {type_}")
        if any(
            {one.source, one.target} == {source, target} and not set(_ids(rests_on)).isdisjoint(one.evidence)
            for one in self._relations
        ):
            return
        sure = CONFIDENCE[found.confidence]
        names = [self._names_of(self._entities[key]) for key in (source, target)]
        kind, sentence = self._heard.kind_of(rests_on, names)
        if kind is Kind.NOW:
            self._relations.append(ExtractedRelation(source, type_, target, _ids(rests_on), sure, is_inferred=True))
        else:
            self._other_kind(kind, source, sentence, rests_on, sure)

    def _fact(self, found: FoundFact) -> None:
        if found.about not in subjects_of(self._asked.types):
            raise ClaimRejected("what it is about is not requested")
        about, value, subject = found.about, found.value, self._end(found.subject)
        rests_on = self._named_in(self._lines(found.lines), subject)
        self._heard.check(value, rests_on)
        # The rules' version of the same sentence is kept verbatim.
        same = {one.subject for one in self._facts if self._is_same(one, about, value, rests_on)}
        if subject in same:
            return
        if same and about not in _OF_SEVERAL:
            raise ClaimRejected("the same words say it about somebody else")
        sure = CONFIDENCE[found.confidence]
        names = [self._names_of(self._entities[subject])]
        kind, sentence = self._heard.kind_of(rests_on, names, value, least=least_of(about))
        if fits(about, kind):
            self._facts.append(ExtractedFact(subject, about, value, _ids(rests_on), sure, is_inferred=True))
        else:
            self._other_kind(kind, subject, sentence, rests_on, sure)

    def _other_kind(
        self, kind: Kind, subject: str, sentence: str, rests_on: Sequence[NumberedUtterance], sure: float
    ) -> None:
        """Add the sentence as a fact of its kind, unless the rules did.

        Raises:
            ClaimRejected: Statements of this kind are not stored.
        """
        if kind not in STORED:
            raise ClaimRejected("its evidence does not say that it is so")
        value = verbatim(sentence)
        if all((one.subject, one.about) != (subject, kind) or value not in one.value for one in self._facts):
            quoted = said_in_words(rests_on[-1].utterance.speaker_name, value, self._asked.talk.language)
            self._facts.append(ExtractedFact(subject, str(kind), quoted, _ids(rests_on), sure, kind))

    def _is_same(self, one: ExtractedFact, about: str, value: str, rests_on: Sequence[NumberedUtterance]) -> bool:
        if set(_ids(rests_on)).isdisjoint(one.evidence):
            return False
        return one.about == about or folded(value) in folded(one.value) or folded(one.value) in folded(value)

    def _end(self, name: str) -> str:
        """Return the key of a named entity.

        Raises:
            ClaimRejected: No known or introduced entity has this name.
        """
        if folded(name) in self._known.nobody:
            raise ClaimRejected("this is no part of the story")
        there = set(self._entities)
        key = self._key(name)
        if key is None:
            raise ClaimRejected("its subject has no name")
        if key not in there:
            self._only_meant.add(key)
        return key

    def _key(self, name: str, type_: str | None = None) -> str | None:
        """Return the key of an entity with this name or sound; None for none."""
        if (key := self._key_by_name.get(folded(name))) is not None:
            return key
        found = next((one for one in self._known.entities if folded(name) in map(folded, one.names)), None)
        if found is None and (spelled := self._known.names.spelled(name)) is not None and not spelled.is_shared:
            found = self._by_id.get(spelled.entity_id)
        found = found or self._sounding_like(fold(name), type_)
        lines = () if found is None else self._naming(found.id, name)
        if found is not None and not lines and self._heard.naming(name):
            raise ClaimRejected(_ANOTHER)
        if found is None or not lines:
            return None
        if found.id in self._entities:
            self._key_by_name[folded(name)] = found.id
        else:
            sure = CONFIDENCE["certain"]
            self._add(ExtractedEntity(found.id, found.name, found.type, _ids(lines), sure, (), found.id), name)
        return str(found.id)

    def _naming(self, entity: EntityId | None, *names: str) -> list[NumberedUtterance]:
        """Return the lines with one of these names of an entity, without those in which it is somebody else's."""

        def is_meant(line: NumberedUtterance) -> bool:
            found = list(meant_in(line.utterance.text, self._known.names, self._by_id))
            claimed = {one.entity_id for mention, *_ in found for one in self._known.names.claims_of(mention.name)}
            return entity not in claimed or any(meant == entity for _, meant, _ in found)

        return [line for line in self._heard.naming(*names) if is_meant(line)]

    def _sounding_like(self, letters: str, type_: str | None) -> KnownEntity | None:
        alike = self._known.names.sounding_like(letters) if len(letters) >= _MIN_BY_SOUND else ()
        found = (self._by_id.get(name.entity_id) for name in alike)
        return next((one for one in found if one is not None and type_ in (None, one.type)), None)

    def _add(self, entity: ExtractedEntity, *also: str) -> None:
        self._entities[entity.key] = entity
        self._call(entity, *also)

    def _call(self, entity: ExtractedEntity, *also: str) -> None:
        for name in (*self._names_of(entity), *also):
            self._key_by_name.setdefault(folded(name), entity.key)

    def _lines(self, numbers: Sequence[int]) -> list[NumberedUtterance]:
        if len(numbers) > _MAX_LINES:
            raise ClaimRejected(f"its evidence has {len(numbers)} lines")
        lines = self._heard.cited(numbers)
        if self._asked.talk.is_context(_ids(lines)):
            raise ClaimRejected("its evidence is context only")
        return lines

    def _named_in(self, rests_on: Sequence[NumberedUtterance], *keys: str) -> list[NumberedUtterance]:
        """Return the evidence, extended by the nearest line that names each entity of the claim.

        Somebody who did not hear that line does not know who "he" is.
        """
        lines = {line.ordinal: line for line in rests_on}
        for key in keys:
            evidence = set(self._entities[key].evidence)
            naming = [line for line in self._heard.lines if line.utterance.id in evidence]
            names = self._names_of(self._entities[key])
            named = self._naming(self._entities[key].known, *names)
            if any(line in rests_on and line not in named for line in self._heard.naming(*names)):
                raise ClaimRejected(_ANOTHER)
            naming += [line for line in named if line not in naming]
            if any(line.ordinal in lines for line in naming):
                continue
            if not naming:
                raise ClaimRejected("no available line names its entity")
            last = max(lines)
            nearest = min(naming, key=lambda line: (line.ordinal > last, abs(line.ordinal - last)))
            lines[nearest.ordinal] = nearest
        return [lines[ordinal] for ordinal in sorted(lines)]

    def _names_of(self, entity: ExtractedEntity) -> tuple[str, ...]:
        known = () if entity.known is None else self._by_id[entity.known].names
        return (entity.name, *entity.aliases, *known)


def _ids(lines: Iterable[NumberedUtterance]) -> tuple[UtteranceId, ...]:
    return tuple(line.utterance.id for line in lines)
