"""In-memory answers to the memory ports, with switches for being late and being away. Real code, no mocks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.errors import NotFound, Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import (
    AUTO_ACCEPT,
    PUBLIC,
    Fact,
    RecalledTalk,
    RecalledUtterance,
    Viewer,
    Visibility,
    visibility_of,
)
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.language.text import Text
from glyphoxa.language.words import words
from glyphoxa.recall.vectors import QuestionVectors, TextVectors
from glyphoxa.recall.world import World, Worlds
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.transcript.spool import Pending, SpoolPosition
from glyphoxa.world.file_claims import state_of_file
from glyphoxa.world.graph import (
    KNOWN_THROUGH,
    FactQuery,
    IdentitySnapshot,
    Known,
    Reached,
    Subgraph,
    Walk,
    beginnings_of,
    may_know,
)
from glyphoxa.world.state import StateRows, WorldEntity, WorldState


class Weather:
    """Whether the store answers: `late` never does, `away` refuses."""

    def __init__(self) -> None:
        self.late = False
        self.away = False

    async def pass_through(self) -> None:
        if self.away:
            raise Unavailable("the database is away")
        if self.late:
            await asyncio.Event().wait()


class ScopedKnowledge:
    """Entities and accepted facts, queried for a viewer like `glyphoxa.world.graph.KnowledgeGraph`."""

    def __init__(self, entities: Iterable[tuple[Entity, Visibility]], facts: Sequence[Fact]) -> None:
        self._entities = {entity.id: (entity, visibility) for entity, visibility in entities}
        self._facts = facts

    def entity(self, viewer: Viewer, entity: EntityId) -> Entity | None:
        found, visibility = self._entities.get(entity, (None, PUBLIC))
        return found if visibility.is_visible_to(viewer) else None

    def facts(self, viewer: Viewer) -> list[Fact]:
        return [fact for fact in self._facts if may_know(viewer, fact, self._visibility_of)]

    def known(self, viewer: Viewer, entity: EntityId) -> Known | None:
        found = self.entity(viewer, entity)
        if found is None:
            return None
        attributes: list[Fact] = []
        relations: list[tuple[Fact, Entity]] = []
        for fact in self.facts(viewer):
            claim = fact.claim
            if entity not in (claim.subject, claim.object):
                continue
            if claim.object is None:
                attributes.append(fact)
                continue
            other = self.entity(viewer, claim.object if claim.subject == entity else claim.subject)
            if other is not None:
                relations.append((fact, other))
        return Known(found, tuple(attributes), tuple(relations))

    def identity(self, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        known = self.known(npc, entity)
        if known is None:
            return None
        # Hidden facts are visible to nobody, so what remains here is secret.
        return IdentitySnapshot(known, tuple(fact for fact in self.facts(npc) if fact.visibility.scope == "secret"))

    def _visibility_of(self, entity: EntityId) -> Visibility | None:
        return self._entities[entity][1] if entity in self._entities else None


class GraphTwin:
    """The knowledge graph over entities and facts that are given to it. It tells each viewer what it may see.

    Attributes:
        asked_for: In whose name it was asked, in order.
        walked: Between whom a path was asked for, in order.
    """

    def __init__(self, entities: Iterable[tuple[Entity, Visibility]], facts: Iterable[Fact] = ()) -> None:
        self.scoped = list(entities)
        self.of_world = list(facts)
        self.weather = Weather()
        self.asked_for: list[Viewer] = []
        self.walked: list[tuple[EntityId, EntityId]] = []

    @classmethod
    def of(cls, campaign: Campaign) -> GraphTwin:
        entities = [(entity, visibility_of(entity)) for entity in campaign.entities]
        return cls(entities, state_of_file(campaign, accept_at=AUTO_ACCEPT).facts.values())

    async def entities(self, campaign: CampaignId, viewer: Viewer, *, of_type: str | None = None) -> list[Entity]:
        return [one for one in await self._visible(viewer) if of_type in (None, one.type)]

    async def entities_called(self, campaign: CampaignId, viewer: Viewer, name: str) -> list[Entity]:
        wanted = {word.full for word in words(name)}
        of_name = (
            (one, {word.full for word in words(" ".join((one.name, *one.aliases)))})
            for one in await self._visible(viewer)
        )
        return [one for one, held in of_name if wanted and wanted <= held]

    async def entities_like(
        self, campaign: CampaignId, viewer: Viewer, name: str, *, of_type: str | None = None
    ) -> list[Entity]:
        beginnings, known = tuple(beginnings_of(name)), await self.entities(campaign, viewer, of_type=of_type)
        held = [(one, " ".join((one.name, *one.aliases)).casefold().split()) for one in known]
        return [one for one, parts in held if any(part.startswith(beginnings) for part in parts)]

    async def entities_if_few(
        self, campaign: CampaignId, viewer: Viewer, *, most: int, of_type: str | None = None
    ) -> list[Entity] | None:
        known = await self.entities(campaign, viewer, of_type=of_type)
        return None if len(known) > most else known

    async def entities_of(self, campaign: CampaignId, viewer: Viewer, ids: Collection[EntityId]) -> list[Entity]:
        return [one for one in await self._visible(viewer) if one.id in ids]

    async def known(self, campaign: CampaignId, viewer: Viewer, entity: EntityId) -> Known | None:
        return (await self._asked(viewer)).known(viewer, entity)

    async def identity_snapshot(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        return (await self._asked(npc)).identity(npc, entity)

    async def visible_subgraph(
        self,
        campaign: CampaignId,
        npc: NpcId,
        entity: EntityId,
        *,
        depth: int = 1,
        through: Collection[str] = KNOWN_THROUGH,
    ) -> Subgraph:
        """All that is related to it directly, whatever is asked for."""
        known = (await self._asked(npc)).known(npc, entity)
        if known is None:
            return Subgraph()
        reached = (Reached(known.entity, 0), *(Reached(other, 1) for _, other in known.relations))
        return Subgraph(reached, tuple(fact for fact, _ in known.relations))

    async def traverse(self, campaign: CampaignId, viewer: Viewer, entity: EntityId, walk: Walk) -> list[Reached]:
        knowledge, reached, edge = await self._asked(viewer), dict[EntityId, Reached](), [entity]
        for far in range(walk.depth + 1):
            known = [one for each in edge if (one := knowledge.known(viewer, each)) is not None]
            reached |= {one.entity.id: Reached(one.entity, far) for one in known if one.entity.id not in reached}
            edge = [other.id for one in known for _, other in one.relations if other.id not in reached]
        return list(reached.values())[: walk.limit]

    async def path(
        self, campaign: CampaignId, viewer: Viewer, source: EntityId, target: EntityId, *, max_depth: int = 6
    ) -> list[tuple[Fact, Entity]] | None:
        world = await self._asked(viewer)
        self.walked.append((source, target))
        ways: dict[EntityId, list[tuple[Fact, Entity]]] = {source: []}
        for at in (waiting := [source]):
            known = world.known(viewer, at)
            for fact, other in known.relations if known and len(ways[at]) < max_depth else ():
                if other.id not in ways:
                    ways[other.id] = [*ways[at], (fact, other)]
                    waiting.append(other.id)
        return ways.get(target)

    async def facts(self, campaign: CampaignId, viewer: Viewer, wanted: FactQuery) -> list[Fact]:
        knowledge, asked = await self._asked(viewer), Text.of(wanted.words).topic
        found = []
        for fact in knowledge.facts(viewer):
            ends = [end for end in (fact.claim.subject, fact.claim.object) if end is not None]
            names = [entity.name for end in ends if (entity := knowledge.entity(viewer, end)) is not None]
            told = Text.of(" ".join((*names, fact.claim.predicate, str(fact.claim.content)))).topic
            if (wanted.about in ends or asked & told) and wanted.between.holds(fact.provenance.at_ms or 0):
                found.append((len(asked & told), fact))
        return [fact for _, fact in sorted(found, key=lambda one: -one[0])][: wanted.limit]

    async def _visible(self, viewer: Viewer) -> list[Entity]:
        await self._asked(viewer)
        return [entity for entity, visibility in self.scoped if visibility.is_visible_to(viewer)]

    async def _asked(self, viewer: Viewer) -> ScopedKnowledge:
        self.asked_for.append(viewer)
        await self.weather.pass_through()
        return ScopedKnowledge(self.scoped, self.of_world)


class WorldsTwin(Worlds):
    """The world of a graph as it was when it was read last."""

    def __init__(self, graph: GraphTwin) -> None:
        self._graph = graph
        self._world: World | None = None
        self.meanings = TextVectors(None, QuestionVectors(None))

    async def refresh(self, campaign: CampaignId) -> World:
        await self._graph.weather.pass_through()
        state = WorldState()
        scoped = self._graph.scoped
        entities = (WorldEntity(e.id, e.type, e.name, e.aliases, visibility) for e, visibility in scoped)
        state.load((), StateRows(entities=entities, facts=self._graph.of_world))
        self._world = World(state, now_ms=lambda: 0)
        self.meanings.learn(self._world.texts)
        return self._world

    def world(self, campaign: CampaignId) -> World | None:
        return self._world


class SpoolTwin:
    """A spool that is no file.

    Attributes:
        is_full: Nothing more is taken.
        so_far: Notes of utterances that were still being said, in order.
    """

    def __init__(self) -> None:
        self.utterances: dict[UtteranceId, Utterance] = {}
        self.so_far: list[Utterance] = []
        self.is_full = False

    def append(self, utterance: Utterance) -> SpoolPosition:
        self._take()
        self.utterances.setdefault(utterance.id, utterance)
        return SpoolPosition(1, len(self.utterances))

    def note(self, utterance: Utterance) -> None:
        self._take()
        self.so_far.append(utterance)

    def shrink(self) -> None: ...

    def pending(self, after: SpoolPosition | None = None, *, limit: int | None = None) -> list[Pending]:
        first = after.offset if after is not None else 0
        places = enumerate(list(self.utterances.values())[first:], start=first + 1)
        return [Pending(said, SpoolPosition(1, place)) for place, said in places][:limit]

    def acknowledge(self, cursor: SpoolPosition) -> None: ...

    def latest(self, campaign: CampaignId, session: SessionId, *, limit: int) -> list[Utterance]:
        said = self.utterances.values()
        return [each for each in said if (each.campaign_id, each.session_id) == (campaign, session)][-limit:]

    def _take(self) -> None:
        if self.is_full:
            raise Unavailable("the disk is full")


class AtOnce(Executor):
    """A thread that is none: what is submitted is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class LogTwin:
    """The transcript log and recall by shared words."""

    def __init__(self) -> None:
        self._logged: dict[tuple[CampaignId, UtteranceId], Utterance] = {}
        self.turns: list[TurnRecord] = []
        self.weather = Weather()

    @property
    def utterances(self) -> dict[UtteranceId, Utterance]:
        """Return the utterances of all campaigns."""
        return {utterance.id: utterance for utterance in self._logged.values()}

    async def append(self, utterances: Sequence[Utterance]) -> None:
        await self.weather.pass_through()
        for utterance in utterances:
            self._logged.setdefault((utterance.campaign_id, utterance.id), utterance)

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        await self.weather.pass_through()
        known = self._logged.get((utterance.campaign_id, utterance.id))
        if known is None:
            raise NotFound(f"no utterance {utterance.id!r}")
        if known.text != was.text or known.text == utterance.text:
            return False
        better = replace(known, text=utterance.text, corrections=utterance.corrections)
        self._logged[known.campaign_id, known.id] = better
        return True

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        await self.weather.pass_through()
        self.turns.append(turn)

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        await self.weather.pass_through()
        said = [u for u in self._of(campaign) if u.session_id == session and u.at_ms >= since_ms]
        return sorted(said, key=lambda u: u.at_ms)[-limit:]

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        return sum(session in (None, u.session_id) for u in self._of(campaign))

    def _of(self, campaign: CampaignId) -> list[Utterance]:
        return [utterance for utterance in self._logged.values() if utterance.campaign_id == campaign]

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        await self.weather.pass_through()
        found = self._found(npc, query.text, query.exclude, sys.maxsize)
        return [one for one in found if query.between.holds(one.at_ms)][: query.limit]

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        """Nothing is in memory."""
        return None

    def _found(self, npc: NpcId, question: str, exclude: Sequence[UtteranceId], limit: int) -> list[RecalledTalk]:
        asked = set(question.lower().strip("?.").split())
        found = [
            RecalledUtterance(
                u.id,
                u.session_id,
                u.speaker_id,
                u.speaker_name,
                u.text,
                u.at_ms,
                is_own=str(u.speaker_id) == npc,
                reason=f"witnessed in session {u.session_id}",
            )
            for u in self.utterances.values()
            if npc in u.witnesses and u.id not in exclude and asked & set(u.text.lower().strip(".").split())
        ]
        return found[:limit]
