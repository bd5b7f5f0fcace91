"""Memory tools of an NPC's model. They return only what that NPC may know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from itertools import islice
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.domain.campaign import BudgetTier, Entity
from glyphoxa.domain.errors import (
    MAX_LISTED,
    GlyphoxaError,
    InvalidInput,
    NotFound,
    Unavailable,
    did_you_mean,
    nearest,
)
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import EVER, Between, Fact, RecalledTalk
from glyphoxa.domain.turn import LookUp
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.language.asking import looks_for_own_words
from glyphoxa.language.facts import why_known
from glyphoxa.language.lexicon import texts
from glyphoxa.language.relations import IN_ENGLISH, RelationWords, in_words
from glyphoxa.npc.budget import (
    DEFAULT_RULES,
    GET_SESSION_SUMMARY,
    QUERY_ENTITIES,
    SEARCH_FACTS,
    SEARCH_SESSIONS,
    TierRule,
    ToolLatencies,
    lower_tier,
)
from glyphoxa.npc.tool_spec import Tools, ToolSpec, given, moment, noted, tool
from glyphoxa.prompt.conversation import of_others
from glyphoxa.prompt.facts import told_sentence
from glyphoxa.prompt.wording import recalled_line
from glyphoxa.recall.facts import asked_predicates, is_secret
from glyphoxa.recall.guard import MemoryGuard
from glyphoxa.recall.world import World, Worlds
from glyphoxa.transcript.ports import PastTalk, SessionSummaries, TalkQuery
from glyphoxa.world.graph import Known, Passage, TalkAround

# Tool results: JSON values only, worded by `glyphoxa.language.facts`.


MAX_FOUND: Final = 10

Found = dict[str, object]
"""A tool result: `found` (a list) and optionally `note`."""


def found(answers: Sequence[object]) -> Found:
    if not answers:
        return nothing("nothing found")
    if len(answers) > MAX_FOUND:
        return {"found": list(answers[:MAX_FOUND]), "note": f"{len(answers) - MAX_FOUND} more: narrow the query"}
    return {"found": list(answers)}


def nothing(note: str) -> Found:
    return {"found": [], "note": note}


def described(known: Known, relation: str, words: RelationWords) -> Found:
    """Return everything that an NPC knows about an entity.

    Args:
        relation: Only relations of this type; empty for all.
    """
    about: dict[str, object] = {}
    secrets: list[str] = []
    for fact in known.attributes:
        name, value = in_words(fact.claim.predicate), fact.claim.content
        if is_secret(fact):
            secrets.append(_told(fact, {known.entity.id: known.entity}, words))
        else:
            about[name] = value if name not in about else [*_as_list(about[name]), value]
    wanted = in_words(relation).casefold()
    relations: list[str] = []
    for fact, other in known.relations:
        if not wanted or in_words(fact.claim.predicate).casefold() == wanted:
            told = _told(fact, {known.entity.id: known.entity, other.id: other}, words)
            if told:
                (secrets if is_secret(fact) else relations).append(told)
    return {
        "name": known.entity.name,
        "type": known.entity.type,
        **({"about": about} if about else {}),
        "relations": relations,
        **({"keep secret": secrets} if secrets else {}),
    }


def fact_found(fact: Fact, world: World, memory: NpcMemory) -> Found | None:
    """Return a fact, why the NPC knows it, and its time; None if it cannot be worded."""
    ends = (world.entity(memory.npc, end) for end in fact.claim.ends)
    told = _told(fact, {end.id: end for end in ends if end is not None}, memory.words)
    if not told:
        return None
    source = fact.provenance
    return {
        "keep secret" if is_secret(fact) else "fact": told,
        "why": why_known(fact.visibility, memory.npc, person=lambda who: memory.people.get(who, who)),
        "session": source.session_id,
        "when": when(source.at_ms),
    }


def when(at_ms: int | None) -> str | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="minutes")


def _told(fact: Fact, entities: Mapping[EntityId, Entity], words: RelationWords) -> str:
    """Word a fact; empty if one of its entities is unknown."""
    subject = entities.get(fact.claim.subject)
    other = entities.get(fact.claim.object) if fact.claim.object is not None else None
    if subject is None or (fact.claim.object is not None and other is None):
        return ""
    sentence = told_sentence(fact, subject, other, words=words)
    is_sure = fact.provenance.dm_confirmed or fact.provenance.origin in ("campaign_file", "dm")
    return f"{sentence} (not certain)" if sentence and not is_sure else sentence


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


_Talk = TypeVar("_Talk", bound=RecalledTalk)

_PATIENT_FROM_MS: Final = 1_500
_TALK_FOUND: Final = 5
_REFRESH_MS: Final = 100
"""Time for the latest changes of a world that is in memory."""


@dataclass(frozen=True, slots=True)
class NpcMemory:
    """Memory access for one NPC.

    Attributes:
        name: The NPC's name.
        words: The campaign's language, and its sentences for relations.
        around: Searches talk around an entity; None if the graph does not support it.
        deep_talk: Past talk for tier DEEP; None: `talk`.
        people: Names of those who speak, by their ids.
        safety: Topics that no answer contains.
    """

    campaign: CampaignId
    npc: NpcId
    worlds: Worlds | MemoryGuard
    talk: PastTalk
    summaries: SessionSummaries | None = None
    name: str = ""
    words: RelationWords = IN_ENGLISH
    around: TalkAround | None = None
    deep_talk: PastTalk | None = None
    people: Mapping[str, str] = field(default_factory=dict)
    safety: SafetyTopics = field(default_factory=SafetyTopics)


_TOOLS: Final[Tools[Found]] = {}
_tool = partial(tool, _TOOLS)


@dataclass(frozen=True, slots=True)
class LookUps:
    """The look-ups behind the tools. Each raises a `GlyphoxaError` if memory fails.

    Args:
        tier: Tier of the call; `rule` has its limits.
    """

    memory: NpcMemory
    tier: BudgetTier
    rule: TierRule

    @_tool(QUERY_ENTITIES, estimated_ms=100)
    async def query_entities(self, *, name: str = "", type: str = "", relation: str = "") -> Found:  # noqa: A002
        if not name and not type:
            raise InvalidInput("give at least one of: name, type")
        world, npc = await self._world(), self.memory.npc
        if not name:
            known = sorted(world.entities(npc, of_type=type), key=lambda one: (one.type, one.name, one.id))
            return found([{"name": entity.name, "type": entity.type} for entity in known])
        entity, instead = self._called(world, name, type)
        about = None if entity is None else world.known(npc, entity.id)
        if about is None:
            return nothing(f"nothing called {name!r} is known{instead}")
        return found([described(about, relation, self.memory.words)])

    async def _world(self) -> World:
        """Return the world as it is now, or as it was read last while the database does not answer.

        Raises:
            GlyphoxaError: It was never read, and cannot be.
        """
        worlds, campaign = self.memory.worlds, self.memory.campaign
        is_read = worlds.world(campaign) is not None
        try:
            async with asyncio.timeout(_REFRESH_MS / 1_000 if is_read else None):
                return await worlds.refresh(campaign)
        except (TimeoutError, Unavailable):
            if (world := worlds.world(campaign)) is None:
                raise
            return world

    def _called(self, world: World, name: str, kind: str = "") -> tuple[Entity | None, str]:
        """Return the entity with this name and type, else a note."""
        npc = self.memory.npc
        if (entity := world.called(npc, name, of_type=kind)) is not None:
            return entity, ""
        if near := nearest(name, [one.name for one in world.like(npc, name, of_type=kind)]):
            return None, f"; did you mean {near!r}?"
        # A list of thousands is useless.
        few = list(islice(world.entities(npc, of_type=kind), MAX_LISTED + 1))
        return None, f"; {did_you_mean(name, [one.name for one in few])}" if len(few) <= MAX_LISTED else ""

    @_tool(SEARCH_SESSIONS, estimated_ms=300)
    async def search_sessions(self, *, query: str, around: str = "") -> Found:
        note = ""
        if around and self.memory.around is not None and self.rule.can_search_around:
            answer, note = await self._search_around(self.memory.around, query, around)
            if answer:
                return found(answer)
        recalled = await self._recall(query, limit=_TALK_FOUND)
        everywhere = found([_said(one) for one in recalled])
        return {**everywhere, "note": note} if note and recalled else everywhere

    async def _search_around(self, talk: TalkAround, query: str, name: str) -> tuple[list[object], str]:
        """Return utterances, each with the related entity and its distance, else a note.

        On failure, talk is searched without the entity.
        """
        npc = self.memory.npc
        try:
            world = await self._world()
            entity, instead = self._called(world, name)
            if entity is None:
                return [], f"nothing called {name!r} is known; results are not limited to it{instead}"
            asked = self.memory.campaign, npc, query
            passages = await talk(*asked, around=entity.id, limit=2 * _TALK_FOUND)
        except (TimeoutError, Unavailable) as away:  # talk held in memory needs no database
            logger.debug("talk around an entity cannot be searched now: {}", away)
            return [], f"relations of {name!r} are unavailable; results are not limited to it"
        spoken_of = {one for passage in passages for one in passage.entity_ids}
        names = {one: known.name for one in spoken_of if (known := world.entity(npc, one)) is not None}
        may_be_told = self._may_be_told(query, [passage.recalled for passage in passages])
        told = [passage for passage in passages if passage.recalled in may_be_told][:_TALK_FOUND]
        return [_said_of(passage, names) for passage in told], (
            f"nothing found around {entity.name!r}; results are not limited to it"
        )

    @_tool(GET_SESSION_SUMMARY, estimated_ms=55)
    async def get_session_summary(self, *, session: str) -> Found:
        if self.memory.summaries is None:
            return nothing("there are no summaries; use memory_search_sessions instead")
        summary = await self.memory.summaries.summary(self.memory.campaign, self.memory.npc, SessionId(session))
        if summary is None:
            return nothing(f"session {session!r} has no summary; use memory_search_sessions instead")
        return found([{"summary": summary, "session": session}])

    async def _recall(self, query: str, *, limit: int, between: Between = EVER) -> list[RecalledTalk]:
        """Recall talk. In a long tier it waits for a remote embedder."""
        patient = self.rule.ceiling_ms >= _PATIENT_FROM_MS
        # About half of what an NPC has heard are its own words, which must not be reported.
        asked = TalkQuery(query, limit=2 * limit, between=between)
        talk = self.memory.talk
        if self.tier == "DEEP" and self.memory.deep_talk is not None:
            talk = self.memory.deep_talk
        recalled = await talk.recall(self.memory.campaign, self.memory.npc, asked, patient=patient)
        return self._may_be_told(query, recalled)[:limit]

    def _may_be_told(self, query: str, recalled: Iterable[_Talk]) -> list[_Talk]:
        """Keep what may come up, and the NPC's own words only if the query asks for them.

        A model invented them, so they are no evidence.
        """
        memory = self.memory
        recalled = [one for one in recalled if not memory.safety.forbids(one.text)]
        if looks_for_own_words(query, name=memory.name, language=memory.words.language):
            return recalled
        return of_others(recalled)

    @_tool(SEARCH_FACTS, estimated_ms=200)
    async def search_facts(self, *, query: str, after: str = "", before: str = "") -> Found:
        between = Between(moment("after", after), moment("before", before))
        world, recalled = await asyncio.gather(self._world(), self._recall(query, limit=MAX_FOUND, between=between))
        facts = self._asked_first(query, world.facts(self.memory.npc, query, between=between))[: MAX_FOUND // 2]
        answers = (fact_found(fact, world, self.memory) for fact in facts)
        return found([*(one for one in answers if one is not None), *(_said(one) for one in recalled)])

    def _asked_first(self, query: str, facts: Sequence[Fact]) -> list[Fact]:
        """Sort facts of the requested relation ("who owns": OWNS) before those that share words."""
        predicates = {fact.claim.predicate for fact in facts}
        asked = asked_predicates(query, names=(), predicates=predicates, language=self.memory.words.language)
        return sorted(facts, key=lambda fact: asked.side_of(fact.claim.predicate) is None)


@cache
def specs_in(language: str) -> Mapping[str, ToolSpec]:
    """Return the tools by name, described to a model in this language (BCP 47)."""
    worded = texts("tasks", language).value("tools")
    return {name: spec.worded(worded[spec.wire_name]) for name, (spec, _) in _TOOLS.items()}


def _said(one: RecalledTalk) -> Found:
    return {"said": recalled_line(one), "session": one.session_id, "when": when(one.at_ms)}


def _said_of(passage: Passage, names: Mapping[EntityId, str]) -> Found:
    speaks_of = [names[entity] for entity in passage.entity_ids if entity in names]
    return {**_said(passage.recalled), "speaks of": speaks_of, "relations away": passage.depth}


# Tools that an NPC's model may call while it answers, within its tier's time.
#
# Memory usually reaches a prompt by pre-fetch. The tools cover the rest: three sessions ago, a distant place, one
# particular conversation. A tool never ends a turn: whatever happens, the model gets a short result,
# `{"found": [...], "note": "..."}`. Every call is limited to what its NPC may know.


class MemoryTools:
    """Handles the memory tool calls of one NPC, for every engine.

    Args:
        memory: Memory access for the NPC.
        tier: Highest tier of this NPC's model.
        rules: Limits of the tiers.
        tell: Receives every answered call; must return at once.
        latencies: Measured durations of tools.
    """

    def __init__(
        self,
        memory: NpcMemory,
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
        """Return a handler for one turn, with this tier or the NPC's own if lower.

        It caches the results of equal calls for as long as the tool declares.
        """
        limited = copy(self)
        limited._tier = lower_tier(tier, self._tier)
        limited._rule = self._rules[limited._tier]
        limited._answers = {}
        return limited

    @property
    def declared(self) -> tuple[ToolSpec, ...]:
        """The tools of this tier that usually answer within its ceiling, in declared order."""
        return tuple(spec for spec in self._allowed() if self._usual_ms(spec) <= self._rule.ceiling_ms)

    def _allowed(self) -> tuple[ToolSpec, ...]:
        left_out = () if self._memory.around is not None and self._rule.can_search_around else ("around",)
        specs = specs_in(self._memory.words.language)
        return tuple(specs[name].without(*left_out) for name in self._rule.tools)

    async def call(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a model's call by either tool name. Never raises and never exceeds the ceiling."""
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
        except Unavailable as away:  # the table has already reported it
            logger.debug("tool {} of {}: {}", name, self._memory.npc, away)
        except GlyphoxaError as failed:
            logger.warning("tool {} of {} failed: {}", name, self._memory.npc, failed)
        except Exception:
            # A bug in a look-up must not cost the NPC its answer.
            logger.exception("tool {} of {} raised an error", name, self._memory.npc)
        else:
            self._took(name, began_ms)
            if self._answers is not None:
                self._answers[call] = (_clock_ms() + _spec_of(name).lasts_ms, answer)
            return answer
        return nothing("memory is unavailable now: answer from what you already know")

    async def ask(self, name: str, arguments: Mapping[str, object]) -> Found:
        """Answer a call as `call` does, but raise errors. The call is not recorded.

        Raises:
            InvalidInput: Unknown tool, or a missing or wrong argument.
            TimeoutError: It exceeded the ceiling.
            GlyphoxaError: Memory failed.
        """
        allowed = self._allowed()
        spec = next((spec for spec in allowed if name in (spec.name, spec.wire_name)), None)
        if spec is None:
            raise NotFound(f"there is no tool {name!r}; " + did_you_mean(name, (s.wire_name for s in allowed)))
        async with asyncio.timeout(self._rule.ceiling_ms / 1_000):
            _, look_up = _TOOLS[spec.name]
            answer = await look_up(LookUps(self._memory, self._tier, self._rule), **given(spec, arguments))
        return dict(self._memory.safety.allowed_in(answer))

    def _took(self, name: str, began_ms: int) -> None:
        now_ms = _clock_ms()
        self._latencies.took(_spec_of(name).name, now_ms - began_ms, at_ms=now_ms)

    def _usual_ms(self, spec: ToolSpec) -> int:
        return self._latencies.usual_ms(spec.name, declared_ms=spec.estimated_ms, at_ms=_clock_ms())


def _spec_of(name: str) -> ToolSpec:
    return next(spec for spec, _ in _TOOLS.values() if name in (spec.name, spec.wire_name))


def _clock_ms() -> int:
    return time.monotonic_ns() // 1_000_000
