"""Talk around an entity at a table that was open while all talk was embedded anew."""

from __future__ import annotations

import pytest

from glyphoxa.domain.ids import EntityId
from glyphoxa.recall.recall import RecallAround
from glyphoxa.recall.vectors import Embedder
from tests.integration.test_reindex_recall import NEW, WIDE, WIDER, another, opened, reindexed, told
from tests.support.builders import CAMPAIGN, SMITH, a_campaign

ELDRINAX = EntityId("e-eldrinax")


@pytest.mark.parametrize("new", [NEW, WIDE, WIDER], ids=["as long", "longer", "longer, of one name"])
async def test_talk_around_somebody_is_found_by_words_once_another_model_embedded_it(dsn: str, new: Embedder) -> None:
    async with opened(dsn, another=another) as table:
        await table.campaigns.load(a_campaign())
        await table.log.append([told("Eldrinax has a sister.", 0), told("Eldrinax has a lantern.", 1)])
        await table.chunks.fill_missing(CAMPAIGN)
        around = RecallAround.of(table.graph_rag, table.past_talk.vectors)
        assert around is not None

        async def found(question: str) -> list[str]:
            passages = await around.recall_around(CAMPAIGN, SMITH, question, around=ELDRINAX)
            return [str(passage.recalled.utterance_id) for passage in passages]

        assert await found("Who are his kin?") == ["u0"]
        await reindexed(dsn, new, full=True)
        for _ in range(2):
            assert await found("Who is the sister?") == ["u0"]
            await table.past_talk.transcripts.refresh(CAMPAIGN)
