"""Let a table query memory without waiting for an unreachable database.

Every answer is the database's, or `Unavailable`, which is raised at once while the database is known to be away. The
caller then continues with what it has. Past utterances and named entities come from memory. A query that failed, or was
abandoned too late, triggers a check of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import Fact, RecalledTalk, Viewer
from glyphoxa.recall.vectors import NOTHING_NEAR, TextVectors
from glyphoxa.recall.world_memory import FactsByName, KnownByName
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.transcript.ports import PastTalk, SessionSummaries, TalkQuery
from glyphoxa.world.graph import (
    KNOWN_THROUGH,
    FactQuery,
    IdentitySnapshot,
    KnowledgeGraph,
    Known,
    Passage,
    Reached,
    Subgraph,
    TalkAround,
    Walk,
)

T = TypeVar("T")


class MemoryGuard:
    """Wraps a `KnowledgeGraph`, a `PastTalk`, `SessionSummaries` and `FactsByName`. See the module."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        talk: PastTalk,
        summaries: SessionSummaries,
        watch: MemoryWatch,
        *,
        by_name: FactsByName,
    ) -> None:
        self._graph = graph
        self._talk = talk
        self._by_name = by_name
        self._summaries = summaries
        self._watch = watch

    async def entities(self, campaign: CampaignId, viewer: Viewer, *, of_type: str | None = None) -> list[Entity]:
        return await self._ask(lambda: self._graph.entities(campaign, viewer, of_type=of_type))

    async def entities_called(self, campaign: CampaignId, viewer: Viewer, name: str) -> list[Entity]:
        return await self._ask(lambda: self._graph.entities_called(campaign, viewer, name))

    async def entities_like(
        self, campaign: CampaignId, viewer: Viewer, name: str, *, of_type: str | None = None
    ) -> list[Entity]:
        return await self._ask(lambda: self._graph.entities_like(campaign, viewer, name, of_type=of_type))

    async def entities_if_few(
        self, campaign: CampaignId, viewer: Viewer, *, most: int, of_type: str | None = None
    ) -> list[Entity] | None:
        return await self._ask(lambda: self._graph.entities_if_few(campaign, viewer, most=most, of_type=of_type))

    async def entities_of(self, campaign: CampaignId, viewer: Viewer, ids: Collection[EntityId]) -> list[Entity]:
        return await self._ask(lambda: self._graph.entities_of(campaign, viewer, ids))

    async def known(self, campaign: CampaignId, viewer: Viewer, entity: EntityId) -> Known | None:
        return await self._ask(lambda: self._graph.known(campaign, viewer, entity))

    async def identity_snapshot(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        await self.refresh(campaign)
        return self._by_name.identity(campaign, npc, entity)

    async def visible_subgraph(
        self,
        campaign: CampaignId,
        npc: NpcId,
        entity: EntityId,
        *,
        depth: int = 1,
        through: Collection[str] = KNOWN_THROUGH,
    ) -> Subgraph:
        return await self._ask(
            lambda: self._graph.visible_subgraph(campaign, npc, entity, depth=depth, through=through)
        )

    async def traverse(self, campaign: CampaignId, viewer: Viewer, entity: EntityId, walk: Walk) -> list[Reached]:
        return await self._ask(lambda: self._graph.traverse(campaign, viewer, entity, walk))

    async def path(
        self, campaign: CampaignId, viewer: Viewer, source: EntityId, target: EntityId, *, max_depth: int = 6
    ) -> list[tuple[Fact, Entity]] | None:
        return await self._ask(lambda: self._graph.path(campaign, viewer, source, target, max_depth=max_depth))

    async def facts(self, campaign: CampaignId, viewer: Viewer, wanted: FactQuery) -> list[Fact]:
        return await self._ask(lambda: self._graph.facts(campaign, viewer, wanted))

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        if self._watch.is_away:
            # What is in memory needs no database. The embedder may be a service that is as far away.
            cached = self._talk.recall_nowait(campaign, npc, query)
            if cached is not None:
                return cached
        return await self._ask(lambda: self._talk.recall(campaign, npc, query, patient=patient))

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        return self._talk.recall_nowait(campaign, npc, query)

    @property
    def meanings(self) -> TextVectors:
        return self._by_name.meanings

    async def refresh(self, campaign: CampaignId) -> None:
        await self._ask(lambda: self._by_name.refresh(campaign))

    def identity(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        return self._by_name.identity(campaign, npc, entity)

    def by_name(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        nearest: Mapping[str, float] = NOTHING_NEAR,
        at_hand: Collection[EntityId] = (),
    ) -> list[KnownByName] | None:
        return self._by_name.by_name(campaign, npc, question, nearest=nearest, at_hand=at_hand)

    def terms(self, campaign: CampaignId, npc: NpcId) -> Sequence[tuple[str, str]]:
        return self._by_name.terms(campaign, npc)

    async def summary(self, campaign: CampaignId, npc: NpcId, session: SessionId) -> str | None:
        return await self._ask(lambda: self._summaries.summary(campaign, npc, session))

    async def latest(self, campaign: CampaignId, npc: NpcId, *, but: SessionId, limit: int) -> list[str]:
        return await self._ask(lambda: self._summaries.latest(campaign, npc, but=but, limit=limit))

    def over(self, talk: TalkAround) -> TalkAround:
        """Wrap a search around an entity, which not every memory has."""
        return _GuardedAround(talk, self._ask)

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        if self._watch.is_away:
            raise Unavailable("long-term memory is unavailable")  # `MemoryWatch` reports the reason once
        try:
            return await question()
        except (GlyphoxaError, asyncio.CancelledError):
            self._watch.suspect()  # a caller that gave up may have waited too long
            raise


class _GuardedAround:
    """A `TalkAround`."""

    def __init__(
        self, talk: TalkAround, ask: Callable[[Callable[[], Awaitable[list[Passage]]]], Awaitable[list[Passage]]]
    ) -> None:
        self._talk = talk
        self._ask = ask

    async def recall_around(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, limit: int = 5
    ) -> list[Passage]:
        return await self._ask(lambda: self._talk.recall_around(campaign, viewer, question, around=around, limit=limit))
