"""The session of a table. It owns the campaign, its memory, the room and the NPCs.

Protocol of use: build it from its parts (see `glyphoxa.app.table`), `open` it before anybody speaks, and `close` it at
the end. Ears post to the room's mailbox, typed text enters through `say`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from loguru import logger

from glyphoxa.actors.deadline import STEP_MS, ClosingStack, done_within, within
from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.domain.campaign import Player, Scene
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.events import (
    Degraded,
    MemoryHealth,
    SessionEnds,
    Trouble,
)
from glyphoxa.domain.heard import Draft, Heard, SpeechStarted, TurnEnded, Utterance
from glyphoxa.domain.ids import LineId, PlayerId, SceneId, id_of_line
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.actor import NpcActor, Preparation
from glyphoxa.npc.commands import MoveTo, SessionCommand, StoredControls, follow_commands
from glyphoxa.npc.room import Room
from glyphoxa.npc.session_state_keeper import SessionStateKeeper
from glyphoxa.npc.table_interface import AudioSink, Ear, EarListener, Seat
from glyphoxa.npc.table_state import Covered, TableState, TypedLines
from glyphoxa.npc.transcript_revision import DmChannels, Reviser, Revisions
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.sessions import DM_VIEW

WRITE_DOWN_MS = 5_000
SECOND_LOOK_MS = 5_000
LEARN_MS = 2_000
SUMMARISE_MS = 2_000
LAST_WORDS_MS = 2_000
FALL_SILENT_MS = 2_000
LEAVE_MS = 2_000
_END_MS = WRITE_DOWN_MS + SECOND_LOOK_MS + LEARN_MS + SUMMARISE_MS + STEP_MS
_LOOK_EVERY_MS: Final = 10_000
"""Interval of checks for an empty table. Visits between two checks do not count."""


@dataclass(frozen=True, slots=True)
class EarlierTalk:
    """Utterances of a session before a restart, oldest first.

    Attributes:
        remembered: Utterances with which NPCs continue. While the database is unreachable, only utterances that it does
            not have, because the others may have been rolled back.
        shown: Utterances that players and the DM see. While the database is unreachable, players' words are
            uncorrected, because a corrected name may be secret.
        covered: Which of `remembered` the summaries cover.
    """

    remembered: Sequence[Utterance]
    shown: Sequence[Utterance]
    covered: Covered = field(default_factory=Covered)


class SessionMemory(Protocol):
    """The memory of a session. No call waits for an unreachable database."""

    @property
    def journal(self) -> Journal: ...

    @property
    def health(self) -> MemoryHealth: ...

    async def open(self) -> None: ...

    def start(self, supervisor: Supervisor) -> None: ...

    async def said_before(self) -> EarlierTalk: ...

    async def kept(self) -> int:
        """See `glyphoxa.npc.table_interface.Table.kept`."""
        ...

    async def finish(self) -> bool:
        """Note the end, and send pending utterances to the database. False if it did not accept all in time."""
        ...


class TableSession:
    """Implements `glyphoxa.npc.table_interface.Table`. See the module's protocol of use.

    Args:
        open_ear: Builds an ear for a player that reports to the listener. It does not listen yet.
        dm: None without long-term memory.

    Attributes:
        earlier: See `Table.earlier`.
        revisions: Applies better transcripts.
        supervisor: Restarts the actors of this session.
    """

    def __init__(  # noqa: PLR0913 - the independent parts of a session, passed once
        self,
        room: Room,
        *,
        names: TableNames,
        context: HotContexts,
        memory: SessionMemory,
        keeper: SessionStateKeeper,
        open_ear: Callable[[Player, EarListener], Awaitable[Ear]],
        dm: DmChannels | None,
    ) -> None:
        self.room = room
        self.state = room.state
        self.campaign = room.state.campaign
        self.session = room.state.session
        self.names = names
        self.may_show = names.may_show
        self.context = context
        self.keeper = keeper
        self.earlier: Sequence[Utterance] = ()
        self.supervisor = Supervisor(on_crash=self._on_crash, on_given_up=self._on_given_up)
        self._memory = memory
        self._journal = memory.journal
        self._dm = dm
        self._typed = TypedLines()
        self._reviser: Reviser | None = None
        self._stack = AsyncExitStack()
        self._is_closing = False
        self._events = room.state.events
        self.subscribe = self._events.subscribe
        self.wait_until_quiet = wait_until_quiet = room.wait_until_quiet
        self.revisions = Revisions(self._journal.recent, room.npcs, room.state, wait_until_quiet=wait_until_quiet)
        self._preparation = Preparation(
            room.npcs, room.state, wait_until_quiet=wait_until_quiet, now_ms=room.clock.now_ms
        )
        self._seats = TableSeats(
            room.state,
            open_ear=lambda player: open_ear(player, room.mailbox.post),
            on_left=room.leave,
            is_paused=lambda: self.is_paused,
        )
        revisions, prefetch = self.revisions, context.prefetch
        kept = (names.on, self._typed.on, self._preparation.on, keeper.on, revisions.on, prefetch.on)
        for watcher in kept:
            self._events.subscribe(watcher)

    def look_again(self, reviser: Reviser) -> None:
        """Add a second look at transcripts. Call before `open`."""
        self._reviser = reviser
        self._events.subscribe(reviser.on)

    # -- opening

    async def open(self, stack: ClosingStack, *, tell: Callable[[str], None]) -> None:
        """Open every engine and start the actors; `stack` closes them in reverse order.

        Args:
            tell: Receives progress messages for the user.
        """
        state, supervisor = self.state, self.supervisor
        stack.push_step("an actor", STEP_MS, supervisor.close)
        tell("opening memory")
        await self._memory.open()
        await self.names.open()
        before = await self._memory.said_before()
        self._remember(before)
        if before.shown:
            tell(f"session {self.session} continues: restored {counted(len(before.shown), 'utterance')}")
        await enter(state.scene, state, self.context)
        await self._preparation.open_scene(tell)
        self._memory.start(supervisor)
        supervisor.start("journal", self._journal.run)
        stack.push_step("storing the session", _END_MS, self._write_down)
        supervisor.start("room", self.room.run)
        for npc in self.room.npcs.values():
            supervisor.start(_group_of(npc), npc.run)
        self.names.start(supervisor)
        if self._reviser is not None:
            supervisor.start("second look", self._reviser.run)
            supervisor.start("revisions", self.revisions.run)
        await self.move(state.scene.id)
        self.room.remember(before.remembered)  # after entering the scene, which resets conversations
        if self._dm is not None:
            await self._follow(self._dm)
        supervisor.start("session state", self.keeper.run)
        supervisor.start("preparation", self._preparation.run)

    def _remember(self, before: EarlierTalk) -> None:
        """Restore NPCs and page to the state before a restart."""
        self.state.remember(before.remembered, before.covered)
        self._journal.recent.remember(before.remembered)
        self._typed.kept(before.shown)
        self.earlier = before.shown

    async def _follow(self, dm: DmChannels) -> None:
        """Restore the DM's controls of this session, and follow the DM's decisions in other processes."""
        kept = StoredControls(self.campaign.id, self.session, dm.commands)
        self.room.control.restore(await kept.before(self.room.npcs.keys()))
        self.room.control.on_change(kept.on_changed)

        async def obey(command: SessionCommand) -> str:
            told = await self.obey(command)
            await kept.wait_until_kept()
            return told

        self.supervisor.start("talk", partial(self.revisions.follow, dm))
        self.supervisor.start("the DM's commands", partial(follow_commands, self.state, dm.commands, obey=obey))
        self.supervisor.start("the DM's controls", kept.run)

    # -- state

    @property
    def scene(self) -> Scene:
        return self.state.scene

    @property
    def health(self) -> MemoryHealth:
        return self._memory.health

    @property
    def is_paused(self) -> bool:
        return self.room.control.controls.is_paused

    @property
    def summary_rounds(self) -> int:
        return self.state.summaries[DM_VIEW].interval

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        return self.state.voices.subscribe(sink)

    async def kept(self) -> int:
        await self._journal.wait_until_written()
        return await self._memory.kept()

    async def wait_until_ready(self) -> None:
        """Wait until every NPC is ready, before measuring answers. Nobody may speak meanwhile."""
        await self._preparation.wait_until_done()

    # -- events

    async def seat(self, player: Player) -> Seat:
        return await self._seats.seat(player)

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        if self.is_paused:
            raise InvalidInput("the game master has paused the table, so nothing is stored; try again later")
        text = " ".join(text.split())
        if not text:
            return True
        utterance = id_of_line(self.session, player, line) if line is not None else None
        if utterance is not None and (known := self._typed.take(utterance)) != "new":
            return known != "kept"
        at_ms = self.room.clock.now_ms()
        corrected = self.names.correct(text)
        heard = Heard(corrected.text, text, tuple(corrected.corrections), at_ms, at_ms)
        draft = Draft(player, heard, at_ms, at_ms, typed=True, utterance=utterance)
        self.room.mailbox.post(SpeechStarted(player, at_ms))
        self.room.mailbox.post(TurnEnded(draft, at_ms))
        return True

    async def move(self, scene: SceneId) -> None:
        entered = self.campaign.scene(scene)
        await enter(entered, self.state, self.context)
        await self.room.move(entered)

    async def obey(self, command: SessionCommand) -> str:
        if isinstance(command, MoveTo):
            await self.move(command.scene)
            return f"the table is now at {self.state.location_name}"
        return await self.room.obey(command)

    # -- crashes

    def _on_crash(self, group: str, error: BaseException) -> None:
        self._alarm(f"{group} crashed and was restarted ({type(error).__name__})", Trouble.RESTARTED, group)

    def _on_given_up(self, group: str) -> None:
        """Keep a group as an NPC that declines, so that questions to it are answered."""
        self._alarm(f"{group} crashed too often and is off until the session is opened again", Trouble.OUT, group)
        if (npc := self._npc_of(group)) is not None:
            self.supervisor.start(f"{group} (declining)", npc.decline)

    def announce(self, what: str, trouble: Trouble) -> None:
        """Tell everybody at the table."""
        self._events.tell(Degraded(what, self.room.clock.now_ms(), trouble))

    def _alarm(self, what: str, trouble: Trouble, group: str) -> None:
        logger.warning("{}", what)
        npc = self._npc_of(group)
        self._events.tell(Degraded(what, self.room.clock.now_ms(), trouble, npc.npc.id if npc is not None else None))

    def _npc_of(self, group: str) -> NpcActor | None:
        return next((npc for npc in self.room.npcs.values() if _group_of(npc) == group), None)

    # -- shutdown

    def adopt(self, stack: AsyncExitStack) -> None:
        """Close these resources with the table, last one first."""
        self._stack = stack

    async def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        await self._seats.leave_all(LEAVE_MS)
        self.room.end()
        await within(FALL_SILENT_MS, "the speaking NPC", self.room.wait_until_quiet())
        await self._stack.aclose()

    async def _write_down(self) -> None:
        """Store, revise, learn and send what is left of the session, each step with a deadline."""
        is_written = await done_within(WRITE_DOWN_MS, self._journal.wait_until_written())
        if not is_written and (n_lost := await asyncio.to_thread(self.write_pending)):
            logger.error("the last {} utterances of the session were not written to disk in time", n_lost)
        if self._reviser is not None:
            await self._reviser.finish(SECOND_LOOK_MS)
        await self.names.finish(LEARN_MS)
        await within(SUMMARISE_MS, "the state of the session", self.keeper.finish())
        if not await self._memory.finish():
            logger.warning("the database has not accepted everything yet; the next session sends the rest")

    def write_pending(self) -> int:
        """Write pending utterances to disk. Returns how many failed.

        For a process that ends now. Works in any thread, even if the event loop is blocked.
        """
        said = {utterance.id: utterance for utterance in (*self._journal.unwritten(), *self.room.unwritten())}
        return self._journal.keep_now(list(said.values()), LAST_WORDS_MS)


def _group_of(npc: NpcActor) -> str:
    """Return the NPC's crash group, distinct from those of the room and other actors."""
    return f"NPC {npc.npc.id}"


