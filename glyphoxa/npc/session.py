"""A running session, as transports see it. Who opens it makes its parts: see `glyphoxa.app.table`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, Protocol

from loguru import logger

from glyphoxa.actors.deadline import within
from glyphoxa.actors.supervisor import Mailbox, Supervisor
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.identity import beginning_of
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import Degraded, MemoryHealth, SceneChanged, TableEvent, Trouble
from glyphoxa.domain.heard import Draft, EarEvent, Heard, SpeechStarted, TurnEnded, Utterance
from glyphoxa.domain.ids import LineId, NpcId, PlayerId, SceneId, SessionId, id_of_line
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.readiness import Preparation
from glyphoxa.npc.room import End, Leave, Move, Obey, Room, RoomMessage
from glyphoxa.npc.table import AudioSink, Ear, NpcVoices, Seat, TableEvents, TableState, TypedLines
from glyphoxa.transcript.journal import Journal, SessionMark
from glyphoxa.transcript.reviser import Reviser

# What is heard, or typed, on its way to the room: whoever works ahead of the room is told first.


class Hearing:
    """
    Args:
        room: The room's mailbox.
        typed: Which lines were taken before.
        now_ms: Unix epoch.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        room: Mailbox[RoomMessage],
        *,
        session: SessionId,
        names: TableNames,
        prefetch: Prefetch,
        context: HotContextAssembly,
        typed: TypedLines,
        now_ms: Callable[[], int],
    ) -> None:
        self._room = room
        self._session = session
        self._names = names
        self._prefetch = prefetch
        self._context = context
        self._typed = typed
        self._now_ms = now_ms

    def on_ear(self, event: EarEvent) -> None:
        """Takes every event of every ear."""
        self._names.on_ear(event)
        self._pass_on(event)

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        """See `glyphoxa.npc.table.Table.say`."""
        text = " ".join(text.split())
        if not text:
            return True
        utterance = id_of_line(self._session, player, line) if line is not None else None
        if utterance is not None and (known := self._typed.take(utterance)) != "new":
            return known != "kept"
        at_ms = self._now_ms()
        corrected = self._names.correct(text)
        heard = Heard(corrected.text, text, tuple(corrected.corrections), at_ms, at_ms)
        draft = Draft(player, heard, at_ms, at_ms, typed=True, utterance=utterance)
        for event in (SpeechStarted(player, at_ms), TurnEnded(draft, at_ms)):
            self._pass_on(event)
        return True

    def left(self, player: PlayerId) -> None:
        """They have stood up: nothing more is heard of them."""
        self._names.left(player)
        self._room.post(Leave(player))

    def _pass_on(self, event: EarEvent) -> None:
        if isinstance(event, SpeechStarted):
            self._prefetch.forget(event.player)
            self._context.new_speech()
        self._room.post(event)


# What a session leaves: written down, looked at again, learned and sent, each within its time.


WRITE_DOWN_MS = 5_000
SECOND_LOOK_MS = 5_000
LEARN_MS = 2_000
LAST_WORDS_MS = 2_000


class SessionEnd:
    """
    Args:
        reviser: None where nobody looks again.
        flush: Sends what waits for the database. False when it has not taken everything in time.
    """

    within_ms = WRITE_DOWN_MS + SECOND_LOOK_MS + LEARN_MS
    """How long it takes at worst, without `flush`."""

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        *,
        room: Room,
        journal: Journal,
        reviser: Reviser | None,
        names: TableNames,
        mark: SessionMark,
        flush: Callable[[], Awaitable[bool]],
    ) -> None:
        self._room = room
        self._journal = journal
        self._reviser = reviser
        self._names = names
        self._mark = mark
        self._flush = flush

    async def write_down(self) -> None:
        try:
            async with asyncio.timeout(WRITE_DOWN_MS / 1000):
                await self._journal.wait_until_written()
        except TimeoutError:
            if n_lost := await asyncio.to_thread(self.write_last_words):
                logger.error("the last {} utterances of the session could not be written to disk in time", n_lost)
        if self._reviser is not None:
            await self._reviser.finish(SECOND_LOOK_MS)
        await self._names.finish(LEARN_MS)
        await self._mark.closed()
        if not await self._flush():
            logger.warning("the database has not taken everything yet; the next session sends it")

    def write_last_words(self) -> int:
        """Write what was said and is not on disk yet, though the event loop be blocked: for a process that ends now. In
        any thread. Returns how much of it could not be written.
        """
        said = {utterance.id: utterance for utterance in (*self._journal.unwritten(), *self._room.unwritten())}
        return self._journal.keep_now(list(said.values()), LAST_WORDS_MS)


FALL_SILENT_MS = 2_000
LEAVE_MS = 2_000


