"""Plays one session of the evening at a running table: two real-time microphones, and a recorder of all sound.

All times use the event loop's clock, anchored once to the wall clock. Table events (Unix epoch) and sounds of this
process therefore share one time line.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from demo.played import LinePlayed, NpcSpoke, SessionPlayed, session_wav, write_played
from demo.recordings import pcm16, read_recording, resample, samples_of
from demo.script import Evening, ScriptLine, SessionScript
from glyphoxa.adapters.local.machine import write_wav
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.campaign import Campaign, Player
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.events import (
    Degraded,
    MemoryChanged,
    NpcSilent,
    NpcSpeaks,
    TableEvent,
    TurnFinished,
    UtteranceKept,
)
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SceneId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.npc.table_interface import INPUT_RATE_HZ, Seat, Table

CHUNK_MS = 20
CHUNK_BYTES = INPUT_RATE_HZ * CHUNK_MS // 1000 * 2
PATIENCE_S = 45.0
"""Maximum wait for a line's cue (quiet, or an NPC that speaks). The line is then said without it."""
CLOSING_WORDS_MS = 400


class Clock:
    """Milliseconds since the Unix epoch, driven by the event loop's own clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoch_s = time.time() - self._loop.time()

    def now_ms(self) -> int:
        return round((self._loop.time() + self._epoch_s) * 1000)


@dataclass(slots=True)
class Microphone:
    """One player's microphone: a continuous real-time stream, silent between lines."""

    seat: Seat
    clock: Clock
    _waiting: deque[tuple[bytes, asyncio.Future[int]]] = field(default_factory=deque)
    _rest: bytes = b""
    _silent: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._silent.set()

    def speak(self, pcm: bytes) -> asyncio.Future[int]:
        """Say this next. The result is the time at which its first chunk was sent (Unix epoch, ms)."""
        began: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((pcm, began))
        self._silent.clear()
        return began

    async def wait_until_silent(self) -> None:
        """Wait until every queued line has been said."""
        await self._silent.wait()

    async def run(self) -> None:
        """Stream until cancelled. After a delay of the loop, missed chunks follow at once, as from a device."""
        started_ms = self.clock.now_ms()
        sent = 0
        while True:
            while started_ms + sent * CHUNK_MS <= self.clock.now_ms():
                self.seat.hear(self._next_chunk())
                sent += 1
            await asyncio.sleep((started_ms + sent * CHUNK_MS - self.clock.now_ms()) / 1000)

    def _next_chunk(self) -> bytes:
        if not self._rest and self._waiting:
            self._rest, began = self._waiting.popleft()
            if not began.done():
                began.set_result(self.clock.now_ms())
        chunk, self._rest = self._rest[:CHUNK_BYTES], self._rest[CHUNK_BYTES:]
        if not self._rest and not self._waiting:
            self._silent.set()
        return chunk.ljust(CHUNK_BYTES, b"\0")


@dataclass(slots=True)
class EventRecorder:
    """Records everything that happens at the table, and wakes waiters for an NPC's voice."""

    clock: Clock
    tell: Callable[[TableEvent], None]
    turns: list[TurnRecord] = field(default_factory=list)
    utterances: list[Utterance] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    voices: dict[NpcId, Stretches] = field(default_factory=dict)
    speaking_since_ms: dict[NpcId, int] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def on_event(self, event: TableEvent) -> None:
        match event:
            case TurnFinished(turn):
                self.turns.append(turn)
            case UtteranceKept(utterance):
                self.utterances.append(utterance)
            case NpcSpeaks(npc=npc, at_ms=at_ms):
                self.speaking_since_ms.setdefault(npc, at_ms)
            case NpcSilent(npc=npc):
                self.speaking_since_ms.pop(npc, None)
            case Degraded(what=what):
                self.notes.append(what)
            case MemoryChanged(health):
                self.notes.append(f"memory is {health.state}{f': {health.why}' if health.why else ''}")
            case _:
                pass
        self._changed.set()
        self.tell(event)

    def on_sound(self, npc: NpcId, pcm: bytes) -> None:
        self.voices.setdefault(npc, Stretches()).add(pcm, at_ms=self.clock.now_ms())

    async def wait_until_npc_spoke_for(self, ms: int) -> None:
        """Wait until an NPC has been audible for `ms`. A shorter reply also counts, or its cue would be lost."""
        while not self.speaking_since_ms:
            await self._wait_for_change()
        npc, since_ms = next(iter(self.speaking_since_ms.items()))
        while self.speaking_since_ms.get(npc) == since_ms and (left_ms := since_ms + ms - self.clock.now_ms()) > 0:
            await self._wait_for_change(left_ms)

    async def _wait_for_change(self, timeout_ms: int | None = None) -> None:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), None if timeout_ms is None else timeout_ms / 1000)
        except TimeoutError:
            return


