"""Memory tools of an NPC's model. They return only what that NPC may know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from itertools import islice
from typing import Final, TypeVar

from loguru import logger

from glyphoxa.domain.budgets import GET_SESSION_SUMMARY, QUERY_ENTITIES, SEARCH_FACTS, SEARCH_SESSIONS, TierRule
from glyphoxa.domain.campaign import BudgetTier, Entity
from glyphoxa.domain.errors import MAX_LISTED, InvalidInput, Unavailable, did_you_mean, nearest
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Between, Fact, Recalled, RecalledFact, RecalledUtterance
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.language.facts import why_known
from glyphoxa.language.language_data import texts
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.relations import IN_ENGLISH, RelationWords, in_words
from glyphoxa.language.sentence_form import looks_for_own_words
from glyphoxa.npc.tool_spec import CallableTool, Found, Tools, ToolSpec, moment, nothing, tool
from glyphoxa.prompt.select import told_sentence
from glyphoxa.recall.facts import asked_predicates, is_secret
from glyphoxa.recall.recall import Recall
from glyphoxa.recall.world import World, WorldMemory
from glyphoxa.transcript.ports import MemorySearch, TalkQuery
from glyphoxa.world.graph import Known, Passage, TalkAround

# Tool results: JSON values only, worded by `glyphoxa.language.facts`.


MAX_FOUND: Final = 10


def found(answers: Sequence[object]) -> Found:
    if not answers:
        return nothing("nothing found")
    if len(answers) > MAX_FOUND:
        return {"found": list(answers[:MAX_FOUND]), "note": f"{len(answers) - MAX_FOUND} more: narrow the query"}
    return {"found": list(answers)}


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
            before = about.get(name, [])
            about[name] = [*(before if isinstance(before, list) else [before]), value] if name in about else value
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


_Talk = TypeVar("_Talk", bound=Recalled)

_PATIENT_FROM_MS: Final = 1_500
_TALK_FOUND: Final = 5
_MOST_AROUND: Final = 200
"""Passages around an entity among which those of a session, a speaker or a time are looked for."""
_REFRESH_MS: Final = 100
"""Time for the latest changes of a world that is in memory."""


@dataclass(frozen=True, slots=True)
class NpcMemory:
    """Memory access for one NPC.

    Attributes:
        name: The NPC's name.
        words: The campaign's language, and its sentences for relations.
        around: Searches talk around an entity; None: there is none.
        deep_talk: Searches talk, facts and summaries for tier DEEP; None: `talk`.
        is_at_table: The world is read in each turn; see `LookUps`.
        people: Names of those who speak, by their ids.
        speaker_of: Returns the speaker's name of an utterance; empty if it is unknown.
        safety: Topics that no answer contains.
    """

    campaign: CampaignId
    npc: NpcId
    world: WorldMemory
    talk: Recall
    name: str = ""
    words: RelationWords = IN_ENGLISH
    around: TalkAround | None = None
    deep_talk: MemorySearch | None = None
    is_at_table: bool = False
    people: Mapping[str, str] = field(default_factory=dict)
    speaker_of: Callable[[UtteranceId], str] = lambda _: ""
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
        """Return the world as it is now; at a table, as it was read last while the database does not answer.

        Only a table reads it in each turn. Elsewhere it may be hours old, and something may be hidden since.

        Raises:
            GlyphoxaError: It cannot be read, and was never read at a table.
        """
        memory = self.memory.world
        if not self.memory.is_at_table:
            return await memory.refresh()
        is_read = memory.world is not None
        try:
            async with asyncio.timeout(_REFRESH_MS / 1_000 if is_read else None):
                return await memory.refresh()
        except (TimeoutError, Unavailable):
            if (world := memory.world) is None:
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
    async def search_sessions(  # noqa: PLR0913 - the arguments of a tool
        self,
        *,
        query: str,
        around: str = "",
        session: str = "",
        speaker: str = "",
        after: str = "",
        before: str = "",
    ) -> Found:
        asked, note = _query(query, session, speaker, after, before), ""
        if around and self.memory.around is not None and self.rule.can_search_around:
            answer, note = await self._search_around(self.memory.around, asked, around)
            if answer:
                return found(answer)
        recalled = await self._recall(asked, limit=_TALK_FOUND)
        everywhere = found(await self._told(recalled))
        return {**everywhere, "note": note} if note and recalled else everywhere

    async def _search_around(self, talk: TalkAround, query: TalkQuery, name: str) -> tuple[list[object], str]:
        """Return utterances, each with the related entity and its distance, else a note.

        On failure, talk is searched without the entity.
        """
        npc = self.memory.npc
        try:
            world = await self._world()
            entity, instead = self._called(world, name)
            if entity is None:
                return [], f"nothing called {name!r} is known; results are not limited to it{instead}"
            asked = self.memory.campaign, npc, query.text
            is_limited = query != TalkQuery(query.text)
            passages = await talk(*asked, around=entity.id, limit=_MOST_AROUND if is_limited else 2 * _TALK_FOUND)
            found = ((one, one.recalled) for one in passages)
            passages = [one for one, it in found if query.admits(it.session_id, it.at_ms, it.speaker_name)]
            world = await self._world()  # something may have been hidden meanwhile
        except (TimeoutError, Unavailable) as away:  # talk held in memory needs no database
            logger.debug("talk around an entity cannot be searched now: {}", away)
            return [], f"relations of {name!r} are unavailable; results are not limited to it"
        spoken_of = {one for passage in passages for one in passage.entity_ids}
        names = {one: known.name for one in spoken_of if (known := world.entity(npc, one)) is not None}
        may_be_told = self._may_be_told(query.text, [passage.recalled for passage in passages])
        told = [passage for passage in passages if passage.recalled in may_be_told][:_TALK_FOUND]
        return [_said_of(passage, names) for passage in told], (
            f"nothing found around {entity.name!r}; results are not limited to it"
        )

    @_tool(GET_SESSION_SUMMARY, estimated_ms=55)
    async def get_session_summary(self, *, session: str) -> Found:
        summary = (await self._world()).summary(self.memory.npc, SessionId(session))
        if summary is None:
            return nothing(f"session {session!r} has no summary; use memory_search_sessions instead")
        return found([{"summary": summary, "session": session}])

    async def _recall(self, query: TalkQuery, *, limit: int) -> list[Recalled]:
        """Recall talk. In a long tier it waits for a remote embedder."""
        patient = self.rule.ceiling_ms >= _PATIENT_FROM_MS
        # About half of what an NPC has heard are its own words, which must not be reported.
        asked = replace(query, limit=2 * limit)
        talk: MemorySearch = self.memory.talk
        if self.tier == "DEEP" and self.memory.deep_talk is not None:
            talk = self.memory.deep_talk
        recalled = await talk.recall(self.memory.campaign, self.memory.npc, asked, patient=patient)
        return self._may_be_told(query.text, recalled)[:limit]

    async def _told(self, recalled: Sequence[Recalled]) -> list[Found]:
        """Word what was recalled, facts as the world has them now."""
        if not any(isinstance(one, RecalledFact) for one in recalled):
            return [_said(one) for one in recalled]
        world, memory = await self._world(), self.memory
        told: list[Found | None] = []
        for one in recalled:
            if not isinstance(one, RecalledFact):
                told.append(_said(one))
            elif (fact := world.fact(one.fact_id, memory.npc)) is not None:
                told.append(fact_found(fact, world, memory))
        return [one for one in told if one is not None]

    def _may_be_told(self, query: str, recalled: Iterable[_Talk]) -> list[_Talk]:
        """Keep what may come up, and the NPC's own words only if the query asks for them.

        A model invented them, so they are no evidence.
        """
        memory = self.memory
        recalled = [one for one in recalled if not memory.safety.forbids(one.text)]
        if looks_for_own_words(query, name=memory.name, language=memory.words.language):
            return recalled
        return [one for one in recalled if not (isinstance(one, RecalledUtterance) and one.is_own)]

    @_tool(SEARCH_FACTS, estimated_ms=200)
    async def search_facts(
        self, *, query: str, session: str = "", speaker: str = "", after: str = "", before: str = ""
    ) -> Found:
        asked = _query(query, session, speaker, after, before)
        recalled = await self._recall(asked, limit=MAX_FOUND)

        def is_wanted(fact: Fact) -> bool:
            source, speaker_of = fact.provenance, self.memory.speaker_of
            by = "" if source.utterance_id is None or not asked.speaker else speaker_of(source.utterance_id)
            return asked.admits(source.session_id, source.at_ms, by)

        world = await self._world()  # last: something may have been hidden meanwhile
        known = world.facts(self.memory.npc, query, is_wanted=is_wanted)
        facts = self._asked_first(query, known)[: MAX_FOUND // 2]
        answers = (fact_found(fact, world, self.memory) for fact in facts)
        shown = [one for one in answers if one is not None]
        return found([*shown, *(one for one in await self._told(recalled) if one not in shown)])

    def _asked_first(self, query: str, facts: Sequence[Fact]) -> list[Fact]:
        """Sort facts of the requested relation ("who owns": OWNS) before those that share words."""
        predicates = {fact.claim.predicate for fact in facts}
        asked = asked_predicates(query, names=(), predicates=predicates, language=self.memory.words.language)
        return sorted(facts, key=lambda fact: asked.side_of(fact.claim.predicate) is None)


def _query(query: str, session: str, speaker: str, after: str, before: str) -> TalkQuery:
    """
    Raises:
        InvalidInput: A time is not in ISO 8601.
    """
    between = Between(moment("after", after), moment("before", before))
    return TalkQuery(query, between=between, session=SessionId(session) if session else None, speaker=speaker)


@cache
def specs_in(language: str) -> Mapping[str, ToolSpec]:
    """Return the tools by name, described to a model in this language (BCP 47)."""
    worded = texts("tasks", language).value("tools")
    return {name: spec.worded(worded[spec.wire_name]) for name, (spec, _) in _TOOLS.items()}


def _said(one: Recalled) -> Found:
    return {"said": recalled_line(one), "session": one.session_id, "when": when(one.at_ms)}


def _said_of(passage: Passage, names: Mapping[EntityId, str]) -> Found:
    speaks_of = [names[entity] for entity in passage.entity_ids if entity in names]
    return {**_said(passage.recalled), "speaks of": speaks_of, "relations away": passage.depth}


def tools_of_tier(memory: NpcMemory, tier: BudgetTier, rule: TierRule) -> list[CallableTool]:
    """Return the tools of a tier, in declared order. Each is limited to what its NPC may know.

    Args:
        rule: The limits of the tier.
    """
    left_out = () if memory.around is not None and rule.can_search_around else ("around",)
    specs = specs_in(memory.words.language)
    look_ups = LookUps(memory, tier, rule)

    def tool_of(name: str) -> CallableTool:
        spec, (_, look_up) = specs[name].without(*left_out), _TOOLS[name]
        return CallableTool(spec, lambda arguments: look_up(look_ups, **arguments), memory.safety)

    return [tool_of(name) for name in rule.tools]
