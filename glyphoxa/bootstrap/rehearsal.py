"""An NPC that is asked with nobody to hear it: the prompt that its model would be sent, as a table would make it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.mind import Mind, guard_at_a_desk, mind_of, names_at_a_desk, state_at_a_desk
from glyphoxa.config.settings import Settings
from glyphoxa.context.composition import ComposedPrompt, compose
from glyphoxa.context.prompt import BEHIND_THE_QUESTION
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.live_table import enter


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A table with one player, and nobody to hear it.

    Attributes:
        memory: None without long-term memory, and for a campaign that is not stored yet.
    """

    settings: Settings
    memory: Store | None
    mind: Mind
    npc: Npc
    player: Player

    async def ask(self, line: str) -> ComposedPrompt:
        """What the NPC's model would be sent if the player said this. No model is asked, and nothing is changed."""
        state, player = self.mind.state, self.player
        names = names_at_a_desk(self.settings, state.campaign, self.memory)
        await names.open()
        text = names.correct(" ".join(line.split())).text
        state.sits_down(player)
        async with self._in_the_scene():
            self.mind.prefetch.forget(player.id)
            self.mind.context.new_speech()
            prompt = state.conversations[self.npc.id].prompt(text, player.name)
            facts_at = BEHIND_THE_QUESTION if self.npc.engine == "s2s" else self.settings.context.facts_at
            deadline_ms = self.settings.context.deadline_ms
            return await compose(self.mind.context, prompt, facts_at, deadline_ms=deadline_ms)

    @asynccontextmanager
    async def _in_the_scene(self) -> AsyncIterator[None]:
        """With what a table reads before anybody speaks."""
        state = self.mind.state
        try:
            if self.memory is not None:
                await self.memory.past_talk.refresh(state.campaign.id)
                await self.memory.by_name.refresh(state.campaign.id)
            await enter(state.scene, state, self.mind.context)
            yield
        finally:
            await self.mind.prefetch.close()


def rehearsal_of(
    settings: Settings,
    store: Store | None,
    campaign: Campaign,
    who: tuple[Npc, Player],
    session: tuple[SessionId, Scene | None, Sequence[Utterance]],
) -> Rehearsal:
    """
    Args:
        store: None without long-term memory.
        who: Who is asked, and by whom.
        session: Which, where it is, and what was said of it that is still in mind; without a scene the table is where
            it would open, or where it has this NPC.
    """
    npc, player = who
    name, scene, said = session
    state = state_at_a_desk(settings, campaign, name)
    state.remember(said)
    if scene is not None:
        state.scene = scene
    elif npc.id not in state.scene.npcs:
        state.scene = next((each for each in campaign.scenes if npc.id in each.npcs), state.scene)
    mind = mind_of(settings, state, store, None if store is None else guard_at_a_desk(store))
    return Rehearsal(settings, store, mind, npc, player)
