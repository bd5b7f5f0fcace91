"""Old talk is erased as `privacy.retain_days` says: when a table opens, and once a day beside who reads talk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from loguru import logger

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.erasure import Meant, PostgresErasure
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.privacy import erase
from glyphoxa.cli.scope import opened_store
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId

DAY_MS: Final = 86_400_000
DAY_S: Final = 86_400.0


async def erase_old(store: Store, settings: Settings, only: CampaignId | None, *, at_ms: int) -> int:
    """Erase what is older than the settings let it be, campaign by campaign; one that fails is logged. Returns how many
    utterances.

    Args:
        only: None is all campaigns.
        at_ms: Now, milliseconds since the Unix epoch.
    """
    if settings.privacy.retain_days is None:
        return 0
    meant = Meant(before_ms=at_ms - settings.privacy.retain_days * DAY_MS)
    n_erased = 0
    try:
        campaigns = await store.campaigns.ids() if only is None else [only]
        erasure = PostgresErasure(store.database)
        for campaign in campaigns:
            done, _ = await erase(erasure, settings.data_directory, campaign, meant, at_ms=at_ms)
            n_erased += sum(len(each.utterances) for each in done)
    except GlyphoxaError as error:
        logger.warning("old talk is not all erased now; it is tried again at the next time: {}", error)
    if n_erased:
        logger.warning("{} utterances older than {} days were erased", n_erased, settings.privacy.retain_days)
    return n_erased


async def erase_old_before_opening(settings: Settings, campaign: CampaignId) -> None:
    """As `erase_old`, for a table that opens behind it: nobody holds its spool yet. Played is also while the database
    is away; the next opening tries again.
    """
    if settings.privacy.retain_days is None or not settings.has_memory:
        return
    try:
        async with opened_store(settings) as store:
            await erase_old(store, settings, campaign, at_ms=now_ms())
    except GlyphoxaError as error:
        logger.warning("old talk is not erased now: {}", error)


@asynccontextmanager
async def erasing_daily(
    store: Store,
    settings: Settings,
    only: CampaignId | None,
    *,
    wait_s: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[None]:
    """Once now and then once a day, for the time of the block; nothing where no age is set."""

    async def run() -> None:
        while True:
            await erase_old(store, settings, only, at_ms=now_ms())
            await wait_s(DAY_S)

    if settings.privacy.retain_days is None:
        yield
        return
    running = asyncio.create_task(run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
