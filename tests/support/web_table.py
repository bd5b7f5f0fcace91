"""A table without models: what is typed or sounded at it becomes the same events and sound as at a real one.

Speech is told from silence by its loudness, is always understood as `HEARD`, and answered with a tone, paced in
real time as a mouth does.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from ssl import SSLContext, create_default_context
from typing import Any

import httpx
import numpy as np

from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.adapters.certificates import Tls
from glyphoxa.app.scope import Scope
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import (
    NpcSilent,
    NpcSpeaks,
    NpcThinks,
    TurnFinished,
    UtteranceKept,
)
from glyphoxa.domain.heard import Correction, Draft, Heard, SpeechStarted, TurnEnded, Utterance
from glyphoxa.domain.ids import (
    CampaignId,
    EntityId,
    LineId,
    NpcId,
    PlayerId,
    SceneId,
    SessionId,
    SpeakerId,
    TurnId,
    UtteranceId,
    id_of_line,
)
from glyphoxa.domain.turn_record import AssembledPrompt, Stage
from glyphoxa.npc.commands import Puppet, ShowControls, TableCommand
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, OUTPUT_RATE_HZ, Peers, Table
from glyphoxa.npc.table_state import TypedLines
from glyphoxa.web.access.links import Entrance
from glyphoxa.web.app import OwnLinesOfTable, create_app
from glyphoxa.web.desk.frame import DeskFrame, ServedTable, add_pages
from glyphoxa.web.desk.live import add_desk
from glyphoxa.web.seats import DEADLINES, Deadlines, Pulse
from glyphoxa.web.serving import Server, bind, url_of
from glyphoxa_pipelines.webrtc import WebRtcPeers
from tests.support.builders import a_partial, a_turn_record, an_utterance
from tests.support.patience import DEADLINE_MS, DEADLINE_S
from tests.support.recalled import a_fact
from tests.support.table_in_memory import TableInMemory

TONE_HZ = 660
PATIENT = Pulse(page_waits_ms=DEADLINE_MS, server_waits_ms=DEADLINE_MS)
CHUNK_MS = 20
SESSION = SessionId("evening-1")
LOUD = 400
QUIET_AFTER_SAMPLES = INPUT_RATE_HZ * 4 // 10

RAW = "Good evening grim jaw, how is my blade?"
HEARD = "Good evening Grimjaw, how is my blade?"
CORRECTION = Correction(13, 21, "grim jaw", "Grimjaw", 0.93, "phonetic", "sounds like Grimjaw")
SECRET = "The vault under the forge is empty."
REPLY = "Sharp as the north wind, Tamsin. Come and see it."

GRIMJAW = Npc(NpcId("grimjaw"), EntityId("grimjaw"), "Grimjaw", "You are Grimjaw.")
ODWINA = Npc(NpcId("odwina"), EntityId("odwina"), "Odwina Vell", "You are Odwina.")
TAMSIN = Player(PlayerId("tamsin"), "Tamsin")
BRAN = Player(PlayerId("bran"), "Bran")

CAMPAIGN = Campaign(
    id=CampaignId("thornwick"),
    name="The Lamps of Thornwick",
    language="en",
    entities=(
        Entity(EntityId("forge"), "location", "The Cold Forge"),
        Entity(EntityId("inn"), "location", "The Drowned Lantern"),
        Entity(EntityId("grimjaw"), "npc", "Grimjaw"),
        Entity(EntityId("odwina"), "npc", "Odwina Vell"),
    ),
    relationships=(),
    npcs=(GRIMJAW, ODWINA),
    players=(TAMSIN, BRAN),
    scenes=(
        Scene(SceneId("forge-evening"), EntityId("forge"), (GRIMJAW.id, ODWINA.id), "evening", "Embers and rain."),
        Scene(SceneId("inn-night"), EntityId("inn"), (ODWINA.id,), "night", "The fire is low."),
    ),
)


@dataclass
class TwinSeat:
    table: TwinTable
    player: Player
    heard: bytearray = field(default_factory=bytearray)
    _speech: int = 0
    _quiet: int = 0

    def hear(self, pcm: bytes) -> None:
        self.heard += pcm
        self.table.news.set()
        samples = np.frombuffer(pcm, np.int16)
        if samples.size and np.abs(samples.astype(np.int32)).mean() > LOUD:
            if not self._speech:
                self.table.tell(SpeechStarted(self.player.id, self.table.now_ms()))
            self._speech += samples.size
            self._quiet = 0
            words = HEARD.split()[: 1 + self._speech // (INPUT_RATE_HZ // 4)]
            self.table.tell(a_partial(self.player.id, " ".join(words), self.table.now_ms()))
        elif self._speech:
            self._quiet += samples.size
            if self._quiet >= QUIET_AFTER_SAMPLES:
                self._speech = 0
                self.table.hear_turn(self.player, HEARD, raw=RAW, corrections=(CORRECTION,))

    async def leave(self) -> None:
        self.table.seats.pop(self.player.id, None)
        self.table.news.set()


@dataclass
class TwinTable(TableInMemory):
    campaign: Campaign = CAMPAIGN
    session: SessionId = SESSION
    seats: dict[PlayerId, TwinSeat] = field(default_factory=dict)
    reply_ms: int = 1_500
    reply_hz: int = TONE_HZ
    typed: TypedLines = field(default_factory=TypedLines)
    said: list[tuple[PlayerId, str]] = field(default_factory=list)
    obeyed: list[TableCommand] = field(default_factory=list)
    is_closed: bool = False
    is_paused: bool = False
    summary_rounds: int = 4
    hidden: set[str] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _replies: set[asyncio.Task[None]] = field(default_factory=set)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def may_show(self, text: str) -> bool:
        return not any(name in text for name in self.hidden)

    async def seat(self, player: Player) -> TwinSeat:
        if player.id in self.seats:
            raise InvalidInput(f"{player.id} already sits here")
        await asyncio.sleep(0)
        self.seats[player.id] = seat = TwinSeat(self, player)
        return seat

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        utterance = id_of_line(self.session, player, line) if line is not None else None
        if utterance is not None and (known := self.typed.take(utterance)) != "new":
            return known != "kept"
        self.said.append((player, text))
        self.hear_turn(self.campaign.player(player), text, raw=text, corrections=(), utterance=utterance)
        return True

    async def obey(self, command: TableCommand) -> str:
        match command:
            case ShowControls():
                return "here: Grimjaw"
            case Puppet():
                raise InvalidInput("nobody may be bound here")
        self.obeyed.append(command)
        self.news.set()
        return f"done: {type(command).__name__}"

    async def wait_until_quiet(self) -> None:
        await asyncio.gather(*self._replies)

    async def kept(self) -> int:
        return len(self.said)

    async def wait_until(self, happened: Callable[[], bool]) -> None:
        """Until `happened`, looked at again whenever someone sat down, left or was heard."""
        async with asyncio.timeout(DEADLINE_S):
            while not happened():
                self.news.clear()
                await self.news.wait()

    async def close(self) -> None:
        self.is_closed = True
        for task in self._replies:
            task.cancel()
        await asyncio.gather(*self._replies, return_exceptions=True)

    def hear_turn(
        self,
        player: Player,
        text: str,
        *,
        raw: str,
        corrections: tuple[Correction, ...],
        utterance: UtteranceId | None = None,
    ) -> None:
        now = self.now_ms()
        heard = Heard(text, raw, corrections, now - 60, now - 58)
        draft = Draft(player.id, heard, now - 2_000, now - 400, utterance=utterance)
        self.tell(TurnEnded(draft, now))
        kept = self._utterance(text, player, raw_text=raw, corrections=corrections)
        kept = replace(kept, id=utterance or kept.id)
        self.typed.kept((kept,))
        self.tell(UtteranceKept(kept))
        task = asyncio.create_task(self._answer(player, draft))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)

    async def _answer(self, player: Player, draft: Draft) -> None:
        turn = TurnId(f"turn-{next(self._ids)}")
        self.tell(NpcThinks(GRIMJAW.id, GRIMJAW.name, turn, player.id, self.now_ms()))
        self.tell(NpcSpeaks(GRIMJAW.id, GRIMJAW.name, turn, REPLY, self.now_ms()))
        await self._sound()
        self.tell(NpcSilent(GRIMJAW.id, turn, self.now_ms()))
        reply = self._utterance(REPLY, GRIMJAW, npc=GRIMJAW.id)
        self.tell(UtteranceKept(reply))
        end = draft.speech_end_ms
        stages = {
            Stage.SPEECH_END: end,
            Stage.TRANSCRIPT_FINAL: end + 340,
            Stage.CORRECTED: end + 342,
            Stage.ADDRESSED: end + 345,
            Stage.CONTEXT_READY: end + 371,
            Stage.FIRST_TOKEN: end + 640,
            Stage.TURN_END: end + 700,
            Stage.FIRST_SENTENCE: end + 910,
            Stage.FIRST_AUDIO: end + 1_180,
            Stage.AUDIO_END: end + 1_180 + self.reply_ms,
        }
        record = a_turn_record(
            id=turn,
            session_id=self.session,
            speaker_id=SpeakerId(player.id),
            speaker_name=player.name,
            text=draft.text,
            raw_text=draft.heard.raw_text,
            npc_id=GRIMJAW.id,
            address_reason="called by name",
            reply=REPLY,
            reply_heard=REPLY,
            prompt=AssembledPrompt(recalled=(a_fact(SECRET),), text=f"Only you know: {SECRET}"),
            stages=stages,
            reply_id=reply.id,
        )
        self.tell(TurnFinished(record))

    async def _sound(self) -> None:
        """A tone of `reply_ms`: a reply ends when that is set to less than what was played of it."""
        per_chunk = np.arange(OUTPUT_RATE_HZ * CHUNK_MS // 1_000)
        loop = asyncio.get_running_loop()
        began = loop.time()
        n = 0
        while n * CHUNK_MS < self.reply_ms:
            turns = self.reply_hz * (per_chunk + n * per_chunk.size) / OUTPUT_RATE_HZ
            chunk = (9_000 * np.sin(2 * np.pi * turns)).astype(np.int16).tobytes()
            for sink in list(self.sinks):
                sink(GRIMJAW.id, chunk)
            n += 1
            await asyncio.sleep(max(0.0, began + n * CHUNK_MS / 1_000 - loop.time()))

    def _utterance(self, text: str, speaker: Player | Npc, **more: Any) -> Utterance:
        place: dict[str, Any] = {"campaign_id": self.campaign.id, "session_id": self.session, "at_ms": self.now_ms()}
        who = {"speaker_id": SpeakerId(speaker.id), "witnesses": frozenset[NpcId](), **more}
        return an_utterance(text, id=f"u-{next(self._ids)}", speaker=speaker.name, **place, **who)


@asynccontextmanager
async def served(
    table: Table,
    *,
    port: int = 0,
    peers: Peers | None = None,
    deadlines: Deadlines = DEADLINES,
    pulse: Pulse = PATIENT,
    entrance: Entrance | None = None,
    tls: Tls | None = None,
    desk: Scope | None = None,
    trusted_proxies: tuple[str, ...] = (),
    remembered: OwnLinesOfTable | None = None,
) -> AsyncIterator[str]:
    """The page of `table` on this machine, for as long as the context lasts. Gives its address, without a slash.

    Args:
        desk: The data of the game master's desk.
    """
    peers = peers or WebRtcPeers(table)
    await peers.start()
    listener = bind("127.0.0.1", port)
    url = url_of(listener, scheme="http" if tls is None else "https").rstrip("/")
    page = create_app(
        table,
        connect=peers.connect,
        entrance=entrance,
        deadlines=replace(deadlines, pulse=pulse),
        remembered=remembered,
    )
    frame = DeskFrame(table, desk, entrance or Entrance())
    if isinstance(table, TwinTable | TableSession):
        add_desk(page, frame)
    add_pages(ServedTable(page, frame, Settings(), None if desk is None else desk.store, (), ClosingStack()))
    server = Server(page, tls=tls, trusted_proxies=trusted_proxies)
    serving = asyncio.create_task(server.listen(listener))
    try:
        verify: SSLContext | bool = tls is None or create_default_context(cafile=str(tls.certificate))
        async with asyncio.timeout(DEADLINE_S), httpx.AsyncClient(verify=verify) as http:
            while not serving.done():
                with suppress(httpx.TransportError):
                    if (await http.get(f"{url}/readyz")).is_success:
                        break
        yield url
    finally:
        server.stop()
        await serving
        await peers.close()
