"""Looking things up while somebody is still speaking (R-037 to R-043).

A partial transcript that holds a known name fetches what each NPC here knows of it; one that refers to the past asks
memory what each has heard about it. The answers are there before the question is finished; a late one is simply not
there yet. Nothing of this is awaited by the voice path, and what was fetched for one NPC is shown to no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from loguru import logger

from glyphoxa.context.relevance import without_call
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, UtteranceId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports.graph import KnowledgeGraph, Known
from glyphoxa.memory.ports.talk import PastTalk
from glyphoxa.speech.names.keywords import Spotted


class Spotter(Protocol):
    """See `glyphoxa.speech.names.keywords.KeywordSpotter`."""

    def spot(self, partial_text: str, /) -> Spotted: ...


class Prefetch:
    """What was looked up ahead for the speech that is going on.

    Args:
        present: The NPCs in the scene, with their names, asked for at each partial.
        known_utterances: What an NPC's prompt already holds, so that it is not recalled again.
        names: What the entities of the campaign's file are called there.
        deadline_ms: After this a look-up is given up; well above what a healthy database needs.
        max_recalled: Utterances that memory is asked for.
    """

    def __init__(
        self,
        campaign: CampaignId,
        *,
        graph: KnowledgeGraph | None,
        talk: PastTalk | None,
        spotter: Spotter,
        present: Callable[[], Mapping[NpcId, str]],
        known_utterances: Callable[[NpcId], Sequence[UtteranceId]],
        names: Mapping[EntityId, str] | None = None,
        deadline_ms: int = 1_000,
        min_words: int = 3,
        max_recalled: int = 8,
    ) -> None:
        self._campaign = campaign
        self._graph = graph
        self._talk = talk
        self.spotter = spotter
        self._present = present
        self._known_utterances = known_utterances
        self._names = names or {}
        self._deadline_ms = deadline_ms
        self._min_words = min_words
        self._max_recalled = max_recalled
        self._entities: dict[tuple[NpcId, EntityId], Known | None] = {}
        self._recalled: dict[NpcId, tuple[Recalled, ...]] = {}
        self._answered: dict[NpcId, list[str]] = {}
        self._asked: dict[PlayerId, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._talking: dict[PlayerId, list[asyncio.Task[None]]] = {}

    def has_asked(self, npc: NpcId, question: str) -> bool:
        """Whether memory has answered this very question while it was spoken. The last word often carries it."""
        return self._answered.get(npc) == question.casefold().split()

    def forget(self, player: PlayerId) -> None:
        """A new speech begins: what was recalled for the last one does not belong to it, and what was known then may be
        known otherwise now.
        """
        self._asked.pop(player, None)
        self._entities.clear()
        self._recalled.clear()
        self._answered.clear()

    def graph_changed(self) -> None:
        """What was fetched of entities may be others' or old."""
        self._entities.clear()

    def on_partial(self, player: PlayerId, text: str) -> None:
        """A corrected partial transcript. Starts look-ups and returns at once."""
        spotted = self.spotter.spot(text)
        present = self._present()
        for npc in present if self._graph is not None else ():
            for entity in spotted.entity_ids:
                if (npc, entity) not in self._entities:
                    self._entities[npc, entity] = None
                    self._start(partial(self._fetch_entity, npc, entity))
        words = text.split()
        # The last word of a partial is often half a word, unless a sentence ends with it.
        question = " ".join(words if text.rstrip().endswith((".", "?", "!")) else words[:-1])
        is_worth_asking = spotted.temporal or bool(spotted.entity_ids) or len(words) > self._min_words
        if self._talk is not None and is_worth_asking and self._asked.get(player) != question:
            self._asked[player] = question
            # Only the newest words matter; an older look-up that is still running is in their way.
            for look_up in self._talking.pop(player, ()):
                look_up.cancel()
            for npc, name in present.items():
                asked = without_call(question, name)
                self._remind(npc, asked)
                look_up = self._start(partial(self._fetch_talk, npc, asked))
                self._talking.setdefault(player, []).append(look_up)

    def entity(self, npc: NpcId, entity: EntityId) -> Known | None:
        """What this NPC knows of an entity, if it has been fetched: all of it, as what is asked of it is not known
        before the question ends.
        """
        return self._entities.get((npc, entity))

    def recalled(self, npc: NpcId) -> tuple[Recalled, ...]:
        """What this NPC was reminded of by the speech so far."""
        return self._recalled.get(npc, ())

    async def fetch_entity_now(self, npc: NpcId, entity: EntityId) -> Known | None:
        """The same as `entity`, fetched if need be."""
        if self.entity(npc, entity) is None and self._graph is not None:
            await self._fetch_entity(npc, entity)
        return self.entity(npc, entity)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, look_up: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def within_deadline() -> None:
            try:
                async with asyncio.timeout(self._deadline_ms / 1000):
                    await look_up()
            except (TimeoutError, GlyphoxaError) as error:
                logger.debug("pre-fetch gave up: {}", str(error) or type(error).__name__)

        task = asyncio.create_task(within_deadline())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fetch_entity(self, npc: NpcId, entity: EntityId) -> None:
        assert self._graph is not None  # noqa: S101 - only started with a graph
        known = await self._graph.known(self._campaign, npc, entity)
        if known is not None and known.entity.id != entity and not self._is_called(known.entity, entity):
            known = None
        self._entities[npc, entity] = known

    def _is_called(self, kept: Entity, gone: EntityId) -> bool:
        """Whether an entity goes by the name of one that was merged into it. Where not everybody may know that name,
        who hears it is not told whose it is.
        """
        return self._names.get(gone) in (kept.name, *kept.aliases)

    def _remind(self, npc: NpcId, question: str) -> None:
        """By words and at once; what it means to say is asked behind it."""
        assert self._talk is not None  # noqa: S101 - only called with memory
        exclude, limit = self._known_utterances(npc), self._max_recalled
        reminded = self._talk.remind(self._campaign, npc, question, exclude=exclude, limit=limit)
        if reminded is not None:
            self._recalled[npc] = tuple(reminded)

    async def _fetch_talk(self, npc: NpcId, question: str) -> None:
        assert self._talk is not None  # noqa: S101 - only started with memory
        exclude, limit = self._known_utterances(npc), self._max_recalled
        recalled = await self._talk.recall(self._campaign, npc, question, exclude=exclude, limit=limit, patient=True)
        self._recalled[npc] = tuple(recalled)
        self._answered[npc] = question.casefold().split()
