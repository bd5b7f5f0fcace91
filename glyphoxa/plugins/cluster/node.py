"""A node: one process that holds tables, and reports to the directory.

    placed ──▶ the node takes the campaign's latest epoch and files ──▶ opens the table ──▶ publishes its address
    lost   ──▶ the lease runs out ──▶ another node takes it, with a later epoch, and continues the session

A table never shares this process with background reading, which has one of its own (`glyphoxa.app.transcript_reader`)
or those of the cluster (`glyphoxa.plugins.cluster.reading`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil
from loguru import logger

from glyphoxa.actors.clock import loop_ms
from glyphoxa.actors.deadline import STEP_MS, ClosingStack, done_within, end_tasks
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app import engines
from glyphoxa.app.memory import TableLog, database_of
from glyphoxa.app.models import load_local_models, named, open_embedder
from glyphoxa.app.table import Shared, open_table
from glyphoxa.app.transcript_reader import open_reader
from glyphoxa.cli.table_server import HowItEnds, PageAddress, TableServer, invitation_lines, servers_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable
from glyphoxa.domain.events import Trouble
from glyphoxa.domain.ids import CampaignId
from glyphoxa.npc.session import TableSession
from glyphoxa.observability import measure_lag
from glyphoxa.plugins.cluster.directory import Directory, Lease, queue_reading, raise_epoch
from glyphoxa.plugins.cluster.placement import REPORTS, Node, must_close, share_of_lost
from glyphoxa.plugins.cluster.settings import ClusterSettings, database_names, settings_of
from glyphoxa.plugins.cluster.table_directory import (
    TableFiles,
    left_behind,
    owned,
    send_what_is_left,
    table_directory,
)
from glyphoxa.transcript.sessions import LastSessions
from glyphoxa.web.access.links import Links
from glyphoxa.web.serving import bind

QUIET_MS: Final = 30_000
"""A table that is moved waits so long at most for the end of the turn."""
CLOSE_MS: Final = 30_000
LOOK_AGAIN_S: Final = 60.0
"""Between two looks for what lost processes left on this machine."""

_OWN_CONNECTIONS: Final = 2

AskPeer = Callable[[str], Awaitable[bool]]
"""Asks another node, by its name, whether it reaches the directory. Raises Unavailable if it does not answer."""


@dataclass(slots=True, eq=False)
class HeldTable(HowItEnds):
    """A table of this node, from its placement to its end.

    Attributes:
        lease: Its `url` is published with the next report.
        table: None until it is open.
        is_opening: It opens now, and others of this node wait.
        is_moving: It closes here, and its session goes on at another node.
        is_closing: Its server has begun to close it.
    """

    lease: Lease
    table: TableSession | None = None
    task: asyncio.Task[None] | None = None
    is_opening: bool = False
    is_moving: bool = False
    is_closing: bool = False
    act: Callable[[], object] = lambda: None
    last_words: Callable[[], int] = lambda: 0
    code: int = 1

    def attach(self) -> None: ...

    def begin(self) -> None:
        self.is_closing = True

    def closed(self, code: int) -> None: ...

    def move(self) -> None:
        """Close, so that the session goes on at another node, unless the table is ending by itself."""
        self.is_moving = not self.is_closing
        self.close()

    def close(self) -> None:
        if self.table is None and self.task is not None:
            self.task.cancel()
        self.act()


class TableHost:
    """The tables of this process.

    Args:
        settings: Those of the node; `data_directory` holds a directory for each table.
        node: The node as it reports itself, with the base of its tables' addresses.
        door: The address at which players knock, with a trailing slash.
        ask_peer: Asks another node.
    """

    def __init__(self, settings: Settings, node: Node, *, door: str, ask_peer: AskPeer) -> None:
        self.node = node
        self.tables: dict[CampaignId, HeldTable] = {}
        self._settings = settings
        self._cluster = settings.section(ClusterSettings)
        self._door = door
        self._ask_peer = ask_peer
        self._lags_ms: list[float] = []
        self._renewed_ms = self._unbroken_ms = 0
        self._nodes: Sequence[Node] = ()
        self._listed_ms = 0
        self._moves: dict[HeldTable, asyncio.Task[None]] = {}
        self._ended: set[tuple[CampaignId, int]] = set()
        """Tables that ended, each with the epoch of its lease, which is not given back yet."""
        self._opening = asyncio.Lock()

    async def open(self, stack: ClosingStack) -> None:
        """Load what the tables share, and connect. `stack` closes it.

        Raises:
            InvalidInput: The settings are wrong.
            Unavailable: The directory is away.
        """
        settings = self._settings
        for part in ("host", "ear", "cascaded", "webrtc"):  # an import holds up all tables
            await asyncio.to_thread(engines.installed, part)
        local = await load_local_models(settings, stack, slots=self.node.capacity, tell=logger.info)
        self._embedder = await open_embedder(settings, local, stack)
        self._databases: dict[str, Database] = {}
        self._shared: dict[str, Shared] = {}
        for name in database_names(settings):
            own_settings = settings_of(settings, name)
            database = self._databases[name] = database_of(own_settings, self._embedder)
            stack.push_async_callback(database.close)
            await database.open()
            store = await stack.enter_async_context(self._store(database))
            # Its process starts with the first table on that database.
            reader = None if self._cluster.readers else open_reader(own_settings, store, stack)
            self._shared[name] = Shared(local, named(settings), store, reader)
        # Not the connections of the tables: a report that waits for theirs would lose the leases.
        own = Database(await self._databases[""].dsn(), any_model=True, max_connections=_OWN_CONNECTIONS)
        stack.push_async_callback(own.close)
        self.directory = Directory(own, lease_ms=self._cluster.lease_ms)

    @asynccontextmanager
    async def _store(self, database: Database) -> AsyncIterator[Store]:
        """Memory for one table, on a database that all tables of the node use."""
        accept = self._settings.memory.auto_accept
        store = Store(database, embedder=self._embedder, recall=None, auto_accept=accept)
        try:
            yield store
        finally:
            await store.close()

    @property
    def reaches_directory(self) -> bool:
        """Whether it does, and has for so long that a node that does not is cut off, not just slower to reconnect."""
        half_ms = self._cluster.lease_ms / 2
        return loop_ms() - self._renewed_ms < half_ms < self._renewed_ms - self._unbroken_ms

    async def run(self) -> None:
        """Report, open the tables that are placed here, and reopen those of lost nodes, for ever."""
        lag = asyncio.create_task(measure_lag(lambda late_s: self._lags_ms.append(late_s * 1_000)))
        left = asyncio.create_task(self._take_up_what_was_left())
        every_s = self._cluster.lease_ms / REPORTS / 1_000
        self._renewed_ms = self._unbroken_ms = loop_ms()
        try:
            while True:
                try:
                    await self._report()
                except GlyphoxaError as error:
                    logger.debug("the node is not reported: {}", error)
                    self._unbroken_ms = loop_ms()
                    await self._check_contact()
                await asyncio.sleep(every_s)
        finally:
            await end_tasks(lag, left)

    def invitations(self, campaign: CampaignId) -> list[str]:
        """Return lines with the links of everybody at an open table; the game master's works once.

        Raises:
            NotFound: It is not open here.
        """
        held = self.tables.get(campaign)
        if held is None or held.table is None:
            raise NotFound(f"the table of {campaign!r} is not open on {self.node.name}")
        return invitation_lines(Links(held.table.campaign, table_directory(self._settings, campaign)))

    async def close(self) -> None:
        """Close all tables in order; what was said is stored."""
        tasks = [each.task for each in self.tables.values() if each.task is not None]
        for each in list(self.tables.values()):
            each.close()
        await done_within(CLOSE_MS, asyncio.gather(*tasks, return_exceptions=True))
        with contextlib.suppress(GlyphoxaError):
            await self.directory.forget(self.node.name)

    async def find(self, campaign: CampaignId) -> str:
        """Return the address of a table for the door; see `glyphoxa.plugins.cluster.door.Find`."""
        lease = await self.directory.place(campaign)
        return lease.url if lease.is_valid else ""

    async def _report(self) -> None:
        self._lags_ms, lags = [], sorted(self._lags_ms)
        lag_ms = lags[int(0.95 * len(lags))] if lags else 0.0
        node = replace(self.node, memory_used=psutil.virtual_memory().percent / 100, lag_ms=lag_ms)
        held = [each.lease for each in self.tables.values()]
        known = self._ended | {(lease.campaign, lease.epoch) for lease in held}
        reported = await self.directory.report(node, held)
        self._renewed_ms = loop_ms()
        leases = reported.leases
        for campaign, each in list(self.tables.items()):
            lease = leases.get(campaign)
            if lease is None or lease.epoch != each.lease.epoch:
                logger.warning("the table of {} was moved to another node; it closes here", campaign)
                each.close()
        for campaign, lease in leases.items():
            if campaign not in self.tables and lease.is_valid and (campaign, lease.epoch) not in known:
                self._begin(lease)
        with contextlib.suppress(GlyphoxaError):
            await self._give_back()
        if self._renewed_ms - self._listed_ms > self._cluster.lease_ms or reported.lost:
            self._nodes, self._listed_ms = await self.directory.nodes(), self._renewed_ms
        if reported.is_draining:
            self._hand_over()
        elif reported.lost and self._renewed_ms - self._unbroken_ms > self._cluster.lease_ms:
            # After an outage of the directory all leases have run out: their nodes renew them first.
            most = share_of_lost(self._nodes, self.node.name, reported.lost)
            for campaign in await self.directory.adopt(self.node.name, most=most) if most else ():
                logger.info("the table of {} is reopened here; its node was lost", campaign)

    async def _check_contact(self) -> None:
        """Close all tables if this node is cut off, before others reopen them."""
        lease_ms = self._cluster.lease_ms
        others = [node.name for node in self._nodes if node.name != self.node.name and node.is_seen]
        if loop_ms() - self._renewed_ms <= lease_ms / 2:
            return  # the leases were renewed a moment ago
        answers = await asyncio.gather(*(self._ask_peer(name) for name in others), return_exceptions=True)
        heard = [each for each in answers if isinstance(each, bool)]
        unrenewed_ms = loop_ms() - self._renewed_ms
        is_cut_off = must_close(unrenewed_ms=unrenewed_ms, lease_ms=lease_ms, peers=len(others), answers=heard)
        if is_cut_off and self.tables:
            logger.error("this node is cut off from the others and the directory: its tables close")
            for each in list(self.tables.values()):
                each.move()

    def _hand_over(self) -> None:
        """Tell the tables that they move, and close each between two turns; the directory places it again."""
        for each in list(self.tables.values()):
            if each not in self._moves:
                move = self._moves[each] = asyncio.create_task(self._move(each))
                move.add_done_callback(lambda _, each=each: self._moves.pop(each))  # type: ignore[misc]
                move.add_done_callback(_log_failure)

    async def _move(self, held: HeldTable) -> None:
        if held.table is not None:
            held.table.announce("the node is drained", Trouble.MOVING)
            await done_within(QUIET_MS, held.table.wait_until_quiet())
        held.move()
        if held.task is not None:
            await done_within(CLOSE_MS, asyncio.shield(held.task))
        if held.is_moving:
            await self.directory.place(held.lease.campaign)

    def _begin(self, lease: Lease) -> None:
        held = self.tables[lease.campaign] = HeldTable(replace(lease, url=""))
        held.task = asyncio.create_task(self._hold(held))
        held.task.add_done_callback(_log_failure)

    async def _hold(self, held: HeldTable) -> None:
        """Open the table, serve it until it ends, and give the lease back."""
        lease = held.lease
        try:
            database = self._databases.get(lease.server)
            if database is None:
                raise InvalidInput(f"cluster.servers has no {lease.server!r}, which holds campaign {lease.campaign!r}")
            # One at a time: several at once would miss their deadlines, and interrupt the open tables.
            held.is_opening = await self._opening.acquire()
            await raise_epoch(database, lease.campaign, lease.epoch)
            if self._cluster.readers:
                await queue_reading(database, lease.campaign)
            directory = table_directory(self._settings, lease.campaign)
            with owned(directory):
                await self._play(held, database, directory)
                await self._leave(lease.campaign, directory, database)
        finally:
            self._end_opening(held)
            for each in self._databases.values():
                if each.epochs.get(lease.campaign) == lease.epoch:
                    del each.epochs[lease.campaign]
            self._ended.add((lease.campaign, lease.epoch))
            with contextlib.suppress(GlyphoxaError):
                await self._give_back()
            del self.tables[lease.campaign]  # not before: a report would find the lease, and open the table again

    async def _give_back(self) -> None:
        """Give back the leases of tables that ended. One that ended in an outage would be reopened for nobody."""
        for campaign, epoch in list(self._ended):
            await self.directory.release(campaign, epoch)
            self._ended.discard((campaign, epoch))

    def _end_opening(self, held: HeldTable) -> None:
        if held.is_opening:
            held.is_opening = False
            self._opening.release()

    async def _play(self, held: HeldTable, database: Database, directory: Path) -> None:
        campaign = held.lease.campaign
        files = TableFiles(database, campaign, directory)
        await files.restore()
        settings = settings_of(self._settings, held.lease.server).model_copy(update={"data_dir": directory})
        last = LastSessions(directory).of(campaign)
        session = last.session if last is not None and last.closed_ms is None else None

        following: list[asyncio.Task[None]] = []

        def is_copied() -> None:
            held.lease = replace(held.lease, url=address.here)

        def is_open(table: TableSession) -> None:
            held.table = table
            self._end_opening(held)
            following.append(asyncio.create_task(files.follow(is_copied)))

        async with ClosingStack() as stack:
            store = await stack.enter_async_context(self._store(database))
            listener = stack.enter_context(self._listener())
            address = self._address(campaign, listener.getsockname()[1])
            stored = await store.campaigns.get(campaign)
            stack.push_step("its files", STEP_MS, partial(self._keep, held, files, following))
            await TableServer(
                settings,
                stored,
                session,
                address,
                listener,
                open_table=partial(open_table, shared=replace(self._shared[held.lease.server], store=store)),
                say=lambda _: None,  # its lines hold links: see `invitations`
                on_open=is_open,
            ).run(held)

    async def _keep(self, held: HeldTable, files: TableFiles, following: Sequence[asyncio.Task[None]]) -> None:
        await end_tasks(*following)
        sessions = LastSessions(files.directory)
        if held.is_moving and (last := sessions.of(files.campaign)) is not None:  # the session goes on elsewhere
            sessions.note(files.campaign, replace(last, closed_ms=None))
        await files.copy()

    async def _leave(self, campaign: CampaignId, directory: Path, database: Database) -> None:
        """Delete the directory of a table once the database has all of it."""
        try:
            async with self._store(database) as store:
                if n_sent := await send_what_is_left(directory, TableLog(store)):
                    logger.info("{} utterances of {} that a lost process had not sent are stored", n_sent, campaign)
        except GlyphoxaError as error:
            logger.warning("what was said at the table of {} stays in {} for now: {}", campaign, directory, error)

    async def _take_up_what_was_left(self) -> None:
        """Send what lost processes left on this machine, now and then."""
        while True:
            for campaign in left_behind(self._settings):
                if campaign in self.tables:
                    continue
                directory = table_directory(self._settings, campaign)
                with contextlib.suppress(GlyphoxaError, OSError), owned(directory):
                    database = self._databases.get(await self.directory.server(campaign))
                    if database is not None:
                        await self._leave(campaign, directory, database)
            await asyncio.sleep(LOOK_AGAIN_S)

    def _listener(self) -> socket.socket:
        host = urlsplit(self.node.url).hostname or "127.0.0.1"
        ports = self._cluster.table_ports
        options = ("the node's address", "cluster.table_ports")
        if ports is None:
            return bind(host, 0, options=options)
        for port in range(ports[0], ports[1] + 1):
            with contextlib.suppress(Unavailable):
                return bind(host, port, options=options)
        raise Unavailable(f"all of cluster.table_ports {ports[0]} to {ports[1]} are in use")

    def _address(self, campaign: CampaignId, port: int) -> PageAddress:
        door = urlsplit(self._door)
        base = urlsplit(self.node.url)
        here = f"http://{base.hostname}:{port}/"
        return PageAddress(
            here,
            f"{self._door}t/{campaign}/",
            (),
            is_open=False,
            hosts=(door.hostname or "",),
            ice_servers=servers_of(self._settings.server.ice_servers),
        )


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.opt(exception=None if isinstance(error, GlyphoxaError) else error).error("a table ended: {}", error)
