"""What a DM sees and changes of a campaign: over the command line and in the browser alike."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.turns import PostgresTurns
from glyphoxa.adapters.postgres.world.campaign_times import PostgresCampaignTimes
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection, SeenEntity
from glyphoxa.adapters.weights.store import Status
from glyphoxa.bootstrap.campaign_editor import CampaignEditor
from glyphoxa.bootstrap.doctor import at_open_table
from glyphoxa.bootstrap.local_models import weights_for
from glyphoxa.bootstrap.memory import SAID_BEFORE
from glyphoxa.bootstrap.names_desk import NamesDesk, names_desk_of
from glyphoxa.bootstrap.recap import Audience, recap_of
from glyphoxa.bootstrap.rehearsal import rehearsal_of
from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.config.check import Finding
from glyphoxa.config.settings import Settings
from glyphoxa.context.composition import ComposedPrompt
from glyphoxa.dm.entities import EntityDesk
from glyphoxa.dm.facts import FactDesk
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.dm.timeline import Timeline
from glyphoxa.dm.turns import TurnDesk
from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.npc.table import Table
from glyphoxa.recall.recall import Recall
from glyphoxa.transcript.api import TalkSearch
from glyphoxa.world.api import KnowledgeGraph

_AS_ROWS: Final = 1_000
"""Looking at files takes as long as reading so many rows."""


@dataclass(frozen=True, slots=True)
class Desk:
    """One campaign, as a DM sees and changes it.

    Attributes:
        seen: Its entities with who may know of them.
        past_talk: By words alone, unless it was opened with a model.
        days: How it tells the time, as it was when the desk was opened; `times` keeps it.
    """

    campaign: CampaignId
    settings: Settings
    resolver: NameResolver
    seen: tuple[SeenEntity, ...]
    inspection: PostgresInspection
    talk: TalkSearch
    facts: FactDesk
    entities: EntityDesk
    timeline: Timeline
    language: str
    graph: KnowledgeGraph
    past_talk: Recall
    turns: TurnDesk
    times: PostgresCampaignTimes
    days: CampaignTimes


async def desk_of(store: Store, settings: Settings, campaign: CampaignId) -> Desk:
    """
    Args:
        campaign: One that is stored.

    Raises:
        Unavailable: The database is away.
    """
    inspection, world = PostgresInspection(store.database), store.world
    seen = await inspection.entities(campaign)
    stored = await store.campaigns.get(campaign)
    resolver = NameResolver.of(stored, (each.entity for each in seen))
    return Desk(
        campaign,
        settings,
        resolver,
        tuple(seen),
        inspection,
        store.talk_search,
        FactDesk(campaign, world, inspection, resolver, _now_ms),
        EntityDesk(campaign, world, inspection, resolver, _now_ms),
        Timeline(campaign, world, inspection, _now_ms),
        stored.language,
        store.graph,
        store.past_talk,
        TurnDesk(campaign, PostgresTurns(store.database), inspection, resolver),
        store.times,
        await store.times.times(campaign),
    )


@dataclass(frozen=True, slots=True)
class DeskSource:
    """Opens desks for the campaign of a table that is open."""

    store: Store
    settings: Settings
    campaign: CampaignId

    async def open(self) -> Desk:
        """As the campaign is now. Raises: Unavailable: The database is away."""
        return await desk_of(self.store, self.settings, self.campaign)

    async def names(self) -> NamesDesk:
        """As the campaign's names are now. Raises: Unavailable: The database is away."""
        return await names_desk_of(self.store, self.campaign)

    def campaign_editor(self) -> CampaignEditor:
        """Raises: InvalidInput: The table was opened without a campaign file."""
        return CampaignEditor(self.settings, self.store, self.campaign)

    async def rehearse(self, table: Table, npc: NpcId, player: Player, line: str) -> ComposedPrompt:
        """The prompt that an NPC of a table that is open would be sent for a line, as things stand.

        Raises:
            Unavailable: The database is away.
        """
        said = await self.store.log.recent(self.campaign, table.session, since_ms=0, limit=SAID_BEFORE)
        who = (table.campaign.npc(npc), player)
        scene = table.scene if npc in table.scene.npcs else None
        asked = rehearsal_of(self.settings, self.store, table.campaign, who, (table.session, scene, said))
        return await asked.ask(line)

    async def progress(self) -> Sequence[SessionProgress]:
        """How far each session was read by the chronicle. Raises: Unavailable: The database is away."""
        return await PostgresChronicleLog(self.store.database, self.store.world).progress(self.campaign)

    async def checked(self, *, players_url: str | None) -> Sequence[Finding]:
        """What the table uses for what, and how this machine is. As `at_open_table`."""
        return await offload(lambda: at_open_table(self.settings, players_url=players_url), amount=_AS_ROWS)

    async def models(self) -> Sequence[Status]:
        """Of the local models: what is on this machine's disk. No model is read or fetched."""
        return await offload(lambda: list(weights_for(self.settings).store.status()), amount=_AS_ROWS)

    async def recap(self, session: SessionId, audience: Audience) -> Sequence[str]:
        """As `recap_of`."""
        return await recap_of(self.store, self.campaign, session, audience)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
