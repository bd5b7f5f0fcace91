"""Opens a table: wires memory, models, ears, NPCs and the room together, by hand, once."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from loguru import logger

from glyphoxa.actors.deadline import within
from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.decisions import PostgresTalkDecisions
from glyphoxa.bootstrap import correction, engines, local_models
from glyphoxa.bootstrap.closing import STEP_MS, ClosingStack
from glyphoxa.bootstrap.correction import SecondLook
from glyphoxa.bootstrap.engines import EarSpec, Host, MouthSpec, OpenMouth
from glyphoxa.bootstrap.followed_talk import FollowedTalk
from glyphoxa.bootstrap.local_models import LocalModels
from glyphoxa.bootstrap.memory import TableMemory, open_store_for
from glyphoxa.bootstrap.names import TableNames
from glyphoxa.bootstrap.playable import read_playable
from glyphoxa.bootstrap.seats import LiveSeat
from glyphoxa.bootstrap.session_mark import SessionMark
from glyphoxa.bootstrap.structured_llm import local_slots
from glyphoxa.config.settings import Settings
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.beginning import beginning, beginning_of
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.by_name import ByName
from glyphoxa.context.conversation import Conversation
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import Degraded, MemoryHealth, SceneChanged, TableEvent, Trouble
from glyphoxa.domain.heard import Draft, EarEvent, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import LineId, NpcId, PlayerId, SceneId, SessionId, UtteranceId, id_of_line
from glyphoxa.domain.turn import LookUp
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.mouth import Listener, Mouth, MouthEvent
from glyphoxa.npc.preparation import Preparation
from glyphoxa.npc.room import End, Leave, LookedUp, Move, Room
from glyphoxa.npc.scribe import Scribe
from glyphoxa.npc.table import AudioSink, Seat
from glyphoxa.npc.tools import MemoryOf, MemoryTools
from glyphoxa.npc.typed_lines import TypedLines
from glyphoxa.transcript.last_sessions import LastSessions
from glyphoxa.transcript.ports import PastTalk
from glyphoxa.turns.floor import Floor
from glyphoxa.turns.talk import Talk

WRITE_DOWN_MS = 5_000
SECOND_LOOK_MS = 5_000
LEARN_MS = 2_000
FALL_SILENT_MS = 2_000
LEAVE_MS = 2_000
LAST_WORDS_MS = 2_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def open_table(
    settings: Settings,
    *,
    campaign: Campaign | None = None,
    session_name: str | None = None,
    tell: Callable[[str], None] = logger.info,
) -> LiveTable:
    """Open a session of the campaign that the settings name. Everything slow happens here, before anybody speaks.

    Args:
        campaign: What stands in that campaign's file, for who has read it already.
        session_name: The session's id; by default one made of the campaign and the time.
        tell: Takes lines for the user about what takes long.

    Raises:
        InvalidInput: The settings or the campaign file cannot be used.
        Unavailable: A model or a database cannot be reached.
    """
    if settings.campaign is None:
        raise InvalidInput("no campaign is set: add `campaign: FILE` to the settings, or name a file")
    campaign = campaign or read_playable(settings.campaign, settings).campaign
    mouths = {npc.engine: engines.find_mouth(npc.engine, files=settings.engines) for npc in campaign.npcs}
    name = session_name or f"{campaign.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with ClosingStack() as stack:
        slots = local_slots(settings, campaign)
        local = await local_models.load(settings, stack, slots=slots, tell=tell)
        store = await open_store_for(settings, local, stack)
        table = LiveTable(settings, campaign, SessionId(name), local=local, store=store, mouths=mouths)
        await table.open(stack, tell=tell)
        _spare_what_stays(stack)
        table.adopt(stack.pop_all())
    tell("the table is ready")
    return table


def _spare_what_stays(stack: ClosingStack) -> None:
    """Names, models' tables and the rest stay until the end: collecting garbage among them would stop the sound for
    as long as a syllable (10,000 names: 70 ms).
    """
    gc.collect()
    gc.freeze()
    stack.callback(gc.unfreeze)


class LiveTable:
    """See `glyphoxa.npc.table.Table`. Made by `open_table`."""

    def __init__(
        self,
        settings: Settings,
        campaign: Campaign,
        session: SessionId,
        *,
        local: LocalModels,
        store: Store | None,
        mouths: Mapping[str, OpenMouth],
    ) -> None:
        """
        Args:
            mouths: By the NPCs' engines.
        """
        self.campaign = campaign
        self.session = session
        self._settings = settings
        self._local = local
        self.earlier: Sequence[Utterance] = ()
        self._mark = SessionMark(LastSessions(settings.data_directory), campaign.id, session, now_ms=now_ms)
        left_in = self._mark.before.scene if self._mark.before is not None else None
        self._scene = next((scene for scene in campaign.scenes if scene.id == left_in), campaign.scenes[0])
        self._listeners: list[Callable[[TableEvent], None]] = []
        self._sinks: list[AudioSink] = []
        self._seats: dict[PlayerId, LiveSeat] = {}
        self._typed = TypedLines()
        self._stack = ClosingStack()
        self._is_closing = False
        self._mouths = mouths

        self._memory = TableMemory(
            store, campaign, settings.data_directory / "spool", session=session, tell=self._tell, now_ms=now_ms
        )
        self._recorder, self._guard = self._memory.recorder, self._memory.guard
        self._names = TableNames(
            campaign,
            settings.correction,
            store=store,
            now_ms=now_ms,
            wait_until_logged=self._recorder.wait_until_logged,
        )
        self._memory.make_good_too(self._names.catch_up)
        self._listeners += [self._names.on, self._typed.on]
        self._second_look: SecondLook | None = None
        self._deep_talk: PastTalk | None = self._guard
        self._host: Host = engines.find_host()()
        self._supervisor = Supervisor(on_fall=self._on_fall, on_given_up=self._on_given_up)
        budgets = Budgets(
            facts_tokens=settings.context.facts_tokens,
            max_facts=settings.context.max_facts,
            part_deadline_ms=settings.context.part_deadline_ms,
            recall_deadline_ms=settings.context.recall_deadline_ms,
        )
        self._prefetch = Prefetch(
            campaign.id,
            by_name=ByName(campaign, self._guard, accept_at=settings.memory.auto_accept),
            talk=self._guard,
            language=campaign.language,
            present=lambda: {npc: campaign.npc(npc).name for npc in self._scene.npcs},
            known_utterances=self._known_utterances,
            max_recalled=budgets.max_recalled,
        )
        self._context = HotContextAssembly(
            campaign,
            graph=self._guard,
            talk=self._guard,
            prefetch=self._prefetch,
            known_utterances=self._known_utterances,
            holds_words=lambda npc, words: self._npcs[npc].conversation.holds(words),
            heard_before=lambda npc, question: self._npcs[npc].conversation.heard_before(question),
            players=lambda: [seat.player.name for seat in self._seats.values()],
            budgets=budgets,
            accept_at=settings.memory.auto_accept,
        )
        self._scribe = Scribe(campaign.id, keeper=self._recorder, turns=self._recorder, tell=self._tell, now_ms=now_ms)
        self._npcs = {
            npc.id: NpcActor(
                npc,
                conversation=Conversation(
                    npc, beginning=beginning(campaign, npc), history_tokens=settings.context.history_tokens
                ),
                open_mouth=partial(self._open_mouth, slot),
                tell=self._on_mouth,
                now_ms=now_ms,
            )
            for slot, npc in enumerate(campaign.npcs)
        }
        self._room = Room(
            campaign,
            session,
            decisions=Talk(
                self._names.mentions,
                {npc.id: npc.name for npc in campaign.npcs},
                floor=Floor(gap_ms=settings.turns.gap_ms),
                reply_deadline_ms=settings.turns.reply_deadline_ms,
                filler_after_ms=settings.turns.filler_after_ms,
            ),
            npcs=self._npcs,
            scribe=self._scribe,
            tell=self._tell,
            now_ms=now_ms,
            call_at=_call_at,
        )

        self._preparation = Preparation(
            self._npcs,
            present=lambda: self._scene.npcs,
            somebody=self._somebody,
            wait_until_quiet=self._room.wait_until_quiet,
            tell=self._tell,
            now_ms=now_ms,
        )
        self._listeners += [self._preparation.on, self._mark.on]

    # -- the table, as others see it

    @property
    def scene(self) -> Scene:
        return self._scene

    @property
    def health(self) -> MemoryHealth:
        return self._memory.health

    def may_show(self, text: str) -> bool:
        return self._names.may_show(text)

    def subscribe(self, listener: Callable[[TableEvent], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink) if sink in self._sinks else None

    async def seat(self, player: Player) -> Seat:
        if player.id in self._seats:
            raise InvalidInput(f"{player.name} sits at the table already")
        self._room.introduce(player.id, player.name)
        order = EarSpec(
            player=player,
            language=self.campaign.language,
            settings=self._settings,
            local=self._local,
            host=self._host,
            correct=partial(self._names.correct, player=player.id),
            glossary=self._names.hints.glossary,
            keyterms=self._names.hints.keyterms,
            on_names_changed=self._names.hints.subscribe,
            on_partial=self._prefetch.on_partial,
            listener=self._on_ear,
            now_ms=now_ms,
        )
        ear = await engines.find_ear()(order)
        seat = self._seats[player.id] = LiveSeat(player, ear, on_left=self._left)
        try:
            await ear.start()
        except BaseException:
            del self._seats[player.id]
            raise
        return seat

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        text = " ".join(text.split())
        if not text:
            return True
        utterance = id_of_line(self.session, player, line) if line is not None else None
        if utterance is not None and (known := self._typed.take(utterance)) != "new":
            return known != "kept"
        at_ms = now_ms()
        corrected = self._names.correct(text)
        draft = Draft(
            player,
            corrected.text,
            text,
            tuple(corrected.corrections),
            at_ms,
            at_ms,
            at_ms,
            at_ms,
            typed=True,
            utterance=utterance,
        )
        for event in (SpeechStarted(player, at_ms), TurnEnded(draft, at_ms)):
            self._on_heard(event)
        return True

    async def move(self, scene: SceneId) -> None:
        self._scene = self.campaign.scene(scene)
        await self._enter_scene()
        moved = asyncio.Event()
        forget = self.subscribe(lambda event: moved.set() if isinstance(event, SceneChanged) else None)
        self._room.mailbox.post(Move(self._scene))
        try:
            await moved.wait()
        finally:
            forget()

    async def wait_until_quiet(self) -> None:
        await self._room.wait_until_quiet()

    async def kept(self) -> int:
        await self._scribe.wait_until_written()
        return await self._memory.kept(self.session)

    async def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        seats = list(self._seats.values())
        await asyncio.gather(*(within(LEAVE_MS, f"the ear of {seat.player.name}", seat.leave()) for seat in seats))
        self._room.mailbox.post(End())
        await within(FALL_SILENT_MS, "an NPC that speaks", self._room.wait_until_quiet())
        await self._stack.aclose()

    def write_last_words(self) -> int:
        """Write what was said and is not on disk yet, though the event loop be blocked: for a process that ends now. In
        any thread. Returns how much of it could not be written.
        """
        said = {utterance.id: utterance for utterance in (*self._scribe.unwritten(), *self._room.unwritten())}
        return self._recorder.keep_now(list(said.values()), LAST_WORDS_MS)

    # -- opening and closing

    async def open(self, stack: ClosingStack, *, tell: Callable[[str], None]) -> None:
        """Start the actors and open every engine. Closed in reverse order."""
        stack.push_step("memory", STEP_MS, self._memory.close)
        stack.push_step("the place where the graphs run", STEP_MS, self._host.close)
        stack.push_step("recall", STEP_MS, self._prefetch.close)
        await self._open_second_look(stack)
        self._open_deep_talk(stack)
        stack.push_step("an actor", STEP_MS, self._supervisor.close)
        tell("opening memory")
        await self._memory.open()
        await self._names.open()
        await self._remember()
        if self.earlier:
            tell(f"session {self.session} goes on: its last {len(self.earlier)} utterances are known")
        await self._enter_scene()
        await self._preparation.open_scene(tell)
        self._memory.start(self._supervisor)
        self._supervisor.start("scribe", self._scribe.run)
        stack.push_step(
            "what the session leaves", WRITE_DOWN_MS + SECOND_LOOK_MS + LEARN_MS + STEP_MS, self._write_down
        )
        self._supervisor.start("room", self._room.run)
        for npc in self._npcs.values():
            self._supervisor.start(_group_of(npc.npc.id), npc.run)
        self._names.start(self._supervisor)
        if self._memory.store is not None:
            self._supervisor.start("talk", self._followed_talk(self._memory.store).run)
        if self._second_look is not None:
            self._supervisor.start("second look", self._second_look.run)
        await self.move(self._scene.id)
        self._supervisor.start("preparation", self._preparation.run)

    async def wait_until_ready(self) -> None:
        """Until every NPC answers as fast as it can: for who measures that. Nobody speaks meanwhile."""
        await self._preparation.wait_until_done()

    def adopt(self, stack: ClosingStack) -> None:
        self._stack = stack

    async def _write_down(self) -> None:
        try:
            async with asyncio.timeout(WRITE_DOWN_MS / 1000):
                await self._scribe.wait_until_written()
        except TimeoutError:
            if n_lost := await asyncio.to_thread(self.write_last_words):
                logger.error("the last {} utterances of the session could not be written to disk in time", n_lost)
        if self._second_look is not None:
            await self._second_look.finish(SECOND_LOOK_MS)
        await self._names.finish(LEARN_MS)
        await self._mark.closed()
        if not await self._memory.flush():
            logger.warning("the database has not taken everything yet; the next session sends it")

    async def _open_second_look(self, stack: ClosingStack) -> None:
        settings = self._settings.correction
        self._second_look = correction.open_second_look(
            self.campaign,
            asking=await correction.open_asking(settings, stack, local=self._local),
            gazetteer=lambda: self._names.current,
            correct=self._names.correct if settings.phonetic else None,
            tell=self._tell,
            log=self._memory.store.log if self._memory.store is not None else None,
            recorder=self._recorder,
            npcs=self._npcs,
            somebody=self._somebody,
            nearby=self._names.nearby,
            wait_until_quiet=self._room.wait_until_quiet,
            on_proof=self._names.proved,
            after_revise=self._memory.embed_what_is_new,
        )
        if self._second_look is not None:
            self._listeners.append(self._second_look.on)

    def _followed_talk(self, store: Store) -> FollowedTalk:
        return FollowedTalk(
            self.campaign.id,
            self.session,
            PostgresTalkDecisions(store.database, store.listener),
            recorder=self._recorder,
            npcs=self._npcs,
            tell=self._tell,
            somebody=self._somebody,
            refresh=store.past_talk.refresh,
            after_revise=self._memory.embed_what_is_new,
        )

    def _open_deep_talk(self, stack: ClosingStack) -> None:
        if self._guard is not None and self._memory.store is not None and not self._settings.recall.is_plain:
            # Loaded by who asks for it alone.
            from glyphoxa.bootstrap.deep_recall import open_deep_talk

            self._deep_talk = open_deep_talk(
                self._settings,
                self._memory.store.past_talk,
                stack,
                talk=self._guard,
                recent=self._heard_last,
                world=lambda npc: "\n".join(self._context.standing(npc)),
                llama=self._local.llama,
            )

    async def _remember(self) -> None:
        """After a restart within a session the NPCs go on where they were, and the page shows what it showed."""
        before = await self._memory.said_before(self.session)
        for utterance in before.remembered:
            for npc in utterance.witnesses & self._npcs.keys():
                conversation = self._npcs[npc].conversation
                (conversation.spoke if utterance.npc_id == npc else conversation.hear)(utterance)
        self._recorder.remember(before.remembered)
        self._typed.kept(before.shown)
        self.earlier = before.shown

    async def _enter_scene(self) -> None:
        await self._context.enter(self._scene)
        for npc, actor in self._npcs.items():
            # The DM may have decided otherwise since the file was written.
            actor.conversation.beginning = beginning_of(self.campaign, actor.npc, self._context.known(npc))

    # -- wires

    async def _open_mouth(self, slot: int, npc: Npc, listener: Listener) -> Mouth:
        tools = None
        if self._guard is not None and self._deep_talk is not None:
            talk = self._deep_talk if npc.budget_tier == "DEEP" else self._guard
            memory = MemoryOf(
                self.campaign.id,
                npc.id,
                self._guard,
                talk,
                self._guard,
                npc.name,
                self.campaign.language,
                around=self._memory.around,
            )
            tools = MemoryTools(memory, tier=npc.budget_tier, tell=partial(self._on_look_up, npc.id))
        order = MouthSpec(
            npc=npc,
            others=self._names_of_others(npc),
            slot=slot,
            language=self.campaign.language,
            settings=self._settings,
            local=self._local,
            host=self._host,
            context=self._context,
            tools=tools,
            listener=listener,
            sink=self._on_voice,
            now_ms=now_ms,
        )
        return await self._mouths[npc.engine](order)

    def _names_of_others(self, npc: Npc) -> tuple[str, ...]:
        npcs = [other.name for other in self.campaign.npcs if other.id != npc.id]
        return (*npcs, *(player.name for player in self.campaign.players))

    def _heard_last(self, npc: NpcId) -> list[str]:
        heard = (said for said in self._recorder.recent(self.session) if npc in said.witnesses)
        return [f"{said.speaker_name}: {said.text}" for said in heard]

    def _somebody(self) -> str:
        return next((player.name for player in self.campaign.players), "Somebody")

    def _on_ear(self, event: EarEvent) -> None:
        self._names.on_ear(event)
        self._on_heard(event)

    def _on_heard(self, event: EarEvent) -> None:
        if isinstance(event, SpeechStarted):
            self._prefetch.forget(event.player)
            self._context.new_speech()
        self._room.mailbox.post(event)

    def _on_mouth(self, event: MouthEvent) -> None:
        self._room.mailbox.post(event)

    def _on_look_up(self, npc: NpcId, look_up: LookUp) -> None:
        self._room.mailbox.post(LookedUp(npc, look_up))

    def _on_voice(self, npc: NpcId, pcm: bytes) -> None:
        for sink in tuple(self._sinks):
            sink(npc, pcm)

    def _known_utterances(self, npc: NpcId) -> Sequence[UtteranceId]:
        return self._npcs[npc].conversation.utterance_ids

    async def _left(self, seat: LiveSeat) -> None:
        self._seats.pop(seat.player.id, None)
        self._names.left(seat.player.id)
        self._room.mailbox.post(Leave(seat.player.id))

    def _tell(self, event: TableEvent) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:  # whoever watches must not stop the table
                logger.opt(exception=error).error("a listener of the table fell")

    def _alarm(self, what: str, trouble: Trouble, group: str) -> None:
        logger.warning("{}", what)
        npc = self._npc_of(group)
        self._tell(Degraded(what, now_ms(), trouble, npc.npc.id if npc is not None else None))

    def _on_fall(self, group: str, error: BaseException) -> None:
        self._alarm(f"{group} fell and was started again ({type(error).__name__})", Trouble.RESTARTED, group)

    def _on_given_up(self, group: str) -> None:
        self._alarm(f"{group} fell too often and is out until the session is opened anew", Trouble.OUT, group)
        if (npc := self._npc_of(group)) is not None:
            self._supervisor.start(f"{group}, who declines", npc.decline)

    def _npc_of(self, group: str) -> NpcActor | None:
        return next((actor for npc, actor in self._npcs.items() if _group_of(npc) == group), None)


def _group_of(npc: NpcId) -> str:
    """An NPC may be called Room or Scribe, and falls alone all the same."""
    return f"NPC {npc}"


def _call_at(at_ms: int, callback: Callable[[], None]) -> object:
    delay_s = max(0, at_ms - now_ms()) / 1000
    return asyncio.get_running_loop().call_later(delay_s, callback)
