"""Rehearsals: the prompt that a table would make for a player's line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import make_names
from glyphoxa.app.table import state_of, table_context
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.prompt_budgets import BEHIND_THE_QUESTION
from glyphoxa.npc.session import enter
from glyphoxa.npc.table_state import TableState
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.prompt import ComposedPrompt, PromptShape, compose
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.sessions import LastSessions


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """An NPC and a player as at a table, to compose prompts. Nothing is spoken or stored.

    Attributes:
        memory: None without long-term memory, and for a campaign that is not stored.
    """

    settings: Settings
    memory: Store | None
    state: TableState
    context: HotContexts
    npc: Npc
    player: Player

    async def ask(self, line: str) -> ComposedPrompt:
        """Return the prompt for the NPC's model if the player said this line."""
        state, player = self.state, self.player
        names = make_names(state.campaign, self.settings.correction, self.memory, now_ms=now_ms)
        await names.open()
        text = names.correct(" ".join(line.split())).text
        state.add_player(player)
        async with self._in_the_scene():
            self.context.prefetch.begin(player.id)
            prompt = state.conversations[self.npc.id].prompt(text, player.name)
            facts_at = BEHIND_THE_QUESTION if self.npc.engine == "s2s" else self.settings.facts_at
            shape = PromptShape(facts_at, self.settings.budgets.window_tokens)
            return await compose(self.context, prompt, shape)

    @asynccontextmanager
    async def _in_the_scene(self) -> AsyncIterator[None]:
        """Read what a table reads before anybody speaks."""
        state = self.state
        try:
            if self.memory is not None:
                await self.memory.read(state.campaign.id)
            await enter(state.scene, state, self.context)
            yield
        finally:
            await self.context.prefetch.close()


def rehearsal_of(
    settings: Settings,
    store: Store | None,
    campaign: Campaign,
    who: tuple[Npc, Player],
    session: tuple[SessionId, Scene | None, Sequence[Utterance]],
) -> Rehearsal:
    """Prepare the prompts of an NPC.

    Args:
        store: None without long-term memory.
        who: The NPC, and the player who asks.
        session: Its id, its scene and its last utterances. Without a scene: the one where a table would open, or the
            first one with this NPC.
    """
    npc, player = who
    name, scene, said = session
    mark = SessionMark(LastSessions(settings.data_directory), campaign.id, name, now_ms=now_ms)
    state = state_of(settings, campaign, name, mark)
    state.remember(said)
    if scene is not None:
        state.scene = scene
    elif npc.id not in state.scene.npcs:
        state.scene = next((each for each in campaign.scenes if npc.id in each.npcs), state.scene)
    context = table_context(settings, state, store)
    return Rehearsal(settings, store, state, context, npc, player)
