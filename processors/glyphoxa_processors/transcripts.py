"""Processes an ear's transcripts: corrects the campaign's names, and reports the end of a turn.

The end of a turn is decided by `glyphoxa.turns.endpointing`: frames in, ear events out, one timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from pipecat.frames.frames import (
    EagerTranscriptionFrame,
    Frame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.heard import Correction, Heard
from glyphoxa.names.corrector import Correct
from glyphoxa.npc.table_interface import EarListener
from glyphoxa.turns.endpointing import (
    Endpointing,
    EndpointingEvent,
    Final,
    Onset,
    Partial,
    Paused,
    Started,
    Tick,
    TickAt,
    TurnOver,
)
from glyphoxa_processors.frames import TurnOverFrame, notes_of, put_notes


class PhoneticCorrector(FrameProcessor):
    """Corrects partial, eager and final transcripts, at once and deterministically.

    An answer prepared for an eager transcript fits the final one only if both are corrected alike. The result is added
    to the recogniser's notes on the frame.

    Args:
        correct: Must return at once.
    """

    def __init__(self, correct: Correct, *, clock: Callable[[], int]) -> None:
        super().__init__()
        self._correct = correct
        self._clock = clock

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
            await self._correct_frame(frame)
        await self.push_frame(frame, direction)

    async def _correct_frame(
        self, frame: TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame
    ) -> None:
        notes, transcript_ms, raw_text = notes_of(frame), self._clock(), frame.text
        corrections = tuple[Correction, ...]()
        try:
            corrected = self._correct(raw_text, heard=notes.words)
        except Exception as error:  # a failing corrector must not lose the transcript
            await self.push_error(f"a transcript was left uncorrected: {error}", exception=error)
        else:
            frame.text = corrected.text
            corrections = corrected.corrections
        text, corrected_ms = frame.text.strip(), self._clock()
        heard = Heard(text, raw_text, corrections, transcript_ms, corrected_ms, notes.words, notes.sound_ms)
        put_notes(frame, replace(notes, heard=heard))
        # Also set by our STT. An interruption would drop other services' transcripts.
        frame.interruptible = False


class EndOfTurn(FrameProcessor):
    """The last processor of an ear. Reports the player's words and the end of their turns to the listener.

    It tells the recogniser upstream when a turn is over.

    Args:
        hears_onset: Returns whether the detector hears possible speech.
    """

    def __init__(
        self,
        endpointing: Endpointing,
        listener: EarListener,
        *,
        clock: Callable[[], int],
        hears_onset: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._hears_onset = hears_onset
        self._endpointing = endpointing
        self._listener = listener
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if direction is FrameDirection.DOWNSTREAM:
            event = self._translated(frame)
            if event is not None:
                self._take(event)
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        self._forget_timer()
        await super().cleanup()

    def _translated(self, frame: Frame) -> EndpointingEvent | None:
        match frame:
            case VADUserStartedSpeakingFrame():
                return Started(at_ms=int((frame.timestamp - frame.start_secs) * 1_000))
            case VADUserStoppedSpeakingFrame():
                speech_end_ms = round((frame.timestamp - frame.stop_secs) * 1_000)
                return Paused(speech_end_ms=speech_end_ms, at_ms=self._clock())
            case TranscriptionFrame(text=text) | InterimTranscriptionFrame(text=text):
                notes, now_ms = notes_of(frame), self._clock()
                heard = notes.heard or Heard(text.strip(), text, (), now_ms, now_ms)
                if isinstance(frame, InterimTranscriptionFrame):
                    return Partial(heard, at_ms=now_ms, revises=notes.revises, segment=notes.segment)
                return Final(heard, at_ms=now_ms, closes=frame.finalized, revises=notes.revises, segment=notes.segment)
            case _:
                return None

    def _take(self, event: EndpointingEvent) -> None:
        if self._hears_onset():
            self._endpointing.on(Onset(self._clock()))
        for effect in self._endpointing.on(event):
            match effect:
                case TickAt(at_ms):
                    self._ask_again(at_ms)
                case TurnOver(segment):
                    self.create_task(self.push_frame(TurnOverFrame(segment), FrameDirection.UPSTREAM), "turn-over")
                case _:
                    self._listener(effect)

    def _ask_again(self, at_ms: int) -> None:
        self._forget_timer()
        asked_ms = self._clock()
        wait_s = max(0, at_ms - asked_ms) / 1_000
        self._timer = self.get_event_loop().call_later(wait_s, self._look_again, asked_ms, at_ms)

    def _look_again(self, asked_ms: int, at_ms: int) -> None:
        now_ms = self._clock()
        # The pause uses the ear's clock, the timer the loop's. If the ear's clock was set back, re-arming never ends.
        if asked_ms <= now_ms < at_ms:
            self._ask_again(at_ms)
        else:
            self._take(Tick(max(at_ms, now_ms)))

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
