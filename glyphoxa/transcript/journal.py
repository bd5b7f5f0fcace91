"""Store every utterance: on disk at once, in the transcript log as soon as it accepts it.

   post ──▶ mailbox ──▶ run ──▶ spool (fsync) ──▶ UtteranceKept
                                  └──▶ delivery ──▶ transcript log

Protocol of use: `post` each utterance when it is complete, or await `keep`. Run `run` and `delivery.run` as tasks for
the whole session. At the end, call `wait_until_written` and `delivery.flush`, cancel both tasks, and `close`. The
journal retries failed writes. The next process with the same spool sends what the log has not stored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from loguru import logger

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.events import Degraded, SceneChanged, TableEvent, Trouble, UtteranceKept
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SceneId, SessionId, UtteranceId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.transcript.delivery import Delivery
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.sessions import LastSession, LastSessions
from glyphoxa.transcript.spool import Spool

_MOST = 500
_RETRY_S = 1.0


class RecentTalk:
    """The last utterances that this process has stored, in memory only."""

    def __init__(self) -> None:
        self._said: deque[Utterance] = deque(maxlen=_MOST)

    def of(self, session: SessionId, *, limit: int = 50) -> list[Utterance]:
        """Return a session's last utterances, oldest first."""
        found = [said for said in self._said if said.session_id == session]
        return found[-limit:] if limit > 0 else []

    def heard(self, utterance: Utterance) -> None:
        known = any(said.id == utterance.id and said.campaign_id == utterance.campaign_id for said in self._said)
        if not known:  # a failed write is retried
            self._said.append(utterance)

    def remember(self, utterances: Sequence[Utterance]) -> None:
        """Add earlier utterances of a session that continues after a restart, oldest first."""
        self._said.extend(utterances)

    def revised(self, utterance: Utterance) -> None:
        """Replace the text of an utterance.

        The log has its own revision (`TranscriptLog.revise`), which the spool never overwrites.
        """
        for at, said in enumerate(self._said):
            if said.id == utterance.id and said.campaign_id == utterance.campaign_id:
                self._said[at] = utterance
                return

    def retracted(self, utterance: UtteranceId) -> None:
        """Remove an utterance that the DM retracted. It stays on disk and in the log."""
        kept = [said for said in self._said if said.id != utterance]
        self._said.clear()
        self._said.extend(kept)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SoFar:
    """The part heard so far of an utterance that is not complete. The complete one has the same id."""

    utterance: Utterance


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    campaign: CampaignId
    turn: TurnRecord


@dataclass(frozen=True, slots=True)
class _Mark:
    """Set when everything posted before it has been written."""

    written: asyncio.Event


_Entry = Utterance | SoFar | FinishedTurn | _Mark


