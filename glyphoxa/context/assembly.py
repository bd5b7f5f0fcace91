"""Hot context: what an NPC has in mind when it answers (R-012 to R-022).

Identity, look-ups and recall are gathered at the same time, each under its own deadline and in the name of the NPC that
is to answer. A late or failed part is left out and said so; identity then falls back to what it was last time, which
also keeps the beginning of the prompt the same for the prompt cache, or at first to what the campaign's file lets this
NPC know. The scene is known without asking.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from loguru import logger

from glyphoxa.context.choice import chosen
from glyphoxa.context.knowledge import fact_sentence, sentences_of, within
from glyphoxa.context.of_file import ScopedKnowledge
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.relevance import bears_on, without_call
from glyphoxa.context.told import told_of
from glyphoxa.domain.campaign import Campaign, Entity, Scene
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import EntityId, NpcId, UtteranceId
from glyphoxa.domain.knowledge import DM, Fact
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports.graph import IdentitySnapshot, KnowledgeGraph, Known
from glyphoxa.memory.ports.talk import PastTalk

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
        max_recalled: Utterances that memory is asked for, from which these are chosen.
    """

    identity_tokens: int = 120
    max_facts: int = 3
    facts_tokens: int = 90
    max_recalled: int = 8
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
        self._of_file = ScopedKnowledge.of_file(campaign)
        self._identities: dict[NpcId, tuple[str, ...]] = {}
        self._ends: dict[tuple[NpcId, EntityId], Entity] = {}
        self._scenes: dict[NpcId, str] = {}
        self._shown: dict[NpcId, tuple[str, ...]] = {}

    async def enter(self, scene: Scene) -> None:
        """The table is in this scene now. Reads what its NPCs know of themselves, so that a prompt cache can be primed
        with the very words of the first answer.
        """
        self._scene = scene
        self._ends.clear()
        self._scenes = {npc: self._scene_line(scene, npc) for npc in scene.npcs}
        npcs = [npc.id for npc in self._campaign.npcs]
        found = await asyncio.gather(
            *(self._part("identity", self._identity(npc), ENTER_DEADLINE_MS, []) for npc in npcs)
        )
        for npc, identity in zip(npcs, found, strict=True):
            if identity is not None:
                self._identities[npc] = identity
            elif npc not in self._identities:
                self._identities[npc] = await self._identity_of_file(npc)

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
        known = {entity: self._prefetch.entity(npc, entity) for entity in self._worth_telling(npc, spotted)}
        looked_up = self._told(npc, question, known, spotted)
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
        # What stands in the identity is in the prompt already.
        identity = self._identities.get(npc, ())
        ranked = [fact for fact in ranked if fact.text not in identity]
        facts = chosen(
            ranked,
            tokens=self._budgets.facts_tokens,
            most=self._budgets.max_facts,
            already=self._shown.get(npc, ()),
        )
        texts = tuple(fact.text for fact in facts)
        if question:
            self._shown[npc] = texts
        return HotContext(
            facts=texts,
            recalled=tuple(facts),
            omitted=omitted,
            identity=identity,
            scene=self._scenes.get(npc, ""),
        )

    async def _identity(self, npc_id: NpcId) -> tuple[str, ...]:
        if self._graph is None:
            return await self._identity_of_file(npc_id)
        entity = self._campaign.npc(npc_id).entity_id
        snapshot = await self._graph.identity_snapshot(self._campaign.id, npc_id, entity)
        if snapshot is None:
            if await self._graph.known(self._campaign.id, DM, entity) is not None:
                return ()  # it is not for this NPC to know, whatever it or the file knew before
            return self._identities.get(npc_id) or await self._identity_of_file(npc_id)  # it is not stored yet
        return await self._in_words(npc_id, snapshot)

    async def _identity_of_file(self, npc_id: NpcId) -> tuple[str, ...]:
        snapshot = self._of_file.identity(npc_id, self._campaign.npc(npc_id).entity_id)
        return await self._in_words(npc_id, snapshot) if snapshot is not None else ()

    async def _in_words(self, npc_id: NpcId, snapshot: IdentitySnapshot) -> tuple[str, ...]:
        sentences = [sentence.text for sentence in sentences_of(snapshot.known)]
        known = snapshot.known
        ends = {known.entity.id: known.entity, **{other.id: other for _, other in known.relations}}
        secrets = [await self._secret(npc_id, fact, ends) for fact in snapshot.secrets]
        kept = [f"You keep secret: {secret}" for secret in dict.fromkeys(secrets) if secret]
        return (*within(sentences, tokens=self._budgets.identity_tokens), *kept)

    async def _secret(self, npc_id: NpcId, fact: Fact, ends: dict[EntityId, Entity]) -> str:
        claim = fact.claim
        if claim.predicate == "secret" and isinstance(claim.content, str):
            return claim.content  # a sentence of its own
        subject = await self._end(npc_id, claim.subject, ends)
        other = await self._end(npc_id, claim.object, ends) if claim.object is not None else None
        if subject is None or (claim.object is not None and other is None):
            return ""
        return fact_sentence(fact, subject, other)

    async def _end(self, npc_id: NpcId, entity: EntityId, ends: dict[EntityId, Entity]) -> Entity | None:
        """An entity that a secret speaks of: asked for once, as it is only for its name."""
        found = ends.get(entity) or self._ends.get((npc_id, entity)) or self._of_file.entity(npc_id, entity)
        if found is None and self._graph is not None:
            known = await self._graph.known(self._campaign.id, npc_id, entity)
            if known is not None:
                found = self._ends[npc_id, entity] = known.entity
        return found

    def _scene_line(self, scene: Scene, npc_id: NpcId) -> str:
        """From the campaign in memory: it is never late."""
        place = self._campaign.entity(scene.location).name
        others = [self._campaign.npc(other).name for other in scene.npcs if other != npc_id]
        parts = [scene.time_of_day, place, f"{' and '.join(others)} is here" if others else ""]
        return ", ".join(part for part in parts if part) + "."

    async def _entities(self, npc: NpcId, question: str) -> tuple[Recalled, ...]:
        spotted = self._prefetch.spotter.spot(question).entity_ids
        known = {
            entity: await self._prefetch.fetch_entity_now(npc, entity) for entity in self._worth_telling(npc, spotted)
        }
        return self._told(npc, question, known, spotted)

    def _told(
        self, npc: NpcId, question: str, known: Mapping[EntityId, Known | None], named: Sequence[EntityId]
    ) -> tuple[Recalled, ...]:
        return tuple(
            told
            for one in known.values()
            if one is not None
            for told in told_of(one, question, npc, named=named, language=self._campaign.language)
        )

    def _worth_telling(self, npc: NpcId, entities: Sequence[EntityId]) -> list[EntityId]:
        """An NPC need not be reminded of itself; its identity is in every prompt."""
        return [entity for entity in entities if entity != self._campaign.npc(npc).entity_id]

    async def _past_talk(self, npc: NpcId, question: str) -> tuple[Recalled, ...]:
        if self._talk is None or not question:
            return ()
        asked = without_call(question, self._campaign.npc(npc).name)
        exclude = self._known_utterances(npc)
        limit = self._budgets.max_recalled
        return tuple(await self._talk.recall(self._campaign.id, npc, asked, exclude=exclude, limit=limit))

    async def _part(self, name: str, part: Awaitable[T], deadline_ms: int, late: list[str]) -> T | None:
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await part
        except TimeoutError:
            late.append(f"{name}: not there within {deadline_ms} ms")
        except GlyphoxaError as error:
            late.append(f"{name}: {error}")
        except Exception as error:
            # The edge between memory and a turn: a bug in a look-up costs that look-up, never the NPC's answer.
            logger.exception("hot context without {}", name)
            late.append(f"{name}: {type(error).__name__}")
        return None
