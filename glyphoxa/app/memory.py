"""Long-term memory for a table: opened if it is there, made good when it comes later, and never waited for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from loguru import logger

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.actors.supervisor import Supervisor
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.background import TalkReaders, chronicle_worker, episode_writer
from glyphoxa.app.models import LaterEmbedders, LocalModels, open_embedder
from glyphoxa.config.settings import Settings
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.events import Degraded, MemoryChanged, MemoryHealth, TableEvent, Trouble
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.npc.session import SaidBefore
from glyphoxa.recall.guard import MemoryGuard
from glyphoxa.recall.recall import RecallAround
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Spool
from glyphoxa.world.graph import TalkAround

OPEN_MS = 30_000
"""What a database may take until a table opens without it. Its opening goes on, and memory joins later."""
PING_MS = 1_000
FLUSH_MS = 5_000
"""At the end of a session the database gets this long; what it has not taken is sent by the next one."""


async def open_store_for(settings: Settings, local: LocalModels, stack: AsyncExitStack) -> Store | None:
    """None when the settings want no long-term memory. No database is connected yet.

    Raises:
        InvalidInput: As of `open_embedder`, or the database is to hold vectors of other dimensions.
    """
    if not settings.has_memory:
        return None
    embedder = await open_embedder(settings, local, stack)
    later = LaterEmbedders(settings.file)
    stack.push_async_callback(later.close)
    return await stack.enter_async_context(
        open_store(
            settings.memory.postgres_dsn,
            data_dir=settings.data_directory,
            embedding_dimensions=settings.memory.embedding_dimensions,
            embedder=embedder,
            another=later.embedder,
            auto_accept=settings.memory.auto_accept,
        )
    )


SUMMARISE_MS = 5_000
"""At the end of a session. What takes longer is left to `glyphoxa worker summarise`."""
SAID_BEFORE = 80
"""Of a session that goes on: as much as a page shows to who comes late."""


class TableMemory:
    """What a table remembers with. Made inside a running event loop.

    Protocol of use: `open`, `start`; at the end `flush`, then `close`. What is to be read goes through `guard`, what is
    to be kept through `journal`.

    Args:
        store: None without long-term memory: what is said is then kept on disk only.
        spool: The directory in which what is said is kept first; of this table only.
        session: Whose day of the story is kept.
        readers: Those who make knowledge of what is said while the table plays; None: nobody does.
        tell: Takes events of the table.
        now_ms: Unix epoch.

    Attributes:
        guard: Memory as it may be asked; None without long-term memory.
        around: Talk around an entity, as it may be asked; None where the graph cannot.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        store: Store | None,
        campaign: Campaign,
        spool: Path,
        *,
        session: SessionId | None = None,
        readers: TalkReaders | None = None,
        tell: Callable[[TableEvent], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.store = store
        self._campaign = campaign
        self._session = session
        self._readers = readers
        self._tell = tell
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._storing = asyncio.Lock()
        self._is_stored = False
        self._embedding = CircuitBreaker(now_ms)
        self._not_embedded = ""
        self._also: list[Callable[[], Awaitable[None]]] = []
        self._watch = MemoryWatch(ping=self._ping, make_good=self._make_good, changed=self._has_changed, now_ms=now_ms)
        log: TranscriptLog | None = None
        self.guard: MemoryGuard | None = None
        self.around: TalkAround | None = None
        if store is not None:
            log = _AfterItsCampaign(store.log, self.store_campaign)
            self.guard = MemoryGuard(store.graph, store.past_talk, store.summaries, self._watch, by_name=store.by_name)
            around = RecallAround.of(store.graph_rag, store.past_talk.vectors)
            self.around = None if around is None else self.guard.over(around)
        self.journal = Journal(
            Spool(spool, alarm=self._on_spool),
            log,
            tell=tell,
            now_ms=now_ms,
            listener=self._on_journal,
            after_append=self.embed_what_is_new,
        )

    @property
    def health(self) -> MemoryHealth:
        if self.store is None:
            return MemoryHealth("off")
        waiting = self.journal.delivery.n_waiting
        if self._watch.since_ms is None:
            return MemoryHealth("ok", waiting=waiting)
        return MemoryHealth("degraded", self._watch.since_ms, self._watch.why, waiting)

    def make_good_too(self, step: Callable[[], Awaitable[None]]) -> None:
        """Have this done as well when the database is back. It raises a `GlyphoxaError` if it cannot be done yet."""
        self._also.append(step)

    async def open(self) -> None:
        """Connect, and store the campaign. A database that is away is no reason not to play."""
        if self.store is None:
            return
        try:
            await self.store_campaign()
        except GlyphoxaError as error:
            self._watch.lost(str(error))

    def start(self, supervisor: Supervisor) -> None:
        supervisor.start("delivery", self.journal.delivery.run)
        if self.store is not None:
            supervisor.start("memory", self._watch.run)
            if self._readers is not None:
                worker = chronicle_worker(self.store, self._campaign.id, readers=self._readers)
                supervisor.start("chronicle", worker.run)

    async def store_campaign(self) -> None:
        """Make the stored campaign that of the file, unless that was done since this table was opened.

        Raises:
            Unavailable: The database cannot be used now, whosever fault that is.
            InvalidInput: It is there, and does not take the campaign.
        """
        if self.store is None:
            return
        async with self._storing:
            if self._is_stored:
                return
            try:
                await self.store.database.open(deadline_ms=OPEN_MS)
            except GlyphoxaError as error:
                raise Unavailable(str(error)) from None
            done = await self.store.campaigns.load(self._campaign)
            if self._session is not None:
                await self.store.times.begin(self._campaign.id, self._session)
            self._is_stored = True
        _say_what_changed(self._campaign, done)
        await self._read_ahead("past talk", self.store.past_talk.transcripts.refresh)
        await self._read_ahead("what is known of the world", self.store.by_name.refresh)

    async def _read_ahead(self, what: str, refresh: Callable[[CampaignId], Awaitable[object]]) -> None:
        """The talk of years is read before somebody waits for an answer. That it cannot be read keeps nobody from
        writing more of it down.
        """
        try:
            await refresh(self._campaign.id)
        except GlyphoxaError as error:
            logger.debug("{} is not in memory yet: {}", what, error)
        except Exception as error:
            logger.opt(exception=error).error("{} cannot be read into memory", what)

    async def said_before(self, session: SessionId) -> SaidBefore:
        """What was said in a session before a restart."""
        campaign = self._campaign.id
        if self.store is None:
            said = await self.journal.on_disk(campaign, session, limit=SAID_BEFORE)
            return SaidBefore(said, said)
        if not self._watch.is_away:
            # What the log has and the disk does not know of may have been rolled back there.
            await self.journal.delivery.send(FLUSH_MS)
        unsent = await self.journal.unsent(campaign, session)
        try:
            logged = await self.store.log.recent(campaign, session, since_ms=0, limit=SAID_BEFORE)
        except GlyphoxaError as error:
            logger.debug("what was said before is not read: {}", error)
            on_disk = await self.journal.on_disk(campaign, session, limit=SAID_BEFORE)
            return SaidBefore(_in_order(unsent), [_as_heard(one) for one in _in_order(on_disk)])
        said = _in_order([*unsent, *logged])
        return SaidBefore(said, said)

    async def kept(self, session: SessionId) -> int:
        """See `glyphoxa.npc.table.Table.kept`."""
        await self.flush()
        if self.store is not None:
            try:
                return await self.store.log.count(self._campaign.id, session)
            except GlyphoxaError as error:
                logger.warning("what the log holds cannot be counted now: {}", error)
        return len(self.journal.recent.of(session, limit=sys.maxsize))

    async def embed_what_is_new(self) -> None:
        """Bring new talk within reach of recall by meaning. What is not embedded now is embedded the next time: a model
        that fails again and again is let be for a while, and what is wrong is told once.
        """
        if self.store is None or not self._embedding.may_try():
            return
        try:
            await self.store.chunks.fill_missing(self._campaign.id)
        except GlyphoxaError as error:
            self._embedding.failed()
            if str(error) != self._not_embedded:
                self._not_embedded = str(error)
                logger.warning("new talk is not embedded yet: {}", error)
        except BaseException:  # also of who is cancelled
            self._embedding.failed()  # or nobody would ever try again
            raise
        else:
            self._embedding.succeeded()
            self._not_embedded = ""

    async def flush(self) -> bool:
        """Send what waits. False when the database has not taken everything in time."""
        return await self.journal.delivery.flush(FLUSH_MS)

    async def finish(self) -> bool:
        """At the end of a session: send what waits, then write what each NPC recalls of it. False as of `flush`."""
        is_all_sent = await self.flush()
        if self.store is not None and self._readers is not None and self._session is not None and is_all_sent:
            try:
                async with asyncio.timeout(SUMMARISE_MS / 1000):
                    await (await episode_writer(self.store, self._campaign.id)).write(self._session)
            except (GlyphoxaError, TimeoutError) as error:
                logger.warning("the session is not summed up: {}; glyphoxa worker summarise does it", error)
        return is_all_sent

    async def close(self) -> None:
        await self.journal.close()

    async def _ping(self) -> None:
        if self.store is not None:
            await self.store.database.ping(deadline_ms=PING_MS)

    async def _make_good(self) -> None:
        await self.store_campaign()
        self._embedding.succeeded()  # it may have been the database that failed
        for step in self._also:
            await step()
        if self.journal.delivery.is_degraded:
            await self.flush()
        if self.journal.delivery.is_degraded:  # a backlog that is only long would have made it well
            refuses = "the disk takes nothing" if self.journal.delivery.disk_fails else "it takes nothing"
            raise Unavailable(f"the database answers, but {refuses} that is said")

    def _on_journal(self, what: str) -> None:
        logger.debug("{}", what)  # the table is told once, whoever noticed
        self._watch.suspect()
        self._watch.hope()

    def _on_spool(self, what: str) -> None:
        """Called in the thread that writes the spool."""
        logger.warning("{}", what)
        self._loop.call_soon_threadsafe(self._tell, Degraded(what, self._now_ms(), Trouble.DISK))
        self._loop.call_soon_threadsafe(self._watch.suspect)

    def _has_changed(self) -> None:
        health = self.health
        if health.state == "ok":
            logger.info("long-term memory is there again; {} utterances are on their way to it", health.waiting)
        else:
            logger.warning("{}", _what_is_wrong(health.why, disk_fails=self.journal.delivery.disk_fails))
        self._tell(MemoryChanged(health, self._now_ms()))


def _in_order(said: Sequence[Utterance]) -> list[Utterance]:
    """Each once, as it was given last."""
    by_id = {utterance.id: utterance for utterance in said}
    return sorted(by_id.values(), key=lambda utterance: utterance.at_ms)[-SAID_BEFORE:]


def _as_heard(said: Utterance) -> Utterance:
    """An NPC's raw text is what it meant to say: of that players are shown what they heard."""
    return said if said.npc_id is not None else replace(said, text=said.raw_text, corrections=())


def _what_is_wrong(why: str, *, disk_fails: bool) -> str:
    if disk_fails:
        return f"what is said can only be kept in the database, as the disk takes nothing; the table plays on: {why}"
    return f"long-term memory is away; the table plays on, and what is said is kept on disk: {why}"


def _say_what_changed(campaign: Campaign, done: CampaignChanges) -> None:
    """Without what the facts say: who is at the table may see the log."""
    if not done.is_empty:
        logger.info(
            "campaign {}: {} added, {} changed, {} removed",
            campaign.id,
            len(done.added),
            len(done.changed),
            len(done.removed),
        )
    for remark in done.discreet_remarks:
        logger.info("campaign {}: {}", campaign.id, remark)


class _AfterItsCampaign:
    """A transcript log that takes no talk before the campaign is stored, whose language decides by which words the talk
    is found later.
    """

    def __init__(self, log: TranscriptLog, store_campaign: Callable[[], Awaitable[None]]) -> None:
        self._log = log
        self._store_campaign = store_campaign

    async def append(self, utterances: Sequence[Utterance]) -> None:
        try:
            await self._store_campaign()
        except InvalidInput as error:
            logger.debug("talk is kept without its campaign: {}", error)  # the table is degraded, and says why
        await self._log.append(utterances)

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        return await self._log.revise(utterance, was=was)

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        await self._log.record_turn(campaign, turn)

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        return await self._log.recent(campaign, session, since_ms=since_ms, limit=limit)

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        return await self._log.count(campaign, session)
