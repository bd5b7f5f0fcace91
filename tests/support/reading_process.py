"""Processes that read a transcript until they are killed.

Each is a fork of a process that has imported this module, so that it begins to read at once. Import it inside a test:
that takes seconds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import AsyncExitStack
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Event
from threading import Thread

import glyphoxa.adapters.openai_models  # noqa: F401 - otherwise it is imported after the fork
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.background import RULES, chronicle_worker, open_talk_readers
from glyphoxa.app.memory import database_of
from glyphoxa.chronicle.talk import NumberedUtterance, SceneTalk
from glyphoxa.chronicle.utterance_nodes import Grafter
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import CampaignId
from tests.support.builders import CAMPAIGN, SESSION, a_known_party, an_utterance


def processes() -> ForkServerContext:
    """Return what starts such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def read_until_killed(begun: Event, settings: str, campaign: str, deadline_ms: int, pauses: bool) -> None:
    """Read a campaign in this process as a worker does. See `read`."""
    asyncio.run(read(Settings.model_validate_json(settings), CampaignId(campaign), deadline_ms, pauses, begun=begun))


async def read(
    settings: Settings, campaign: CampaignId, deadline_ms: int, pauses: bool, *, begun: Event | None = None
) -> None:
    """Read what is unread of a campaign.

    Args:
        deadline_ms: Time limit of the model.
        pauses: Pause the model after repeated failures, as usual. Otherwise the same question gets the same answer.
        begun: Set before it begins; then it continues until killed. None: it returns after all was read.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(database_of(settings, None)))
        readers = await open_talk_readers(settings, stack)
        assert readers.asking is not None
        asking = replace(readers.asking, deadline_ms=deadline_ms)
        if not pauses:
            asking.breaker.max_failures = 1_000_000
        worker = chronicle_worker(store, only=[campaign], readers=replace(readers, asking=asking))
        worker.gather_ms = 0
        if begun is not None:
            begun.set()
            await worker.run()
        while await worker.read_new(campaign):
            pass


async def _warm() -> None:
    """Load the words of the language and compile their patterns."""
    said = NumberedUtterance(an_utterance("Odo Fennimore said that he promised Wenna a crown for the Geometers."), 1)
    talk = SceneTalk(CAMPAIGN, SESSION, "en", (said,))
    extractor, judge = RULES.readers(a_known_party())
    await judge.judge(talk, ())
    found = await extractor.extract(talk, ())
    Grafter("en", {}).atoms_of(talk, found, {}, (), kept={said.utterance.id})


_warming = Thread(target=lambda: asyncio.run(_warm()))  # a loop may run in the thread of a test
_warming.start()
_warming.join()
