"""Long-term memory as the settings want it, for the verbs that look into it or change it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glyphoxa.cli.verb import argument
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.store import Store
    from glyphoxa.recall.api import Embedder, RecallSettings

CONFIG: Final = argument(
    "--config", type=Path, metavar="FILE", help="settings file (YAML): where the database is, and which campaign"
)
CAMPAIGN: Final = (
    argument("--campaign", type=CampaignId, metavar="ID", help="else that of the settings, or the only one stored"),
    CONFIG,
)
"""For `stored_campaign` and `settings_with_memory`."""


def settings_with_memory(config: Path | None, *, to_hold: str) -> Settings:
    """
    Args:
        to_hold: What the verb looks for, for the message: "names".

    Raises:
        InvalidInput: The settings want no long-term memory, or cannot be read.
    """
    settings = read_settings(config)
    if not settings.has_memory:
        raise InvalidInput(f"memory.postgres_dsn is none: there is no long-term memory to hold {to_hold}")
    return settings


@asynccontextmanager
async def opened_store(
    settings: Settings, *, embedder: Embedder | None = None, recall: RecallSettings | None = None
) -> AsyncIterator[Store]:
    """Memory, connected and migrated, for the time of the block.

    Raises:
        Unavailable: The server cannot be reached.
    """
    # Also for verbs that may need none: it takes a second to import.
    from glyphoxa.adapters.postgres.store import open_store

    async with open_store(
        settings.memory.postgres_dsn,
        data_dir=settings.data_directory,
        embedding_dimensions=settings.memory.embedding_dimensions,
        embedder=embedder,
        recall=recall,
        auto_accept=settings.memory.auto_accept,
    ) as store:
        await store.database.open()
        yield store


async def stored_campaign(store: Store, wanted: CampaignId | None, settings: Settings | None = None) -> CampaignId:
    """The campaign that was named; else the one of the settings; else the only one there is.

    Raises:
        NotFound: None of that name is stored, or the settings name a file that is not there.
        InvalidInput: None was named, and there is not exactly one; or the settings' file cannot be read.
    """
    stored = await store.campaigns.ids()
    file = None if settings is None else settings.campaign
    if wanted is not None:
        if wanted not in stored:
            raise NotFound(f"no campaign {wanted!r} here: {did_you_mean(wanted, stored)}")
        return wanted
    if file is not None:
        of_settings = (await asyncio.to_thread(read_campaign, file)).campaign.id
        if of_settings not in stored:
            raise NotFound(
                f"campaign {of_settings!r} of {file} is not stored yet; glyphoxa campaign load or serve does it"
            )
        return of_settings
    if len(stored) == 1:
        return stored[0]
    if not stored:
        raise InvalidInput("no campaign is stored; load one: glyphoxa campaign load FILE")
    raise InvalidInput(
        f"{len(stored)} campaigns are stored; say which with --campaign, or with `campaign:` in the settings: "
        f"{', '.join(stored)}"
    )
