"""Keeps everything that is said: on disk at once, in the transcript log as soon as it can take it.

Protocol of use: `keep` for each utterance as it is finished; `run` in a task of its own for as long as the session
lasts; at the end `flush`, cancel `run`, `close`. What the log has not taken by then is sent by the next process that
opens the same spool. The log is idempotent, so that sending twice is harmless.

What the log can never take (`Unstorable`) is set aside; whatever else it says, it is away, and is asked again later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from loguru import logger

from glyphoxa.domain.errors import GlyphoxaError, Unavailable, Unstorable
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Utterance
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Cursor, Pending, Spool

Result = TypeVar("Result")

_FIRST_PAUSE_MS = 1_000
_LONGEST_PAUSE_MS = 30_000
_FLUSH_PAUSE_MS = 100
_BATCH = 500
_RECENT = 500
_WAITING_TURNS = 1_000


def pause_ms(failures: int) -> int:
    """How long to wait after so many failures in a row: 1 s, doubling to 30 s."""
    return int(min(_FIRST_PAUSE_MS * 2 ** min(failures - 1, 10), _LONGEST_PAUSE_MS))


class Recorder:
    """See the module's protocol of use.

    Args:
        spool: Becomes the recorder's own: it is used from one thread and closed by `close`.
        log: None when there is no long-term memory: utterances then stay in the spool, which is shrunk.
        listener: Told, in words for the DM, when the log is lost and when it is back.
        after_append: Awaited after the log took something: what depends on new talk (embedding) starts here. One at
            a time, and the log does not wait for it. It must not raise.
    """

    def __init__(
        self,
        spool: Spool,
        log: TranscriptLog | None,
        *,
        listener: Callable[[str], None] = logger.warning,
        after_append: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._spool = spool
        self._log = log
        self._listener = listener
        self._after_append = after_append
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spool")
        self._recent: deque[Utterance] = deque(maxlen=_RECENT)
        self._turns: deque[tuple[CampaignId, TurnRecord]] = deque(maxlen=_WAITING_TURNS)
        self._work = asyncio.Event()
        self._work.set()  # the spool may hold what an earlier process left
        self._draining = asyncio.Lock()
        self._sent: Cursor | None = None  # how far the log has it, also when the disk has no room to note that
        self._news = asyncio.Event()
        self._announcing = asyncio.Lock()
        self._unlogged: set[UtteranceId] = set()
        self._moved = asyncio.Event()
        self._failures = 0
        self._spool_failed = False

    async def keep(self, utterance: Utterance) -> None:
        """Returns when the utterance is on disk.

        Raises:
            Unavailable: Neither the disk nor the log took it; it is not kept.
        """
        if utterance not in self._recent:  # a caller may try again
            self._recent.append(utterance)
        if self._log is not None:
            self._unlogged.add(utterance.id)
        try:
            await self._in_thread(lambda: self._spool.append(utterance))
            self._spool_failed = False
        except Unavailable:
            self._spool_failed = True
            if self._log is None:
                raise
            await self._append_directly(self._log, utterance)  # a full disk here need not be one there
            return
        self._work.set()

    async def keep_so_far(self, utterance: Utterance) -> None:
        """Returns when what was heard so far of an utterance is on disk, in case its end never comes: `keep` takes its
        place, under the same id.

        Raises:
            Unavailable: The disk does not take it.
        """
        await self._in_thread(lambda: self._spool.note(utterance))

    def keep_now(self, utterances: Sequence[Utterance], deadline_ms: int) -> int:
        """Write them to disk, in any thread, without the event loop. Returns how many are not there by the deadline.
        One that is just being written may be there twice, as the log takes it.
        """
        try:
            writing = [self._thread.submit(self._spool.append, utterance) for utterance in utterances]
        except RuntimeError:  # closed: all that was kept is there
            return len(utterances)
        written, _ = futures.wait(writing, timeout=deadline_ms / 1000)
        return len(writing) - sum(1 for one in written if one.exception() is None)

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        """Log a finished turn; while the log is away it waits in memory (not on disk: it is no part of the story)."""
        self._turns.append((campaign, turn))
        self._work.set()

    def remember(self, utterances: Sequence[Utterance]) -> None:
        """Fill the recent talk of a session that goes on after a restart, oldest first. Nothing is written."""
        self._recent.extend(utterances)

    def revised(self, utterance: Utterance) -> None:
        """Remember a better text of something recent. Nothing is written: the log has its own (`TranscriptLog.revise`),
        and what the spool still sends there does not replace it.
        """
        for at, said in enumerate(self._recent):
            if said.id == utterance.id and said.campaign_id == utterance.campaign_id:
                self._recent[at] = utterance
                return

    def retracted(self, utterance: UtteranceId) -> None:
        """Forget something recent: the DM says that it was never said. It stays on disk and in the log."""
        kept = [said for said in self._recent if said.id != utterance]
        self._recent.clear()
        self._recent.extend(kept)

    async def wait_until_logged(self, utterance: UtteranceId) -> bool:
        """Until the log has been given what `keep` took under this id, `run` going on: for work that needs it there.
        False, at once, while the log is away. What was never kept here is not waited for.
        """
        while utterance in self._unlogged:
            if self._failures:
                return False
            self._moved.clear()
            await self._moved.wait()
        return True

    def recent(self, session: SessionId, *, since_ms: int = 0, limit: int = 50) -> list[Utterance]:
        """This session's last utterances, oldest first, from memory: at most what this process has kept."""
        found = [said for said in self._recent if said.session_id == session and said.at_ms >= since_ms]
        return found[-limit:] if limit > 0 else []

    async def unsent(self, campaign: CampaignId, session: SessionId) -> list[Utterance]:
        """What is on disk of a campaign's session and, as far as is known, not in the log; in the order in which it was
        kept. The disk may hold talk of other campaigns, whose sessions may have the same name.
        """
        waiting = [item.utterance for item in await self._in_thread(lambda: self._spool.pending(self._sent))]
        return [said for said in waiting if (said.campaign_id, said.session_id) == (campaign, session)]

    async def on_disk(self, campaign: CampaignId, session: SessionId, *, limit: int) -> list[Utterance]:
        """The last of what is on disk of a campaign's session, whether the log has it or not, in the order in which it
        was kept. What was rolled back in the log is among it.
        """
        return await self._in_thread(lambda: self._spool.latest(campaign, session, limit=limit))

    @property
    def n_waiting(self) -> int:
        """How much of what this recorder has kept the log has not taken yet."""
        return len(self._unlogged)

    @property
    def is_degraded(self) -> bool:
        """Whether the log or the spool failed when it was last used. What is kept is on disk all the same."""
        return self._failures > 0 or self._spool_failed

    @property
    def disk_fails(self) -> bool:
        """Whether the disk took nothing when it was last to be written."""
        return self._spool_failed

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

    async def close(self) -> None:
        """Close the spool after what is being written to it. Nothing can be kept afterwards."""
        try:
            await self._in_thread(self._spool.close)
        finally:
            self._thread.shutdown(wait=False)

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

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
        while batch := await self._in_thread(lambda: self._spool.pending(self._sent, limit=_BATCH)):
            await self._append(log, batch)
            self._sent = batch[-1].end
            self._left([item.utterance.id for item in batch])
            try:
                await self._in_thread(lambda end=self._sent: self._spool.acknowledge(end))  # type: ignore[misc]
            except Unavailable as error:
                self._spool_failed = True
                logger.warning("{}", error)
            self._succeeded()
            self._news.set()

    async def _append_directly(self, log: TranscriptLog, utterance: Utterance) -> None:
        """Behind what is in the spool: an ordinal is a place in the order of arrival."""
        try:
            async with self._draining:
                await self._drain_spool(log)
                await log.append([utterance])
                self._news.set()
        except Unavailable:
            raise
        except GlyphoxaError as error:
            raise Unavailable(f"neither the disk nor the log takes what is said now: {error}") from None
        finally:
            self._left([utterance.id])  # it is there, or nobody will bring it there

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
            where = "is nowhere kept" if self._spool_failed else "is kept on disk until it is back"
            self._listener(f"long-term memory is away; what is said {where} ({error})")

    def _succeeded(self) -> None:
        if self._failures:
            self._listener("long-term memory is back; everything kept meanwhile is in it")
        self._failures = 0
