"""What the NPCs of a table have in mind: for a table that is played, and for who looks into it without one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap import correction
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.config.settings import Settings
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.beginning import beginning
from glyphoxa.context.by_name import ByName
from glyphoxa.context.conversation import Conversation
from glyphoxa.context.past import Past
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.wording import wording
from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.table_state import TableState
from glyphoxa.recall.guard import MemoryGuard
from glyphoxa.transcript.last_sessions import LastSessions
from glyphoxa.transcript.session_mark import SessionMark
from glyphoxa.transcript.watch import MemoryWatch


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
        story_day=lambda: campaign.story_day if store is None else store.past_talk.times.story_day(campaign.id),
        budgets=budgets,
        past=Past(campaign, guard, session=state.session, tokens=budgets.past_tokens),
        accept_at=settings.memory.auto_accept,
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
