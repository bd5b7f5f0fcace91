"""Answer at once, from memory, what each NPC of a campaign may know of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import AUTO_ACCEPT, RecalledFact
from glyphoxa.language.relations import RelationWords
from glyphoxa.language.sentence_form import AskKind, question_of
from glyphoxa.prompt.select import recalled, select_facts, without_call, worded
from glyphoxa.recall.facts import is_secret
from glyphoxa.recall.vectors import QuestionVectors, TextVectors
from glyphoxa.recall.world import KnownByName, World, WorldMemory
from glyphoxa.world.file_claims import state_of_file
from glyphoxa.world.graph import Known

_FARTHEST: Final = 4
"""Most relations in a chain. A longer one means nothing and fills the prompt."""
_NOW_MS: Final = 0
"""The content of a campaign's file holds at all times."""


class KnownWorld:
    """
    Args:
        memory: None without long-term memory: the campaign's file is the source. With it the file tells facts to nobody
            but its NPCs about themselves, and only until the stored world was read, because the DM may have hidden what
            the file makes public.
        accept_at: The certainty from which the file's facts are accepted, if it is the source.

    Attributes:
        place: Where the NPCs are; None before the first scene.
        meanings: Vectors of the texts of the world and of its author; without long-term memory there are none.
    """

    def __init__(self, campaign: Campaign, memory: WorldMemory | None, *, accept_at: float = AUTO_ACCEPT) -> None:
        self.campaign = campaign
        self.place: EntityId | None = None
        self._accept_at = accept_at
        self._relations = RelationWords.of(campaign)
        self._memory = memory
        self.meanings = TextVectors(None, QuestionVectors(None)) if memory is None else memory.meanings
        self._own = {npc.id: npc.entity_id for npc in campaign.npcs}
        self._called = {npc.id: (npc.name, (*npc.aliases, *filter(None, (npc.role,)))) for npc in campaign.npcs}

    @property
    def current(self) -> World | None:
        """The world in memory, or without long-term memory that of the file.

        None until the stored one was read, while it is read again, and until the campaign is stored.
        """
        if self._memory is None:
            return self.of_file
        world = self._memory.world
        return None if world is None or world.is_empty else world

    @property
    def is_stored(self) -> bool:
        """Return whether long-term memory has it, and not only the campaign's file."""
        return self._memory is not None

    @cached_property
    def of_file(self) -> World:
        """The world of the campaign's file."""
        campaign = self.campaign
        also = {npc.entity_id: (npc.name, *npc.aliases) for npc in campaign.npcs}
        state = state_of_file(campaign, accept_at=self._accept_at)
        return World(state, now_ms=lambda: _NOW_MS, language=campaign.language, also_called=also)

    def asked(self, npc: NpcId, question: str) -> str:
        """Return the question without the words that call the NPC."""
        name, aliases = self._called[npc]
        return without_call(question, name, aliases)

    async def understand(self, npc: NpcId, question: str, *, deadline_ms: int) -> None:
        """Embed a question, so that facts are found by its meaning. Never raises for an error of the model."""
        await self.meanings.ask(self.asked(npc, question), deadline_ms=deadline_ms)

    def nearest(self, npc: NpcId, question: str) -> Mapping[str, float]:
        """Return the texts of any campaign, world or author that are nearest to a question; see `TextVectors.nearest`.

        They are no answer: an NPC may know only some of them.
        """
        return self.meanings.nearest(self.asked(npc, question))

    async def refresh(self) -> None:
        """Bring the memory up to date.

        Raises:
            GlyphoxaError: The changes cannot be read; the memory is unchanged.
        """
        if self._memory is not None:
            await self._memory.refresh()

    def named(self, npc: NpcId, question: str) -> list[KnownByName]:
        """Return the entities in the question that the NPC knows, except itself, whose identity is in every prompt, and
        facts that are near to the question in meaning.

        Empty if nothing is in memory.
        """
        if (world := self.current) is None or not question:
            return []
        own = self._own.get(npc)
        at_hand = [one for one in (own, self.place) if one is not None]
        found = world.by_name(npc, question, nearest=self.nearest(npc, question), at_hand=at_hand)
        return [one for one in found if one.known.entity.id != own or one.similarity is not None]

    def known(self, npc: NpcId, entity: EntityId) -> Known | None:
        """Return what an NPC may know of an entity now; None if nothing.

        While the stored world is not in memory, it is only that the campaign's file has the entity.
        """
        if (world := self.current) is not None:
            return world.known(npc, entity)
        found = self.of_file.known(npc, entity)
        return None if found is None else Known(found.entity)

    def chain(self, npc: NpcId, question: str) -> tuple[RecalledFact, ...]:
        """Return the shortest chain of relations between two entities in a question, if it asks for their relation.

        The facts about each of the two are found by name. A chain over others ("Is Orla anything to Bram?": she is
        Tamsin's sister, and Tamsin works for him) is not. Empty if there is none that the NPC may know and tell.
        """
        if (world := self.current) is None or not (ends := self._related(npc, question)):
            return ()
        at, other = ends
        found: list[RecalledFact] = []
        for fact, entity in world.path(npc, at.id, other.id, max_depth=_FARTHEST) or ():
            text = "" if is_secret(fact) else worded(fact, entity, Known(at), self._relations)
            if not text:
                return ()
            why = f"asks how {ends[0].name!r} and {ends[1].name!r} are related"
            found.append(replace(recalled(text, fact, npc), path=why))
            at = entity
        return tuple(found)

    def _related(self, npc: NpcId, question: str) -> tuple[Entity, ...]:
        """Return the two entities whose relation a question asks for; empty if it does not ask for one."""
        asked = question_of(question, self.campaign.language)
        if not asked.has(AskKind.HOW_RELATED):
            return ()
        two = [one.known.entity for one in self.named(npc, question) if one.is_named][:2]
        if len(two) == 1 and asked.has(AskKind.NPC):
            two.append(Entity(self._own[npc], "npc", self._called[npc][0]))
        return tuple(two) if len(two) == 2 else ()

    def terms(self, npc: NpcId) -> Sequence[tuple[str, str]]:
        """Return the terms coined in play that an NPC may know; see `World.terms`."""
        return () if self.current is None else self.current.terms(npc)

    def facts(self, npc: NpcId, question: str) -> list[RecalledFact]:
        """Return the facts about them that fit into a prompt. See `named`."""
        # "Who is your sister?" asks the NPC about itself, "Do you know my sister?" does not.
        asked = question_of(question, self.campaign.language)
        is_of_itself = asked.has(AskKind.NPC) and not asked.has(AskKind.ASKER)
        itself = self.known(npc, self._own[npc]) if is_of_itself else None
        return select_facts(self.named(npc, question), question, npc, words=self._relations, itself=itself)
