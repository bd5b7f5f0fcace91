"""Rehearsals: the prompt that a table would make for a player's line."""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import make_names
from glyphoxa.app.memory import SAID_BEFORE
from glyphoxa.app.scope import Scope
from glyphoxa.app.table import state_of, table_context
from glyphoxa.config.settings import Settings
from glyphoxa.domain.budgets import BEHIND_THE_QUESTION
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.npc.session import enter
from glyphoxa.npc.table import Table
from glyphoxa.prompt.prompt import ComposedPrompt, PromptShape, compose
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.sessions import LastSessions


class Rehearsal:
    """A table at which nothing is spoken or stored, to see the prompts that it would make.

    Args:
        store: None without long-term memory, and for a campaign that is not stored.
        said: The last utterances of the session.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store | None,
        campaign: Campaign,
        session: SessionId,
        said: Sequence[Utterance] = (),
    ) -> None:
        mark = SessionMark(LastSessions(settings.data_directory), campaign.id, session, now_ms=now_ms)
        self.state = state_of(settings, campaign, session, mark)
        self.state.remember(said)
        self._settings = settings
        self._store = store
        self._context = table_context(settings, self.state, store)

    async def ask(self, npc: Npc, player: Player, line: str, *, scene: Scene | None = None) -> ComposedPrompt:
        """Return the prompt for the NPC's model if the player said this line.

        Args:
            scene: None: the one where a table would open, or the first one with this NPC.
        """
        state, settings, context = self.state, self._settings, self._context
        if scene is None and npc.id not in state.scene.npcs:
            scene = next((each for each in state.campaign.scenes if npc.id in each.npcs), None)
        names = make_names(state.campaign, settings.correction, self._store, now_ms=now_ms)
        await names.open()
        text = names.correct(" ".join(line.split())).text
        state.add_player(player)
        try:
            # Read what a table reads before anybody speaks.
            if self._store is not None:
                await self._store.read(state.campaign.id)
            await enter(scene or state.scene, state, context)
            context.prefetch.begin(player.id)
            prompt = state.conversations[npc.id].prompt(text, player.name)
            facts_at = BEHIND_THE_QUESTION if npc.engine == "s2s" else settings.facts_at
            return await compose(context, prompt, PromptShape(facts_at, settings.budgets.window_tokens))
        finally:
            await context.prefetch.close()


async def rehearse(scope: Scope, table: Table, npc: NpcId, player: Player, line: str) -> ComposedPrompt:
    """Return an NPC's prompt for a player's line at an open table. Raises: Unavailable: The database is away."""
    said = await scope.store.log.recent(scope.campaign, table.session, since_ms=0, limit=SAID_BEFORE)
    scene = table.scene if npc in table.scene.npcs else None
    asked = Rehearsal(scope.settings, scope.store, table.campaign, table.session, said)
    return await asked.ask(table.campaign.npc(npc), player, line, scene=scene)
