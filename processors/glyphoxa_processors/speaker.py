"""Runs `glyphoxa.turns.playback`: holds a reply's sound until it may be heard, then paces it into a sink."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import assert_never

import numpy as np
from pipecat.audio.utils import create_stream_resampler
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    Frame,
    InterruptionFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor, FrameProcessorSetup

from glyphoxa.actors.clock import now_ms
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn_record import Stage
from glyphoxa.npc.mouth import FailedEarly, Finished, Listener, Marked, SentenceStarted
from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ, AudioSink
from glyphoxa.turns.playback import (
    Cancelled,
    ExcuseCame,
    Filler,
    FillerBegins,
    FillerCame,
    FillerEnds,
    Held,
    LeadIn,
    Over,
    PieceBegan,
    PieceBegins,
    PieceEnded,
    PieceTrouble,
    Playback,
    PlaybackEvent,
    Played,
    Released,
    ReplyEnded,
    ReplyFailed,
    Resumed,
    Retracted,
    SoundBegins,
    SoundCame,
    filler_of,
)
from glyphoxa_processors.frames import PieceEndFrame, PieceFrame, ReplyEndFrame, RetractFrame

PATIENCE_MS = 30_000
_CHUNK = OUTPUT_RATE_HZ // 50
_FADE = OUTPUT_RATE_HZ // 200
_AHEAD_S = 0.06
"""Sound that a listener gets in advance, so that a shorter stall of the event loop is not heard.

