"""Makes the parts of a table, by hand, once: each is handed what was made before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.decisions import PostgresTalkDecisions
from glyphoxa.bootstrap import correction, engines
from glyphoxa.bootstrap.clock import call_at, now_ms
from glyphoxa.bootstrap.closing import STEP_MS, ClosingStack
from glyphoxa.bootstrap.dm_at_the_table import DmAtTheTable
from glyphoxa.bootstrap.engines import EarSpec, Host, OpenMouth
from glyphoxa.bootstrap.local_models import LocalModels
from glyphoxa.bootstrap.memory import TableMemory
from glyphoxa.bootstrap.mind import mind_of, state_of
from glyphoxa.bootstrap.npcs import Npcs
from glyphoxa.bootstrap.observers import NOBODY, Observers
from glyphoxa.bootstrap.outside_tools import OutsideTools
from glyphoxa.bootstrap.talk_readers import talk_readers_at_table
from glyphoxa.config.settings import Settings
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.campaign import Campaign, Player
from glyphoxa.domain.events import SessionEnds
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.followed_talk import FollowedTalk
from glyphoxa.npc.hearing import Hearing
from glyphoxa.npc.idle_close import IdleClose
from glyphoxa.npc.live_table import TableParts
from glyphoxa.npc.preparation import Preparation
from glyphoxa.npc.revisions import Revisions
from glyphoxa.npc.room import Room
from glyphoxa.npc.room_messages import room_mailbox
from glyphoxa.npc.seats import TableSeats
from glyphoxa.npc.session_end import SessionEnd
from glyphoxa.npc.supervision import TableSupervision
from glyphoxa.npc.table import Ear
from glyphoxa.npc.table_events import NpcVoices, TableEvents
from glyphoxa.npc.table_state import TableState
from glyphoxa.npc.typed_lines import TypedLines
from glyphoxa.transcript.last_sessions import LastSessions
from glyphoxa.transcript.ports import PastTalk
from glyphoxa.transcript.reviser import Reviser
from glyphoxa.transcript.session_mark import SessionMark
from glyphoxa.turns.address import Addressing
from glyphoxa.turns.barge_in import BargeIn
from glyphoxa.turns.cast import cast_of
from glyphoxa.turns.dm_controls import DmControls
from glyphoxa.turns.floor import Floor
from glyphoxa.turns.open_turns import OpenTurns
from glyphoxa.turns.patience import Patience
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn_taking import TurnTaking


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a table is opened with.

    Attributes:
        mouths: By the NPCs' engines.
        outside: Tools of servers outside, by the NPCs that have them.
        observers: Told of all that happens, from the beginning.
    """

    settings: Settings
    campaign: Campaign
    session: SessionId
    local: LocalModels
    store: Store | None
    mouths: Mapping[str, OpenMouth]
    outside: OutsideTools
    observers: Observers = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """A table that has not been started, and what is to be started with it."""

    parts: TableParts
    memory: TableMemory
    typed: TypedLines
    supervision: TableSupervision
    revisions: Revisions
    observers: Observers
    reviser: Reviser | None
    followed_talk: FollowedTalk | None
    dm: DmAtTheTable | None
    idle: IdleClose | None


async def wire(opening: Opening, stack: ClosingStack) -> Wired:
    """Closed by `stack`."""
    settings, campaign, store = opening.settings, opening.campaign, opening.store
    mark = SessionMark(LastSessions(settings.data_directory), campaign.id, opening.session, now_ms=now_ms)
    state = state_of(settings, campaign, opening.session, mark)
    events, voices, to_room, typed = TableEvents(), NpcVoices(), room_mailbox(), TypedLines()
    memory = TableMemory(
        store,
        campaign,
        settings.data_directory / "spool",
        session=opening.session,
        readers=None if settings.memory.chronicle == "none" else talk_readers_at_table(settings, stack),
        tell=events.tell,
        now_ms=now_ms,
    )
    stack.push_step("memory", STEP_MS, memory.close)
    journal = memory.journal
    names = correction.make_names(
        campaign, settings.correction, store, now_ms=now_ms, wait_until_logged=journal.wait_until_logged
    )
    memory.make_good_too(names.catch_up)
    host: Host = engines.find_host()()
    stack.push_step("the place where the graphs run", STEP_MS, host.close)
    if opening.observers.any:
        host.measure(opening.observers.measured)
        events.subscribe(opening.observers.on)
    mind = mind_of(settings, state, store, memory.guard)
    prefetch, context = mind.prefetch, mind.context
    stack.push_step("recall", STEP_MS, prefetch.close)
    asking = await correction.open_asking(settings.correction, stack, local=opening.local)
    npcs = Npcs(
        settings=settings,
        local=opening.local,
        host=host,
        mouths=opening.mouths,
        state=state,
        context=context,
        memory=memory,
        deep_talk=_deep_talk(opening, memory, context, stack),
        outside=opening.outside,
        room=to_room,
        sink=voices.play,
    ).made()
    supervision = TableSupervision(npcs, tell=events.tell, now_ms=now_ms)
    stack.push_step("an actor", STEP_MS, supervision.supervisor.close)
    room = Room(
        state,
        to_room,
        turn_taking=_turn_taking(settings, campaign, names),
        npcs=npcs,
        journal=journal,
        tell=events.tell,
        now_ms=now_ms,
        call_at=call_at,
    )
    revisions = Revisions(
        journal.recent, npcs, somebody=state.somebody, wait_until_quiet=room.wait_until_quiet, tell=events.tell
    )
    reviser = correction.make_reviser(
        campaign,
        names,
        asking=asking,
        tell=revisions.when_quiet,
        log=store.log if store is not None else None,
        journal=journal,
        wait_until_quiet=room.wait_until_quiet,
        after_revise=memory.embed_what_is_new,
    )
    preparation = Preparation(
        npcs,
        present=state.present,
        somebody=state.somebody,
        wait_until_quiet=room.wait_until_quiet,
        tell=events.tell,
        now_ms=now_ms,
    )
    for watcher in (names.on, typed.on, preparation.on, mark.on):
        events.subscribe(watcher)
    if reviser is not None:
        events.subscribe(reviser.on)
    hearing = Hearing(
        to_room,
        session=opening.session,
        names=names,
        prefetch=prefetch,
        context=context,
        typed=typed,
        now_ms=now_ms,
    )
    ears = _Ears(opening, host, names, prefetch, hearing)
    end = SessionEnd(
        room=room,
        journal=journal,
        reviser=reviser,
        names=names,
        mark=mark,
        flush=memory.finish,
    )
    parts = TableParts(
        state=state,
        events=events,
        voices=voices,
        seats=TableSeats(
            state, open_ear=ears.open, on_left=hearing.left, is_paused=lambda: room.control.controls.is_paused
        ),
        hearing=hearing,
        room=room,
        npcs=npcs,
        names=names,
        context=context,
        preparation=preparation,
        journal=journal,
        memory=memory,
        end=end,
    )
    return Wired(
        parts=parts,
        memory=memory,
        typed=typed,
        supervision=supervision,
        revisions=revisions,
        observers=opening.observers,
        reviser=reviser,
        followed_talk=_followed_talk(state, store, memory, revisions),
        dm=None if store is None else DmAtTheTable.of(state, store, room),
        idle=_idle_close(settings, state, events),
    )