@dataclass(slots=True)
class Performance:
    """One session during play. Call `play` once; `record` stores what was played so far."""

    evening: Evening
    script: SessionScript
    table: Table
    clock: Clock
    witness: EventRecorder
    began_ms: int
    microphones: dict[str, Microphone] = field(default_factory=dict)
    lines: list[LinePlayed] = field(default_factory=list)
    complete: bool = False
    l1_entries: int | None = None
    _pcm: dict[str, bytes] = field(default_factory=dict)

    async def play(self) -> None:
        """Say every line on its cue. Returns after all lines are said and answered.

        Raises:
            NotFound: The script names a player or scene that the campaign lacks, or a WAV file is missing.
            InvalidInput: A WAV file is invalid.
        """
        check(self.evening, self.table.campaign)
        self._pcm = {line.id: read_recording(self.evening.wav(line)).pcm for line in self.script.lines}
        for player in speakers(self.script, self.table.campaign):
            self.microphones[player.id] = Microphone(await self.table.seat(player), self.clock)
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(microphone.run()) for microphone in self.microphones.values()]
            for part in self.script.parts:
                await self._quiet(f"the move to scene {part.scene!r}")
                await self.table.move(SceneId(part.scene))
                for line in part.lines:
                    await self._cue(line)
                    await self._say(line, part.scene)
            await self._quiet("the end")
            await asyncio.sleep(CLOSING_WORDS_MS / 1000)
            self.l1_entries = await self.table.kept()
            for stream in streams:
                stream.cancel()
        self.complete = True

    def record(self, out: Path) -> SessionPlayed:
        """Write `session-N.json` and `session-N.wav` with everything played so far."""
        ended_ms = self.clock.now_ms()
        voices = {npc: stretches.sounds() for npc, stretches in self.witness.voices.items()}
        played = SessionPlayed(
            number=self.script.number,
            session_id=self.table.session,
            began_ms=self.began_ms,
            ended_ms=ended_ms,
            complete=self.complete,
            turns=tuple(self.witness.turns),
            utterances=tuple(self.witness.utterances),
            lines=tuple(self.lines),
            l1_entries=self.l1_entries
            if self.l1_entries is not None
            else len({utterance.id for utterance in self.witness.utterances}),
            speech=tuple(NpcSpoke(npc, s.at_ms, s.end_ms) for npc, sounds in voices.items() for s in sounds),
            notes=tuple(self.witness.notes),
        )
        sounds = [
            Sound(sound.at_ms - self.began_ms, sound.samples) for stretches in voices.values() for sound in stretches
        ]
        for line in self.lines:
            samples = resample(samples_of(self._pcm[line.line_id]), from_hz=INPUT_RATE_HZ, to_hz=RATE_HZ)
            sounds.append(Sound(line.began_ms - self.began_ms, samples))
        track = mixed(sounds, duration_ms=ended_ms - self.began_ms)
        write_wav(session_wav(out, played.number), track, rate_hz=RATE_HZ)
        write_played(out, played)
        return played

    async def _cue(self, line: ScriptLine) -> None:
        start = line.start
        if start.quiet_ms is not None:
            await self._quiet(f"line {line.id!r}")
            await asyncio.sleep(start.quiet_ms / 1000)
        elif start.npc_speaking_ms is not None:
            await self._patiently(
                self.witness.wait_until_npc_spoke_for(start.npc_speaking_ms), f"no NPC spoke before line {line.id!r}"
            )
        else:
            earlier = next(played for played in self.lines if played.line_id == start.line)
            await asyncio.sleep(max(0, earlier.began_ms + start.after_ms - self.clock.now_ms()) / 1000)

    async def _say(self, line: ScriptLine, scene: str) -> None:
        pcm = self._pcm[line.id]
        began_ms = await self.microphones[line.player].speak(pcm)
        ended_ms = began_ms + len(pcm) * 1000 // (2 * INPUT_RATE_HZ)
        self.lines.append(LinePlayed(line.id, line.player, scene, began_ms, ended_ms))

    async def _quiet(self, before: str) -> None:
        for microphone in self.microphones.values():
            await microphone.wait_until_silent()
        await self._patiently(self.table.wait_until_quiet(), f"the table was not quiet before {before}")

    async def _patiently(self, cue: Awaitable[None], otherwise: str) -> None:
        try:
            await asyncio.wait_for(cue, PATIENCE_S)
        except TimeoutError:
            self.witness.notes.append(f"{otherwise} within {PATIENCE_S:.0f} s")


