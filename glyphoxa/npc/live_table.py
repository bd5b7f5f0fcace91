"""A running session, as transports see it. Who opens it makes its parts: see `glyphoxa.bootstrap.table`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.actors.deadline import within
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.beginning import beginning_of
from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import MemoryHealth, SceneChanged, TableEvent
from glyphoxa.domain.ids import LineId, NpcId, PlayerId, SceneId, SessionId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.hearing import Hearing
from glyphoxa.npc.preparation import Preparation
from glyphoxa.npc.room import Room
from glyphoxa.npc.room_messages import End, Move, Obey
from glyphoxa.npc.seats import TableSeats
from glyphoxa.npc.session_end import SessionEnd
from glyphoxa.npc.table import AudioSink, Seat
from glyphoxa.npc.table_events import NpcVoices, TableEvents
from glyphoxa.npc.table_state import TableState
from glyphoxa.transcript.api import Journal

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