def _idle_close(settings: Settings, state: TableState, events: TableEvents) -> IdleClose | None:
    minutes = settings.server.close_after_minutes
    if minutes is None:
        return None
    return IdleClose(lambda: state.is_empty, after_ms=minutes * 60_000, end=lambda: events.tell(SessionEnds(now_ms())))


def _deep_talk(
    opening: Opening, memory: TableMemory, context: HotContextAssembly, stack: ClosingStack
) -> PastTalk | None:
    if memory.guard is None or memory.store is None or opening.settings.recall.is_plain:
        return memory.guard
    # Loaded by who asks for it alone.
    from glyphoxa.bootstrap.deep_recall import open_deep_talk

    def heard_last(npc: NpcId) -> list[str]:
        heard = (said for said in memory.journal.recent.of(opening.session) if npc in said.witnesses)
        return [f"{said.speaker_name}: {said.text}" for said in heard]

    return open_deep_talk(
        opening.settings,
        memory.store.past_talk,
        stack,
        talk=memory.guard,
        recent=heard_last,
        world=lambda npc: "\n".join(context.standing(npc)),
        llama=opening.local.llama,
    )


def _turn_taking(settings: Settings, campaign: Campaign, names: TableNames) -> TurnTaking:
    called = {npc.id: npc.name for npc in campaign.npcs}
    floor = Floor(gap_ms=settings.turns.gap_ms, jitter=partial(Random().uniform, -1, 1))
    return TurnTaking(
        Questions(
            names.mentions,
            called,
            Addressing(cast_of(campaign)),
            DmControls(called, {each.id for each in campaign.players if each.dm}),
        ),
        barge_in=BargeIn(after_ms=settings.turns.barge_in_ms),
        npc_to_npc=settings.turns.npc_to_npc,
        turns=OpenTurns(floor, {npc.id: npc.priority for npc in campaign.npcs}),
        patience=Patience(reply_deadline_ms=settings.turns.reply_deadline_ms, filler_after_ms=settings.filler_after_ms),
    )


def _followed_talk(
    state: TableState, store: Store | None, memory: TableMemory, revisions: Revisions
) -> FollowedTalk | None:
    if store is None:
        return None
    return FollowedTalk(
        state.campaign.id,
        state.session,
        PostgresTalkDecisions(store.database, store.listener),
        recent=memory.journal.recent,
        revisions=revisions,
        refresh=store.past_talk.refresh,
        after_revise=memory.embed_what_is_new,
    )


@dataclass(frozen=True, slots=True)
class _Ears:
    """What the ears of a table are made with."""

    opening: Opening
    host: Host
    names: TableNames
    prefetch: Prefetch
    hearing: Hearing

    async def open(self, player: Player) -> Ear:
        hints = self.names.hints
        spec = EarSpec(
            player=player,
            language=self.opening.campaign.language,
            settings=self.opening.settings,
            local=self.opening.local,
            host=self.host,
            correct=partial(self.names.correct, player=player.id),
            glossary=hints.glossary,
            keyterms=hints.keyterms,
            on_names_changed=hints.subscribe,
            on_partial=self.prefetch.on_partial,
            listener=self.hearing.on_ear,
            now_ms=now_ms,
        )
        return await engines.find_ear()(spec)
