"""Opens a table: makes its parts, starts them, and hands over what closes them."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from loguru import logger

from glyphoxa.actors.clock import call_at, now_ms
from glyphoxa.actors.closing import STEP_MS, ClosingStack
from glyphoxa.actors.supervisor import Mailbox, Supervisor
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import PostgresTalkDecisions
from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.app import correction, engines
from glyphoxa.app.chronicle import local_slots, talk_readers_at_table
from glyphoxa.app.engines import EarSpec, Host, MouthSpec, OpenMouth, read_playable
from glyphoxa.app.memory import SaidBefore, TableMemory, open_store_for
from glyphoxa.app.mind import mind_of, state_of
from glyphoxa.app.models import LocalModels, load_local_models
from glyphoxa.config.sections import McpServerSettings, McpSettings, ObservabilitySettings, missing_variables
from glyphoxa.config.settings import Settings
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.context.prompt import HotContextSource
from glyphoxa.dm.table_commands import CommandReader
from glyphoxa.domain.campaign import Campaign, Npc, Player
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.events import SessionEnds, TableEvent
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.turn import LookUp
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.budget import DEFAULT_RULES, TierSelector, ToolLatencies, trigger_words
from glyphoxa.npc.memory_tools import MemoryOf, MemoryTools
from glyphoxa.npc.mouth import Listener, Mouth
from glyphoxa.npc.readiness import Preparation
from glyphoxa.npc.revisions import FollowedTalk, Revisions
from glyphoxa.npc.room import LookedUp, LooksUpLong, Room, RoomMessage, room_mailbox
from glyphoxa.npc.session import (
    Hearing,
    IdleClose,
    LiveTable,
    SessionEnd,
    TableParts,
    TableSeats,
    TableSupervision,
    enter,
)
from glyphoxa.npc.table import AudioSink, Ear, NpcVoices, TableEvents, TableState, TypedLines
from glyphoxa.npc.table_control import FollowedCommands, KeptControls
from glyphoxa.npc.toolbox import CallableTools, OutsideTool, Toolbox
from glyphoxa.observability.loop_lag import measure_lag
from glyphoxa.observability.service_time import ServiceTime
from glyphoxa.providers.extras import need
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.ports import PastTalk
from glyphoxa.transcript.reviser import Reviser
from glyphoxa.transcript.sessions import LastSessions
from glyphoxa.turns.address import Addressing, cast_of
from glyphoxa.turns.barge_in import BargeIn
from glyphoxa.turns.dm_controls import DmControls
from glyphoxa.turns.effects import Floor
from glyphoxa.turns.turn import OpenTurns, Patience, Questions
from glyphoxa.turns.turn_taking import TurnTaking

if TYPE_CHECKING:
    from glyphoxa.adapters.mcp_servers import ServerRow
    from glyphoxa.observability.metrics import TableMetrics
    from glyphoxa.observability.tracing import TurnTracer


# How the DM's commands reach an open table, and where what is in force is kept.


@dataclass(frozen=True, slots=True)
class DmAtTheTable:
    """Of a table with long-term memory: the database is the way for both."""

    state: TableState
    room: Room
    commands: PostgresTableCommands
    kept: KeptControls

    @classmethod
    def of(cls, state: TableState, store: Store, room: Room) -> DmAtTheTable:
        commands = PostgresTableCommands(store.database, store.listener)
        return cls(state, room, commands, KeptControls(state.campaign.id, state.session, commands))

    async def open(self) -> None:
        """What was in force in this session is so again. Before anybody speaks."""
        control = self.room.control
        control.restore(await self.kept.before(control.controls.npcs))
        control.on_change(self.kept.on_changed)

    def start(self, supervisor: Supervisor, table: LiveTable) -> None:
        campaign = self.state.campaign

        async def obey(command: TableCommand) -> str:
            told = await table.obey(command)
            await self.kept.wait_until_kept()
            return told

        followed = FollowedCommands(
            campaign.id, self.state.session, self.commands, read=CommandReader(campaign).read, obey=obey
        )
        supervisor.start("the DM's commands", followed.run)
        supervisor.start("what the DM has in force", self.kept.run)


# The tools of servers outside that the settings give to NPCs. Without any, nothing of MCP is loaded.


OutsideTools = Mapping[NpcId, Sequence[OutsideTool]]


async def open_outside_tools(
    settings: McpSettings, campaign: Campaign, stack: ClosingStack, *, environ: Mapping[str, str] = os.environ
) -> OutsideTools:
    """What each NPC has. A server that is not there is no reason not to play. Closed by `stack`.

    Raises:
        InvalidInput: The SDK is not installed, or an environment variable that a server needs is not set.
    """
    if not settings.servers:
        return {}
    need("mcp", by="mcp.servers", extra="mcp")
    if missing := missing_variables(settings, environ):
        raise InvalidInput(f"mcp.servers.{missing[0]}")
    _warn_of_strangers(settings, campaign)
    from glyphoxa.adapters.mcp_servers import McpServers

    servers = McpServers([_row(name, server, environ) for name, server in settings.servers.items()])
    stack.push_step("servers of tools", STEP_MS, servers.close)
    await servers.open()
    return {
        npc.id: [
            tool
            for name, server in settings.servers.items()
            if server.npcs is None or npc.id in server.npcs
            for tool in servers.tools(name)
        ]
        for npc in campaign.npcs
    }


def _row(name: str, settings: McpServerSettings, environ: Mapping[str, str]) -> ServerRow:
    from glyphoxa.adapters.mcp_servers import ServerRow

    return ServerRow(
        name=name,
        command=settings.command,
        env={variable: environ[variable] for variable in settings.env},
        url=settings.url or "",
        token=environ[settings.token_env].strip() if settings.token_env is not None else "",
        allowed=None if settings.tools is None else frozenset(settings.tools),
        usual_ms=settings.usual_ms,
    )


def _warn_of_strangers(settings: McpSettings, campaign: Campaign) -> None:
    """The same settings may serve several campaigns."""
    known = {npc.id for npc in campaign.npcs}
    for name, server in settings.servers.items():
        for npc in server.npcs or ():
            if NpcId(npc) not in known:
                logger.warning("mcp.servers.{}: no NPC {!r} in this campaign: {}", name, npc, did_you_mean(npc, known))


# The NPCs of a table, each with the engine that the campaign names and with the tools of its tier.


@dataclass(frozen=True, slots=True)
class Npcs:
    """What the NPCs of a table are made with.

    Attributes:
        mouths: By the NPCs' engines.
        deep_talk: What NPCs of tier DEEP ask for past talk; None without long-term memory.
        outside: Tools of servers outside, by the NPCs that have them.
        room: The room's mailbox.
        sink: Takes what they say.
    """

    settings: Settings
    local: LocalModels
    host: Host
    mouths: Mapping[str, OpenMouth]
    state: TableState
    context: HotContextSource
    memory: TableMemory
    deep_talk: PastTalk | None
    outside: OutsideTools
    room: Mailbox[RoomMessage]
    sink: AudioSink
    latencies: ToolLatencies = field(default_factory=ToolLatencies)

    def made(self) -> dict[NpcId, NpcActor]:
        tiers = self.settings.tiers
        language = self.state.campaign.language
        words = trigger_words(language, deep=tiers.deep_words, standard=tiers.standard_words)
        return {
            npc.id: NpcActor(
                self.state.conversations[npc.id],
                open_mouth=partial(self._open_mouth, slot),
                tell=self.room.post,
                now_ms=now_ms,
                tiers=TierSelector(npc.budget_tier, words=words),
            )
            for slot, npc in enumerate(self.state.campaign.npcs)
        }

    async def _open_mouth(self, slot: int, npc: Npc, listener: Listener) -> Mouth:
        spec = MouthSpec(
            campaign=self.state.campaign.id,
            npc=npc,
            others=self._names_of_others(npc),
            slot=slot,
            language=self.state.campaign.language,
            settings=self.settings,
            local=self.local,
            host=self.host,
            context=self.context,
            tools=self._tools_of(npc),
            listener=listener,
            sink=self.sink,
            now_ms=now_ms,
        )
        return await self.mouths[npc.engine](spec)

    def _tools_of(self, npc: Npc) -> CallableTools | None:
        memory, outside = self._memory_tools_of(npc), self.outside.get(npc.id, ())
        if memory is None and not outside:
            return None
        return Toolbox(
            memory,
            outside,
            rule=DEFAULT_RULES[npc.budget_tier],
            tell=partial(self._looked_up, npc.id),
            tell_slow=lambda: self.room.post(LooksUpLong(npc.id)),
        )

    def _memory_tools_of(self, npc: Npc) -> MemoryTools | None:
        guard = self.memory.guard
        if guard is None or self.deep_talk is None:
            return None
        campaign = self.state.campaign
        memory = MemoryOf(
            campaign.id,
            npc.id,
            guard,
            guard,
            guard,
            npc.name,
            campaign.language,
            around=self.memory.around,
            deep_talk=self.deep_talk,
        )
        tell = partial(self._looked_up, npc.id)
        return MemoryTools(memory, tier=npc.budget_tier, tell=tell, latencies=self.latencies)

    def _looked_up(self, npc: NpcId, look_up: LookUp) -> None:
        self.room.post(LookedUp(npc, look_up))

    def _names_of_others(self, npc: Npc) -> tuple[str, ...]:
        campaign = self.state.campaign
        npcs = [other.name for other in campaign.npcs if other.id != npc.id]
        return (*npcs, *(player.name for player in campaign.players))


# Who watches a table from outside, as the settings want it: figures for Prometheus, traces for a collector.


@dataclass(frozen=True, slots=True)
class Observers:
    """Each is None where nobody asked for it; nothing of it is imported then."""

    metrics: TableMetrics | None = None
    tracer: TurnTracer | None = None

    @property
    def any(self) -> bool:
        return self.metrics is not None or self.tracer is not None

    def on(self, event: TableEvent) -> None:
        for observer in (self.metrics, self.tracer):
            if observer is not None:
                observer.on(event)

    def measured(self, time: ServiceTime) -> None:
        for observer in (self.metrics, self.tracer):
            if observer is not None:
                observer.measured(time)

    async def close(self) -> None:
        """Send what waits to be sent."""
        if self.tracer is not None:
            await self.tracer.close()


NOBODY = Observers()


def make_observers(settings: ObservabilitySettings) -> Observers:
    """
    Raises:
        InvalidInput: What a setting needs is not installed.
    """
    metrics: TableMetrics | None = None
    tracer: TurnTracer | None = None
    if settings.metrics_port is not None:
        need("prometheus_client", by="observability.metrics_port", extra="observe")
        from glyphoxa.observability.metrics import TableMetrics

        metrics = TableMetrics()
    if settings.traces_endpoint is not None:
        need("opentelemetry.sdk", by="observability.traces_endpoint", extra="observe")
        from glyphoxa.observability.tracing import TurnTracer, to_collector

        tracer = TurnTracer(to_collector(settings.traces_endpoint))
    return Observers(metrics, tracer)


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
    from glyphoxa.app.deep_recall import open_deep_talk

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
        refresh=store.past_talk.transcripts.refresh,
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


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """
    Attributes:
        store: None without long-term memory. It closes with the table.
    """

    table: LiveTable
    store: Store | None


async def open_table(
    settings: Settings,
    *,
    campaign: Campaign | None = None,
    session_name: str | None = None,
    tell: Callable[[str], None] = logger.info,
    observers: Observers = NOBODY,
) -> LiveTable:
    """As `open_with_store`, without the store."""
    opened = await open_with_store(
        settings, campaign=campaign, session_name=session_name, tell=tell, observers=observers
    )
    return opened.table


async def open_with_store(
    settings: Settings,
    *,
    campaign: Campaign | None = None,
    session_name: str | None = None,
    tell: Callable[[str], None] = logger.info,
    observers: Observers = NOBODY,
) -> OpenedTable:
    """Open a session of the campaign that the settings name. Everything slow happens here, before anybody speaks.

    Args:
        campaign: The campaign to play, for who has read it already; else the settings' file is read.
        session_name: The session's id; by default one made of the campaign and the time.
        tell: Takes lines for the user about what takes long.
        observers: Told of all that happens. Whoever made them closes them.

    Raises:
        InvalidInput: The settings or the campaign file cannot be used.
        Unavailable: A model or a database cannot be reached.
    """
    if campaign is None:
        if settings.campaign is None:
            raise InvalidInput("no campaign is set: add `campaign: FILE` to the settings, or name a file")
        campaign = read_playable(settings.campaign, settings).campaign
    mouths = {npc.engine: engines.find_mouth(npc.engine, files=settings.engines) for npc in campaign.npcs}
    name = session_name or f"{campaign.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with ClosingStack() as stack:
        local = await load_local_models(settings, stack, slots=local_slots(settings, campaign), tell=tell)
        store = await open_store_for(settings, local, stack)
        outside = await open_outside_tools(settings.mcp, campaign, stack)
        opening = Opening(
            settings=settings,
            campaign=campaign,
            session=SessionId(name),
            local=local,
            store=store,
            mouths=mouths,
            outside=outside,
            observers=observers,
        )
        table = await open_with(opening, stack, tell=tell)
        table.adopt(stack.pop_all())
    tell("the table is ready")
    return OpenedTable(table, store)


async def open_with(opening: Opening, stack: ClosingStack, *, tell: Callable[[str], None] = logger.info) -> LiveTable:
    """Open a table with models and a store that are there already. `stack` closes what was opened for it: give it to
    the table (`LiveTable.adopt`).
    """
    table = await _start(await wire(opening, stack), stack, tell=tell)
    _spare_what_stays(stack)
    return table


async def _start(wired: Wired, stack: ClosingStack, *, tell: Callable[[str], None]) -> LiveTable:
    """Open every engine and start the actors. Closed in reverse order."""
    parts, memory, supervisor = wired.parts, wired.memory, wired.supervision.supervisor
    state = parts.state
    tell("opening memory")
    await memory.open()
    await parts.names.open()
    before = await memory.said_before(state.session)
    _remember(before, wired)
    if before.shown:
        tell(f"session {state.session} goes on: its last {len(before.shown)} utterances are known")
    await enter(state.scene, state, parts.context)
    if wired.dm is not None:
        await wired.dm.open()
    await parts.preparation.open_scene(tell)
    memory.start(supervisor)
    supervisor.start("journal", parts.journal.run)
    stack.push_step("what the session leaves", SessionEnd.within_ms + STEP_MS, parts.end.write_down)
    supervisor.start("room", parts.room.run)
    wired.supervision.start_npcs()
    parts.names.start(supervisor)
    if wired.followed_talk is not None:
        supervisor.start("talk", wired.followed_talk.run)
    if wired.reviser is not None:
        supervisor.start("second look", wired.reviser.run)
        supervisor.start("revisions", wired.revisions.run)
    table = LiveTable(parts, earlier=before.shown)
    await table.move(state.scene.id)
    parts.room.remember(before.remembered)  # a scene that is entered makes who speaks with whom forgotten
    if wired.dm is not None:
        wired.dm.start(supervisor, table)
    supervisor.start("preparation", parts.preparation.run)
    if wired.idle is not None:
        supervisor.start("idle close", wired.idle.run)
    if (metrics := wired.observers.metrics) is not None:
        supervisor.start("event loop lag", lambda: measure_lag(metrics.lagged))
    return table


def _remember(before: SaidBefore, wired: Wired) -> None:
    """After a restart within a session the NPCs go on where they were, and the page shows what it showed."""
    wired.parts.state.remember(before.remembered)
    wired.memory.journal.recent.remember(before.remembered)
    wired.typed.kept(before.shown)


def _spare_what_stays(stack: ClosingStack) -> None:
    """Names, models' tables and the rest stay until the end: collecting garbage among them would stop the sound for
    as long as a syllable (10,000 names: 70 ms).
    """
    gc.collect()
    gc.freeze()
    stack.callback(gc.unfreeze)
