"""The chunks nearest to a question, exactly: what a prompt that is woven beforehand would take."""

from __future__ import annotations

from typing import Final

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.ids import CampaignId, NpcId, UtteranceId

_NEAREST: Final = """
    SELECT utterance_id, content FROM chunks
     WHERE campaign_id = $1 AND $2 = ANY (knowers) AND NOT retracted
     ORDER BY embedding <=> $3, id LIMIT $4"""


async def nearest_chunks(
    store: Store, campaign: CampaignId, npc: NpcId, question: NDArray[float32], *, limit: int
) -> list[tuple[UtteranceId, str]]:
    """Utterances that the NPC heard, each with what was embedded of it, nearest first."""
    async with store.database.use(campaign) as connection:
        rows = await connection.fetch(_NEAREST, campaign, npc, question, limit)
    return [(UtteranceId(row["utterance_id"]), row["content"]) for row in rows]