class LongTermMemory(Protocol):
    """Long-term memory of the table."""

    @property
    def health(self) -> MemoryHealth: ...

    async def kept(self, session: SessionId) -> int:
        """See `glyphoxa.npc.table.Table.kept`."""
        ...


@dataclass(frozen=True, slots=True)
class TableParts:
    """What a table is made of."""

    state: TableState
    events: TableEvents
    voices: NpcVoices
    seats: TableSeats
    hearing: Hearing
    room: Room
    npcs: Mapping[NpcId, NpcActor]
    names: TableNames
    context: HotContextAssembly
    preparation: Preparation
    journal: Journal
    memory: LongTermMemory
    end: SessionEnd


class LiveTable:
    """See `glyphoxa.npc.table.Table`."""

    def __init__(self, parts: TableParts, *, earlier: Sequence[Utterance] = ()) -> None:
        self.earlier = earlier
        self.parts = parts
        self._state = parts.state
        self._room = parts.room
        self._stack = AsyncExitStack()
        self._is_closing = False

    @property
    def campaign(self) -> Campaign:
        return self._state.campaign

    @property
    def session(self) -> SessionId:
        return self._state.session

    @property
    def scene(self) -> Scene:
        return self._state.scene

    @property
    def health(self) -> MemoryHealth:
        return self.parts.memory.health

    @property
    def is_paused(self) -> bool:
        return self._room.control.controls.is_paused

    def may_show(self, text: str) -> bool:
        return self.parts.names.may_show(text)

    def subscribe(self, listener: Callable[[TableEvent], None]) -> Callable[[], None]:
        return self.parts.events.subscribe(listener)

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        return self.parts.voices.add_sink(sink)

    async def seat(self, player: Player) -> Seat:
        return await self.parts.seats.seat(player)

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        if self.is_paused:
            raise InvalidInput(
                "the game master has paused the table, and nothing that is said is kept; try again later"
            )
        return self.parts.hearing.say(player, text, line=line)

    async def move(self, scene: SceneId) -> None:
        entered = self.campaign.scene(scene)
        await enter(entered, self._state, self.parts.context)
        moved = asyncio.Event()
        forget = self.subscribe(lambda event: moved.set() if isinstance(event, SceneChanged) else None)
        self._room.mailbox.post(Move(entered))
        try:
            await moved.wait()
        finally:
            forget()

    async def obey(self, command: TableCommand) -> str:
        """Do what the DM commands. Returns what was done, in words.

        Raises:
            InvalidInput: It cannot be done, and nothing of it was.
        """
        answered: asyncio.Queue[str | InvalidInput] = asyncio.Queue()
        self._room.mailbox.post(Obey(command, answered.put_nowait))
        answer = await answered.get()
        if isinstance(answer, InvalidInput):
            raise answer
        return answer

    async def wait_until_quiet(self) -> None:
        await self._room.wait_until_quiet()

    async def wait_until_ready(self) -> None:
        """Until every NPC answers as fast as it can: for who measures that. Nobody speaks meanwhile."""
        await self.parts.preparation.wait_until_done()

    async def kept(self) -> int:
        await self.parts.journal.wait_until_written()
        return await self.parts.memory.kept(self.session)

    def adopt(self, stack: AsyncExitStack) -> None:
        """Close this with the table: what was opened for it, the last one first."""
        self._stack = stack

    async def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        await self.parts.seats.leave_all(LEAVE_MS)
        self._room.mailbox.post(End())
        await within(FALL_SILENT_MS, "an NPC that speaks", self._room.wait_until_quiet())
        await self._stack.aclose()

    def write_last_words(self) -> int:
        """See `SessionEnd.write_last_words`."""
        return self.parts.end.write_last_words()


async def enter(scene: Scene, state: TableState, context: HotContextAssembly) -> None:
    """The table is in this scene as soon as what its NPCs know there has been read."""
    await context.enter(scene)
    state.scene = scene
    for npc in state.campaign.npcs:
        # The DM may have decided otherwise since the file was written.
        conversation = state.conversations[npc.id]
        conversation.beginning = beginning_of(state.campaign, npc, context.known(npc.id))
        conversation.enter(scene)


# Ends a session at which nobody sits any more: an evening that was over hours ago holds a machine's memory.


_LOOK_EVERY_MS: Final = 10_000
"""Who comes and leaves between two looks does not count."""


