"""One speech model for many ears: finals in the order in which they were asked for, partials only when it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from glyphoxa.domain.utterance import HeardWord

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
