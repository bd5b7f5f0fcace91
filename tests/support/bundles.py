"""Bundles as text: the form in which tests compare and break them."""

from __future__ import annotations

from io import BytesIO

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.bundle import Parts, export_campaign, export_for_players, import_campaign
from glyphoxa.domain.ids import CampaignId

WHOLE = Parts(secrets=True)


async def exported(store: Store, campaign: CampaignId, parts: Parts = WHOLE) -> str:
    file = BytesIO()
    await export_campaign(store.database, campaign, file, parts)
    return file.getvalue().decode()


async def exported_for_players(store: Store, campaign: CampaignId) -> str:
    file = BytesIO()
    await export_for_players(store.database, campaign, file)
    return file.getvalue().decode()


async def imported(store: Store, text: str, into: CampaignId | None = None) -> None:
    await import_campaign(store.database, BytesIO(text.encode("utf-8", "surrogatepass")), into=into)
