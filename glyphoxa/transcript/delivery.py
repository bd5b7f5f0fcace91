"""Send utterances from the spool to the transcript log as soon as the log accepts them.

The log is idempotent, so sending twice is harmless. An utterance that it can never store (`Unstorable`) is moved aside.
Any other error counts as an outage, and sending is retried. Every half an hour, and at the end, what is on disk is
compared with the log, and what the log has lost is sent again: proof that the log is complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypeVar

from loguru import logger

from glyphoxa.actors.deadline import done_within
from glyphoxa.domain.budgets import CHECK_MINUTES
from glyphoxa.domain.errors import GlyphoxaError, Unavailable, Unstorable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Spool
from glyphoxa.transcript.spool_files import SpoolPosition

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE_MS = 1_000
_LONGEST_PAUSE_MS = 30_000
_FLUSH_PAUSE_MS = 100
_BATCH = 500
_MOST_CHECKED = 10_000
_WAITING_TURNS = 1_000


def pause_ms(failures: int) -> int:
    """Return how long to wait after that many failures in a row: 1 s, doubling to 30 s."""
    return int(min(_FIRST_PAUSE_MS * 2 ** min(failures - 1, 10), _LONGEST_PAUSE_MS))


class InThread(Protocol):
    """Runs a call in the one thread that uses the spool."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...


