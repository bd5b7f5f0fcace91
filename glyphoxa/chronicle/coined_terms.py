"""Collects the terms that a table coins, and proposes a meaning of each for the DM's review if the talk has one.

A term is a name that nothing shows to be a person, a place, a group or a thing ("the Geometers"), a word in capitals
("ORACLE") or with capitals inside ("GeoNet"). It counts when it is used twice, or once by the DM. Its meaning is a fact
of an entity of the type `concept`, so the review queue accepts, corrects or rejects it like every other fact.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from loguru import logger
from pydantic import Field

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import ModelAnswer, ModelQuestion, Unparseable
from glyphoxa.chronicle.effects import folded, is_stated_of
from glyphoxa.chronicle.llm_task import ClaimRejected, LineNumber, VisibleLines, numbered, visible_lines
from glyphoxa.chronicle.ports import ChronicleLog, pages_of
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.statements import sentences_of
from glyphoxa.chronicle.talk import (
    NOT_TOLD,
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    KnownEntity,
    NumberedUtterance,
    SceneTalk,
)
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import MEANING
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.language_data import texts
from glyphoxa.language.new_names import CONCEPT, name_finder
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import Gazetteer

MAX_WORDS: Final = 10
"""Limit of a meaning."""
_MAX_LINES: Final = 6
"""Lines that a model is shown: the first ones, which introduce the term."""
_USES: Final = 2
_MOST: Final = 10
"""Terms of one reading. The others follow with the next one."""
_PROPOSED: Final = 0.3
"""Confidence of a meaning, below every useful threshold of acceptance: the DM decides."""


class TermMeaning(ModelAnswer):
    """An answer of a model about a term."""

    meaning: str
    lines: list[LineNumber] = Field(json_schema_extra={"maxItems": _MAX_LINES})


@dataclass(frozen=True, slots=True)
class _Use:
    """A line that uses a name.

    Attributes:
        is_term: It looks like a term there.
        term: The known term that has this name.
    """

    name: str
    said: NumberedUtterance
    is_term: bool
    term: EntityId | None = None


class CoinedTerms:
    """The terms of one campaign, collected from one session at a time.

    Each reading counts the uses in the whole session; pages that have not changed are not read again. What was proposed
    is in the world, so nothing is proposed twice.

    Args:
        asking: The model that writes meanings. Without one, and if the lines do not support its answer, the meaning is
            the first short sentence about the term. If there is none either, the term has no meaning.
    """

    def __init__(self, campaign: Campaign, log: ChronicleLog, *, asking: ModelAsker | None = None) -> None:
        self._campaign = campaign.id
        self._language = campaign.language
        self._forbids = topics_of(campaign).forbids
        self._log = log
        self._explained = frozenset(folded(term) for term in campaign.glossary)
        self._narrators = frozenset(fold(player.name) for player in campaign.players if player.dm)
        self._asking = asking
        self._prompt = texts("tasks", campaign.language).value("glossary")
        self._names: Gazetteer | None = None
        self._counted: dict[tuple[NumberedUtterance, ...], list[_Use]] = {}
        """The uses in each page of the session that was read last."""
        self._asked: dict[str, tuple[NumberedUtterance, ...]] = {}
        """The lines with which the model was asked about a term that has no meaning."""

    async def due(self, session: SessionId, *, up_to: int) -> AsyncIterator[tuple[SceneTalk, Extraction]]:
        """Yield each new term with its proposed meaning, and known ones with more hearers; each with its lines.

        A model that is unreachable or paused is asked again at the next reading.

        Raises:
            Unavailable: The database is unreachable.
        """
        known, counted = await self._log.known(self._campaign), dict[tuple[NumberedUtterance, ...], list[_Use]]()
        async for page in pages_of(self._log, self._campaign, session, up_to=up_to):
            # A table may be playing on the same loop.
            is_new = page.said not in self._counted
            uses = await asyncio.to_thread(self._uses_in, page.said, known) if is_new else self._counted[page.said]
            counted[page.said] = uses
        self._counted = counted
        uses = [use for page in counted.values() for use in page]
        for term in known:
            if lines := tuple(use.said for use in uses if use.term == term.id and _is_news(term, use.said)):
                talk = SceneTalk(self._campaign, session, self._language, lines)
                yield talk, _extraction(term.name, lines, term, None)
        by_name = {folded(name): entity for entity in reversed(known) for name in entity.names}
        coined = [(name, lines, by_name.get(folded(name))) for name, lines in self._coined(uses)]
        # A new name that is only asked about or denied is not stored.
        storable = (one for one in coined if (is_stated_of(*one[:2]) if one[2] is None else _is_open(one[2])))
        for name, lines, entity in islice(storable, _MOST):
            if await self._is_withheld(lines[:_MAX_LINES]):
                continue
            with contextlib.suppress(Unavailable):
                meaning = await self._meaning(name, lines[:_MAX_LINES])
                if entity is None or meaning:
                    talk = SceneTalk(self._campaign, session, self._language, lines)
                    yield talk, _extraction(name, lines, entity, meaning)

    async def _is_withheld(self, lines: Sequence[NumberedUtterance]) -> bool:
        """Return whether one of these was retracted or withheld since it was counted. No model may read it."""
        for each in lines:
            session, before = each.utterance.session_id, each.ordinal - 1
            page = await self._log.unread(self._campaign, session, after=before, limit=1)
            if page is None or all(said.ordinal != each.ordinal for said in page.said):
                return True
        return False

    def _uses_in(self, page: Sequence[NumberedUtterance], known: Sequence[KnownEntity]) -> list[_Use]:
        self._names = names = names_of(known, self._language, self._names)
        terms = {entity.id: entity for entity in known if entity.type == CONCEPT and entity.is_of_talk}
        named = {fold(name) for entity in known for name in entity.names}
        nobody = {fold(each.utterance.speaker_name) for each in page} - named | self._narrators
        uses: list[_Use] = []
        for said in (each for each in visible_lines(page) if not self._forbids(each.utterance.text)):
            text, taken = said.utterance.text, []
            for mention in names.mentions(text):
                term = terms.get(mention.name.entity_id)
                if term is not None and not text[mention.start].isupper():
                    continue
                taken.append((mention.start, mention.end))
                uses += [_Use(term.name, said, is_term=True, term=term.id)] if term is not None else []
            new = name_finder(self._language).terms_in(text, taken=taken, nobody=nobody)
            uses += (_Use(each.text, said, is_term=each.type == CONCEPT) for each in new)
        return uses

    def _coined(self, uses: Iterable[_Use]) -> Iterator[tuple[str, tuple[NumberedUtterance, ...]]]:
        """Yield the names that are terms, with the lines that use them."""
        uses_of: defaultdict[str, list[_Use]] = defaultdict(list)
        for use in uses:
            # A model invents an NPC's words.
            if use.said.utterance.npc_id is None and folded(use.name) not in self._explained:
                uses_of[fold(use.name)].append(use)
        for same in uses_of.values():
            lines = tuple({use.said.ordinal: use.said for use in same}.values())
            of_dm = (use for use in same if use.is_term and fold(use.said.utterance.speaker_name) in self._narrators)
            is_used = len(lines) >= _USES or any(of_dm)
            if is_used and 2 * sum(use.is_term for use in same) >= max(len(same), 2):
                yield same[0].name, lines

    async def _meaning(self, term: str, lines: tuple[NumberedUtterance, ...]) -> _Meaning | None:
        """Return the meaning; None for none.

        Raises:
            Unavailable: The model cannot be asked now.
        """
        if self._asking is not None and self._asked.get(term) != lines:
            try:
                system, user = self._prompt["system"].format(words=MAX_WORDS), self._prompt["term"].format(term=term)
                answer = await self._asking.ask(ModelQuestion(TermMeaning, system, f"{user}\n{numbered(lines)}"))
                return _supported(answer, term, VisibleLines(lines, self._language))
            except Unparseable as why:
                logger.debug("rejected: the model's meaning of a term: {}", why)
            self._asked[term] = lines
        return next(_sentences_about(term, lines), None)


_Meaning: TypeAlias = tuple[str, tuple[UtteranceId, ...], bool]
"""With its evidence, and whether a model wrote it."""


def _sentences_about(term: str, lines: Iterable[NumberedUtterance]) -> Iterator[_Meaning]:
    """Yield short statements that begin with the term."""
    for each in lines:
        for sentence in sentences_of(each.utterance.text, ()):
            is_short = len(sentence.text.split()) <= MAX_WORDS
            if sentence.told not in NOT_TOLD and is_short and folded(sentence.text).startswith(f"{folded(term)} "):
                yield sentence.text, (each.utterance.id,), False


def _is_open(entity: KnownEntity) -> bool:
    """Return whether a known entity is a term of the talk whose meaning nobody has proposed yet."""
    return entity.type == CONCEPT and entity.is_of_talk and not entity.is_defined


def _is_news(term: KnownEntity, said: NumberedUtterance) -> bool:
    """Return whether somebody who heard this did not know the term, unless the DM hides it."""
    known_to = term.visibility
    return known_to.scope != "hidden" and not all(map(known_to.is_visible_to, said.utterance.witnesses))


def _supported(answer: TermMeaning, term: str, lines: VisibleLines) -> _Meaning:
    """Return a model's meaning.

    Raises:
        ClaimRejected: Its lines do not support it.
    """
    meaning = " ".join(answer.meaning.split())
    if len(meaning.split()) > MAX_WORDS or folded(meaning) == folded(term) or not meaning.isprintable():
        raise ClaimRejected("it is no short meaning")
    return meaning, tuple(line.utterance.id for line in lines.supporting(meaning, answer.lines)), True


def _extraction(
    name: str, lines: Sequence[NumberedUtterance], entity: KnownEntity | None, meaning: _Meaning | None
) -> Extraction:
    key = f"new:{fold(name)}" if entity is None else str(entity.id)
    known, uses = None if entity is None else entity.id, tuple(each.utterance.id for each in lines)
    term = ExtractedEntity(key, name, CONCEPT, uses, _PROPOSED, known=known)
    if meaning is None:
        return Extraction((term,))
    value, rests_on, is_inferred = meaning
    return Extraction((term,), (), (ExtractedFact(key, MEANING, value, rests_on, _PROPOSED, is_inferred=is_inferred),))
