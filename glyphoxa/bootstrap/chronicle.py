"""Who reads talk in the background: beside an open table, or in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.adapters.postgres.chronicle.episodes import PostgresEpisodes
from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.listen import SAID
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.talk_readers import RULES, TalkReaders
from glyphoxa.chronicle.chronicler import Chronicler
from glyphoxa.chronicle.episodes import EpisodeWriter
from glyphoxa.chronicle.worker import ChronicleWorker
from glyphoxa.domain.ids import CampaignId


def chronicle_log(store: Store, readers: TalkReaders = RULES) -> PostgresChronicleLog:
    """Of one worker alone, that reads with these."""
    return PostgresChronicleLog(store.database, store.world, lease_ms=readers.lease_ms)


async def chronicler_of(
    store: Store, campaign: CampaignId, log: PostgresChronicleLog, readers: TalkReaders = RULES
) -> Chronicler:
    """
    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is away.
    """
    stored = await store.campaigns.get(campaign)
    return Chronicler(campaign, stored.language, log, readers.extractor(stored), extract_ms=readers.extract_ms)


async def episode_writer(store: Store, campaign: CampaignId) -> EpisodeWriter:
    """
    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is away.
    """
    stored = await store.campaigns.get(campaign)
    return EpisodeWriter(
        campaign,
        stored.language,
        {npc.id: npc.entity_id for npc in stored.npcs},
        PostgresChronicleLog(store.database, store.world),
        PostgresEpisodes(store.database, store.world),
    )


def chronicle_worker(
    store: Store,
    campaign: CampaignId | None = None,
    *,
    readers: TalkReaders = RULES,
    log: PostgresChronicleLog | None = None,
) -> ChronicleWorker:
    """
    Args:
        campaign: Only this one is read; None: all of the database.
        log: Of this worker alone; None makes one.
    """
    log = log or chronicle_log(store, readers)
    kept: dict[CampaignId, Chronicler] = {}

    async def campaigns() -> Sequence[CampaignId]:
        return await store.campaigns.ids() if campaign is None else [campaign]

    async def chronicler(of: CampaignId) -> Chronicler:
        # It holds the names of its campaign in memory.
        if of not in kept:
            kept[of] = await chronicler_of(store, of, log, readers)
        return kept[of]

    return ChronicleWorker(
        log,
        campaigns=campaigns,
        chronicler=chronicler,
        said=lambda: store.listener.follow(SAID, campaign),
        now_ms=now_ms,
        gather_ms=readers.gather_ms,
    )
