"""A room with real actors and mouths that follow the protocol, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TypeVar

from glyphoxa.actors.clock import TableClock
from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.domain.campaign import Npc, Safety
from glyphoxa.domain.events import TableEvent, TurnFinished
from glyphoxa.domain.heard import EagerTurn, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId, SceneId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.names.people import CERTAIN, AddresseeMention, Understood
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.mouth import Listener, MouthEvent
from glyphoxa.npc.room import Room
from glyphoxa.npc.table_state import TableState
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.turns.questions import DmControls, Questions
from glyphoxa.turns.turn_taking import TurnTaking
from tests.support.builders import MARKET, SESSION, a_campaign, a_draft
from tests.support.memory import AtOnce, SpoolTwin
from tests.support.mouth_twin import MouthTwin
from tests.support.supervised import closing

NAMES = {npc.id: npc.name for npc in a_campaign().npcs}


def named(text: str) -> Understood:
    places = ((npc, name, text.find(name)) for npc, name in NAMES.items() if name in text)
    return Understood.of(text, [AddresseeMention(npc, name, at, CERTAIN) for npc, name, at in places])


class TableOfTwins:
    """
    Args:
        dms: Who may command by voice.
        safety: Topics that its group does not play.
        log: None: what is said stays on the disk.
    """

    def __init__(
        self,
        *,
        dms: Collection[PlayerId] = (),
        safety: Safety | None = None,
        log: TranscriptLog | None = None,
    ) -> None:
        self.now_ms = 0
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.events: list[TableEvent] = []
        self.mouths: dict[NpcId, list[MouthTwin]] = {npc: [] for npc in NAMES}
        self.spool = SpoolTwin()
        campaign = a_campaign()
        self.journal = Journal(
            self.spool,  # type: ignore[arg-type]
            log,
            tell=self.events.append,
            thread=AtOnce(),
        )
        topics = SafetyTopics(safety)
        conversations = {npc.id: Conversation(npc, safety=topics) for npc in campaign.npcs}
        self.state = TableState(campaign, SESSION, campaign.scene(MARKET), conversations)
        self.state.events.subscribe(self.events.append)
        self.npcs = {
            npc.id: NpcActor(
                conversations[npc.id],
                open_mouth=self._open_mouth,
                tell=self._from_mouth,
                now_ms=self.clock,
            )
            for npc in campaign.npcs
        }
        self.room = Room(
            self.state,
            turn_taking=TurnTaking(Questions(named, NAMES, controls=DmControls(frozenset(dms)))),
            npcs=self.npcs,
            journal=self.journal,
            clock=TableClock(self.clock, lambda at_ms, callback: self.timers.append((at_ms, callback))),
        )
        self.supervisor = Supervisor()

    def clock(self) -> int:
        return self.now_ms

    async def _open_mouth(self, npc: Npc, listener: Listener) -> MouthTwin:
        self.mouths[npc.id].append(MouthTwin(npc, listener, self.clock))
        return self.mouths[npc.id][-1]

    def _from_mouth(self, event: MouthEvent) -> None:
        self.room.mailbox.post(event)

    def start(self) -> None:
        self.supervisor.start("room", self.room.run)
        self.supervisor.start("journal", self.journal.run)
        for npc_id, npc in self.npcs.items():
            self.supervisor.start(npc_id, npc.run)

    async def settle(self) -> None:
        """Until every actor has read its mail."""
        for _ in range(60):
            await asyncio.sleep(0)

    async def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        due = [callback for at_ms, callback in self.timers if at_ms <= self.now_ms]
        self.timers = [timer for timer in self.timers if timer[0] > self.now_ms]
        for callback in due:
            callback()
        await self.settle()

    async def says(self, player: PlayerId, text: str) -> None:
        """Half a second of speech, a pause, the end of the turn a second after it began."""
        draft = a_draft(player, text, end_ms=self.now_ms + 500)
        self.room.mailbox.post(SpeechStarted(player, self.now_ms))
        await self.pass_time(800)
        self.room.mailbox.post(EagerTurn(draft))
        await self.pass_time(200)
        self.room.mailbox.post(TurnEnded(draft, self.now_ms))
        await self.settle()

    async def move(self, scene: SceneId) -> None:
        moving = asyncio.create_task(self.room.move(a_campaign().scene(scene)))
        await self.settle()
        await moving

    def mouth(self, npc: NpcId) -> MouthTwin:
        return self.mouths[npc][-1]

    def turns(self) -> list[TurnRecord]:
        return [event.turn for event in self.events if isinstance(event, TurnFinished)]


Twins = TypeVar("Twins", bound=TableOfTwins)


@asynccontextmanager
async def an_open_table(table: Twins) -> AsyncIterator[Twins]:
    """Run its actors, and move it to the market."""
    async with closing(table.supervisor):
        table.start()
        await table.settle()
        await table.move(MARKET)
        yield table