class Delivery:
    """
    Args:
        log: None without long-term memory: utterances then stay in the spool, whose segments are compressed.
        listener: Receives a message for the DM when the log is lost and when it is back.

    Attributes:
        sent: How far the log has stored the spool, even if the disk has no room to record that.
        disk_fails: The disk rejected the latest write. The writer sets it.
        check_minutes: Time between two comparisons of disk and log.
    """

    def __init__(
        self,
        spool: Spool,
        log: TranscriptLog | None,
        *,
        in_thread: InThread,
        listener: Callable[[str], None],
    ) -> None:
        self.sent: SpoolPosition | None = None
        self.disk_fails = False
        self.check_minutes = CHECK_MINUTES
        self._spool = spool
        self._log = log
        self._in_thread = in_thread
        self._listener = listener
        self._turns: deque[tuple[CampaignId, TurnRecord]] = deque(maxlen=_WAITING_TURNS)
        self._work = asyncio.Event()
        self._work.set()  # the spool may contain utterances of an earlier process
        self._draining = asyncio.Lock()
        self._unlogged: set[UtteranceId] = set()
        self._sessions: set[tuple[CampaignId, SessionId]] = set()
        """Those of which this process has sent something."""
        self._moved = asyncio.Event()
        self._failures = 0

    @property
    def n_waiting(self) -> int:
        """How many of the expected utterances the log has not stored yet."""
        return len(self._unlogged)

    @property
    def is_degraded(self) -> bool:
        """Whether the log or the spool failed at its latest use."""
        return self._failures > 0 or self.disk_fails

    def expect(self, utterance: UtteranceId) -> None:
        """Announce an utterance that is being written to the spool."""
        if self._log is not None:
            self._unlogged.add(utterance)

    def begin(self) -> None:
        """Announce that the spool contains something to send."""
        self._work.set()

    def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        """Log a finished turn; while the log is unavailable it waits in memory, because it is not part of the story."""
        self._turns.append((campaign, turn))
        self._work.set()

    async def append_directly(self, utterance: Utterance, why: Unavailable) -> None:
        """Send an utterance to the log after what is in the spool, because ordinals follow the order of arrival.

        Args:
            why: Why the disk rejected it.

        Raises:
            Unavailable: The log rejects it as well.
        """
        if self._log is None:
            raise why
        try:
            async with self._draining:
                await self._drain_spool(self._log)
                await self._log.append([utterance])
        except Unavailable:
            raise
        except GlyphoxaError as error:
            raise Unavailable(f"neither the disk nor the log accepts utterances now: {error}") from None
        finally:
            self._left([utterance.id])  # it is in the log, or nobody will send it

    async def wait_until_logged(self, utterance: UtteranceId) -> bool:
        """Wait until the log has been given an expected utterance, while `run` continues.

        Returns False at once while the log is unavailable. Does not wait for an utterance that is not expected.
        """
        while utterance in self._unlogged:
            if self._failures:
                return False
            self._moved.clear()
            await self._moved.wait()
        return True

    async def revise(self, utterance: Utterance, was: Utterance) -> None:
        """Store a better text of an utterance once the log has the utterance itself. Without a log, do nothing.

        Raises:
            Unavailable: The log is unavailable, or does not have the utterance yet.
            InvalidInput: See `TranscriptLog.revise`.
        """
        if self._log is not None:
            if not await self.wait_until_logged(was.id):
                raise Unavailable("the utterance itself is not in the log yet")
            await self._log.revise(utterance, was=was)

    async def run(self) -> None:
        """Send what is stored to the log, for ever; wait longer after each failure."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._check_for_ever())
            await self._drain_for_ever()

    async def send(self, deadline_ms: int) -> bool:
        """Send what is on disk to the log. Return False if the log did not take all of it in time."""
        with suppress(GlyphoxaError):
            return await done_within(deadline_ms, self._drain())
        return False

    async def send_missing(self) -> int:
        """Send again what was sent and is no longer in the log. Return how many utterances these are.

        The log keeps a row of an erased utterance, so that it does not come back.

        Raises:
            GlyphoxaError: The disk or the log is unavailable.
        """
        if self._log is None:
            return 0
        n_missing = 0
        async with self._draining:
            await self._drain_spool(self._log)
            for campaign, session in self._sessions:
                n_before = await self._log.count(campaign, session)
                said = await self._in_thread(
                    lambda at=(campaign, session): self._spool.latest(*at, limit=_MOST_CHECKED)  # type: ignore[misc]
                )
                for first in range(0, len(said), _BATCH):
                    await self._append(self._log, said[first : first + _BATCH])
                n_missing += await self._log.count(campaign, session) - n_before
        if n_missing:
            logger.error("{} utterances had vanished from long-term memory, and were sent again", n_missing)
        return n_missing

    async def flush(self, deadline_ms: int) -> bool:
        """Send everything to the log now. Returns False if the log did not take it in time; the spool still has it."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                while True:
                    try:
                        await self._drain()
                    except GlyphoxaError as error:
                        self._failed(error)
                        await asyncio.sleep(_FLUSH_PAUSE_MS / 1000)
                    else:
                        return True
        except TimeoutError:
            return False

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

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(60 * self.check_minutes)
            try:
                await self.send_missing()
            except GlyphoxaError as error:
                logger.debug("the log is not compared with the disk now: {}", error)

    async def _drain(self) -> None:
        log = self._log
        if log is None:
            await self._in_thread(self._spool.shrink)
            return
        async with self._draining:
            # The spool has the words of these turns. Those that come meanwhile wait until theirs are sent.
            while n_turns := len(self._turns):
                await self._drain_spool(log)
                for _ in range(n_turns):
                    await self._record_first_turn(log)
            await self._drain_spool(log)
            self._succeeded()

    async def _record_first_turn(self, log: TranscriptLog) -> None:
        campaign, turn = self._turns[0]
        try:
            await log.record_turn(campaign, turn)
        except Unstorable as error:
            logger.error("a turn is not storable: {}", error)
        except GlyphoxaError:
            raise
        except Exception as error:
            # A model's tool call may have any content. Turns are records only, so a bad one must not block utterances.
            logger.error("a turn is not storable: {}", type(error).__name__)
        self._turns.popleft()

    async def _drain_spool(self, log: TranscriptLog) -> None:
        while batch := await self._in_thread(lambda: self._spool.pending(self.sent, limit=_BATCH)):
            await self._append(log, [item.utterance for item in batch])
            self.sent = batch[-1].end
            self._sessions.update((item.utterance.campaign_id, item.utterance.session_id) for item in batch)
            self._left([item.utterance.id for item in batch])
            try:
                await self._in_thread(lambda end=self.sent: self._spool.acknowledge(end))  # type: ignore[misc]
            except Unavailable as error:
                self.disk_fails = True
                logger.warning("{}", error)
            self._succeeded()

    async def _append(self, log: TranscriptLog, batch: Sequence[Utterance]) -> None:
        try:
            await log.append(batch)
        except Unstorable:
            # One of them can never be stored, and must not block the others.
            for utterance in batch:
                try:
                    await log.append([utterance])
                except Unstorable as error:
                    logger.error("an utterance is not storable: {}", error)
                    await self._in_thread(lambda said=utterance: self._spool.set_aside(said))  # type: ignore[misc]

    def _left(self, utterances: Iterable[UtteranceId]) -> None:
        self._unlogged.difference_update(utterances)
        self._moved.set()

    def _failed(self, error: GlyphoxaError) -> None:
        self._failures += 1
        self._moved.set()
        if self._failures == 1:
            where = "is not stored anywhere" if self.disk_fails else "is stored on disk until it is back"
            self._listener(f"long-term memory is unavailable; what is said {where} ({error})")

    def _succeeded(self) -> None:
        if self._failures:
            self._listener("long-term memory is back; everything stored on disk meanwhile is in it")
        self._failures = 0


