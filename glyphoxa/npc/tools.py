"""What an NPC's model may look up by itself while it answers, in this process and within its tier's time.

Pre-fetch is the way memory usually reaches a prompt; these tools are for what it did not foresee: three sessions
ago, a distant place, one certain conversation. A tool never ends a turn: whatever happens inside it, the
model gets a short answer it can go on with, `{"found": [...], "note": "..."}`. Everything is asked in the name of one
NPC, so it sees what that NPC may see and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.context.own_words import looks_for_own_words, of_others
from glyphoxa.context.wording import recalled_line
from glyphoxa.domain.campaign import BudgetTier, Entity
from glyphoxa.domain.errors import (
    MOST_LISTED,
    GlyphoxaError,
    InvalidInput,
    NotFound,
    Unavailable,
    did_you_mean,
    nearest,
)
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import EVER, Between, Fact
from glyphoxa.domain.recalled import RecalledTalk
from glyphoxa.domain.turn import LookUp
from glyphoxa.npc.budget import (
    DEFAULT_RULES,
    GET_SESSION_SUMMARY,
    QUERY_ENTITIES,
    SEARCH_FACTS,
    SEARCH_SESSIONS,
    TierRule,
    lower_tier,
)
from glyphoxa.npc.tool_answers import MOST_FOUND, Found, bare, best_match, described, fact_found, found, nothing, when
from glyphoxa.npc.tool_latency import ToolLatencies
from glyphoxa.npc.tool_spec import ToolSpec
from glyphoxa.recall.api import asked_predicates
from glyphoxa.transcript.api import PastTalk, SessionSummaries, TalkQuery
from glyphoxa.world.api import FactQuery, KnowledgeGraph, Passage, TalkAround

_Talk = TypeVar("_Talk", bound=RecalledTalk)

_PATIENT_FROM_MS: Final = 1_500
_TALK_FOUND: Final = 5
_LOOKED_AT: Final = 50
"""Facts from which those that a query asks for are taken."""


def _text(description: str) -> Mapping[str, object]:
    return {"type": "string", "description": description}


SPECS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec(
            QUERY_ENTITIES,
            "Look up a person, place, thing or group you know of, and how it is related to others.",
            {
                "name": _text("Its name, or what it is called"),
                "type": _text("npc, player, location, item, faction, event, quest or concept"),
                "relation": _text("Only this kind of relation, e.g. ALLIED_WITH"),
            },
            (),
            100,
        ),
        ToolSpec(
            SEARCH_SESSIONS,
            "Search what others have said to you, in all sessions. For what you said: ask for your own words.",
            {"query": _text("What it was about")},
            ("query",),
            300,
        ),
        ToolSpec(
            GET_SESSION_SUMMARY,
            "The summary of one earlier session.",
            {"session": _text("The session's id, as other tools name it")},
            ("session",),
            55,
        ),
        ToolSpec(
            SEARCH_FACTS,
            "Find facts and events you know of, and what others said of them, if you like only within a time.",
            {
                "query": _text("What the fact is about"),
                "after": _text("Only what was said at or after this ISO 8601 time"),
                "before": _text("Only what was said before this ISO 8601 time"),
            },
            ("query",),
            200,
        ),
    )
}


_AROUND: Final = _text(
    "Only talk of this person, place or group and of whoever is related to it: for what is said of a group's people"
)


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


class MemoryTools:
    """The tool-call handler of one NPC, the same for every engine.

    Args:
        memory: What is asked, and for whom.
        tier: What this NPC's model sees at the most, and how long one call may take.
        rules: What the tiers mean.
        tell: Is told of every call that was answered; returns at once.
        latencies: How long calls took before.
    """

    def __init__(
        self,
        memory: MemoryOf,
        *,
        tier: BudgetTier,
        rules: Mapping[BudgetTier, TierRule] = DEFAULT_RULES,
        tell: Callable[[LookUp], None] = lambda _: None,
        latencies: ToolLatencies | None = None,
    ) -> None:
        self._memory = memory
        self._tier = tier
        self._rules = rules
        self._rule = rules[tier]
        self._tell = tell
        self._latencies = latencies or ToolLatencies()
        self._answers: dict[str, tuple[int, Found]] | None = None

    def at(self, tier: BudgetTier) -> MemoryTools:
        """The same for one turn of this tier, or of the NPC's own if that is lower. What was found is given again to
        the same call, for as long as the tool declares.
        """
        limited = copy(self)
        limited._tier = lower_tier(tier, self._tier)
        limited._rule = self._rules[limited._tier]
        limited._answers = {}
        return limited

    @property
    def declared(self) -> tuple[ToolSpec, ...]:
        """The tools of this tier that usually answer within its ceiling, in the order in which they are shown."""
        return tuple(spec for spec in self._allowed() if self._usual_ms(spec) <= self._rule.ceiling_ms)

    def _allowed(self) -> tuple[ToolSpec, ...]:
        specs = (SPECS[name] for name in self._rule.tools)
        if self._memory.around is None or not self._rule.looks_around:
            return tuple(specs)
        return tuple(
            replace(spec, parameters={**spec.parameters, "around": _AROUND}) if spec.name == SEARCH_SESSIONS else spec
            for spec in specs
        )

    @property
    def ceiling_ms(self) -> int:
        return self._rule.ceiling_ms

    async def call(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a model's call, under either of the tool's names. Never raises, never outlasts the ceiling."""
        as_noted = {key: noted(value) for key, value in arguments.items()}
        call = f"{name} {sorted(as_noted.items())}"
        began_ms = _clock_ms()
        until_ms, answer = (self._answers or {}).get(call, (0, nothing("")))
        if began_ms >= until_ms:
            answer = await self._answer(name, arguments, call)
        self._tell(LookUp(name, as_noted, answer, _clock_ms() - began_ms))
        return answer

    async def _answer(self, name: str, arguments: Mapping[str, object], call: str) -> Found:
        began_ms = _clock_ms()
        try:
            answer = await self.ask(name, arguments)
        except TimeoutError:
            self._took(name, began_ms)
            logger.warning("tool {} of {} took more than {} ms", name, self._memory.npc, self._rule.ceiling_ms)
            return nothing("too slow: answer from what you already know")
        except InvalidInput as wrong:
            return nothing(str(wrong))
        except Unavailable as away:  # the table has been told
            logger.debug("tool {} of {}: {}", name, self._memory.npc, away)
        except GlyphoxaError as failed:
            logger.warning("tool {} of {} failed: {}", name, self._memory.npc, failed)
        except Exception:
            # The edge between a tool and a turn: a bug in a look-up costs that look-up, never the NPC's answer.
            logger.exception("tool {} of {} broke", name, self._memory.npc)
        else:
            self._took(name, began_ms)
            if self._answers is not None:
                self._answers[call] = (_clock_ms() + _spec_of(name).lasts_ms, answer)
            return answer
        return nothing("memory cannot be reached now: answer from what you already know")

    async def ask(self, name: str, arguments: Mapping[str, object]) -> Found:
        """As `call`, for a caller that is to hear what is wrong. Not recorded.

        Raises:
            InvalidInput: There is no such tool, or an argument is missing or of another kind.
            TimeoutError: It took longer than the ceiling.
            GlyphoxaError: Memory cannot answer.
        """
        allowed = self._allowed()
        spec = next((spec for spec in allowed if name in (spec.name, spec.wire_name)), None)
        if spec is None:
            raise NotFound(f"there is no tool {name!r}; " + did_you_mean(name, (s.wire_name for s in allowed)))
        async with asyncio.timeout(self._rule.ceiling_ms / 1_000):
            return await _DOES[spec.name](self, arguments)

    def _took(self, name: str, began_ms: int) -> None:
        now_ms = _clock_ms()
        self._latencies.took(_spec_of(name).name, now_ms - began_ms, at_ms=now_ms)

    def _usual_ms(self, spec: ToolSpec) -> int:
        return self._latencies.usual_ms(spec.name, declared_ms=spec.estimated_ms, at_ms=_clock_ms())

    async def _query_entities(self, arguments: Mapping[str, object]) -> Found:
        name, kind = _optional(arguments, "name"), _optional(arguments, "type")
        relation = _optional(arguments, "relation")
        if not name and not kind:
            raise InvalidInput("give at least one of: name, type")
        asked, graph = (self._memory.campaign, self._memory.npc), self._memory.graph
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
        asked, graph = (self._memory.campaign, self._memory.npc), self._memory.graph
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

    async def _search_sessions(self, arguments: Mapping[str, object]) -> Found:
        query, around = _required(arguments, "query"), _optional(arguments, "around")
        note = ""
        if around and self._memory.around is not None and self._rule.looks_around:
            answer, note = await self._search_around(self._memory.around, query, around)
            if answer:
                return found(answer)
        recalled = await self._recall(query, limit=_TALK_FOUND)
        everywhere = found([_said(one) for one in recalled])
        return {**everywhere, "note": note} if note and recalled else everywhere

    async def _search_around(self, talk: TalkAround, query: str, name: str) -> tuple[list[object], str]:
        """What was said, each with whom it speaks of and how far that is related; else why talk is searched
        everywhere instead.
        """
        asked = self._memory.campaign, self._memory.npc
        try:
            entity, instead = await self._called(name)
            if entity is None:
                return [], f"nothing called {name!r} is known, this is from everywhere{instead}"
            passages = await talk.recall_around(*asked, query, around=entity.id, limit=2 * _TALK_FOUND)
            spoken_of = {each for passage in passages for each in passage.entity_ids}
            known = await self._memory.graph.entities_of(*asked, spoken_of) if spoken_of else []
        except Unavailable as away:  # the talk that is in memory needs no database
            logger.debug("talk around an entity is not found now: {}", away)
            return [], f"who is related to {name!r} cannot be looked up now, this is from everywhere"
        names = {one.id: one.name for one in known}
        may_be_told = self._may_be_told(query, [passage.recalled for passage in passages])
        told = [passage for passage in passages if passage.recalled in may_be_told][:_TALK_FOUND]
        return [_said_of(passage, names) for passage in told], (
            f"nothing is found around {entity.name!r}, this is from everywhere"
        )

    async def _get_session_summary(self, arguments: Mapping[str, object]) -> Found:
        session = SessionId(_required(arguments, "session"))
        if self._memory.summaries is None:
            return nothing("no summaries are kept: ask memory_search_sessions instead")
        summary = await self._memory.summaries.summary(self._memory.campaign, self._memory.npc, session)
        if summary is None:
            return nothing(f"session {session!r} has no summary: ask memory_search_sessions instead")
        return found([{"summary": summary, "session": session}])

    async def _recall(self, query: str, *, limit: int, between: Between = EVER) -> list[RecalledTalk]:
        """A tool has more time than a turn, if its tier has: an embedder that is far away is waited for."""
        patient = self._rule.ceiling_ms >= _PATIENT_FROM_MS
        # About half of what an NPC has heard are its own words, which may not be told.
        asked = TalkQuery(query, limit=2 * limit, between=between)
        talk = self._memory.talk
        if self._tier == "DEEP" and self._memory.deep_talk is not None:
            talk = self._memory.deep_talk
        recalled = await talk.recall(self._memory.campaign, self._memory.npc, asked, patient=patient)
        return self._may_be_told(query, recalled)[:limit]

    def _may_be_told(self, query: str, recalled: Sequence[_Talk]) -> list[_Talk]:
        """Its own words are what a model made up: they are told to who looks for them, and are never an answer to what
        is so.
        """
        memory = self._memory
        if looks_for_own_words(query, name=memory.name, language=memory.language):
            return list(recalled)
        return of_others(recalled, memory.npc)

    async def _search_facts(self, arguments: Mapping[str, object]) -> Found:
        query = _required(arguments, "query")
        between = Between(_moment(arguments, "after"), _moment(arguments, "before"))
        wanted = FactQuery(query, between=between, limit=_LOOKED_AT, common_from=2 * _LOOKED_AT)
        facts, recalled = await asyncio.gather(
            self._memory.graph.facts(self._memory.campaign, self._memory.npc, wanted),
            self._recall(query, limit=MOST_FOUND, between=between),
        )
        answers = await self._in_words(self._asked_first(query, facts)[: MOST_FOUND // 2])
        return found([*answers, *(_said(one) for one in recalled)])

    def _asked_first(self, query: str, facts: Sequence[Fact]) -> list[Fact]:
        """Those of the kind that is asked for ("who owns": OWNS) before those that share its words."""
        predicates = {fact.claim.predicate for fact in facts}
        asked = asked_predicates(query, names=(), predicates=predicates, language=self._memory.language)
        return sorted(facts, key=lambda fact: asked.side_of(fact.claim.predicate) is None)

    async def _in_words(self, facts: Sequence[Fact]) -> list[object]:
        if not facts:
            return []
        ends = {end for fact in facts for end in (fact.claim.subject, fact.claim.object) if end is not None}
        known = await self._memory.graph.entities_of(self._memory.campaign, self._memory.npc, ends)
        by_id = {entity.id: entity for entity in known}
        return [answer for fact in facts if (answer := fact_found(fact, by_id, self._memory.npc)) is not None]


_DOES: Final[Mapping[str, Callable[[MemoryTools, Mapping[str, object]], Awaitable[Found]]]] = {
    QUERY_ENTITIES: MemoryTools._query_entities,
    SEARCH_SESSIONS: MemoryTools._search_sessions,
    GET_SESSION_SUMMARY: MemoryTools._get_session_summary,
    SEARCH_FACTS: MemoryTools._search_facts,
}


def _spec_of(name: str) -> ToolSpec:
    return next(spec for spec in SPECS.values() if name in (spec.name, spec.wire_name))


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _said(one: RecalledTalk) -> Found:
    return {"said": recalled_line(one), "session": one.session_id, "when": when(one.at_ms)}


def _said_of(passage: Passage, names: Mapping[EntityId, str]) -> Found:
    speaks_of = [names[entity] for entity in passage.entity_ids if entity in names]
    return {**_said(passage.recalled), "speaks of": speaks_of, "relations away": passage.depth}


def noted(value: object) -> object:
    """An argument as it is recorded. What is no text is refused, and may be what no database holds: NaN, or a list
    nested a thousand times.
    """
    is_plain = isinstance(value, str | int) or value is None or (isinstance(value, float) and isfinite(value))
    return value if is_plain else f"({type(value).__name__})"


def _optional(arguments: Mapping[str, object], key: str) -> str:
    value = arguments.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"argument {key!r} must be text, not {type(value).__name__}")
    return value.strip()


def _required(arguments: Mapping[str, object], key: str) -> str:
    value = _optional(arguments, key)
    if not value:
        raise InvalidInput(f"argument {key!r} is missing")
    return value


def _moment(arguments: Mapping[str, object], key: str) -> int | None:
    text = _optional(arguments, key)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"argument {key!r} is not an ISO 8601 time: {text!r}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000)
