"""Long-term memory for a table: opened if it is there, made good when it comes later, and never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.local.minilm import DIMENSIONS, MiniLm
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.weights.progress import progress_to
from glyphoxa.adapters.weights.store import Store as Weights
from glyphoxa.bootstrap.local_models import MINILM, LocalModels
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Utterance
from glyphoxa.memory.embedding import Embedder
from glyphoxa.memory.ports import TranscriptLog

OPEN_MS = 30_000
"""What a database may take until a table opens without it. Its opening goes on, and memory joins later."""
PING_MS = 1_000


class TableMemory:
    """The store of one table, with its campaign in it as soon as that is possible."""

    def __init__(self, store: Store, campaign: Campaign) -> None:
        self.store = store
        self._campaign = campaign
        self._storing = asyncio.Lock()
        self._is_stored = False

    async def ping(self) -> None:
        """Ask the database for a sign of life.

        Raises:
            Unavailable: There is none.
        """
        await self.store.database.ping(deadline_ms=PING_MS)

    async def store_campaign(self) -> None:
        """Make the stored campaign that of the file, unless that was done since this table was opened.

        Raises:
            Unavailable: The database cannot be used now, whosever fault that is.
            InvalidInput: It is there, and does not take the campaign.
        """
        async with self._storing:
            if self._is_stored:
                return
            try:
                await self.store.database.open(deadline_ms=OPEN_MS)
            except GlyphoxaError as error:
                raise Unavailable(str(error)) from None
            await self.store.campaigns.load(self._campaign)
            self._is_stored = True

    async def said_before(self, session: SessionId) -> list[Utterance]:
        """What the log has of a session from before a restart; nothing when that cannot be read now."""
        try:
            return await self.store.log.recent(self._campaign.id, session, since_ms=0)
        except GlyphoxaError:
            return []


class TableLog:
    """The transcript log of a table. It takes no talk before the campaign is stored, whose language decides by which
    words the talk is found later.
    """

    def __init__(self, memory: TableMemory) -> None:
        self._memory = memory
        self._log: TranscriptLog = memory.store.log

    async def append(self, utterances: Sequence[Utterance]) -> None:
        try:
            await self._memory.store_campaign()
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


async def open_memory(
    settings: Settings, campaign: Campaign, local: LocalModels, stack: AsyncExitStack
) -> TableMemory | None:
    """None when the settings want none. Nothing is connected yet."""
    if not settings.has_memory:
        return None
    store = await stack.enter_async_context(
        open_store(
            settings.memory.postgres_dsn,
            data_dir=settings.data_directory,
            embedding_dimensions=settings.memory.embedding_dimensions,
            embedder=embedder_of(local),
        )
    )
    return TableMemory(store, campaign)


async def embed_what_is_new(store: Store | None, campaign: CampaignId) -> None:
    """Bring new talk within reach of recall by meaning. What is not embedded now is embedded the next time."""
    if store is None:
        return
    try:
        await store.chunks.fill_missing(campaign)
    except GlyphoxaError as error:
        logger.warning("new talk is not embedded yet: {}", error)


async def load_embedder(settings: Settings) -> Embedder:
    """The embeddings model of the settings alone, without the others.

    Raises:
        InvalidInput: The settings have none that runs here, or the extra `local` is not installed.
        Unavailable: It is not here and cannot be fetched.
        Corrupt: Its bytes are not what they must be.
    """
    name = settings.providers.embeddings.name
    if name != "minilm":
        raise InvalidInput(f"providers.embeddings.name is {name}: no model here embeds talk")
    weights = Weights(settings.models.dir)
    with progress_to() as progress:
        await asyncio.to_thread(weights.ensure, [MINILM], progress)
    try:
        return _embedder(await asyncio.to_thread(MiniLm, weights.path(MINILM)))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"running models here needs {error.name!r}, which is not installed: pip install 'glyphoxa[local]'"
        ) from error


def embedder_of(local: LocalModels) -> Embedder | None:
    """What talk is embedded with; None when it is not."""
    return None if local.minilm is None else _embedder(local.minilm)


def _embedder(minilm: MiniLm) -> Embedder:
    async def embed(texts: list[str]) -> NDArray[float32]:
        return await asyncio.to_thread(minilm.embed, texts)

    return Embedder(MINILM, DIMENSIONS, embed)
