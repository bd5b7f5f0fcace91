"""Shares one speech model among ears: finals in order of request, partials only when it is idle."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import Frame

from glyphoxa.domain.heard import Correction, HeardWord

Pcm = NDArray[np.int16]


class Recognised(Protocol):
    """Result of a recogniser. See `glyphoxa.adapters.local.whisper.Transcription`."""

    @property
    def text(self) -> str: ...

    @property
    def words(self) -> tuple[HeardWord, ...]: ...


class Transcribe(Protocol):
    """Blocking; called in one thread. `retry` allows slower, safer decoding for a doubtful result."""

    def __call__(self, pcm: Pcm, glossary: str, /, *, retry: bool) -> Recognised: ...


class Recogniser:
    """Runs a blocking recogniser in its own thread. Use it from one event loop only.

    A final waits for at most one running partial. Partials are never queued, so they do not delay other ears' finals.
    """

    def __init__(self, transcribe: Transcribe) -> None:
        self._transcribe = transcribe
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recogniser")
        self._n_pending = 0

    async def final(self, pcm: Pcm, glossary: str) -> Recognised:
        """Transcribe a whole segment. Raises what the recogniser raises."""
        return await self._run(lambda: self._transcribe(pcm, glossary, retry=True))

    @property
    def is_busy(self) -> bool:
        return self._n_pending > 0

    async def partial(self, pcm: Pcm, glossary: str, *, retry: bool = False) -> Recognised | None:
        """Transcribe the sound so far; None if the model is busy."""
        if self.is_busy:
            return None
        return await self._run(lambda: self._transcribe(pcm, glossary, retry=retry))

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: Callable[[], Recognised]) -> Recognised:
        self._n_pending += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        # If the caller is cancelled, the job keeps running and stays pending until the thread is free.
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[Recognised]) -> None:
        self._n_pending -= 1
        if not future.cancelled():
            future.exception()  # retrieved, so that asyncio does not warn about an abandoned job


# Additional data of a transcript for the processors of an ear; travels with the frame.


_KEY: Final = "glyphoxa.transcript"


@dataclass(frozen=True, slots=True)
class TranscriptNotes:
    """Notes on a transcript. The recogniser writes the first part, the corrector the second. Empty if not written.

    Attributes:
        words: The recogniser's data for each word, with offsets in the raw text.
        sound_ms: Start of the words in the ear's sound.
        transcript_ms: When the recogniser returned it.
        segment: Number of speech segments begun before the transcribed sound ends.
        revises: It replaces the last transcript.
        raw_text: The recognised text.
        corrections: Replacements from the raw text to the frame's text.
        corrected_ms: When the corrector finished.
    """

    words: tuple[HeardWord, ...] = ()
    sound_ms: int | None = None
    transcript_ms: int | None = None
    segment: int | None = None
    revises: bool = False
    raw_text: str | None = None
    corrections: tuple[Correction, ...] = ()
    corrected_ms: int | None = None


def notes_of(frame: Frame) -> TranscriptNotes:
    notes = frame.metadata.get(_KEY)
    return notes if isinstance(notes, TranscriptNotes) else TranscriptNotes()


def put_notes(frame: Frame, notes: TranscriptNotes) -> None:
    """Replace the notes of a frame; see `dataclasses.replace`."""
    frame.metadata[_KEY] = notes


# Sound that a streaming recogniser may have missed, to be repeated to the next connection.


class UnconfirmedSound:
    """Sound without a final transcript, and sound without a connection.

    Positions are in bytes since the connection began to listen.

    Args:
        longest: Maximum bytes kept; the oldest are dropped first.
    """

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._sound = bytearray()
        self._at = 0
        """Position of the first byte of `_sound`."""

    def __len__(self) -> int:
        return len(self._sound)

    def heard(self, pcm: bytes) -> None:
        self._sound += pcm
        self.keep_last(self._longest)

    def confirmed(self, until: int) -> None:
        """Note that a final transcript covers the sound up to this position."""
        self._drop(min(until - self._at, len(self._sound)))

    def keep_last(self, n: int) -> None:
        """Keep only the last `n` bytes."""
        self._drop(len(self._sound) - n)

    def reopened(self) -> bytes:
        """Start a new connection. Returns the sound to repeat; positions restart there."""
        self._at = 0
        return bytes(self._sound)

    def _drop(self, n: int) -> None:
        n -= n % 2  # whole samples
        if n > 0:
            del self._sound[:n]
            self._at += n


# Assigns a streaming service's transcripts to the detector's speech segments.


_ROUNDING_S = 0.1
"""Services round positions."""

_KEPT = 16
"""Segments kept. A transcript is rarely more than one segment late."""


@dataclass(slots=True)
class _Segment:
    number: int
    began: int
    paused: int | None = None


class SegmentCounter:
    """Counts the detector's speech starts and their positions in the sound.

    Services report which part of a connection's sound a transcript covers. Positions are in bytes. A compatible server
    may report that every transcript begins at the start of the connection. Such a position is recognised, because that
    sound already has its final transcript; the segment is then unknown.

    Args:
        bytes_per_s: Bytes of sound a second.
    """

    def __init__(self, *, bytes_per_s: int) -> None:
        self._rounding = int(_ROUNDING_S * bytes_per_s)
        self._confirmed = 0
        """All sound up to here has its final transcript."""
        self._heard = 0
        self._opened_at = 0
        """Start of the current connection's sound."""
        self._n_begun = 0
        self._segments: deque[_Segment] = deque(maxlen=_KEPT)

    def heard(self, n: int) -> None:
        """Add this many bytes of sound."""
        self._heard += n

    def reopened(self, n_repeated: int) -> None:
        """Start a new connection that first gets the last `n_repeated` bytes."""
        self._opened_at = self._heard - n_repeated

    def began(self) -> None:
        self._n_begun += 1
        self._segments.append(_Segment(self._n_begun, self._heard))

    def paused(self) -> None:
        if self._segments:
            self._segments[-1].paused = self._heard

    def confirmed(self, until: int) -> None:
        """Note that a final transcript covers the current connection's sound up to this position."""
        self._confirmed = max(self._confirmed, min(until + self._opened_at, self._heard))

    def at(self, begin: int, first: int, end: int) -> int | None:
        """Return the number of the segment, from 1.

        Args:
            begin: Start of the transcribed sound, in the current connection's sound.
            first: Start of the first word.
            end: End of the transcribed sound.

        Returns:
            None if the words began after the segment's pause, so that the detector missed them. Also None if a later
            segment has begun and the sound has its final transcript, so that the position is wrong.
        """
        last = next((s for s in reversed(self._segments) if s.began < end + self._opened_at), None)
        if last is None or (last.paused is not None and last.paused <= first + self._opened_at):
            return None
        is_told_again = begin + self._opened_at < self._confirmed - self._rounding
        return None if is_told_again and last.number < self._n_begun else last.number