class Journal:
    """See the module's protocol of use.

    Args:
        spool: Owned by the journal, which uses it from one thread and closes it in `close`.
        log: None without long-term memory: utterances then stay in the spool, whose segments are compressed.
        tell: Called for each posted utterance once it is on disk, and once for each that cannot be written.
        listener: See `Delivery`.
        thread: Runs calls of the spool, one at a time.

    Attributes:
        recent: The last stored utterances.
        delivery: Sends what is stored to the log.
    """

    def __init__(
        self,
        spool: Spool,
        log: TranscriptLog | None,
        *,
        tell: Callable[[TableEvent], None] = lambda _: None,
        listener: Callable[[str], None] = logger.warning,
        thread: Executor | None = None,
    ) -> None:
        self.recent = RecentTalk()
        self._spool = spool
        self._tell = tell
        self._thread = thread or ThreadPoolExecutor(max_workers=1, thread_name_prefix="spool")
        self.delivery = Delivery(spool, log, in_thread=self._in_thread, listener=listener)
        self._mailbox: Mailbox[_Entry] = Mailbox("journal", capacity=100_000)
        self._in_hand: _Entry | None = None

    # -- posting

    def post(self, entry: Utterance | SoFar | FinishedTurn) -> None:
        """Have this written, in order, in the background. Returns at once."""
        self._mailbox.post(entry)

    async def run(self) -> None:
        """Write what is posted, for ever. An actor's body."""
        while True:
            if self._in_hand is None:
                self._in_hand = await self._mailbox.receive()
            match self._in_hand:
                case Utterance() as utterance:
                    await self._keep_at_last(utterance)
                case SoFar(utterance):
                    await self._keep_so_far(utterance)
                case FinishedTurn(campaign, turn):
                    self.delivery.record_turn(campaign, turn)
                case _Mark(written):
                    written.set()
            self._in_hand = None

    async def wait_until_written(self) -> None:
        """Wait until all that was posted before this call is on disk, while `run` continues."""
        mark = _Mark(asyncio.Event())
        self._mailbox.post(mark)
        await mark.written.wait()

    def unwritten(self) -> list[Utterance]:
        """Take and return what is not on disk yet, for a caller that must write it without `run`."""
        in_hand, waiting = self._in_hand, self._mailbox.take_all()
        said = [entry.utterance if isinstance(entry, SoFar) else entry for entry in (in_hand, *waiting)]
        return [entry for entry in said if isinstance(entry, Utterance)]

    async def _keep_at_last(self, utterance: Utterance) -> None:
        has_told = False
        while True:
            try:
                await self.keep(utterance)
            except GlyphoxaError as error:
                if not has_told:
                    what = f"an utterance cannot be stored: {error}"
                    self._tell(Degraded(what, now_ms(), Trouble.UNWRITTEN))
                    has_told = True
                await asyncio.sleep(_RETRY_S)
            else:
                self._tell(UtteranceKept(utterance))
                return

    async def _keep_so_far(self, utterance: Utterance) -> None:
        """Store the part heard so far in case the end never comes: `keep` replaces it under the same id."""
        try:
            await self._in_thread(lambda: self._spool.note(utterance))
        except GlyphoxaError as error:
            logger.debug("the part heard so far is not stored: {}", error)  # its end is retried until it is stored

    # -- the disk

    async def keep(self, utterance: Utterance) -> None:
        """Store the utterance and return when it is on disk.

        Raises:
            Unavailable: Neither the disk nor the log accepted it; it is not stored.
        """
        self.recent.heard(utterance)
        self.delivery.expect(utterance.id)
        try:
            await self._in_thread(lambda: self._spool.append(utterance))
        except Unavailable as error:
            self.delivery.disk_fails = True
            await self.delivery.append_directly(utterance, error)  # a full disk here does not mean a full disk there
        else:
            self.delivery.disk_fails = False
            self.delivery.begin()

    def keep_now(self, utterances: Sequence[Utterance], deadline_ms: int) -> int:
        """Write utterances to disk, in any thread, without the event loop.

        Returns how many are not there by the deadline. One that is just being written may be stored twice, which the
        log accepts.
        """
        try:
            writing = [self._thread.submit(self._spool.append, utterance) for utterance in utterances]
        except RuntimeError:  # closed: everything was stored before
            return len(utterances)
        written, _ = futures.wait(writing, timeout=deadline_ms / 1000)
        return len(writing) - sum(1 for one in written if one.exception() is None)

    async def unsent(self, campaign: CampaignId, session: SessionId) -> list[Utterance]:
        """Return a session's utterances that are on disk and, as far as is known, not in the log, in the order of
        storing.

        The disk may contain other campaigns, whose sessions may have the same name.
        """
        pending = await self._in_thread(lambda: self._spool.pending(self.delivery.sent))
        waiting = [item.utterance for item in pending]
        return [said for said in waiting if (said.campaign_id, said.session_id) == (campaign, session)]

    async def on_disk(self, campaign: CampaignId, session: SessionId, *, limit: int) -> list[Utterance]:
        """Return the last utterances of a session on disk, whether the log has them or not, in the order of storing.

        They include what was rolled back in the log.
        """
        return await self._in_thread(lambda: self._spool.latest(campaign, session, limit=limit))

    async def close(self) -> None:
        """Close the spool after pending writes. Nothing can be stored afterwards."""
        try:
            await self._in_thread(self._spool.close)
        finally:
            self._thread.shutdown(wait=False)

    async def _in_thread(self, call: Callable[[], T], /) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


# Record which session is being played, from the first word on, and that it was closed, so that it can be continued.


class SessionMark:
    """
    Args:
        now_ms: Unix epoch.
    """

    def __init__(
        self, sessions: LastSessions, campaign: CampaignId, session: SessionId, *, now_ms: Callable[[], int]
    ) -> None:
        self._sessions = sessions
        self._campaign = campaign
        self._now_ms = now_ms
        before = sessions.of(campaign)
        self.before = before if before is not None and before.session == session else None
        """The state of a continued session; None for a new one."""
        self.session = session
        self._scene: SceneId | None = None
        self._mark: LastSession | None = None
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, event: TableEvent) -> None:
        """Take an event of the table. Returns at once."""
        match event:
            case SceneChanged(scene):
                self._scene = scene.id
                if self._mark is not None:
                    self._note(replace(self._mark, scene=scene.id))
            case UtteranceKept() if self._mark is None and self._scene is not None:
                began_ms = self.before.began_ms if self.before is not None else event.utterance.at_ms
                self._note(LastSession(self.session, began_ms, self._scene))

    async def closed(self) -> None:
        """Record that the session was closed in order."""
        if self._mark is None and self.before is not None:
            self._mark = self.before
        if self._mark is not None:
            self._mark = replace(self._mark, closed_ms=self._now_ms())
            await self._write()

    def _note(self, mark: LastSession) -> None:
        self._mark = mark
        task = asyncio.get_running_loop().create_task(self._write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self) -> None:
        """Write the current state; of several writes the last remains."""
        async with self._writing:
            if self._mark is not None:
                await asyncio.to_thread(self._sessions.note, self._campaign, self._mark)
