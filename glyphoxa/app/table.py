"""Opens a table: creates and starts its parts; or rehearses one, to see the prompts that it would make."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Final

from loguru import logger

from glyphoxa.actors.clock import TableClock, now_ms
from glyphoxa.actors.deadline import STEP_MS, ClosingStack
from glyphoxa.actors.subscribers import Subscribers
from glyphoxa.adapters.postgres.server.listen import TALK
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.app import engines
from glyphoxa.app.background import deep_recall, local_slots, make_names, memory_of, open_asking, summariser_at_table
from glyphoxa.app.engines import EarSpec, Host, MouthSpec, OpenMouth, language_findings, read_playable, settings_for
from glyphoxa.app.memory import SAID_BEFORE, StoredSessions, TableMemory, open_store_for
from glyphoxa.app.models import LocalModels, load_local_models, named
from glyphoxa.app.scope import Scope
from glyphoxa.app.transcript_reader import BackgroundReader, open_reader
from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.config.check import without_effect
from glyphoxa.config.settings import Settings
from glyphoxa.domain.budgets import BEHIND_THE_QUESTION, TIER_RULES
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.domain.turn_record import LookUp
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.roles import cast_of
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.mouth import Listener, Mouth
from glyphoxa.npc.room import Room, RoomMessage
from glyphoxa.npc.session import TableSession, end_when_deserted, enter
from glyphoxa.npc.session_state_keeper import SessionStateKeeper, StoredSession
from glyphoxa.npc.table_interface import Ear, EarListener, Table
from glyphoxa.npc.table_state import TableState
from glyphoxa.npc.tool_spec import CallableTool
from glyphoxa.npc.toolbox import TierSelector, Toolbox, ToolLatencies
from glyphoxa.npc.transcript_revision import DmChannels, Reviser, SecondLook
from glyphoxa.observability import Observer, ServiceTime, measure_lag
from glyphoxa.plugin import BrokenPlugin, references
from glyphoxa.prompt.conversation import Conversation, RollingSummary
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.prompt import ComposedPrompt, PromptShape, compose
from glyphoxa.prompt.scene import Past
from glyphoxa.prompt.wording import SaidWhen, wording
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.ports import MemorySearch
from glyphoxa.transcript.sessions import DM_VIEW, LastSessions, View
from glyphoxa.turns.address import THRESHOLDS, Addressing
from glyphoxa.turns.addressee import load_models
from glyphoxa.turns.barge_in import BargeIn
from glyphoxa.turns.open_turns import Floor, OpenTurns, Patience
from glyphoxa.turns.questions import DmControls, Questions
from glyphoxa.turns.turn_taking import TurnTaking

# Tools of plug-ins.


OutsideTools = Mapping[NpcId, Sequence[CallableTool]]
OpenTools = Callable[[Settings, Campaign, ClosingStack], Awaitable[OutsideTools]]
"""Opens the tools that a plug-in gives to each NPC. The stack closes them. Raises InvalidInput for wrong settings."""


async def open_outside_tools(settings: Settings, campaign: Campaign, stack: ClosingStack) -> OutsideTools:
    found: dict[NpcId, list[CallableTool]] = {npc.id: [] for npc in campaign.npcs}
    for plugin, reference in references("tools"):
        open_tools: OpenTools = plugin.load(reference)
        with plugin.named_in_errors(reference):
            opened = await open_tools(settings, campaign, stack)
            for npc, tools in found.items():
                tools.extend(opened.get(npc, ()))
    return found


# Observers of plug-ins.


OpenObserver = Callable[[Settings], Observer | None]
"""Opens an observer of a plug-in; None if the settings want none. Raises InvalidInput or Unavailable."""


def open_observers(settings: Settings, stack: ClosingStack) -> Sequence[Observer]:
    """Open what follows the table. `stack` closes it. The table opens without one that is broken."""
    observers: list[Observer] = []
    for plugin, reference in references("observers"):
        open_observer: OpenObserver = plugin.load(reference)
        try:
            with plugin.named_in_errors(reference):
                observer = open_observer(settings)
                if not isinstance(observer, Observer | None):
                    raise TypeError(f"it opened no {Observer.__module__}.Observer")
        except BrokenPlugin as broken:
            logger.opt(exception=broken.__cause__).error(str(broken))
            continue
        if observer is not None:
            stack.push_step(type(observer).__name__, STEP_MS, observer.close)
            observers.append(observer)
    return observers


# The state and context of a table's NPCs.


def state_of(settings: Settings, campaign: Campaign, session: SessionId, mark: SessionMark) -> TableState:
    """Create the state in the scene where the session was left, else in the first scene, with empty seats."""
    budgets = settings.budgets
    left_in = mark.before.scene if mark.before is not None else None
    scene = next((scene for scene in campaign.scenes if scene.id == left_in), campaign.scenes[0])
    conversations = {
        npc.id: Conversation(
            _with_fillers(npc, settings, campaign),
            beginning=beginning_of(campaign, npc, None),  # until it enters a scene
            history_tokens=budgets.history_tokens,
            language=campaign.language,
            safety=topics_of(campaign),
            unknown_speakers=[player.name for player in campaign.players if player.table],
        )
        for npc in campaign.npcs
    }
    summaries = {
        view: RollingSummary(
            budgets.history_tokens,
            interval=campaign.memory_interval or settings.context.memory_interval,
        )
        for view in (DM_VIEW, *map(View, conversations))
    }
    return TableState(campaign, session, scene, conversations, summaries)


def _with_fillers(npc: Npc, settings: Settings, campaign: Campaign) -> Npc:
    """Add the default fillers of the language if enabled."""
    is_without = settings.turns.filler_after_ms and not npc.fillers
    return replace(npc, fillers=wording(campaign.language).fillers) if is_without else npc


def table_context(settings: Settings, state: TableState, store: Store | None) -> HotContexts:
    """Create the context of the NPCs' answers.

    Args:
        store: None without long-term memory.
    """
    campaign = state.campaign
    budgets = settings.budgets
    memory = None if store is None else store.world_memory(campaign.id)
    world = KnownWorld(campaign, memory, accept_at=settings.memory.auto_accept)
    prefetch = Prefetch(
        world,
        talk=None if store is None else store.past_talk,
        present=state.present_names,
        conversations=state.conversations,
        max_recalled=budgets.max_recalled,
    )

    transcript = None if store is None else store.past_talk.transcript(campaign.id)
    sessions = None if store is None else StoredSessions(store, campaign.id, state.session)
    when = SaidWhen(campaign, state.session, transcript)
    return HotContexts(
        prefetch,
        when=when,
        budgets=budgets,
        past=Past(when, sessions, tokens=budgets.past_tokens, world=lambda: world.current),
        # A smaller fallback model gets the same context.
        repairs=any(each.profile.needs_repairs for each in settings.in_turn),
    )


_REST_OF_A_CALL_MS: Final = 1_000
"""Time of a tool call for finding facts, with a margin."""


@dataclass(kw_only=True)
class TableBuilder:
    """Puts one table together from the models and the store of its process. Its parts are created in reading order.

    Attributes:
        store: None without long-term memory.
        mouths: Builders by engine.
        stack: Closes the parts, the last one first. Pass it to the table: `TableSession.adopt`.
        outside: External tools by NPC.
        observers: Receive all events from the start.
    """

    settings: Settings
    campaign: Campaign
    session: SessionId
    local: LocalModels
    store: Store | None
    mouths: Mapping[str, OpenMouth]
    stack: ClosingStack
    outside: OutsideTools = field(default_factory=dict)
    observers: Sequence[Observer] = ()

    def __post_init__(self) -> None:
        settings, campaign, store, stack = self.settings, self.campaign, self.store, self.stack
        mark = SessionMark(LastSessions(settings.data_directory), campaign.id, self.session, now_ms=now_ms)
        self.state = state_of(settings, campaign, self.session, mark)
        self.state.events.subscribe(mark.on)
        spool = settings.data_directory / "spool"
        self.memory = TableMemory(store, self.state, spool, mark=mark, learns=settings.reads_talk)
        self.memory.journal.delivery.check_minutes = settings.memory.check_minutes
        stack.push_step("memory", STEP_MS, self.memory.close)
        self.names = make_names(
            campaign,
            settings.correction,
            store,
            now_ms=now_ms,
            wait_until_logged=self.memory.journal.delivery.wait_until_logged,
        )
        self.state.speaker_of = self.names.speaker_of
        self.host: Host = engines.installed("host")()
        self.build_ear = engines.find_ear(files=settings.engines)
        stack.push_step("the graphs", STEP_MS, self.host.close)
        times = Subscribers[[ServiceTime]]("service times")
        self._late = Subscribers[[float]]("event loop lag")
        for observer in self.observers:
            self.state.events.subscribe(observer.on)
            times.subscribe(observer.measured)
            self._late.subscribe(observer.lagged)
        if self.observers:
            self.host.measure(times.tell)
        self.context = table_context(settings, self.state, store)
        stack.push_step("recall", STEP_MS, self.context.prefetch.close)
        self.latencies = ToolLatencies()

    async def open(
        self, reader: BackgroundReader | None = None, *, tell: Callable[[str], None] = logger.info
    ) -> TableSession:
        """Open the table.

        Args:
            reader: Reads and embeds what is said.
            tell: Receives progress messages for the user.
        """
        self.deep_talk = await self._open_deep_talk()
        session = await self._session()
        await session.open(self.stack, tell=tell)
        if reader is not None:
            session.supervisor.start("background reading", partial(reader.follow, session))
        if (minutes := self.settings.server.close_after_minutes) is not None:
            session.supervisor.start("idle close", partial(end_when_deserted, session, after_minutes=minutes))
        if self.observers:
            session.supervisor.start("event loop lag", partial(measure_lag, self._late.tell))
        # Freeze long-lived objects. Collecting garbage among them would interrupt the sound for up to a syllable
        # (10,000 names: 70 ms).
        gc.collect()
        gc.freeze()
        self.stack.callback(gc.unfreeze)
        return session

    async def _session(self) -> TableSession:
        names, journal = self.names, self.memory.journal
        npcs = self._npcs()
        room = self._room = Room(
            self.state,
            turn_taking=await self._turn_taking(),
            npcs=npcs,
            journal=journal,
            clock=TableClock(),
        )
        session = TableSession(
            room,
            names=names,
            context=self.context,
            memory=self.memory,
            keeper=self._keeper(npcs),
            open_ear=self._open_ear,
            dm=self._dm(),
        )
        second_look: SecondLook | None = None
        if (asking := await open_asking(self.settings, self.campaign, self.stack, llama=self.local.llama)) is not None:
            second_look = SecondLook(
                asking, lambda: names.current, nearby=names.nearby, wait_until_quiet=room.wait_until_quiet
            )
        # A speech-to-speech provider's transcript of its own words.
        transcribed = frozenset(npc.id for npc in self.campaign.npcs if npc.engine == "s2s")
        if second_look is not None or transcribed:
            reviser = Reviser(
                correct=names.correct,
                tell=session.revisions.when_quiet,
                revise=journal.delivery.revise,
                second_look=second_look,
                transcribed=transcribed,
            )
            session.look_again(reviser)
        return session

    def _to_room(self, message: RoomMessage) -> None:
        self._room.mailbox.post(message)

    def _npcs(self) -> dict[NpcId, NpcActor]:
        tiers, campaign = self.settings.tiers, self.campaign
        selector = partial(
            TierSelector, language=campaign.language, deep=tiers.deep_words, standard=tiers.standard_words
        )
        return {
            npc.id: NpcActor(
                self.state.conversations[npc.id],
                open_mouth=partial(self._open_mouth, slot),
                tell=self._to_room,
                now_ms=now_ms,
                tiers=selector(npc.budget_tier),
            )
            for slot, npc in enumerate(campaign.npcs)
        }

    async def _turn_taking(self) -> TurnTaking:
        settings, campaign = self.settings, self.campaign
        await asyncio.to_thread(load_models)
        called = {npc.id: npc.name for npc in campaign.npcs}
        dms = {each.id for each in campaign.players if each.dm}
        floor = Floor(gap_ms=settings.turns.gap_ms, jitter=partial(Random().uniform, -1, 1))
        return TurnTaking(
            Questions(
                self.names.understand,
                called,
                Addressing(cast_of(campaign), THRESHOLDS[settings.turns.eagerness], dms),
                DmControls(dms),
            ),
            barge_in=BargeIn(after_ms=settings.turns.barge_in_ms),
            npc_to_npc=settings.turns.npc_to_npc,
            max_discarded_tokens=settings.turns.discarded_tokens,
            turns=OpenTurns(floor, {npc.id: npc.priority for npc in campaign.npcs}),
            patience=Patience(settings.turns.reply_deadline_ms, settings.turns.filler_after_ms),
        )

    def _keeper(self, npcs: Mapping[NpcId, NpcActor]) -> SessionStateKeeper:
        settings, campaign, delivery = self.settings, self.campaign, self.memory.journal.delivery
        stored = None
        if self.store is not None:
            stored = StoredSession(self.store.states(campaign.id, self.session), delivery.wait_until_logged)
        summariser = summariser_at_table(settings, campaign, self.stack)
        views = self.state.summaries if settings.memory.summary_views == "all" else (DM_VIEW,)
        return SessionStateKeeper(
            self.state.summaries,
            LineSelection(campaign.language, lambda: self.names.current, settings.budgets.summary_tokens),
            tell=lambda npc, *summary: npcs[npc].cover(*summary),
            stored=stored,
            summarisers={} if summariser is None else dict.fromkeys(views, summariser),
        )

    def _dm(self) -> DmChannels | None:
        """The database channels for the game master's commands and decisions."""
        store, campaign = self.store, self.campaign
        if store is None:
            return None
        return DmChannels(
            commands=PostgresTableCommands(store.database, store.listener),
            decisions=partial(store.listener.follow, TALK, campaign.id),
            decided=store.log.decided,
            refresh=store.past_talk.transcript(campaign.id).refresh,
        )

    async def _open_ear(self, player: Player, listener: EarListener) -> Ear:
        spec = EarSpec(
            player=player,
            language=self.campaign.language,
            settings=self.settings,
            local=self.local,
            host=self.host,
            correct=partial(self.names.correct, player=player.id),
            hints=self.names.hints,
            on_partial=self.context.prefetch.on_partial,
            listener=listener,
            now_ms=now_ms,
        )
        return await self.build_ear(spec)

    async def _open_mouth(self, slot: int, npc: Npc, listener: Listener) -> Mouth:
        spec = MouthSpec(
            campaign=self.campaign,
            npc=npc,
            slot=slot,
            settings=self.settings,
            local=self.local,
            host=self.host,
            context=self.context,
            tools=self._tools_of(npc),
            listener=listener,
            sink=self.state.voices.tell,
            now_ms=now_ms,
        )
        return await self.mouths[npc.engine](spec)

    def _tools_of(self, npc: Npc) -> Toolbox | None:
        def tell(look_up: LookUp) -> None:
            self._room.looked_up(npc.id, look_up)

        outside = self.outside.get(npc.id, ())
        memory: NpcMemory | None = None
        if self.store is not None:
            memory = replace(
                memory_of(self.store, self.campaign, npc.id),
                around=self.memory.around,
                deep_talk=self.deep_talk,
                is_at_table=True,
            )
        if memory is None and not outside:
            return None
        return Toolbox(
            memory,
            outside,
            tier=npc.budget_tier,
            rules=self.settings.tiers.rules,
            tell=tell,
            tell_slow=lambda: self._room.lookup_is_slow(npc.id),
            latencies=self.latencies,
        )

    async def _open_deep_talk(self) -> MemorySearch | None:
        """Open past talk for the tools of a tier DEEP NPC, if the settings want more than `talk`."""
        settings, store, context = self.settings, self.store, self.context
        if store is None or settings.recall.is_plain:
            return None

        def heard_last(npc: NpcId) -> list[str]:
            heard = (said for said in self.memory.journal.recent.of(self.session) if npc in said.witnesses)
            return [f"{said.speaker_name}: {said.text}" for said in heard]

        return await deep_recall()(
            settings,
            store,
            self.campaign,
            self.stack,
            llama=self.local.llama,
            deadline_ms=TIER_RULES["DEEP"].ceiling_ms - _REST_OF_A_CALL_MS,
            recent=heard_last,
            world=lambda npc: "\n".join(context.standing(npc)),
        )


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """An open table and its store.

    Attributes:
        store: None without long-term memory. It closes with the table.
    """

    table: TableSession
    store: Store | None
    observers: Sequence[Observer]


