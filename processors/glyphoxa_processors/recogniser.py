"""Shares one speech model among ears: finals in order of request, partials only when it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pipecat.frames.frames import Frame

from glyphoxa.domain.heard import Heard, HeardWord

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
    """Notes on a transcript.

    Attributes:
        words: The recogniser's data for each word, with offsets in the raw text.
        sound_ms: Start of the words in the ear's sound.
        segment: Number of speech segments begun before the transcribed sound ends.
        revises: It replaces the last transcript.
        heard: Written by the corrector.
    """

    words: tuple[HeardWord, ...] = ()
    sound_ms: int | None = None
    segment: int | None = None
    revises: bool = False
    heard: Heard | None = None


def notes_of(frame: Frame) -> TranscriptNotes:
    notes = frame.metadata.get(_KEY)
    return notes if isinstance(notes, TranscriptNotes) else TranscriptNotes()


def put_notes(frame: Frame, notes: TranscriptNotes) -> None:
    """Replace the notes of a frame; see `dataclasses.replace`."""
    frame.metadata[_KEY] = notes
