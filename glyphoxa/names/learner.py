"""Has what the talk of a table proves about wrong forms of names kept, behind the talk and in its order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import TableEvent, UtteranceKept
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.names.learned import LearningFromTalk

CAPACITY = 1_000


@dataclass(frozen=True, slots=True)
class _Lesson:
    said: Utterance
    is_revision: bool = False


class Learner:
    """An actor. Protocol of use: subscribe `on` to the table, give `proved` to the second look; `run` in a task of
    its own; `finish` at the end of the session. While the database is away nothing is learned, and nothing waits.

    Args:
        wait_until_logged: See `glyphoxa.transcript.journal.Journal`. None where nobody records.
    """

    def __init__(
        self, talk: LearningFromTalk, wait_until_logged: Callable[[UtteranceId], Awaitable[bool]] | None
    ) -> None:
        self._talk = talk
        self._wait_until_logged = wait_until_logged
        self._lessons: deque[_Lesson] = deque(maxlen=CAPACITY)
        self._is_busy = False
        self._work = asyncio.Event()
        self._done = asyncio.Event()

    def on(self, event: TableEvent) -> None:
        """Take what happened at the table. Returns at once."""
        if isinstance(event, UtteranceKept) and event.utterance.npc_id is None:
            self._take(_Lesson(event.utterance))

    def proved(self, heard: str, name: str, utterance: Utterance) -> None:
        """See `glyphoxa.transcript.reviser.OnProof`. It is told word by word; the utterance holds them all."""
        lesson = _Lesson(utterance, is_revision=True)
        if not self._lessons or self._lessons[-1] != lesson:
            self._take(lesson)

    async def run(self) -> None:
        """The actor's body."""
        while True:
            while self._lessons:
                self._is_busy = True
                try:
                    await self._learn(self._lessons.popleft())
                finally:
                    self._is_busy = False
            self._done.set()
            self._work.clear()
            await self._work.wait()

    async def finish(self, deadline_ms: int) -> bool:
        """Wait until everything is learned, `run` going on. False when that took too long."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                while self._lessons or self._is_busy:
                    self._done.clear()
                    await self._done.wait()
        except TimeoutError:
            return False
        return True

    def _take(self, lesson: _Lesson) -> None:
        self._lessons.append(lesson)
        self._work.set()

    async def _learn(self, lesson: _Lesson) -> None:
        try:
            if lesson.is_revision:
                await self._talk.revised(lesson.said)
            else:
                # Where else a form stands is counted in the log.
                if self._wait_until_logged is not None and not await self._wait_until_logged(lesson.said.id):
                    logger.debug("an utterance is heard before it is in the log")
                await self._talk.heard(lesson.said)
        except GlyphoxaError as error:
            logger.debug("nothing is learned from an utterance: {}", error)