@dataclass(frozen=True, slots=True)
class Shared:
    """Parts that the tables of one process share; whoever opened them closes them.

    Attributes:
        weights: Names of the loaded models, as `glyphoxa.app.models.named` returns them. A campaign that needs others,
            such as for its language, loads its own.
        store: The campaign's; None without long-term memory.
    """

    local: LocalModels
    weights: Sequence[str]
    store: Store | None
    reader: BackgroundReader | None


async def open_table(
    settings: Settings,
    *,
    campaign: Campaign | None = None,
    session_name: str | None = None,
    tell: Callable[[str], None] = logger.info,
    shared: Shared | None = None,
) -> OpenedTable:
    """Open a session of the configured campaign. All slow work happens here, before anybody speaks.

    Args:
        campaign: A campaign already read; otherwise the settings' file is read.
        session_name: The session's id; by default made of the campaign and the time.
        tell: Receives progress messages for the user.
        shared: Parts of a process with several tables. Default: the table opens its own.

    Raises:
        InvalidInput: The settings or the campaign file are invalid.
        Unavailable: A model or a database is unreachable.
    """
    if campaign is None:
        if settings.campaign is None:
            raise InvalidInput("no campaign is set: name one with --campaign, or add `campaign: FILE` to the settings")
        campaign = read_playable(settings.campaign, settings).campaign
    mouths = {npc.engine: engines.find_mouth(npc.engine, files=settings.engines) for npc in campaign.npcs}
    name = session_name or f"{campaign.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with ClosingStack() as stack:
        observers = open_observers(settings, stack)
        for warning in without_effect(settings):
            logger.warning(warning)
        for finding in language_findings(settings, campaign):
            tell(f"WARNING: {finding.subject}: {finding.text}")
        settings = settings_for(settings, campaign)
        if shared is not None and list(shared.weights) == named(settings):
            local = shared.local
        else:
            slots, language = local_slots(settings, campaign), campaign.language
            local = await load_local_models(settings, stack, slots=slots, language=language, tell=tell)
        store = await open_store_for(settings, local, stack) if shared is None else shared.store
        outside = await open_outside_tools(settings, campaign, stack)
        reader = open_reader(settings, store, stack) if shared is None else shared.reader
        builder = TableBuilder(
            settings=settings,
            campaign=campaign,
            session=SessionId(name),
            local=local,
            store=store,
            mouths=mouths,
            stack=stack,
            outside=outside,
            observers=observers,
        )
        table = await builder.open(reader, tell=tell)
        table.adopt(stack.pop_all())
    tell("the table is ready")
    return OpenedTable(table, store, observers)


# Rehearsals: the prompt that a table would make for a player's line.


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
