"""Reads and embeds the transcripts of open tables in a process of its own, so that no table waits for it.

The process has the lowest priority and one thread for its work. A table outranks it: no step begins while somebody
speaks or an NPC answers, unless that lasts longer than `LONGEST_WAIT_MS`. Steps are paced by the clock, so a backlog
makes the work longer, never heavier. New lines are embedded at once.

The tables' process starts it and writes to its standard input: the settings as JSON, then one order a line (`read
CAMPAIGN`, `busy`, `quiet`). The end of the input, which a crash of the tables' process also causes, ends it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final

from loguru import logger

from glyphoxa.actors.clock import loop_ms
from glyphoxa.actors.deadline import ClosingStack, done_within
from glyphoxa.actors.limits import CircuitBreaker, QuietGate
from glyphoxa.actors.supervisor import Supervisor, follow
from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.listen import SAID
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.background import chronicle_worker, talk_readers_at_table
from glyphoxa.app.memory import database_of
from glyphoxa.app.models import load_embedder
from glyphoxa.chronicle.chronicler import LOOK_AGAIN_MS
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import NpcThinks, TableEvent
from glyphoxa.domain.heard import SpeechStarted
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.npc.table_interface import Table
from glyphoxa.observability import set_up_logs
from glyphoxa.providers.registry import NONE

BATCH: Final = 32
"""Utterances embedded in one step."""
FINISH_MS: Final = 3_000
"""Time at the end of the input to read what is left. `glyphoxa worker read` or the next session reads the rest."""
_CLOSE_MS: Final = FINISH_MS + 2_000
_RESTART_S: Final = 5.0
_MAX_RESTART_S: Final = 300.0
"""The delay before a restart doubles up to this."""
LOWEST_PRIORITY: Final = 19
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_NEEDED: Final = ("data_dir", "memory", "providers", "chronicle", "models", "logging")
"""Settings that matter for reading and embedding."""
_READY: Final = b"ready\n"


# In the tables' process.


class BackgroundReader:
    """Runs the reading process for the tables of this process. Create it with `open_reader`."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._campaigns: dict[CampaignId, None] = {}
        self._busy: set[SessionId] = set()
        self._is_wanted = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._is_ready = self._is_closing = False

    async def follow(self, table: Table) -> None:
        """Have the campaign of a table read, and report when the table is busy. An actor of the table."""
        stirred = asyncio.Event()

        def on(event: TableEvent) -> None:
            if isinstance(event, SpeechStarted | NpcThinks):
                stirred.set()

        self._campaigns[table.campaign.id] = None
        self._order(f"read {table.campaign.id}")
        self._is_wanted.set()
        unsubscribe = table.subscribe(on)
        try:
            while True:
                await stirred.wait()
                stirred.clear()
                self._set(table.session, is_busy=True)
                await table.wait_until_quiet()
                self._set(table.session, is_busy=False)
        finally:
            unsubscribe()
            self._set(table.session, is_busy=False)

    async def run(self) -> None:
        """Keep the process running from the first table on. An actor."""
        await self._is_wanted.wait()
        wait_s = _RESTART_S
        while True:
            try:
                code = await self._live()
                if self._is_closing:
                    return
                logger.warning("background reading ended with exit code {}; it restarts in {:g} s", code, wait_s)
            except GlyphoxaError as error:
                logger.debug("background reading is not possible now: {}", error)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _MAX_RESTART_S)

    async def close(self) -> None:
        """End the process after it has read what is left, within its time limit."""
        self._is_closing, process = True, self._process
        if process is None or process.returncode is not None or process.stdin is None:
            return
        process.stdin.close()
        if not await done_within(_CLOSE_MS if self._is_ready else 0, process.wait()):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _live(self) -> int:
        """Run the process once. Returns its exit code.

        Raises:
            Unavailable: The database cannot be reached now.
        """
        # The tables may use a database other than the settings' default, such as an embedded one of another directory.
        memory = self._settings.memory.model_copy(update={"postgres_dsn": await self._database.dsn()})
        settings = self._settings.model_copy(update={"memory": memory})
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "glyphoxa.app.transcript_reader",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | _ONE_THREAD,
            start_new_session=True,  # Ctrl-C in a terminal is for the tables, which close it
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 - requested as pipes above
        try:
            self._order(settings.model_dump_json(include=set(_NEEDED)))
            for campaign in self._campaigns:
                self._order(f"read {campaign}")
            if self._busy:
                self._order("busy")
            self._is_ready = await process.stdout.readline() == _READY
            return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()

    def _order(self, line: str) -> None:
        process = self._process
        if process is not None and process.returncode is None and process.stdin is not None:
            process.stdin.write(f"{line}\n".encode())

    def _set(self, session: SessionId, *, is_busy: bool) -> None:
        """Note a busy or quiet table. The process is told when the first one is busy, and when all are quiet."""
        was_any_busy = bool(self._busy)
        (self._busy.add if is_busy else self._busy.discard)(session)
        if was_any_busy != bool(self._busy):
            self._order("busy" if is_busy else "quiet")