async def end_when_deserted(session: TableSession, *, after_minutes: int) -> None:
    """End a session after nobody has sat at its table for this long."""
    await wait_until_deserted(lambda: session.state.is_empty, for_ms=after_minutes * 60_000)
    logger.info("the session ends, because nobody sat at the table for {} minutes", after_minutes)
    session.state.events.tell(SessionEnds(session.room.clock.now_ms()))


async def wait_until_deserted(is_empty: Callable[[], bool], *, for_ms: int) -> None:
    """Wait until nobody has sat at the table for this time, so that a finished session frees its memory."""
    empty_ms = 0
    while empty_ms < for_ms:
        await asyncio.sleep(_LOOK_EVERY_MS / 1_000)
        empty_ms = empty_ms + _LOOK_EVERY_MS if is_empty() else 0


async def enter(scene: Scene, state: TableState, context: HotContexts) -> None:
    """Enter a scene after loading what its NPCs know there."""
    await context.enter(scene)
    state.scene = scene
    for npc in state.campaign.npcs:
        # The DM may have changed it since the file was written.
        conversation = state.conversations[npc.id]
        conversation.beginning = beginning_of(state.campaign, npc, context.known(npc.id))
        conversation.enter(scene)


# Seats: each player has an ear.


CLOSE_EAR_MS = 5_000
"""Time for an ear to close. After that it is abandoned and the seat is free."""


