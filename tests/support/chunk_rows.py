"""Chunks as they are stored: which are nearest to a vector, in the name of somebody who asks."""

from __future__ import annotations

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunks import Filled, reindex
from glyphoxa.adapters.postgres.server.sql import viewer_parameter
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.recall.vectors import Embedder

_NEAREST = """
SELECT id, embedding <=> $4 AS distance
  FROM chunks
 WHERE campaign_id = $1 AND model = $3 AND NOT retracted AND ($2::text IS NULL OR knowers @> ARRAY[$2::text])
 ORDER BY 2, 1
"""


async def nearest(
    store: Store, campaign: CampaignId, viewer: Viewer, vector: NDArray[float32], *, model: str
) -> list[tuple[str, float]]:
    """The ids of what a model embedded and the viewer heard, with their cosine distances, nearest first."""
    async with store.database.use(campaign) as connection:
        rows = await connection.fetch(_NEAREST, campaign, viewer_parameter(viewer), model, vector)
    return [(row["id"], row["distance"]) for row in rows]


async def reindexed(store: Store, embedder: Embedder, campaign: CampaignId, *, full: bool = False) -> Filled:
    """Do the same as `glyphoxa worker reindex --campaign`."""
    return (await reindex(store.database, embedder, campaign=campaign, full=full)).filled