def check(evening: Evening, campaign: Campaign) -> None:
    """Check that the campaign has the script's players, scenes and NPCs.

    Raises:
        NotFound: It lacks one. The message suggests the nearest valid value.
    """
    players = {str(player.id) for player in campaign.players}
    for session in evening.sessions:
        for part in session.parts:
            campaign.scene(SceneId(part.scene))
            for line in part.lines:
                if line.player not in players:
                    raise NotFound(f"line {line.id!r}: no player {line.player!r}: {did_you_mean(line.player, players)}")
                if line.to:
                    campaign.npc(NpcId(line.to))
    campaign.npc(NpcId(evening.memory.to))
    campaign.npc(NpcId(evening.memory.absent))


def speakers(script: SessionScript, campaign: Campaign) -> list[Player]:
    """Return the players with a line in this session, in the campaign's order."""
    speaking = {line.player for line in script.lines}
    return [player for player in campaign.players if player.id in speaking]


async def play_session(
    evening: Evening, script: SessionScript, table: Table, *, out: Path, tell: Callable[[TableEvent], None]
) -> SessionPlayed:
    """Play a session and close the table. On cancellation or failure, still write what was played."""
    clock = Clock()
    witness = EventRecorder(clock, tell)
    performance = Performance(evening, script, table, clock, witness, began_ms=clock.now_ms())
    ends = [table.subscribe(witness.on_event), table.add_sink(witness.on_sound)]
    try:
        await performance.play()
    finally:
        try:
            await table.close()
        finally:
            for end in ends:
                end()
            played = performance.record(out)
    return played


Samples = npt.NDArray[np.float32]

RATE_HZ = 24_000
SLACK_MS = 120
"""Chunks at most this early or late join the same stretch. Placing them by the clock would cause clicks."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of 24 kHz sound. `at_ms` counts from the start of the track."""

    at_ms: int
    samples: Samples

    @property
    def end_ms(self) -> int:
        return self.at_ms + len(self.samples) * 1000 // RATE_HZ


@dataclass(slots=True)
class Stretches:
    """Joins the incoming chunks of one voice into stretches without gaps."""

    _began_ms: int = 0
    _chunks: list[bytes] = field(default_factory=list)
    _n_bytes: int = 0
    _done: list[Sound] = field(default_factory=list)

    def add(self, pcm: bytes, *, at_ms: int) -> None:
        """Add 24 kHz s16le that becomes audible at `at_ms`."""
        if self._chunks and at_ms > self._began_ms + self._n_bytes * 1000 // (2 * RATE_HZ) + SLACK_MS:
            self._close()
        if not self._chunks:
            self._began_ms = at_ms
        self._chunks.append(pcm)
        self._n_bytes += len(pcm)

    def sounds(self) -> tuple[Sound, ...]:
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        if self._chunks:
            self._done.append(Sound(self._began_ms, samples_of(b"".join(self._chunks))))
        self._chunks, self._n_bytes = [], 0


def mixed(sounds: Iterable[Sound], *, duration_ms: int) -> bytes:
    """Mix all sounds into 24 kHz s16le of `duration_ms`, softly limited."""
    track = np.zeros(duration_ms * RATE_HZ // 1000, np.float32)
    for sound in sounds:
        start = max(0, sound.at_ms * RATE_HZ // 1000)
        samples = sound.samples[: max(0, len(track) - start)]
        track[start : start + len(samples)] += samples
    return pcm16(soft_limit(track))


def soft_limit(samples: Samples, *, knee: float = 0.7) -> Samples:
    """Leave samples up to `knee` unchanged and compress above it, so that two loud voices do not clip."""
    loud = np.abs(samples)
    bent = knee + (1 - knee) * np.tanh((loud - knee) / (1 - knee))
    return np.asarray(np.where(loud > knee, np.sign(samples) * bent, samples), np.float32)


class OpenTable(Protocol):
    """Opens a table for a campaign file. The caller closes it. `tell` receives progress messages for the user."""

    async def __call__(self, campaign: Path, *, session: str, config: Path, tell: Callable[[str], None]) -> Table: ...


async def open_local(campaign: Path, *, session: str, config: Path, tell: Callable[[str], None]) -> Table:
    """Open the table as `glyphoxa serve` does.

    Raises:
        InvalidInput: The settings or the campaign file are invalid.
        Unavailable: A model or the database is unreachable.
    """
    # The voice stack takes a second to import. Errors in the script are reported before that.
    from glyphoxa.app.table import open_table

    settings = read_settings(config).model_copy(update={"campaign": campaign})
    table = (await open_table(settings, session_name=session, tell=tell)).table
    await table.wait_until_ready()
    return table