After a longer one, the schedule restarts, because catching up would only fill the listeners' buffers.
"""


class Speaker(FrameProcessor):
    """The last processor of a mouth. It tracks turns: each begun turn ends in exactly one `Finished`.

    Call `begin`, `release`, `hold`, `resume`, `cancel`, `fail`, `note_trouble` and `fill` in the event loop. They take
    effect at once, ahead of queued frames. Sound of any turn but the latest is dropped. The mouth's other
    stages report to it.

    Args:
        excuses: Lines for a reply that failed before it was heard, used in rotation if rendered as fillers.
        patience_ms: Time without progress after which a reply has failed. For services without their own deadlines.
    """

    def __init__(
        self,
        npc: NpcId,
        sink: AudioSink,
        listener: Listener,
        *,
        excuses: Sequence[str] = (),
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        super().__init__(name=f"speaker-{npc}")
        self.npc = npc
        self._sink = sink
        self.listener = listener
        self._excuses = excuses
        self._n_excused = 0
        self._patience_ms = patience_ms
        self._turn: TurnId | None = None
        self._playback = Playback(OUTPUT_RATE_HZ)
        self._lead_in = LeadIn(rate_hz=OUTPUT_RATE_HZ)
        self._sound = bytearray()
        self._filler = bytearray()
        self._fillers: dict[str, Filler] = {}
        self._being_rendered = bytearray()
        self._piece: PieceFrame | None = None
        self._context_id: str | None = None
        self._drops = False
        """Pieces on their way belong to what was retracted."""
        self._wake = asyncio.Event()
        self._pacing: asyncio.Task[None] | None = None
        self._is_playing = False
        self._due_s = 0.0
        """When the next chunk is due, by the loop's clock."""
        self._fades_in = False
        self._watchdog: asyncio.TimerHandle | None = None
        self._resampler = create_stream_resampler()

    @property
    def turn(self) -> TurnId | None:
        """The turn that has begun and is not over."""
        return self._turn

    def begin(self, turn: TurnId) -> None:
        if self._turn is not None:
            self.cancel(self._turn)
        self._turn = turn
        self._drops = False
        self._playback = Playback(OUTPUT_RATE_HZ)
        self._lead_in = LeadIn(rate_hz=OUTPUT_RATE_HZ)
        self._expect_progress()

    def release(self, turn: TurnId) -> None:
        self._on(turn, Released())

    def fail(self, turn: TurnId, error: str) -> None:
        """End a reply with an error. Its remaining sound is played; if there is none, an excuse at the release."""
        if turn == self._turn and self._playback.is_silent and self._playback.accepts_excuse():
            self._excuse(turn)
            if not self._playback.is_released:
                self.listener(FailedEarly(self.npc, turn, now_ms(), error))
        self._on(turn, ReplyFailed(error))

    def note_trouble(self, turn: TurnId, error: str) -> None:
        """Note an error, to be reported if nothing of the reply can be heard."""
        self._on(turn, PieceTrouble(error))

    def mark(self, turn: TurnId, stage: Stage) -> None:
        """Report that a turn reached a stage now."""
        self.listener(Marked(self.npc, turn, stage, now_ms()))

    def retract(self, turn: TurnId) -> None:
        """Drop all pieces until a `RetractFrame` comes, because they are not part of the reply."""
        if turn == self._turn:
            self._sound.clear()
            self._piece, self._drops = None, True
            self._on(turn, Retracted())

    def cancel(self, turn: TurnId) -> None:
        """Stop now, fading out to avoid a click."""
        if turn != self._turn:
            return
        tail = self._tail()
        self._on(turn, Cancelled())
        self._sink_faded(tail)

    def hold(self, turn: TurnId) -> None:
        """Fall silent until `resume`, fading out."""
        if turn != self._turn or self._playback.is_held:
            return
        tail = self._tail()
        self._on(turn, Held())
        self._sink_faded(tail)
        self.mark(turn, Stage.SILENCED)

    def resume(self, turn: TurnId) -> None:
        """Continue where the reply was held."""
        self._fades_in = True
        self._on(turn, Resumed())

    def _tail(self) -> bytes:
        """Return the next few samples in playback."""
        playing = self._filler or self._sound
        # Between two replies, the previous pacing may still be running.
        is_heard = self._is_playing and self._playback.playable(_FADE)
        return bytes(playing[: _FADE * 2]) if is_heard else b""

    def _sink_faded(self, tail: bytes) -> None:
        if tail:
            self._sink(self.npc, _ramped(tail, 1, 0))

    def fill(self, turn: TurnId, text: str) -> None:
        """Play this filler, if it is rendered, the turn is released and nothing was heard yet."""
        filler = self._fillers.get(text)
        if turn == self._turn and filler and self._playback.accepts_filler():
            self._filler[:] = filler.pcm
            self._on(turn, FillerCame(filler.n_samples, filler.breaks))

    def _excuse(self, turn: TurnId) -> None:
        rendered = [filler for excuse in self._excuses if (filler := self._fillers.get(excuse))]
        if rendered:
            excuse = rendered[self._n_excused % len(rendered)]
            self._filler += excuse.pcm
            self._n_excused += 1
            self._on(turn, ExcuseCame(excuse.n_samples))

    async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]  # pipecat's own narrowing
        await super().setup(setup)
        self._pacing = self.create_task(self._pace(), "pacing")

    async def cleanup(self) -> None:
        if self._turn is not None:
            self.cancel(self._turn)
        if self._pacing is not None:
            await self.cancel_task(self._pacing)
        await super().cleanup()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case PieceFrame(turn=turn, text=text, spoken=spoken):
                self._piece, self._context_id = frame, None
                if turn is None:
                    self._being_rendered.clear()
                elif self._drops:
                    self._piece = None
                else:
                    self._on(turn, PieceBegan(text, spoken))
            case RetractFrame():
                self._drops = False
            case TTSStartedFrame(context_id=context_id):
                self._context_id = context_id
            case TTSAudioRawFrame():
                await self._take(frame)
            case PieceEndFrame(turn=turn):
                piece, self._piece = self._piece, None
                if turn is not None:
                    self._on(turn, PieceEnded())
                elif piece is not None:
                    self._rendered(piece.text)
            case ReplyEndFrame(turn=turn, withheld=withheld):
                self._on(turn, ReplyEnded(withheld))
            case InterruptionFrame():
                self._piece = None
                await self.push_frame(frame, direction)
            case TTSStoppedFrame():
                pass
            case _:
                await self.push_frame(frame, direction)

    async def _take(self, frame: TTSAudioRawFrame) -> None:
        piece = self._piece
        if piece is None or (self._context_id and frame.context_id and frame.context_id != self._context_id):
            return
        audio = frame.audio
        if frame.sample_rate != OUTPUT_RATE_HZ:
            audio = await self._resampler.resample(audio, frame.sample_rate, OUTPUT_RATE_HZ)
        if piece.turn is None:
            self._being_rendered += audio
        elif piece.turn == self._turn and (audio := self._lead_in.cut(audio)):
            self._sound += audio
            self._on(piece.turn, SoundCame(len(audio) // 2))

    def _rendered(self, text: str) -> None:
        filler = filler_of(bytes(self._being_rendered), rate_hz=OUTPUT_RATE_HZ)
        if filler.pcm:
            self._fillers[text] = filler

    def _on(self, turn: TurnId, event: PlaybackEvent) -> None:
        if turn != self._turn:
            return
        for effect in self._playback.on(event):
            now = now_ms()
            match effect:
                case FillerBegins():
                    self.listener(Marked(self.npc, turn, Stage.FILLER, now))
                case FillerEnds(n_samples):
                    self._cut_filler(n_samples)
                case SoundBegins():
                    self.listener(Marked(self.npc, turn, Stage.FIRST_AUDIO, now))
                case PieceBegins(text):
                    self.listener(SentenceStarted(self.npc, turn, text, now))
                case Over():
                    self._finish(turn, effect, now)
                    return
                case _:
                    assert_never(effect)
        if not isinstance(event, Played):
            self._expect_progress()
        self._wake.set()

    def _cut_filler(self, n_samples: int) -> None:
        kept = bytes(self._filler[: n_samples * 2])
        self._filler[:] = kept[: -_FADE * 2] + _ramped(kept[-_FADE * 2 :], 1, 0)

    def _finish(self, turn: TurnId, over: Over, now: int) -> None:
        if over.n_samples:
            self.listener(Marked(self.npc, turn, Stage.AUDIO_END, now))
        self._turn = None
        self._sound.clear()
        self._filler.clear()
        self._forget_watchdog()
        self._wake.set()
        self.listener(
            Finished(
                npc=self.npc,
                turn=turn,
                reply=over.reply,
                heard=over.heard,
                audio_ms=over.n_samples * 1_000 // OUTPUT_RATE_HZ,
                interrupted=over.interrupted,
                at_ms=now,
                withheld=over.withheld,
                error=over.error,
            )
        )

    def _expect_progress(self) -> None:
        self._forget_watchdog()
        if self._turn is not None and self._playback.awaits_more:
            turn = self._turn
            self._watchdog = self.get_event_loop().call_later(
                self._patience_ms / 1_000,
                lambda: self.fail(turn, f"timed out: no progress for {self._patience_ms} ms"),
            )

    def _forget_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None

    async def _pace(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._turn is not None and self._playback.playable(_CHUNK):
                # Services that do not name the turn of their sound need to know when it plays.
                await self.push_frame(BotStartedSpeakingFrame(), FrameDirection.UPSTREAM)
                self._is_playing = True
                try:
                    await self._play()
                finally:
                    self._is_playing = False
                await self.push_frame(BotStoppedSpeakingFrame(), FrameDirection.UPSTREAM)

    async def _play(self) -> None:
        """Send available sound in 20 ms chunks on schedule. Returns when there is none for now."""
        loop = self.get_event_loop()
        while (turn := self._turn) is not None and (n_samples := self._playback.playable(_CHUNK)):
            source = self._filler if self._filler else self._sound
            pcm = bytes(source[: n_samples * 2])
            del source[: n_samples * 2]
            if self._fades_in:
                pcm, self._fades_in = _ramped(pcm[: _FADE * 2], 0, 1) + pcm[_FADE * 2 :], False
            self._sink(self.npc, pcm)
            self._on(turn, Played(n_samples))
            now = loop.time()
            self._due_s = max(self._due_s, now - _AHEAD_S) + n_samples / OUTPUT_RATE_HZ
            await asyncio.sleep(max(0.0, self._due_s - now))


def _ramped(pcm: bytes, begin: float, end: float) -> bytes:
    samples = np.frombuffer(pcm, dtype=np.int16)
    return (samples * np.linspace(begin, end, len(samples))).astype(np.int16).tobytes()
