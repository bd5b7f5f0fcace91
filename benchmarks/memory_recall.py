"""How many of the nearest chunks a filtered search finds, compared with looking at every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.memory_vectors import DIMENSIONS
from benchmarks.memory_world import InventedCampaign
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import NpcId

_TOP: Final = 10
_DEADLINE_MS: Final = 60_000
_EVERY_ONE: Final = """
    SELECT id, embedding <=> $3::vector AS distance FROM chunks
     WHERE campaign_id = $1 AND $2 = ANY (knowers) ORDER BY embedding <=> $3::vector, id LIMIT 10"""
_INDEX_ALONE: Final = f"""
    SELECT id, embedding <=> $3::vector AS distance FROM chunks
     WHERE campaign_id = $1 AND $2 = ANY (knowers)
     ORDER BY embedding::halfvec({DIMENSIONS}) <=> $3::vector::halfvec({DIMENSIONS}) LIMIT 10"""
_TIE: Final = 1e-6


async def filtered_recall(
    store: Store, campaign: InventedCampaign, questions: Sequence[NDArray[float32]]
) -> dict[str, float]:
    """Percent of the ten nearest, in the mean over the questions.

    `filtered_recall_at_10` is the shipped search under the scope of the NPC that hears 1 % of the talk, `wide_...`
    under that of the NPC that hears most, `index_alone...` what the approximate index gives under the scope of 1 % with
    the server's settings: why the search does not rely on it there.
    """
    narrow, wide = (choose(campaign.shares, key=campaign.shares.__getitem__) for choose in (min, max))
    return {
        "filtered_recall_at_10": await _shipped(store, campaign, narrow, questions),
        "wide_recall_at_10": await _shipped(store, campaign, wide, questions),
        "index_alone_recall_at_10": await _index_alone(store, campaign, narrow, questions),
    }


async def _shipped(
    store: Store, campaign: InventedCampaign, npc: NpcId, questions: Sequence[NDArray[float32]]
) -> float:
    shares = []
    for question in questions:
        found = await store.chunks.search(campaign.id, npc, question, top_k=_TOP)
        true = await _distances(store, campaign, npc, question, _EVERY_ONE)
        shares.append(_share([distance for _, distance in found], true))
    return _percent(shares)


async def _index_alone(
    store: Store, campaign: InventedCampaign, npc: NpcId, questions: Sequence[NDArray[float32]]
) -> float:
    shares = []
    for question in questions:
        found = await _distances(store, campaign, npc, question, _INDEX_ALONE)
        shares.append(_share(found, await _distances(store, campaign, npc, question, _EVERY_ONE)))
    return _percent(shares)


async def _distances(
    store: Store, campaign: InventedCampaign, npc: NpcId, question: NDArray[float32], query: str
) -> list[float]:
    async with store.database.use(campaign.id, deadline_ms=_DEADLINE_MS) as connection, connection.transaction():
        # Only the index of vectors gives that order without sorting; nothing but a scan gives the other one.
        await connection.execute(f"SET LOCAL enable_sort = {'off' if query == _INDEX_ALONE else 'on'}")
        await connection.execute("SET LOCAL statement_timeout = 60000")
        return [row["distance"] for row in await connection.fetch(query, campaign.id, npc, question)]


def _share(found: Sequence[float], true: Sequence[float]) -> float:
    """Of what is truly nearest, by distance: of chunks that are equally far, any is right."""
    return sum(distance <= true[-1] + _TIE for distance in found[:_TOP]) / len(true) if true else 1.0


def _percent(shares: Sequence[float]) -> float:
    return round(float(np.mean(shares)) * 100, 1)
