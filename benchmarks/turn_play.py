"""Speaks recordings at a running table, one turn after the other, and times what is heard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from benchmarks.turn_recordings import CHUNK_BYTES, CHUNK_MS, Recorded
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.events import TableEvent, TurnFinished
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import Outcome, TurnRecord
from glyphoxa.npc.table import Table

TURN_PATIENCE_S = 30.0
_NOT_THE_END = frozenset({Outcome.MERGED})


def clock_ms() -> float:
    """Milliseconds since the Unix epoch, as the turns' timelines have them, but finer."""
    return time.time_ns() / 1_000_000


@dataclass(slots=True)
class Microphone:
    """An unbroken stream in real time, silence where nothing is said.

    A piece of 20 ms is handed over when its last sample has been "recorded", as a sound card does.
    """

    hear: Callable[[bytes], None]
    _recorded: Recorded | None = None
    _at: int = 0
    _ended: asyncio.Future[float] | None = None

    async def speak(self, recorded: Recorded) -> float:
        """Say it. Returns when its last voiced sample was spoken (Unix epoch, ms); the silence behind it goes on."""
        self._recorded, self._at = recorded, 0
        self._ended = asyncio.get_running_loop().create_future()
        return await self._ended

    async def run(self) -> None:
        """Stream until cancelled. What a busy event loop delays follows at once, and is late."""
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        # The clock of the samples, so that lateness of this loop counts as lateness, and not as later speech.
        epoch_ms = clock_ms() - due_s * 1_000
        while True:
            self._next_chunk(due_s * 1_000 + epoch_ms)
            due_s += CHUNK_MS / 1_000
            await asyncio.sleep(max(0.0, due_s - loop.time()))

    def _next_chunk(self, due_ms: float) -> None:
        recorded = self._recorded
        if recorded is None:
            self.hear(bytes(CHUNK_BYTES))
            return
        self.hear(recorded.pcm[self._at * CHUNK_BYTES : (self._at + 1) * CHUNK_BYTES].ljust(CHUNK_BYTES, b"\0"))
        began_ms = self._at * CHUNK_MS
        self._at += 1
        if self._ended is not None and began_ms < recorded.voiced_until_ms <= began_ms + CHUNK_MS:
            self._ended.set_result(due_ms - CHUNK_MS + recorded.voiced_until_ms - began_ms)
            self._ended = None
        if self._at * CHUNK_BYTES >= len(recorded.pcm):
            self._recorded = None


@dataclass(frozen=True, slots=True)
class TurnHeard:
    """A turn as somebody at the table heard it.

    Attributes:
        speech_end_ms: The true end of the speech.
        first_audio_ms: The first sample of the answer, None without one.
        record: The table's own; None when it gave none in time.
    """

    speech_end_ms: float
    first_audio_ms: float | None
    record: TurnRecord | None

    @property
    def waited_ms(self) -> float | None:
        return None if self.first_audio_ms is None else self.first_audio_ms - self.speech_end_ms


@dataclass(slots=True)
class Listener:
    """Waits for the first sound after a question, and for the end of its turn."""

    first_audio_ms: float | None = None
    record: TurnRecord | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def on_sound(self, _npc: NpcId, _pcm: bytes) -> None:
        if self.first_audio_ms is None:
            self.first_audio_ms = clock_ms()

    def on_event(self, event: TableEvent) -> None:
        if isinstance(event, TurnFinished) and event.turn.outcome not in _NOT_THE_END:
            self.record = event.turn
            self.over.set()

    def forget(self) -> None:
        self.first_audio_ms = self.record = None
        self.over.clear()


@dataclass(slots=True)
class Players:
    """People at a table who speak when they are told to."""

    table: Table
    microphones: Sequence[Microphone]
    listener: Listener

    async def ask(self, n_turn: int, recorded: Recorded) -> TurnHeard:
        """Let the next speaker say this; returns when its answer has been heard to the end."""
        await self.table.wait_until_quiet()
        self.listener.forget()
        speech_end_ms = await self.microphones[n_turn % len(self.microphones)].speak(recorded)
        try:
            async with asyncio.timeout(TURN_PATIENCE_S):
                await self.listener.over.wait()
        except TimeoutError:
            pass  # counted as a turn without an outcome
        return TurnHeard(speech_end_ms, self.listener.first_audio_ms, self.listener.record)


@asynccontextmanager
async def players(table: Table, who: Sequence[Player]) -> AsyncIterator[Players]:
    """Everybody sits down, and their microphones run."""
    microphones = [Microphone((await table.seat(player)).hear) for player in who]
    listener = Listener()
    ends = [table.subscribe(listener.on_event), table.add_sink(listener.on_sound)]
    streams = [asyncio.create_task(microphone.run()) for microphone in microphones]
    try:
        yield Players(table, microphones, listener)
    finally:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        for end in ends:
            end()
