"""What a session leaves: written down, looked at again, learned and sent, each within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from loguru import logger

from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.room import Room
from glyphoxa.transcript.api import Journal, Reviser, SessionMark

WRITE_DOWN_MS = 5_000
SECOND_LOOK_MS = 5_000
LEARN_MS = 2_000
LAST_WORDS_MS = 2_000


class SessionEnd:
    """
    Args:
        reviser: None where nobody looks again.
        flush: Sends what waits for the database. False when it has not taken everything in time.
    """

    within_ms = WRITE_DOWN_MS + SECOND_LOOK_MS + LEARN_MS
    """How long it takes at worst, without `flush`."""

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        *,
        room: Room,
        journal: Journal,
        reviser: Reviser | None,
        names: TableNames,
        mark: SessionMark,
        flush: Callable[[], Awaitable[bool]],
    ) -> None:
        self._room = room
        self._journal = journal
        self._reviser = reviser
        self._names = names
        self._mark = mark
        self._flush = flush

    async def write_down(self) -> None:
        try:
            async with asyncio.timeout(WRITE_DOWN_MS / 1000):
                await self._journal.wait_until_written()
        except TimeoutError:
            if n_lost := await asyncio.to_thread(self.write_last_words):
                logger.error("the last {} utterances of the session could not be written to disk in time", n_lost)
        if self._reviser is not None:
            await self._reviser.finish(SECOND_LOOK_MS)
        await self._names.finish(LEARN_MS)
        await self._mark.closed()
        if not await self._flush():
            logger.warning("the database has not taken everything yet; the next session sends it")

    def write_last_words(self) -> int:
        """Write what was said and is not on disk yet, though the event loop be blocked: for a process that ends now. In
        any thread. Returns how much of it could not be written.
        """
        said = {utterance.id: utterance for utterance in (*self._journal.unwritten(), *self._room.unwritten())}
        return self._journal.keep_now(list(said.values()), LAST_WORDS_MS)
