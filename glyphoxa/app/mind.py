"""What the NPCs of a table have in mind: for a table that is played, and for who looks into it without one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app import correction
from glyphoxa.config.settings import Settings
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.composition import ComposedPrompt, compose
from glyphoxa.context.conversation import Conversation
from glyphoxa.context.identity import beginning
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.prompt import BEHIND_THE_QUESTION
from glyphoxa.context.scene import Past
from glyphoxa.context.selection import ByName
from glyphoxa.context.wording import wording
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.session import enter
from glyphoxa.npc.table import TableState
from glyphoxa.recall.guard import MemoryGuard
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.sessions import LastSessions


@dataclass(frozen=True, slots=True)
class Mind:
    """
    Attributes:
        state: Where the table is, who is there, and what each NPC has heard.
        context: What gathers the rest for an answer.
    """

    state: TableState
    prefetch: Prefetch
    context: HotContextAssembly


def state_of(settings: Settings, campaign: Campaign, session: SessionId, mark: SessionMark) -> TableState:
    """Where the session was left, else in the first scene. Nobody is seated, and nothing was heard."""
    tokens = settings.budgets.history_tokens
    left_in = mark.before.scene if mark.before is not None else None
    scene = next((scene for scene in campaign.scenes if scene.id == left_in), campaign.scenes[0])
    conversations = {
        npc.id: Conversation(
            _with_fillers(npc, settings, campaign), beginning=beginning(campaign, npc), history_tokens=tokens
        )
        for npc in campaign.npcs
    }
    return TableState(campaign, session, scene, conversations)


def _with_fillers(npc: Npc, settings: Settings, campaign: Campaign) -> Npc:
    """Its author's, else its language's where the settings ask for some: a hosted voice is paid to render them."""
    is_without = settings.filler_after_ms and not npc.fillers
    return replace(npc, fillers=wording(campaign.language).fillers) if is_without else npc


def mind_of(settings: Settings, state: TableState, store: Store | None, guard: MemoryGuard | None) -> Mind:
    """
    Args:
        store: None without long-term memory; `guard` is what may be asked of it.
    """
    campaign = state.campaign
    budgets = settings.budgets
    prefetch = Prefetch(
        campaign.id,
        by_name=ByName(campaign, guard, accept_at=settings.memory.auto_accept),
        talk=guard,
        language=campaign.language,
        present=state.present_names,
        known_utterances=state.known_utterances,
        max_recalled=budgets.max_recalled,
    )
    context = HotContextAssembly(
        campaign,
        graph=guard,
        talk=guard,
        prefetch=prefetch,
        known_utterances=state.known_utterances,
        holds_words=state.holds_words,
        heard_before=state.heard_before,
        talk_of=state.talk_of,
        story_day=lambda: campaign.story_day if store is None else store.past_talk.transcripts.story_day(campaign.id),
        budgets=budgets,
        past=Past(campaign, guard, session=state.session, tokens=budgets.past_tokens),
        accept_at=settings.memory.auto_accept,
        # A model that answers in place of a larger one is given the same context.
        repairs=any(each.profile.needs_repairs for each in settings.in_turn),
    )
    return Mind(state, prefetch, context)


def state_at_a_desk(settings: Settings, campaign: Campaign, session: SessionId) -> TableState:
    """As a table would open that session."""
    mark = SessionMark(LastSessions(settings.data_directory), campaign.id, session, now_ms=now_ms)
    return state_of(settings, campaign, session, mark)


def guard_at_a_desk(store: Store) -> MemoryGuard:
    """Memory for one question. Nobody looks whether a database that fails is back."""

    async def ping() -> None: ...

    watch = MemoryWatch(ping=ping, make_good=ping, changed=lambda: None, now_ms=now_ms)
    return MemoryGuard(store.graph, store.past_talk, store.summaries, watch, by_name=store.by_name)


def names_at_a_desk(settings: Settings, campaign: Campaign, store: Store | None) -> TableNames:
    """The names of a table that nobody plays: nothing is learned."""

    async def never(_: UtteranceId) -> bool:
        return False

    return correction.make_names(campaign, settings.correction, store, now_ms=now_ms, wait_until_logged=never)


# An NPC that is asked with nobody to hear it: the prompt that its model would be sent, as a table would make it.


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
                await self.memory.past_talk.transcripts.refresh(state.campaign.id)
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
