"""How many of the nearest passages a filtered search finds, compared with looking at every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.memory_world import InventedCampaign
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.world.api import Neighbourhood

_TOP: Final = 10
_DEPTH: Final = 2
_DEADLINE_MS: Final = 60_000
_EVERY_ONE: Final = """
    WITH scope AS MATERIALIZED (
        SELECT array_agg(l.id) AS ids FROM glyphoxa_walk($1, $2, $4, $5) w CROSS JOIN LATERAL unnest(w.level) AS l (id))
    SELECT min(embedding <=> $3::vector) AS distance FROM chunks
     WHERE campaign_id = $1 AND $2 = ANY (knowers) AND entity_ids && (SELECT ids FROM scope)
     GROUP BY utterance_id ORDER BY 1, utterance_id LIMIT 10"""
_TIE: Final = 1e-6


async def filtered_recall(
    store: Store, campaign: InventedCampaign, questions: Sequence[NDArray[float32]]
) -> dict[str, float]:
    """Percent of the ten nearest passages around an entity, in the mean over the questions.

    `filtered_recall_at_10` is under the scope of the NPC that hears 1 % of the talk, `wide_...` under that of the NPC
    that hears most.
    """
    narrow, wide = (choose(campaign.shares, key=campaign.shares.__getitem__) for choose in (min, max))
    return {
        "filtered_recall_at_10": await _recall(store, campaign, narrow, questions),
        "wide_recall_at_10": await _recall(store, campaign, wide, questions),
    }


async def _recall(store: Store, campaign: InventedCampaign, npc: NpcId, questions: Sequence[NDArray[float32]]) -> float:
    dice = campaign.dice("filtered recall")
    shares = []
    for question in questions:
        around = campaign.spoken_of(dice).id
        found = await store.graph_rag.query_with_embedding(
            campaign.id, npc, question, around=Neighbourhood(around, _DEPTH), limit=_TOP
        )
        true = await _distances(store, campaign, npc, question, around)
        shares.append(_share([1 - passage.score for passage in found], true))
    return round(float(np.mean(shares)) * 100, 1)


async def _distances(
    store: Store, campaign: InventedCampaign, npc: NpcId, question: NDArray[float32], around: EntityId
) -> list[float]:
    async with store.database.use(campaign.id, deadline_ms=_DEADLINE_MS) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 60000")
        rows = await connection.fetch(_EVERY_ONE, campaign.id, npc, question, around, _DEPTH)
    return [row["distance"] for row in rows]


def _share(found: Sequence[float], true: Sequence[float]) -> float:
    """Of what is truly nearest, by distance: of passages that are equally far, any is right."""
    return sum(distance <= true[-1] + _TIE for distance in found[:_TOP]) / len(true) if true else 1.0
