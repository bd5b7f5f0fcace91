"""One stored campaign of an open store, with the settings that both were opened with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.store import Store
    from glyphoxa.adapters.postgres.world.imports import PostgresImports
    from glyphoxa.config.settings import Settings
    from glyphoxa.domain.ids import CampaignId


@dataclass(frozen=True, slots=True)
class Scope:
    """The campaign that a command or a page of the desk works on."""

    store: Store
    settings: Settings
    campaign: CampaignId

    def imports(self) -> PostgresImports:
        return self.store.imports(self.campaign)
