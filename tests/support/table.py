"""A table in memory: the protocol of `glyphoxa.npc.table_interface`, with an ear that counts instead of understanding.

It hears loudness only. What was said is given to it beforehand, in order; what is answered comes from a rule. The
rest is real: seats, scenes and witnesses, one floor, barge-in, sound to sinks at the speed of speech, and a memory
in a file that outlives the process and is queried as an NPC that was there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from demo.report import content_words
from demo.script import read_evening
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Npc, Player
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import (
    NpcSilent,
    NpcSpeaks,
    TurnFinished,
    UtteranceKept,
)
from glyphoxa.domain.heard import SpeechStarted, Utterance
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, SpeakerId, TurnId
from glyphoxa.domain.knowledge import Recalled
from glyphoxa.domain.turn_record import AssembledPrompt, Outcome, Stage, TurnRecord
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, OUTPUT_RATE_HZ, Seat, Table
from tests.support.builders import an_utterance
from tests.support.recalled import heard
from tests.support.table_in_memory import TableInMemory

LOUD = 0.01
END_OF_TURN_MS = 900
MS_PER_LETTER = 40
THINKING_MS = 200
CHUNK_MS = 40


@dataclass(slots=True)
class ScriptedSeat:
    """Hears that somebody speaks, and takes the next of the words it was given as what was said."""

    table: ScriptedTable
    player: Player
    words: deque[str]
    _began_ms: int | None = None
    _quiet_ms: int = 0

    def hear(self, pcm: bytes) -> None:
        ms = len(pcm) * 1000 // (2 * INPUT_RATE_HZ)
        samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
        if float(np.sqrt((samples**2).mean())) > LOUD:
            if self._began_ms is None:
                self._began_ms = self.table.now_ms()
                self.table.speech_began(self.player)
            self._quiet_ms = 0
        elif self._began_ms is not None:
            self._quiet_ms += ms
            if self._quiet_ms >= END_OF_TURN_MS:
                began_ms, self._began_ms = self._began_ms, None
                text = self.words.popleft() if self.words else "..."
                self.table.said(self.player, text, began_ms, self.table.now_ms() - self._quiet_ms)

    @property
    def is_speaking(self) -> bool:
        return self._began_ms is not None

    async def leave(self) -> None:
        self.table.seats.pop(self.player.id, None)


@dataclass
class ScriptedTable(TableInMemory):
    """See `Table`. Built inside a running event loop; closes its one task in `close`."""

    memory: Path
    heard: Mapping[str, Sequence[str]]
    seats: dict[PlayerId, ScriptedSeat] = field(default_factory=dict)
    past: list[dict[str, object]] = field(default_factory=list)
    closed: bool = False
    _questions: asyncio.Queue[tuple[Utterance, int]] = field(default_factory=asyncio.Queue)
    _barged: asyncio.Event = field(default_factory=asyncio.Event)
    _answering: bool = False
    _n: int = 0
    _epoch_s: float = 0.0
    _task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        loop = asyncio.get_running_loop()
        self._epoch_s = time.time() - loop.time()
        if self.memory.exists():
            self.past = json.loads(self.memory.read_text("utf-8"))
        self._task = loop.create_task(self._answer())

    def now_ms(self) -> int:
        return round((asyncio.get_running_loop().time() + self._epoch_s) * 1000)

    async def seat(self, player: Player) -> Seat:
        if player.id in self.seats:
            raise InvalidInput(f"{player.name} already sits at the table")
        self.seats[player.id] = ScriptedSeat(self, player, deque(self.heard.get(player.id, ())))
        return self.seats[player.id]

    def say(self, player: PlayerId, text: str) -> None:
        self.said(self.campaign.player(player), text, self.now_ms(), self.now_ms())

    async def wait_until_quiet(self) -> None:
        while self._busy:  # noqa: ASYNC110 - it looks at three places, and in virtual time looking costs nothing
            await asyncio.sleep(CHUNK_MS / 1000)

    @property
    def _busy(self) -> bool:
        speaking = any(seat.is_speaking for seat in self.seats.values())
        return self._answering or speaking or not self._questions.empty()

    async def kept(self) -> int:
        return sum(said["session"] == self.session for said in self.past)

    async def close(self) -> None:
        self.closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.memory.write_text(json.dumps(self.past), "utf-8")

    def speech_began(self, player: Player) -> None:
        self._barged.set()
        self.tell(SpeechStarted(player.id, self.now_ms()))

    def said(self, player: Player, text: str, began_ms: int, ended_ms: int) -> None:
        utterance = self._keep(SpeakerId(player.id), player.name, text, text, began_ms, ended_ms - began_ms, None)
        self._questions.put_nowait((utterance, ended_ms))

    def _keep(
        self, speaker: SpeakerId, name: str, text: str, raw: str, at_ms: int, duration_ms: int, npc: NpcId | None
    ) -> Utterance:
        self._n += 1
        place: dict[str, Any] = {
            "campaign_id": self.campaign.id,
            "session_id": self.session,
            "witnesses": frozenset(self.scene.npcs),
        }
        place |= {"at_ms": at_ms, "duration_ms": duration_ms, "raw_text": raw, "speaker_id": speaker}
        utterance = an_utterance(text, id=f"{self.session}-{self._n}", speaker=name, npc=npc, **place)
        witnesses = sorted(self.scene.npcs)
        self.past.append({"id": utterance.id, "session": self.session, "text": text, "witnesses": witnesses})
        self.tell(UtteranceKept(utterance))
        return utterance

    def _recall(self, npc: NpcId, question: str) -> tuple[Recalled, ...]:
        asked = content_words(question)
        return tuple(
            heard(
                str(row["text"]),
                session=str(row["session"]),
                utterance=str(row["id"]),
                reason="witnessed in an earlier session",
            )
            for row in self.past
            if row["session"] != self.session
            and npc in list(row["witnesses"])  # type: ignore[call-overload]
            and asked & content_words(str(row["text"]))
        )

    async def _answer(self) -> None:
        while True:
            question, ended_ms = await self._questions.get()
            self._answering = True
            try:
                await self._answer_one(question, ended_ms)
            finally:
                self._answering = False

    async def _answer_one(self, question: Utterance, ended_ms: int) -> None:
        npc = self._addressed(question.text)
        recalled = self._recall(npc.id, question.text)
        reply = " ".join(r.text for r in recalled) or f"I am {npc.name}, and I do not know much of that, friend."
        turn = TurnId(f"turn-{question.id}")
        await asyncio.sleep(THINKING_MS / 1000)
        first_ms = self.now_ms()
        self._barged.clear()
        self.tell(NpcSpeaks(npc.id, npc.name, turn, reply, first_ms))
        heard_ms, total_ms = 0, len(reply) * MS_PER_LETTER
        while heard_ms < total_ms and not self._barged.is_set():
            t = np.arange(OUTPUT_RATE_HZ * CHUNK_MS // 1000) / OUTPUT_RATE_HZ
            pcm = (np.sin(2 * np.pi * 200 * t) * 8000).astype("<i2").tobytes()
            for sink in self.sinks:
                sink(npc.id, pcm)
            await asyncio.sleep(CHUNK_MS / 1000)
            heard_ms += CHUNK_MS
        interrupted = heard_ms < total_ms
        heard = reply[: heard_ms // MS_PER_LETTER]
        self.tell(NpcSilent(npc.id, turn, self.now_ms()))
        self._keep(SpeakerId(npc.id), npc.name, heard, reply, first_ms, heard_ms, npc.id)
        self.tell(
            TurnFinished(
                TurnRecord(
                    id=turn,
                    session_id=self.session,
                    speaker_id=question.speaker_id,
                    speaker_name=question.speaker_name,
                    raw_text=question.raw_text,
                    text=question.text,
                    npc_id=npc.id,
                    address_reason="named",
                    outcome=Outcome.INTERRUPTED if interrupted else Outcome.ANSWERED,
                    reply=reply,
                    reply_heard=heard,
                    prompt=AssembledPrompt(
                        recalled=recalled, text="\n".join([*(r.text for r in recalled), question.text])
                    ),
                    stages={
                        Stage.SPEECH_END: ended_ms,
                        Stage.TURN_END: ended_ms + END_OF_TURN_MS,
                        Stage.FIRST_AUDIO: first_ms,
                        Stage.AUDIO_END: self.now_ms(),
                    },
                )
            )
        )

    def _addressed(self, text: str) -> Npc:
        present = [self.campaign.npc(npc) for npc in self.scene.npcs]
        return next((npc for npc in present if npc.name in text), present[0])


async def open_twin(campaign: Path, *, session: str, config: Path, tell: Callable[[str], None]) -> Table:
    """A table that hears the demo's own script. Its memory lies beside the campaign file."""
    number = int(session.rpartition("-")[2])
    script = read_evening(Path(__file__).parents[2] / "demo" / "evening.yaml").session(number)
    heard: dict[str, list[str]] = {}
    for line in script.lines:
        heard.setdefault(line.player, []).append(line.text)
    table: Table = ScriptedTable(
        read_campaign(campaign).campaign, SessionId(session), campaign.with_name("memory.json"), heard
    )
    return table
