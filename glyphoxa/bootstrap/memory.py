"""Opens long-term memory for a table, and what depends on it being there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
from loguru import logger

from glyphoxa.adapters.postgres.past_talk import Embed
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.bootstrap.local_models import LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.utterance import Utterance


async def open_memory(
    settings: Settings,
    campaign: Campaign,
    local: LocalModels,
    stack: AsyncExitStack,
    *,
    tell: Callable[[str], None],
) -> Store | None:
    """None when the settings want none. A database that is away is no reason not to play."""
    if not settings.has_memory:
        return None
    tell("opening memory")
    store = await stack.enter_async_context(
        open_store(
            settings.memory.postgres_dsn,
            data_dir=settings.data_directory,
            embedding_dimensions=settings.memory.embedding_dimensions,
            embed=_embedder(local),
        )
    )
    try:
        await store.database.open()
        await store.graph.load(campaign)
    except GlyphoxaError as error:
        # The evening goes on without long-term memory; what is said waits in the spool.
        logger.error("long-term memory cannot be used now: {}", error)
    return store


async def said_before(store: Store, campaign: CampaignId, session: SessionId) -> list[Utterance]:
    """What was said in a session before a restart; nothing when that cannot be read now."""
    try:
        return await store.log.recent(campaign, session, since_ms=0)
    except GlyphoxaError:
        return []


async def embed_what_is_new(store: Store | None, campaign: CampaignId) -> None:
    """Bring new talk within reach of recall by meaning. What is not embedded now is embedded the next time."""
    if store is None:
        return
    try:
        await store.past_talk.embed_missing(campaign)
    except GlyphoxaError as error:
        logger.warning("new talk is not embedded yet: {}", error)


def _embedder(local: LocalModels) -> Embed | None:
    minilm = local.minilm
    if minilm is None:
        return None

    async def embed(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        return await asyncio.to_thread(minilm.embed, texts)

    return embed