class IdleClose:
    """
    Args:
        is_empty: Whether nobody sits at the table.
        after_ms: How long nobody must have.
        end: Ends the session.
    """

    def __init__(self, is_empty: Callable[[], bool], *, after_ms: int, end: Callable[[], None]) -> None:
        self._is_empty = is_empty
        self._after_ms = after_ms
        self._end = end

    async def run(self) -> None:
        """The actor's body."""
        empty_ms = 0
        while empty_ms < self._after_ms:
            await asyncio.sleep(_LOOK_EVERY_MS / 1_000)
            empty_ms = empty_ms + _LOOK_EVERY_MS if self._is_empty() else 0
        logger.info("nobody has sat at the table for {} minutes: the session ends", self._after_ms // 60_000)
        self._end()


# The actors of one table: who falls is started again and told of, and an NPC that is out tells whoever asks it.


class TableSupervision:
    """
    Args:
        tell: Takes events of the table.
        now_ms: Unix epoch.
    """

    def __init__(
        self, npcs: Mapping[NpcId, NpcActor], *, tell: Callable[[TableEvent], None], now_ms: Callable[[], int]
    ) -> None:
        self.supervisor = Supervisor(on_fall=self._on_fall, on_given_up=self._on_given_up)
        self._npcs = {_group_of(npc): actor for npc, actor in npcs.items()}
        self._tell = tell
        self._now_ms = now_ms

    def start_npcs(self) -> None:
        for group, npc in self._npcs.items():
            self.supervisor.start(group, npc.run)

    def _on_fall(self, group: str, error: BaseException) -> None:
        self._alarm(f"{group} fell and was started again ({type(error).__name__})", Trouble.RESTARTED, group)

    def _on_given_up(self, group: str) -> None:
        self._alarm(f"{group} fell too often and is out until the session is opened anew", Trouble.OUT, group)
        if (npc := self._npcs.get(group)) is not None:
            self.supervisor.start(f"{group}, who declines", npc.decline)

    def _alarm(self, what: str, trouble: Trouble, group: str) -> None:
        logger.warning("{}", what)
        npc = self._npcs.get(group)
        self._tell(Degraded(what, self._now_ms(), trouble, npc.npc.id if npc is not None else None))


def _group_of(npc: NpcId) -> str:
    """An NPC may be called Room or Scribe, and falls alone all the same."""
    return f"NPC {npc}"


# Who sits at a table, each with an ear of their own.


CLOSE_EAR_MS = 5_000


class LiveSeat:
    """See `glyphoxa.npc.table.Seat`.

    Args:
        is_paused: Whether its ear hears silence in place of what is said.
        close_within_ms: An ear that has not closed by then is left behind, and the seat is left all the same.
    """

    def __init__(
        self,
        player: Player,
        ear: Ear,
        *,
        on_left: Callable[[Player], None],
        is_paused: Callable[[], bool] = lambda: False,
        close_within_ms: int = CLOSE_EAR_MS,
    ) -> None:
        self.player = player
        self._ear = ear
        self._on_left = on_left
        self._is_paused = is_paused
        self._close_within_ms = close_within_ms
        self._is_empty = False

    def hear(self, pcm: bytes) -> None:
        if not self._is_empty:
            self._ear.hear(bytes(len(pcm)) if self._is_paused() else pcm)

    async def leave(self) -> None:
        if self._is_empty:
            return
        self._is_empty = True
        try:
            await within(self._close_within_ms, f"the ear of {self.player.name}", self._ear.close())
        finally:
            self._on_left(self.player)


class TableSeats:
    """
    Args:
        open_ear: Builds an ear for a human; it does not listen yet.
        on_left: Told who has left.
        is_paused: Whether the table is: then no recogniser is given what is said.
    """

    def __init__(
        self,
        state: TableState,
        *,
        open_ear: Callable[[Player], Awaitable[Ear]],
        on_left: Callable[[PlayerId], None],
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._state = state
        self._open_ear = open_ear
        self._on_left = on_left
        self._is_paused = is_paused
        self._seats: dict[PlayerId, LiveSeat] = {}

    async def seat(self, player: Player) -> LiveSeat:
        """
        Raises:
            InvalidInput: Someone already sits there.
        """
        if self._state.is_seated(player.id):
            raise InvalidInput(f"{player.name} sits at the table already")
        self._state.sits_down(player)
        try:
            ear = await self._open_ear(player)
            seat = self._seats[player.id] = LiveSeat(player, ear, on_left=self._left, is_paused=self._is_paused)
            await ear.start()
        except BaseException:  # also of who is cancelled: the seat is free again
            self._seats.pop(player.id, None)
            self._state.stands_up(player.id)
            raise
        return seat

    async def leave_all(self, within_ms: int) -> None:
        seats = tuple(self._seats.values())
        await asyncio.gather(*(within(within_ms, f"the ear of {seat.player.name}", seat.leave()) for seat in seats))

    def _left(self, player: Player) -> None:
        self._seats.pop(player.id, None)
        self._state.stands_up(player.id)
        self._on_left(player.id)