# Watch whether long-term memory is available, and catch up when it is back.
#
#    ok ── a query failed or was too slow ──▶ a check ──▶ ok: it was nothing
#                                                │
#                                                ▼
#       degraded: a check after 1 s, 2 s, ... 30 s, 30 s, ... without a limit
#          │
#          └── the database answers ──▶ catch up with what is missing ──▶ ok
#
# A working database is never polled: a caller that failed reports it, and then the watch checks. While the database is
# unavailable nobody waits for it, because `is_away` is known. Checks never stop: one in 30 s costs nothing, and
# otherwise what waits on disk would stay there for ever.


@dataclass(slots=True, eq=False)
class MemoryWatch:
    """An actor. Everything but `run` returns at once.

    Args:
        ping: Checks whether the database answers.
        make_good: Does what could not be done while the database was away, and only that. Both raise a `GlyphoxaError`
            that names the obstacle.
        changed: Called at each change of state.
        now_ms: Unix epoch.
    """

    ping: Callable[[], Awaitable[None]]
    make_good: Callable[[], Awaitable[None]]
    changed: Callable[[], None]
    now_ms: Callable[[], int]
    is_away: bool = False
    """The database does not answer, so a query would only cost time."""
    since_ms: int | None = None
    """Since when memory is degraded; None while it works."""
    why: str = ""
    """The reason, for the DM; empty while all is well."""
    _suspected: asyncio.Event = field(default_factory=asyncio.Event)
    _hopeful: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0

    def guarded(self, query: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return a query that fails at once while the database is away, and has it checked when it fails.

        The caller then continues with what it has in memory.
        """

        async def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            if self.is_away:
                raise Unavailable("long-term memory is unavailable")  # `run` reports the reason once
            try:
                return await query(*args, **kwargs)
            except (GlyphoxaError, asyncio.CancelledError):
                self.suspect()  # a caller that gave up may have waited too long
                raise

        return answer

    def suspect(self) -> None:
        """Report that a query failed or was too slow: check whether the database caused it."""
        self._suspected.set()

    def hope(self) -> None:
        """Report that a query succeeded again: check now."""
        self._hopeful.set()

    def lost(self, why: str) -> None:
        """Report that the database did not answer just now. `run` checks when it is back."""
        self.is_away = True
        self._failed(why)
        self._suspected.set()

    async def run(self) -> None:
        """Run the actor."""
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            if not self._failures:
                await self._look()
            while self._failures:
                await self._pause()
                await self._look()

    async def _look(self) -> None:
        if (why := await self._hindered(self.ping)) is not None:
            self.is_away = True
            self._failed(why)
            return
        self.is_away = False
        if (why := await self._hindered(self.make_good)) is not None:
            self._failed(why)
            return
        self._failures = 0
        if self.since_ms is not None:
            self.since_ms, self.why = None, ""
            self.changed()

    async def _hindered(self, step: Callable[[], Awaitable[None]]) -> str | None:
        try:
            await step()
        except GlyphoxaError as error:
            return str(error)
        except Exception as error:  # an error there must not stop the watch
            logger.opt(exception=error).error("long-term memory failed")
            return f"memory failed ({type(error).__name__})"
        return None

    async def _pause(self) -> None:
        self._hopeful.clear()
        await done_within(pause_ms(self._failures), self._hopeful.wait())

    def _failed(self, why: str) -> None:
        self._failures += 1
        self.why = why
        if self.since_ms is None:
            self.since_ms = self.now_ms()
            self.changed()
        else:
            logger.debug("long-term memory is still degraded: {}", why)
