"""Hot context: what an NPC has in mind when it answers (R-012 to R-022).

Identity, look-ups and recall are gathered at the same time, each under its own deadline. A late or failed part is
left out and said so; identity then falls back to what it was last time, which also keeps the beginning of the
prompt the same for the prompt cache. The scene is known without asking.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from glyphoxa.context.knowledge import entity_sentences, within
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.relevance import bears_on, without_call
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import EntityId, NpcId, UtteranceId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports import KnowledgeGraph, PastTalk

T = TypeVar("T")

PREFETCHED_DEADLINE_MS = 8
ENTER_DEADLINE_MS = 2_000
"""Between scenes nobody waits for an answer."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """How much of each part goes into a prompt, and how long it may take to gather.

    Attributes:
        identity_tokens: Of R-016's 200 to 500 a small local model is given few: they cost it its voice.
        max_facts: Recalled and looked-up sentences together.
        facts_tokens: The same in tokens of 4 characters.
    """

    identity_tokens: int = 120
    max_facts: int = 3
    facts_tokens: int = 90
    part_deadline_ms: int = 50
    recall_deadline_ms: int = 50


class HotContextAssembly:
    """Implements `HotContextSource` over memory.

    Args:
        prefetch: Shared with the ears, which feed it partial transcripts.
        known_utterances: What an NPC's prompt already holds.
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        graph: KnowledgeGraph | None,
        talk: PastTalk | None,
        prefetch: Prefetch,
        known_utterances: Callable[[NpcId], Sequence[UtteranceId]],
        budgets: Budgets | None = None,
    ) -> None:
        self._campaign = campaign
        self._graph = graph
        self._talk = talk
        self._prefetch = prefetch
        self._known_utterances = known_utterances
        self._budgets = budgets or Budgets()
        self._scene: Scene | None = None
        self._identities: dict[NpcId, tuple[str, ...]] = {}
        self._scenes: dict[NpcId, str] = {}
        self._shown: dict[NpcId, list[str]] = {}

    async def enter(self, scene: Scene) -> None:
        """The table is in this scene now. Reads what its NPCs know of themselves, so that a prompt cache can be primed
        with the very words of the first answer.
        """
        self._scene = scene
        self._scenes = {npc: self._scene_line(scene, npc) for npc in scene.npcs}
        for npc in self._campaign.npcs:
            identity = await self._part("identity", self._identity(npc.id), ENTER_DEADLINE_MS, [])
            if identity is not None:
                self._identities[npc.id] = identity

    def new_speech(self) -> None:
        """Somebody begins to speak: the facts shown for the last question are not kept for this one."""
        self._shown.clear()

    async def gather(self, npc: NpcId, question: str) -> HotContext:
        """See `HotContextSource.gather`."""
        late: list[str] = []
        budgets = self._budgets
        # Memory has answered it while it was spoken: worth only a short wait.
        is_ready = self._prefetch.has_asked(npc, without_call(question, self._campaign.npc(npc).name))
        recall_deadline_ms = min(budgets.recall_deadline_ms, PREFETCHED_DEADLINE_MS if is_ready else sys.maxsize)
        identity, looked_up, said = await asyncio.gather(
            self._part("identity", self._identity(npc), budgets.part_deadline_ms, late),
            self._part("entities", self._entities(npc, question), budgets.part_deadline_ms, late),
            self._part("recall", self._past_talk(npc, question), recall_deadline_ms, [] if is_ready else late),
        )
        if identity is not None:
            self._identities[npc] = identity
        recalled = said if said is not None else self._prefetch.recalled(npc)
        return self._sheet(npc, question, looked_up or (), recalled, omitted=tuple(late))

    def gather_nowait(self, npc: NpcId, question: str) -> HotContext:
        """See `HotContextSource.gather_nowait`."""
        spotted = self._prefetch.spotter.spot(question).entity_ids
        looked_up = tuple(
            _as_recalled(entity, sentence)
            for entity in self._worth_telling(npc, spotted)
            for sentence in self._prefetch.entity(entity)[:1]
        )
        # While nobody speaks there is no question, and what the last one recalled is no part of the next.
        said = self._prefetch.recalled(npc) if question else ()
        return self._sheet(npc, question, looked_up, said, omitted=())

    def _sheet(
        self,
        npc: NpcId,
        question: str,
        looked_up: Sequence[Recalled],
        said: Sequence[Recalled],
        *,
        omitted: tuple[str, ...],
    ) -> HotContext:
        """Choose the facts. Those already shown for this speech come first and in the same order, so that as much as
        possible of what a prompt cache has read on a partial transcript is in the final prompt too.
        """
        asks_of_the_past = self._prefetch.spotter.spot(question).temporal
        past = [fact for fact in said if bears_on(question, fact, npc=npc, asks_of_the_past=asks_of_the_past)]
        ranked = [*past, *looked_up] if asks_of_the_past else [*looked_up, *past]
        by_text = {fact.text: fact for fact in ranked}
        shown = [text for text in self._shown.get(npc, ()) if text in by_text]
        order = list(dict.fromkeys([*shown, *by_text]))[: self._budgets.max_facts]
        facts = within(order, tokens=self._budgets.facts_tokens)
        if question:
            self._shown[npc] = facts
        return HotContext(
            facts=tuple(facts),
            recalled=tuple(by_text[text] for text in facts),
            omitted=omitted,
            identity=self._identities.get(npc, ()),
            scene=self._scenes.get(npc, ""),
        )

    async def _identity(self, npc_id: NpcId) -> tuple[str, ...]:
        npc = self._campaign.npc(npc_id)
        sentences: list[str] = []
        if self._graph is not None:
            entity, edges = await self._graph.neighbourhood(self._campaign.id, npc.entity_id)
            if entity is not None:
                sentences = entity_sentences(entity, edges)
        secrets = [f"You keep secret: {s.text}" for s in self._campaign.secrets if npc_id in s.known_by]
        return (*within(sentences, tokens=self._budgets.identity_tokens), *secrets)

    def _scene_line(self, scene: Scene, npc_id: NpcId) -> str:
        """From the campaign in memory: it is never late."""
        place = self._campaign.entity(scene.location).name
        others = [self._campaign.npc(other).name for other in scene.npcs if other != npc_id]
        parts = [scene.time_of_day, place, f"{' and '.join(others)} is here" if others else ""]
        return ", ".join(part for part in parts if part) + "."

    async def _entities(self, npc: NpcId, question: str) -> tuple[Recalled, ...]:
        spotted = self._prefetch.spotter.spot(question).entity_ids
        found: list[Recalled] = []
        for entity in self._worth_telling(npc, spotted):
            sentences = await self._prefetch.fetch_entity_now(entity)
            found.extend(_as_recalled(entity, sentence) for sentence in sentences[:1])
        return tuple(found)

    def _worth_telling(self, npc: NpcId, entities: Sequence[EntityId]) -> list[EntityId]:
        """An NPC need not be reminded of itself; its identity is in every prompt."""
        return [entity for entity in entities if entity != self._campaign.npc(npc).entity_id]

    async def _past_talk(self, npc: NpcId, question: str) -> tuple[Recalled, ...]:
        if self._talk is None or not question:
            return ()
        asked = without_call(question, self._campaign.npc(npc).name)
        exclude = self._known_utterances(npc)
        return tuple(await self._talk.recall(self._campaign.id, npc, asked, exclude=exclude))

    async def _part(self, name: str, part: Awaitable[T], deadline_ms: int, late: list[str]) -> T | None:
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await part
        except TimeoutError:
            late.append(f"{name}: not there within {deadline_ms} ms")
        except GlyphoxaError as error:
            late.append(f"{name}: {error}")
        return None


def _as_recalled(entity: EntityId, sentence: str) -> Recalled:
    return Recalled(text=sentence, source="entity", reason=f"named: {entity}")