@dataclass(slots=True, eq=False)
class LiveSeat:
    """Implements `glyphoxa.npc.table_interface.Seat`.

    Args:
        is_paused: Whether the ear receives silence instead of sound.
    """

    player: Player
    ear: Ear
    on_left: Callable[[Player], None]
    is_paused: Callable[[], bool] = lambda: False
    _is_empty: bool = False

    def hear(self, pcm: bytes) -> None:
        if not self._is_empty:
            self.ear.hear(bytes(len(pcm)) if self.is_paused() else pcm)

    async def leave(self) -> None:
        if self._is_empty:
            return
        self._is_empty = True
        try:
            await within(CLOSE_EAR_MS, f"the ear of {self.player.name}", self.ear.close())
        finally:
            self.on_left(self.player)


@dataclass(slots=True, eq=False)
class TableSeats:
    """The occupied seats of a table.

    Args:
        open_ear: Builds an ear for a player. It does not listen yet.
        on_left: Called with a player who has left.
        is_paused: Whether the table is paused; recognisers then receive silence.
    """

    state: TableState
    open_ear: Callable[[Player], Awaitable[Ear]]
    on_left: Callable[[PlayerId], None]
    is_paused: Callable[[], bool] = lambda: False
    _seats: dict[PlayerId, LiveSeat] = field(default_factory=dict)

    async def seat(self, player: Player) -> LiveSeat:
        """Seat a player.

        Raises:
            InvalidInput: The seat is taken.
        """
        if self.state.is_seated(player.id):
            raise InvalidInput(f"{player.name} already sits at the table")
        self.state.add_player(player)
        try:
            ear = await self.open_ear(player)
            seat = self._seats[player.id] = LiveSeat(player, ear, on_left=self._left, is_paused=self.is_paused)
            await ear.start()
        except BaseException:  # including cancellation: free the seat
            self._seats.pop(player.id, None)
            self.state.remove_player(player.id)
            raise
        return seat

    async def leave_all(self, within_ms: int) -> None:
        seats = tuple(self._seats.values())
        await asyncio.gather(*(within(within_ms, f"the ear of {seat.player.name}", seat.leave()) for seat in seats))

    def _left(self, player: Player) -> None:
        self._seats.pop(player.id, None)
        self.state.remove_player(player.id)
        self.on_left(player.id)
