"""One speech model for many ears: finals in the order in which they were asked for, partials only when it is idle."""

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
    """What a recogniser returns. See `glyphoxa.adapters.local.whisper.Transcription`."""

    @property
    def text(self) -> str: ...

    @property
    def words(self) -> tuple[HeardWord, ...]: ...


class Transcribe(Protocol):
    """Blocking; called in one thread. `retry` asks for the slower, safer decoding when the first result is doubtful."""

    def __call__(self, pcm: Pcm, glossary: str, /, *, retry: bool) -> Recognised: ...


class Recogniser:
    """Runs a blocking recogniser in a thread of its own. Must be used from one event loop.

    A final waits at most for the partial that is running; a partial never waits and never makes a final of
    another ear wait behind a queue of partials.
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
        """Transcribe what there is so far; None when the model is busy."""
        if self.is_busy:
            return None
        return await self._run(lambda: self._transcribe(pcm, glossary, retry=retry))

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: Callable[[], Recognised]) -> Recognised:
        self._n_pending += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        # A caller that is cancelled leaves its job running: it stays pending until the thread is free.
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[Recognised]) -> None:
        self._n_pending -= 1
        if not future.cancelled():
            future.exception()  # retrieved, so that an abandoned job does not complain when it is collected


# What the processors of an ear know of a transcript beside its text: it travels with the frame.


_KEY: Final = "glyphoxa.transcript"


@dataclass(frozen=True, slots=True)
class TranscriptNotes:
    """The recogniser writes the first part, the corrector the second. None and empty: nobody has written it.

    Attributes:
        words: What the recogniser knows of the words; places in the raw text.
        sound_ms: When the sound of the words begins, in all the sound of the ear.
        transcript_ms: When the recogniser returned it.
        segment: How often speech had begun when the transcribed sound ends.
        revises: It takes the place of the last one.
        raw_text: As it was recognised.
        corrections: The replacements that lead from there to the frame's text.
        corrected_ms: When the corrector was done with it.
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
    """In the place of those that are there; see `dataclasses.replace`."""
    frame.metadata[_KEY] = notes


# Sound that a streaming recogniser may not have heard: it is said again to the next connection.


class Unconfirmed:
    """What was given to a connection and is not covered by a transcript that counts, and what there was no
    connection for.

    Positions are in bytes since the connection began to hear.

    Args:
        longest: Bytes kept at most; the oldest go first.
    """

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._sound = bytearray()
        self._at = 0
        """Position of the first byte of `_sound`."""

    def heard(self, pcm: bytes) -> None:
        self._sound += pcm
        self.keep_last(self._longest)

    def confirmed(self, until: int) -> None:
        """A transcript covers the sound up to this position."""
        self._drop(min(until - self._at, len(self._sound)))

    def keep_last(self, n: int) -> None:
        """No more than that is worth repeating."""
        self._drop(len(self._sound) - n)

    def reopened(self) -> bytes:
        """A new connection listens: what it is to be given first. Its positions begin there."""
        self._at = 0
        return bytes(self._sound)

    def _drop(self, n: int) -> None:
        n -= n % 2  # whole samples
        if n > 0:
            del self._sound[:n]
            self._at += n


# In which of the detector's segments of speech a transcript of a streaming service ends.


_ROUNDING_S = 0.1
"""Services tell positions with few decimals."""

_KEPT = 16
"""Segments; a transcript is seldom one late."""


@dataclass(slots=True)
class _Segment:
    number: int
    began: int
    paused: int | None = None


class SegmentsHeard:
    """Counts the detector's reports that speech began, and keeps where in the sound they came.

    Services say what part of a connection's sound a transcript is of. Positions are in bytes.

    A server that only speaks the protocol may say that every transcript begins where the connection did. Such a
    position is seen by that the sound there has had its final transcript; what it is of is then not known.

    Args:
        bytes_per_s: Of sound.
    """

    def __init__(self, *, bytes_per_s: int) -> None:
        self._rounding = int(_ROUNDING_S * bytes_per_s)
        self._confirmed = 0
        """Up to here all sound has its final transcript."""
        self._heard = 0
        self._opened_at = 0
        """Where in all the sound the running connection's begins."""
        self._n_begun = 0
        self._segments: deque[_Segment] = deque(maxlen=_KEPT)

    def heard(self, n: int) -> None:
        """So much more sound."""
        self._heard += n

    def reopened(self, n_repeated: int) -> None:
        """A new connection listens, and is given the last `n_repeated` bytes first."""
        self._opened_at = self._heard - n_repeated

    def began(self) -> None:
        self._n_begun += 1
        self._segments.append(_Segment(self._n_begun, self._heard))

    def paused(self) -> None:
        if self._segments:
            self._segments[-1].paused = self._heard

    def confirmed(self, until: int) -> None:
        """A final transcript covers the sound of the running connection up to this position."""
        self._confirmed = max(self._confirmed, min(until + self._opened_at, self._heard))

    def at(self, begin: int, first: int, end: int) -> int | None:
        """The number of the segment, from 1.

        Args:
            begin: Where the transcribed sound begins, in the sound of the running connection.
            first: Where the first word begins.
            end: Where the transcribed sound ends.

        Returns:
            None when the words began behind the segment's pause: the detector did not hear them at all. None also
            when a later segment has begun and the sound has had its final transcript: the position is wrong.
        """
        last = next((s for s in reversed(self._segments) if s.began < end + self._opened_at), None)
        if last is None or (last.paused is not None and last.paused <= first + self._opened_at):
            return None
        is_told_again = begin + self._opened_at < self._confirmed - self._rounding
        return None if is_told_again and last.number < self._n_begun else last.number
