"""Talk around an entity: what was said of it, or of who and what is related to it, that bears on a question.

"Who of the Watch was seen at the mine?" is answered by talk of Joren, whom only the graph knows for one of the Watch.
No ranking of talk by its words or its meaning finds that.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.recall.semantic.question_vectors import LeftOut, QuestionVectors
from glyphoxa.world.graph import GraphRag, Neighbourhood, Passage

_DEPTHS: Final = (1, 2)
"""Each by itself: what is near would be lost among the many that are further away."""
NEARER: Final = 1.15
"""What is one relation nearer counts so much more. Of equals the nearer comes first, and what does not bear on the
question not at all. Measured: `docs/recall-measured.md`.
"""
_FEWEST: Final = 10
"""So many of each neighbourhood are compared with each other, however few are wanted."""
_LEAST_COSINE: Final = 0.25
"""Less similar than this is not about the question. Above `RankingWeights.min_cosine`: here no ranking of other signals
comes after it."""
_EMBED_DEADLINE_MS: Final = 900


class RecallAround:
    """A `TalkAround` over a graph that can be asked for talk. By meaning; by words where the question has no vector in
    time, or no talk around the entity has one of the same model.

    Args:
        vectors: Where questions are embedded.
        nearer: See `NEARER`.
    """

    def __init__(self, graph: GraphRag, vectors: QuestionVectors, *, nearer: float = NEARER) -> None:
        self._graph = graph
        self._vectors = vectors
        self._nearer = nearer

    @classmethod
    def of(cls, graph: object, vectors: QuestionVectors) -> RecallAround | None:
        """None where the graph cannot be asked for talk: whoever asks goes on without."""
        return cls(graph, vectors) if isinstance(graph, GraphRag) else None

    async def recall_around(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, limit: int = 5
    ) -> list[Passage]:
        """See `TalkAround`."""
        vector = await self._vectors.embed_in_time(question, deadline_ms=_EMBED_DEADLINE_MS)
        enough = 0 if limit <= 0 else max(limit, _FEWEST)
        found: list[Passage] = []
        if not isinstance(vector, LeftOut):
            # All talk may have been embedded anew by another model since: then nothing may be compared with this.
            with suppress(InvalidInput):
                for depth in _DEPTHS:
                    middle = Neighbourhood(around, depth)
                    found += await self._graph.query_with_embedding(
                        campaign, viewer, vector, around=middle, limit=enough
                    )
        if not found:
            for depth in _DEPTHS:
                middle = Neighbourhood(around, depth)
                found += await self._graph.query_with_context(campaign, viewer, question, around=middle, limit=enough)
        by_id = {passage.recalled.utterance_id: passage for passage in found if _bears_on_it(passage)}
        return sorted(by_id.values(), key=lambda one: one.score / self._nearer**one.depth, reverse=True)[
            : max(0, limit)
        ]


def _bears_on_it(passage: Passage) -> bool:
    """What has no similarity has a word in common."""
    similarity = passage.recalled.similarity
    return similarity is None or similarity >= _LEAST_COSINE