def open_reader(settings: Settings, store: Store | None, stack: ClosingStack) -> BackgroundReader | None:
    """Create the reader of the tables in this process; None if these settings leave nothing to read or embed.

    Its process starts with the first table. `stack` closes it.
    """
    if store is None or not (settings.reads_talk or embeds(settings)):
        return None
    reader, supervisor = BackgroundReader(settings, store.database), Supervisor()
    stack.push_step("background reading", _CLOSE_MS, supervisor.close)
    stack.push_step("the reading process", 2 * _CLOSE_MS, reader.close)
    supervisor.start("background reading", reader.run)
    return reader


def embeds(settings: Settings) -> bool:
    return settings.providers.embeddings.name != NONE


# In its own process.


def main() -> int:
    """Read the settings and orders from standard input until it ends."""
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    code = 0
    try:
        asyncio.run(_read())
    except* GlyphoxaError as errors:
        code = 1
        for error in errors.exceptions:
            logger.error("what is said cannot be read in the background: {}", error)
    return code


async def _read() -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1, "work"))
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    if not (first := await orders.readline()):
        return
    settings = Settings.model_validate_json(first)
    set_up_logs(level="WARNING", form=settings.logging.form)
    gate, campaigns = QuietGate(), dict[CampaignId, None]()
    async with AsyncExitStack() as stack:
        embedder = await load_embedder(settings) if embeds(settings) else None
        if embedder is not None:
            stack.push_async_callback(embedder.aclose)
        opening = open_store(
            database_of(settings, embedder), embedder=embedder, auto_accept=settings.memory.auto_accept
        )
        store = await stack.enter_async_context(opening)
        readers = replace(talk_readers_at_table(settings, stack), give_way=gate.give_way)
        worker = chronicle_worker(store, readers=readers, only=campaigns)
        sys.stdout.buffer.write(_READY)
        sys.stdout.buffer.flush()
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            if settings.reads_talk:
                tasks.append(group.create_task(worker.run()))
            if embeds(settings):
                tasks.append(group.create_task(EmbeddingWork(store, gate).run(campaigns)))
            await _obey(orders, campaigns, gate)
            for task in tasks:
                task.cancel()
        if settings.reads_talk:
            gate.hurry()
            with suppress(TimeoutError, GlyphoxaError):
                async with asyncio.timeout(FINISH_MS / 1_000):
                    for campaign in campaigns:
                        await worker.read_new(campaign)


async def _obey(orders: asyncio.StreamReader, campaigns: dict[CampaignId, None], gate: QuietGate) -> None:
    """Follow the orders until the input ends."""
    while line := (await orders.readline()).decode():
        match line.split():
            case ["read", campaign]:
                campaigns[CampaignId(campaign)] = None
            case ["busy"]:
                gate.busy()
            case ["quiet"]:
                gate.quiet()


class EmbeddingWork:
    """Embeds new lines at once and a backlog step by step.

    A model is paused after repeated failures, and each error is logged once.
    """

    def __init__(self, store: Store, gate: QuietGate, *, now_ms: Callable[[], int] = loop_ms) -> None:
        self._store = store
        self._gate = gate
        self._breaker = CircuitBreaker(now_ms)
        self._trouble = ""

    async def run(self, campaigns: Collection[CampaignId]) -> None:
        """Embed whatever is said in these campaigns, which may change, until cancelled."""

        async def fill_all(_: object) -> None:
            for campaign in tuple(campaigns):
                await self.fill(campaign)

        listener = self._store.listener
        await follow(partial(listener.follow, SAID, None, every_ms=LOOK_AGAIN_MS), fill_all, what="new utterances")

    async def fill(self, campaign: CampaignId) -> bool:
        """Embed what is not embedded yet, as far as possible now. False: something is left."""
        if self._breaker.retry_in_ms > 0:
            return False
        try:
            with self._breaker.calling():
                while (await self._store.chunks.fill_missing(campaign, limit=BATCH)).n_seen == BATCH:
                    await self._gate.give_way()
            self._trouble = ""
            return True
        except GlyphoxaError as error:
            if str(error) != self._trouble:
                logger.warning("new utterances are not embedded yet: {}", error)
            self._trouble = str(error)
            return False


if __name__ == "__main__":
    raise SystemExit(main())
