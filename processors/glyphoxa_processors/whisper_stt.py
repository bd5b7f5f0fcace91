"""Speech to text for one player, with a local model that takes whole recordings.

Every transcript covers the whole turn so far. The end of the ear reports upstream when a turn is over.

The model needs at least a quarter of a second. It is therefore asked as soon as the voice falls quiet, before the
detector confirms the pause. If the detector confirms it and found no later speech, this is the final transcript;
otherwise it counts as a partial one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.utils.time import time_now_iso8601

from glyphoxa.adapters.local.whisper import Transcription
from glyphoxa.domain.ids import PlayerId
from glyphoxa_processors.frames import TranscriptNotes, TurnOverFrame, put_notes

# One speech model, shared among ears: finals in order of request, partials only when it is idle.


Pcm = NDArray[np.int16]


class Transcribe(Protocol):
    """Blocking; called in one thread. `retry` allows slower, safer decoding for a doubtful result."""

    def __call__(self, pcm: Pcm, glossary: str, /, *, retry: bool) -> Transcription: ...


class Recogniser:
    """Runs a blocking recogniser in its own thread. Use it from one event loop only.

    A final waits for at most one running partial. Partials are never queued, so they do not delay other ears' finals.
    """

    def __init__(self, transcribe: Transcribe) -> None:
        self._transcribe = transcribe
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recogniser")
        self._n_pending = 0

    async def final(self, pcm: Pcm, glossary: str) -> Transcription:
        """Transcribe a whole segment. Raises what the recogniser raises."""
        return await self._run(lambda: self._transcribe(pcm, glossary, retry=True))

    @property
    def is_busy(self) -> bool:
        return self._n_pending > 0

    async def partial(self, pcm: Pcm, glossary: str, *, retry: bool = False) -> Transcription | None:
        """Transcribe the sound so far; None if the model is busy."""
        if self.is_busy:
            return None
        return await self._run(lambda: self._transcribe(pcm, glossary, retry=retry))

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: Callable[[], Transcription]) -> Transcription:
        self._n_pending += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        # If the caller is cancelled, the job keeps running and stays pending until the thread is free.
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[Transcription]) -> None:
        self._n_pending -= 1
        if not future.cancelled():
            future.exception()  # retrieved, so that asyncio does not warn about an abandoned job


# Pacing of partial transcripts.


_REST = 3
"""Pause between partials, as a multiple of the last run's duration. Partials thus use at most a quarter of the
recogniser's time."""


