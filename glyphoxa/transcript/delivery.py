"""Brings what is in the spool into the transcript log, as soon as the log can take it.

The log is idempotent, so that sending twice is harmless. What it can never take (`Unstorable`) is set aside; whatever
else it says, it is away, and is asked again later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError, Unavailable, Unstorable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Pending, Spool
from glyphoxa.transcript.spool_files import SpoolPosition

T = TypeVar("T")

_FIRST_PAUSE_MS = 1_000
_LONGEST_PAUSE_MS = 30_000
_FLUSH_PAUSE_MS = 100
_BATCH = 500
_WAITING_TURNS = 1_000


def pause_ms(failures: int) -> int:
    """How long to wait after so many failures in a row: 1 s, doubling to 30 s."""
    return int(min(_FIRST_PAUSE_MS * 2 ** min(failures - 1, 10), _LONGEST_PAUSE_MS))


class InThread(Protocol):
    """Runs a call in the one thread that uses the spool."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...


class Delivery:
    """
    Args:
        log: None when there is no long-term memory: utterances then stay in the spool, which is shrunk.
        listener: Told, in words for the DM, when the log is lost and when it is back.
        after_append: Awaited after the log took something: what depends on new talk (embedding) starts here. One at
            a time, and the log does not wait for it. It must not raise.

    Attributes:
        sent: How far the log has it, also when the disk has no room to note that.
        disk_fails: The disk took nothing when it was last to be written. Whoever writes says so.
    """

    def __init__(
        self,
        spool: Spool,
        log: TranscriptLog | None,
        *,
        in_thread: InThread,
        listener: Callable[[str], None],
        after_append: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.sent: SpoolPosition | None = None
        self.disk_fails = False
        self._spool = spool
        self._log = log
        self._in_thread = in_thread
        self._listener = listener
        self._after_append = after_append
        self._turns: deque[tuple[CampaignId, TurnRecord]] = deque(maxlen=_WAITING_TURNS)
        self._work = asyncio.Event()
        self._work.set()  # the spool may hold what an earlier process left
        self._draining = asyncio.Lock()
        self._news = asyncio.Event()
        self._announcing = asyncio.Lock()
        self._unlogged: set[UtteranceId] = set()
        self._moved = asyncio.Event()
        self._failures = 0

    @property
    def n_waiting(self) -> int:
        """How much of what is expected the log has not taken yet."""
        return len(self._unlogged)

    @property
    def is_degraded(self) -> bool:
        """Whether the log or the spool failed when it was last used."""
        return self._failures > 0 or self.disk_fails

    def expect(self, utterance: UtteranceId) -> None:
        """It is being written to the spool."""
        if self._log is not None:
            self._unlogged.add(utterance)

    def begin(self) -> None:
        """There is something in the spool."""
        self._work.set()

    def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        """Log a finished turn; while the log is away it waits in memory (not on disk: it is no part of the story)."""
        self._turns.append((campaign, turn))
        self._work.set()

    async def append_directly(self, utterance: Utterance, why: Unavailable) -> None:
        """Behind what is in the spool: an ordinal is a place in the order of arrival.

        Args:
            why: The disk did not take it.

        Raises:
            Unavailable: The log does not take it either.
        """
        if self._log is None:
            raise why
        try:
            async with self._draining:
                await self._drain_spool(self._log)
                await self._log.append([utterance])
                self._news.set()
        except Unavailable:
            raise
        except GlyphoxaError as error:
            raise Unavailable(f"neither the disk nor the log takes what is said now: {error}") from None
        finally:
            self._left([utterance.id])  # it is there, or nobody will bring it there

    async def wait_until_logged(self, utterance: UtteranceId) -> bool:
        """Until the log has been given what is expected under this id, `run` going on: for work that needs it there.
        False, at once, while the log is away. What is not expected is not waited for.
        """
        while utterance in self._unlogged:
            if self._failures:
                return False
            self._moved.clear()
            await self._moved.wait()
        return True

    async def run(self) -> None:
        """Bring what is kept into the log, for ever; after a failure wait longer each time."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._announce_for_ever())
            await self._drain_for_ever()

    async def send(self, deadline_ms: int) -> bool:
        """Bring what is on disk into the log. False when the log did not take all of it, or not in time."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                await self._drain()
        except (GlyphoxaError, TimeoutError):
            return False
        return True

    async def flush(self, deadline_ms: int) -> bool:
        """Bring everything into the log now, and wait for what depends on it. False when the log did not take it in
        time; what it does not have is still in the spool. What depends on it may take longer, and is no loss.
        """
        is_logged = False
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                while True:
                    try:
                        await self._drain()
                    except GlyphoxaError as error:
                        self._failed(error)
                        await asyncio.sleep(_FLUSH_PAUSE_MS / 1000)
                    else:
                        is_logged = True
                        await self._announce()
                        return True
        except TimeoutError:
            return is_logged

    async def _drain_for_ever(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self._drain()
            except GlyphoxaError as error:
                self._failed(error)
                self._work.set()
                await asyncio.sleep(pause_ms(self._failures) / 1000)

    async def _announce_for_ever(self) -> None:
        while True:
            await self._news.wait()
            await self._announce()

    async def _announce(self) -> None:
        async with self._announcing:
            if self._news.is_set():
                self._news.clear()
                if self._after_append is not None:
                    await self._after_append()

    async def _drain(self) -> None:
        log = self._log
        if log is None:
            await self._in_thread(self._spool.shrink)
            return
        async with self._draining:
            await self._drain_spool(log)
            while self._turns:
                campaign, turn = self._turns[0]
                try:
                    await log.record_turn(campaign, turn)
                except Unstorable as error:
                    logger.error("a turn is not storable: {}", error)
                except GlyphoxaError:
                    raise
                except Exception as error:
                    # What a model asked may be of any shape. A turn is for figures: it must not keep talk out.
                    logger.error("a turn is not storable: {}", type(error).__name__)
                self._turns.popleft()
            self._succeeded()

    async def _drain_spool(self, log: TranscriptLog) -> None:
        while batch := await self._in_thread(lambda: self._spool.pending(self.sent, limit=_BATCH)):
            await self._append(log, batch)
            self.sent = batch[-1].end
            self._left([item.utterance.id for item in batch])
            try:
                await self._in_thread(lambda end=self.sent: self._spool.acknowledge(end))  # type: ignore[misc]
            except Unavailable as error:
                self.disk_fails = True
                logger.warning("{}", error)
            self._succeeded()
            self._news.set()

    async def _append(self, log: TranscriptLog, batch: Sequence[Pending]) -> None:
        try:
            await log.append([item.utterance for item in batch])
        except Unstorable:
            # One of them can never be stored; it must not keep the others out.
            for item in batch:
                try:
                    await log.append([item.utterance])
                except Unstorable as error:
                    logger.error("an utterance is not storable: {}", error)
                    await self._in_thread(lambda said=item.utterance: self._spool.set_aside(said))  # type: ignore[misc]

    def _left(self, utterances: Iterable[UtteranceId]) -> None:
        self._unlogged.difference_update(utterances)
        self._moved.set()

    def _failed(self, error: GlyphoxaError) -> None:
        self._failures += 1
        self._moved.set()
        if self._failures == 1:
            where = "is nowhere kept" if self.disk_fails else "is kept on disk until it is back"
            self._listener(f"long-term memory is away; what is said {where} ({error})")

    def _succeeded(self) -> None:
        if self._failures:
            self._listener("long-term memory is back; everything kept meanwhile is in it")
        self._failures = 0


# Whether long-term memory is there, and what is made good when it is back.
#
#     ok ── somebody was refused, or waited too long ──▶ a look ──▶ ok: it was nothing
#                                                          │
#                                                          ▼
#        degraded: a look again after 1 s, 2 s, ... 30 s, 30 s, ... for as long as it takes
#           │
#           └── the database answers ──▶ what is missing is made good ──▶ ok
#
# A memory that answers is never polled: whoever is disappointed says so, and only then is it looked at. While it does
# not answer nobody waits for it: `is_away` says so at once. Giving up after some attempts would leave what waits on
# disk there for ever, and costs nothing to avoid: one attempt in 30 s.


class MemoryWatch:
    """An actor. Everything but `run` returns at once.

    Args:
        ping: Asks the database for a sign of life.
        make_good: Does what could not be done while the database was away, and only that. Both raise a
            `GlyphoxaError` that says what is in the way.
        changed: Told whenever it went from one state to the other.
        now_ms: Unix epoch.
    """

    def __init__(
        self,
        *,
        ping: Callable[[], Awaitable[None]],
        make_good: Callable[[], Awaitable[None]],
        changed: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._ping = ping
        self._make_good = make_good
        self._changed = changed
        self._now_ms = now_ms
        self._suspected = asyncio.Event()
        self._hopeful = asyncio.Event()
        self._failures = 0
        self.is_away = False
        """The database does not answer: asking it would only cost time."""
        self.since_ms: int | None = None
        """Since when memory is degraded; None while all is well."""
        self.why = ""
        """What is in the way, for the DM."""

    def suspect(self) -> None:
        """Somebody got no answer, or not in time: look whether that was the database's fault."""
        self._suspected.set()

    def hope(self) -> None:
        """Somebody got an answer again: do not wait for the next look."""
        self._hopeful.set()

    def lost(self, why: str) -> None:
        """The database did not answer just now. `run` looks when it does."""
        self.is_away = True
        self._failed(why)
        self._suspected.set()

    async def run(self) -> None:
        """The actor's body."""
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            if not self._failures:
                await self._look()
            while self._failures:
                await self._pause()
                await self._look()

    async def _look(self) -> None:
        if (why := await self._hindered(self._ping)) is not None:
            self.is_away = True
            self._failed(why)
            return
        self.is_away = False
        if (why := await self._hindered(self._make_good)) is not None:
            self._failed(why)
            return
        self._failures = 0
        if self.since_ms is not None:
            self.since_ms, self.why = None, ""
            self._changed()

    async def _hindered(self, step: Callable[[], Awaitable[None]]) -> str | None:
        try:
            await step()
        except GlyphoxaError as error:
            return str(error)
        except Exception as error:  # a bug there must not end what looks for memory
            logger.opt(exception=error).error("long-term memory broke")
            return f"memory broke ({type(error).__name__})"
        return None

    async def _pause(self) -> None:
        self._hopeful.clear()
        try:
            async with asyncio.timeout(pause_ms(self._failures) / 1000):
                await self._hopeful.wait()
        except TimeoutError:
            return

    def _failed(self, why: str) -> None:
        self._failures += 1
        self.why = why
        if self.since_ms is None:
            self.since_ms = self._now_ms()
            self._changed()
        else:
            logger.debug("long-term memory is still degraded: {}", why)
