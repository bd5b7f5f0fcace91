"""What memory is asked for a tool, in the name of one NPC: it sees what that NPC may see and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.context.own_words import looks_for_own_words, of_others
from glyphoxa.context.wording import recalled_line
from glyphoxa.domain.campaign import BudgetTier, Entity
from glyphoxa.domain.errors import MOST_LISTED, InvalidInput, Unavailable, did_you_mean, nearest
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import EVER, Between, Fact
from glyphoxa.domain.recalled import RecalledTalk
from glyphoxa.npc.budget import GET_SESSION_SUMMARY, QUERY_ENTITIES, SEARCH_FACTS, SEARCH_SESSIONS, TierRule
from glyphoxa.npc.tool_answers import MOST_FOUND, Found, bare, best_match, described, fact_found, found, nothing, when
from glyphoxa.npc.tool_arguments import moment, optional, required
from glyphoxa.recall.entities.facts import asked_predicates
from glyphoxa.transcript.api import PastTalk, SessionSummaries, TalkQuery
from glyphoxa.world.api import FactQuery, KnowledgeGraph, Passage, TalkAround

_Talk = TypeVar("_Talk", bound=RecalledTalk)

_PATIENT_FROM_MS: Final = 1_500
_TALK_FOUND: Final = 5
_LOOKED_AT: Final = 50
"""Facts from which those that a query asks for are taken."""


@dataclass(frozen=True, slots=True)
class MemoryOf:
    """Memory, asked in the name of one NPC.

    Attributes:
        name: The NPC's.
        language: Of the campaign.
        around: None where the graph cannot be asked for talk.
        deep_talk: What is asked for past talk in tier DEEP; None: `talk` as well.
    """

    campaign: CampaignId
    npc: NpcId
    graph: KnowledgeGraph
    talk: PastTalk
    summaries: SessionSummaries | None = None
    name: str = ""
    language: str = "en"
    around: TalkAround | None = None
    deep_talk: PastTalk | None = None


@dataclass(frozen=True, slots=True)
class LookUps:
    """Each takes a call's arguments, and raises `InvalidInput` for wrong ones and a `GlyphoxaError` where memory cannot
    answer.

    Args:
        tier: Of the call; `rule` is what it means.
    """

    memory: MemoryOf
    tier: BudgetTier
    rule: TierRule

    async def answer(self, tool: str, arguments: Mapping[str, object]) -> Found:
        """Of the tool of this name."""
        return await _DOES[tool](self, arguments)

    async def query_entities(self, arguments: Mapping[str, object]) -> Found:
        name, kind = optional(arguments, "name"), optional(arguments, "type")
        relation = optional(arguments, "relation")
        if not name and not kind:
            raise InvalidInput("give at least one of: name, type")
        asked, graph = (self.memory.campaign, self.memory.npc), self.memory.graph
        if not name:
            known = await graph.entities(*asked, of_type=kind)
            return found([{"name": entity.name, "type": entity.type} for entity in known])
        entity, instead = await self._called(name, kind)
        about = await graph.known(*asked, entity.id) if entity is not None else None
        if about is None:
            return nothing(f"nothing called {name!r} is known{instead}")
        return found([described(about, relation)])

    async def _called(self, name: str, kind: str = "") -> tuple[Entity | None, str]:
        """The entity of that name and type, else what to say instead."""
        asked, graph = (self.memory.campaign, self.memory.npc), self.memory.graph
        called = await graph.entities_called(*asked, bare(name))
        entity = best_match(name, [one for one in called if kind in ("", one.type)])
        if entity is not None:
            return entity, ""
        # A name that is spelled otherwise ("STRASSE") has other words than the one that is stored, and is the same.
        like = await graph.entities_like(*asked, bare(name), of_type=kind or None)
        if (entity := best_match(name, like)) is not None:
            return entity, ""
        if near := nearest(name, [one.name for one in like]):
            return None, f"; did you mean {near!r}?"
        # A list of thousands says nothing, and to read them takes longer than everything else.
        few = await graph.entities_if_few(*asked, most=MOST_LISTED, of_type=kind or None)
        return None, "" if few is None else f"; {did_you_mean(name, [one.name for one in few])}"

    async def search_sessions(self, arguments: Mapping[str, object]) -> Found:
        query, around = required(arguments, "query"), optional(arguments, "around")
        note = ""
        if around and self.memory.around is not None and self.rule.looks_around:
            answer, note = await self._search_around(self.memory.around, query, around)
            if answer:
                return found(answer)
        recalled = await self._recall(query, limit=_TALK_FOUND)
        everywhere = found([_said(one) for one in recalled])
        return {**everywhere, "note": note} if note and recalled else everywhere

    async def _search_around(self, talk: TalkAround, query: str, name: str) -> tuple[list[object], str]:
        """What was said, each with whom it speaks of and how far that is related; else why talk is searched
        everywhere instead.
        """
        asked = self.memory.campaign, self.memory.npc
        try:
            entity, instead = await self._called(name)
            if entity is None:
                return [], f"nothing called {name!r} is known, this is from everywhere{instead}"
            passages = await talk.recall_around(*asked, query, around=entity.id, limit=2 * _TALK_FOUND)
            spoken_of = {each for passage in passages for each in passage.entity_ids}
            known = await self.memory.graph.entities_of(*asked, spoken_of) if spoken_of else []
        except Unavailable as away:  # the talk that is in memory needs no database
            logger.debug("talk around an entity is not found now: {}", away)
            return [], f"who is related to {name!r} cannot be looked up now, this is from everywhere"
        names = {one.id: one.name for one in known}
        may_be_told = self._may_be_told(query, [passage.recalled for passage in passages])
        told = [passage for passage in passages if passage.recalled in may_be_told][:_TALK_FOUND]
        return [_said_of(passage, names) for passage in told], (
            f"nothing is found around {entity.name!r}, this is from everywhere"
        )

    async def get_session_summary(self, arguments: Mapping[str, object]) -> Found:
        session = SessionId(required(arguments, "session"))
        if self.memory.summaries is None:
            return nothing("no summaries are kept: ask memory_search_sessions instead")
        summary = await self.memory.summaries.summary(self.memory.campaign, self.memory.npc, session)
        if summary is None:
            return nothing(f"session {session!r} has no summary: ask memory_search_sessions instead")
        return found([{"summary": summary, "session": session}])

    async def _recall(self, query: str, *, limit: int, between: Between = EVER) -> list[RecalledTalk]:
        """A tool has more time than a turn, if its tier has: an embedder that is far away is waited for."""
        patient = self.rule.ceiling_ms >= _PATIENT_FROM_MS
        # About half of what an NPC has heard are its own words, which may not be told.
        asked = TalkQuery(query, limit=2 * limit, between=between)
        talk = self.memory.talk
        if self.tier == "DEEP" and self.memory.deep_talk is not None:
            talk = self.memory.deep_talk
        recalled = await talk.recall(self.memory.campaign, self.memory.npc, asked, patient=patient)
        return self._may_be_told(query, recalled)[:limit]

    def _may_be_told(self, query: str, recalled: Sequence[_Talk]) -> list[_Talk]:
        """Its own words are what a model made up: they are told to who looks for them, and are never an answer to what
        is so.
        """
        memory = self.memory
        if looks_for_own_words(query, name=memory.name, language=memory.language):
            return list(recalled)
        return of_others(recalled, memory.npc)

    async def search_facts(self, arguments: Mapping[str, object]) -> Found:
        query = required(arguments, "query")
        between = Between(moment(arguments, "after"), moment(arguments, "before"))
        wanted = FactQuery(query, between=between, limit=_LOOKED_AT, common_from=2 * _LOOKED_AT)
        facts, recalled = await asyncio.gather(
            self.memory.graph.facts(self.memory.campaign, self.memory.npc, wanted),
            self._recall(query, limit=MOST_FOUND, between=between),
        )
        answers = await self._in_words(self._asked_first(query, facts)[: MOST_FOUND // 2])
        return found([*answers, *(_said(one) for one in recalled)])

    def _asked_first(self, query: str, facts: Sequence[Fact]) -> list[Fact]:
        """Those of the kind that is asked for ("who owns": OWNS) before those that share its words."""
        predicates = {fact.claim.predicate for fact in facts}
        asked = asked_predicates(query, names=(), predicates=predicates, language=self.memory.language)
        return sorted(facts, key=lambda fact: asked.side_of(fact.claim.predicate) is None)

    async def _in_words(self, facts: Sequence[Fact]) -> list[object]:
        if not facts:
            return []
        ends = {end for fact in facts for end in (fact.claim.subject, fact.claim.object) if end is not None}
        known = await self.memory.graph.entities_of(self.memory.campaign, self.memory.npc, ends)
        by_id = {entity.id: entity for entity in known}
        return [answer for fact in facts if (answer := fact_found(fact, by_id, self.memory.npc)) is not None]


_DOES: Final[Mapping[str, Callable[[LookUps, Mapping[str, object]], Awaitable[Found]]]] = {
    QUERY_ENTITIES: LookUps.query_entities,
    SEARCH_SESSIONS: LookUps.search_sessions,
    GET_SESSION_SUMMARY: LookUps.get_session_summary,
    SEARCH_FACTS: LookUps.search_facts,
}


def _said(one: RecalledTalk) -> Found:
    return {"said": recalled_line(one), "session": one.session_id, "when": when(one.at_ms)}


def _said_of(passage: Passage, names: Mapping[EntityId, str]) -> Found:
    speaks_of = [names[entity] for entity in passage.entity_ids if entity in names]
    return {**_said(passage.recalled), "speaks of": speaks_of, "relations away": passage.depth}