class PartialPace:
    """Decides when the next partial transcript is due. Times are milliseconds of sound heard."""

    def __init__(self, *, every_ms: int) -> None:
        self._every_ms = every_ms
        self._asked_ms = 0
        self._due_ms = 0

    def speech_began(self, at_ms: int) -> None:
        """Note the start of speech. The first partial comes sooner, because nothing is known yet."""
        self._due_ms = max(self._due_ms, at_ms + self._every_ms // 2)

    def is_due(self, at_ms: int) -> bool:
        return at_ms >= self._due_ms

    def asked(self, at_ms: int) -> None:
        self._asked_ms = at_ms
        self._due_ms = at_ms + self._every_ms

    def took(self, ms: int) -> None:
        """Note that the last run has finished."""
        self._due_ms = max(self._due_ms, self._asked_ms + _REST * ms)

    def turn_over(self) -> None:
        self._due_ms = 0


# The sound of one player's turn, for a recogniser that takes whole recordings.
#
# Short segments are transcribed badly: without context, names are wrong, words are repeated, and every pause becomes a
# full stop. Every transcript therefore covers the whole turn so far, including pauses. Because cost and window of a
# recogniser are limited, a long turn is cut into *stretches*. A transcript replaces the earlier one of its stretch;
# those of previous stretches stay.
#
# A long turn is cut, in order of preference: at a pause, once the stretch has `settle_after_ms`; at its last pause,
# once it has `longest_ms`; in mid-speech.


@dataclass(frozen=True, slots=True)
class StretchAudio:
    """The sound for one transcript.

    Attributes:
        at: Bytes heard before it.
        stretch: Transcripts of the same stretch replace each other.
        segment: The speech segment it ends in, counted from 1 by the detector's start reports.
    """

    pcm: bytes
    at: int
    stretch: int
    segment: int

    @property
    def end(self) -> int:
        """Bytes heard when it ended."""
        return self.at + len(self.pcm)


class TurnAudio:
    """Keeps the sound since the turn began, or the little that may belong to the next one.

    Positions are in bytes since the first sound; times in milliseconds.

    Args:
        pre_roll_ms: Sound kept from before speech began, because detectors miss soft onsets.
        longest_ms: Maximum length of a stretch.
        settle_after_ms: A stretch of this length ends at the next pause.
    """

    def __init__(self, *, bytes_per_ms: int, pre_roll_ms: int, longest_ms: int, settle_after_ms: int) -> None:
        self._bytes_per_ms = bytes_per_ms
        self._pre_roll_ms = pre_roll_ms
        self._longest = longest_ms * bytes_per_ms
        self._settle_after = settle_after_ms * bytes_per_ms
        self._idle = (pre_roll_ms + 400) * bytes_per_ms
        self._sound = bytearray()
        self._at = 0
        """Position of the first byte of `_sound`."""
        self._paused_at = 0
        """End of the last segment; the next one's pre-roll begins no earlier."""
        self._begins: dict[int, int] = {}
        """Start of each segment of this stretch; empty between stretches."""
        self._over: tuple[int, int] = (0, 0)
        """The last segment of the finished turn, and the start of the one after it."""
        self.segment = 0
        self.stretch = 0
        self.is_speaking = False

    @property
    def position(self) -> int:
        """Bytes heard so far."""
        return self._at + len(self._sound)

    def hear(self, pcm: bytes) -> StretchAudio | None:
        """Take sound. Returns a stretch that must end in mid-speech; the rest starts another."""
        self._sound += pcm
        if not self._begins:
            self._drop_until(self.position - self._idle)
            return None
        if len(self._sound) < self._longest:
            return None
        if not self.is_speaking:
            self._settle(self._paused_at)
            return None
        begins = self._begins[self.segment]
        if begins > self._at:
            # Sound before the last pause has its transcript.
            self._settle(begins)
            self._open(begins)
            return None
        whole = self.so_far()
        self._settle(self.position)
        self._open(self.position)
        return whole

    def begin(self, detected_after_ms: int) -> None:
        """Note that speech began this long ago."""
        self.segment += 1
        self.is_speaking = True
        pre_roll = (self._pre_roll_ms + detected_after_ms) * self._bytes_per_ms
        begins = max(self._at, self._paused_at, self.position - pre_roll)
        if self._begins:
            self._begins[self.segment] = begins
        else:
            self._drop_until(begins)
            self._open(begins)

    def so_far(self) -> StretchAudio:
        return StretchAudio(bytes(self._sound), self._at, self.stretch, self.segment)

    def pause(self) -> StretchAudio:
        """Note the end of speech. Returns the stretch so far."""
        whole = self.so_far()
        self.is_speaking = False
        self._paused_at = self.position
        if len(self._sound) > self._settle_after:
            self._settle(self.position)
        return whole

    def turn_over(self, segment: int) -> None:
        """Note that the turn ended with this segment. Later speech belongs to the next turn."""
        if segment < self._over[0]:
            return
        later = [begins for number, begins in self._begins.items() if number > segment]
        if not later:
            self._over = (segment, 0)
            self._settle(self._paused_at)
            return
        self._over = (segment, later[0])
        kept = {number: begins for number, begins in self._begins.items() if number > segment}
        if later[0] > self._at:
            self._drop_until(later[0])
            self.stretch += 1
        self._begins = kept

    def without_finished_turns(self, recording: StretchAudio) -> StretchAudio | None:
        """Return the recording without turns that ended meanwhile; None if nothing is left."""
        last, begins = self._over
        if recording.segment <= last or begins <= recording.at:
            return None
        return replace(recording, pcm=recording.pcm[begins - recording.at :], at=begins)

    def _open(self, begins: int) -> None:
        self.stretch += 1
        self._begins = {self.segment: begins}

    def _settle(self, until: int) -> None:
        self._begins = {}
        self._drop_until(until)

    def _drop_until(self, position: int) -> None:
        n = position - self._at
        if n > 0:
            del self._sound[:n]
            self._at = position


_RATE_HZ = 16_000
_BYTES_PER_MS = _RATE_HZ * 2 // 1_000
_PARTIAL_EVERY_MS = 500
_PRE_ROLL_MS = 600
"""Sound kept from before the detected start. The detector misses soft onsets, and without 0.3 s of quiet before the
words the model loops in every second line (players of the demo)."""
_EARLY_MS = 120
"""Quiet after which the model is asked for a possibly final transcript. The detector hears the end of speech about
50 ms late."""
_MAX_STRETCH_MS = 24_000
"""Maximum sound for one transcript; the model's window is 30 s."""
_SETTLE_AFTER_MS = 15_000
"""Longer turns are transcribed in parts, cut at pauses."""
_QUIET_SHARE = 0.1
"""Share of the segment's loudest 20 ms below which the voice counts as quiet."""


class WhisperSTT(FrameProcessor):
    """Transcribes at the detector's stops, and repeatedly during speech for partials.

    Every stop is answered by exactly one closing transcript, which is empty if the model fails, so that a turn never
    waits for words in vain. The audio ends here.

    The notes of a transcript contain its last `segment`, whether it replaces the last final one (`revises`), the
    recogniser's `words`, and the start of the recording in the ear's sound (`sound_ms`); see
    `glyphoxa.turns.endpointing`.

    Args:
        glossary: Called when a turn begins. Names may change during the session, but all transcripts of a turn use the
            same ones.
    """

    def __init__(
        self, player: PlayerId, recogniser: Recogniser, *, glossary: Callable[[], str], clock: Callable[[], int]
    ) -> None:
        super().__init__(name=f"stt-{player}")
        self._player = player
        self._recogniser = recogniser
        self._read_glossary = glossary
        self._glossary: str | None = None
        """Glossary of the current turn; None between turns."""
        self._clock = clock
        self._audio = TurnAudio(
            bytes_per_ms=_BYTES_PER_MS,
            pre_roll_ms=_PRE_ROLL_MS,
            longest_ms=_MAX_STRETCH_MS,
            settle_after_ms=_SETTLE_AFTER_MS,
        )
        self._pace = PartialPace(every_ms=_PARTIAL_EVERY_MS)
        self._loudest = 0.0
        self._quiet_ms = 0
        self._partial: asyncio.Task[Transcription | None] | None = None
        self._early: StretchAudio | None = None
        """The sound that the run in `_partial` covers completely; None for an ordinary partial."""
        self._reported_stretch = 0
        """Stretch of the last final transcript with words."""
        self._finals: asyncio.Queue[_Final] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self._hear(frame.audio)
            return
        if isinstance(frame, TurnOverFrame):
            if frame.segment >= self._audio.segment:
                self._glossary = None
            else:  # the next turn has already begun
                self._glossary = self._read_glossary()
            self._audio.turn_over(frame.segment)
            self._pace.turn_over()
            return
        await self.push_frame(frame, direction)
        if direction is not FrameDirection.DOWNSTREAM:
            return
        if isinstance(frame, VADUserStartedSpeakingFrame):
            self._begin_segment(frame.start_secs)
        elif isinstance(frame, VADUserStoppedSpeakingFrame) and self._audio.is_speaking:
            speech_end = self._audio.position - int(frame.stop_secs * 1_000) * _BYTES_PER_MS
            self._ask_for_final(self._audio.pause(), is_before_a_pause=True, speech_end=speech_end)

    async def cleanup(self) -> None:
        for task in (self._partial, self._worker):
            if task is not None:
                await self.cancel_task(task)
        await super().cleanup()

    def _hear(self, audio: bytes) -> None:
        cut = self._audio.hear(audio)
        if cut is not None:
            self._ask_for_final(cut, is_before_a_pause=False, speech_end=self._audio.position)
        if not self._audio.is_speaking:
            return
        self._listen_for_quiet(audio)
        heard_ms = self._audio.position // _BYTES_PER_MS
        if self._quiet_ms >= _EARLY_MS:
            if self._early is None and not self._recogniser.is_busy:
                self._ask_for_partial(is_early=True)
        elif self._pace.is_due(heard_ms) and not self._quiet_ms:
            self._pace.asked(heard_ms)
            if self._partial is None or self._partial.done():
                self._ask_for_partial(is_early=False)

    def _listen_for_quiet(self, audio: bytes) -> None:
        samples = np.frombuffer(audio, dtype=np.int16).astype(np.float32)
        loudness = float(np.sqrt(np.mean(samples * samples))) if len(samples) else 0.0
        self._loudest = max(self._loudest, loudness)
        if loudness < self._loudest * _QUIET_SHARE:
            self._quiet_ms += len(audio) // _BYTES_PER_MS
        else:
            self._quiet_ms = 0
            self._early = None

    def _begin_segment(self, start_secs: float) -> None:
        if self._glossary is None:
            self._glossary = self._read_glossary()
        self._audio.begin(int(start_secs * 1_000))
        self._pace.speech_began(self._audio.position // _BYTES_PER_MS)
        self._loudest, self._quiet_ms, self._early = 0.0, 0, None

    def _ask_for_final(self, recording: StretchAudio, *, is_before_a_pause: bool, speech_end: int) -> None:
        early, run = self._early, self._partial
        heard_all = early is not None and early.at == recording.at and early.end >= max(1, speech_end)
        if run is not None and not heard_all:
            run.cancel()
        self._partial, self._early = None, None
        if self._worker is None:
            self._worker = self.create_task(self._transcribe_finals(), "finals")
        self._finals.put_nowait(_Final(recording, self._glossary or "", is_before_a_pause, run if heard_all else None))

    def _ask_for_partial(self, *, is_early: bool) -> None:
        recording = self._audio.so_far()
        self._early = recording if is_early else None
        self._partial = self.create_task(
            self._transcribe_partial(recording, self._glossary or "", retry=is_early), "partial"
        )

    async def _transcribe_partial(self, recording: StretchAudio, glossary: str, *, retry: bool) -> Transcription | None:
        began_ms = self._clock()
        try:
            heard = await self._recogniser.partial(_samples(recording), glossary, retry=retry)
        except Exception as error:  # raised by the model; a lost partial is harmless, the final will report
            await self.push_error(f"a partial transcript failed: {error}", exception=error)
            return None
        if heard is None:
            return None
        self._pace.took(self._clock() - began_ms)
        if heard.text.strip() and recording.stretch == self._audio.stretch:
            frame = InterimTranscriptionFrame(heard.text, self._player, time_now_iso8601(), result=heard)
            self._mark(frame, recording, heard)
            await self.push_frame(frame)
        return heard

    async def _transcribe_finals(self) -> None:
        while True:
            final = await self._finals.get()
            text, result, recording = "", None, final.recording
            try:
                result, recording = await self._transcribe(final)
                text = result.text
            except Exception as error:  # raised by the model; the turn must still end
                await self.push_error(f"a transcript failed: {error}", exception=error)
            frame = TranscriptionFrame(
                text, self._player, time_now_iso8601(), result=result, finalized=final.is_before_a_pause
            )
            # An interruption must not drop spoken words.
            frame.interruptible = False
            self._mark(frame, recording, result)
            if text.strip():
                self._reported_stretch = recording.stretch
            await self.push_frame(frame)

    async def _transcribe(self, final: _Final) -> tuple[Transcription, StretchAudio]:
        """Return the transcript and the part of the recording it covers."""
        recording = final.recording
        heard = await final.early if final.early is not None else None
        if heard is None:
            heard = await self._recogniser.final(_samples(recording), final.glossary)
        while (rest := self._audio.without_finished_turns(recording)) is not None:
            recording = rest
            heard = await self._recogniser.final(_samples(recording), final.glossary)
        return heard, recording

    def _mark(
        self,
        frame: TranscriptionFrame | InterimTranscriptionFrame,
        recording: StretchAudio,
        heard: Transcription | None,
    ) -> None:
        put_notes(
            frame,
            TranscriptNotes(
                words=heard.words if heard is not None else (),
                sound_ms=recording.at // _BYTES_PER_MS,
                segment=recording.segment,
                revises=recording.stretch == self._reported_stretch,
            ),
        )


def _samples(recording: StretchAudio) -> NDArray[np.int16]:
    return np.frombuffer(recording.pcm, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class _Final:
    """A final transcript request. `early`: a run, finished or not, that heard all of its speech."""

    recording: StretchAudio
    glossary: str
    is_before_a_pause: bool
    early: asyncio.Task[Transcription | None] | None
