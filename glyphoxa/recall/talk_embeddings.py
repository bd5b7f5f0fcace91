"""The vectors of talk that is held in memory: whose they are, and that they are read.

All talk may be embedded anew, by the same model or by another one. Those vectors are another `IndexGeneration`: they
are never in one index with others, and questions are embedded by whoever embedded them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from loguru import logger

from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.index.talk_index import TalkIndex
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.transcript.ports import IndexGeneration, TalkFeed

Another = Callable[[str, int], Awaitable[Embedder | None]]
"""The embedder of a name and of so many dimensions, when talk was embedded by that one; None if it is not to be had."""

_PAGE = 500
_ANOTHER_AGAIN_S = 30.0
"""An embedder that was not to be had is asked for again after this."""


class TalkEmbeddings:
    """
    Args:
        feed: Where they are read.
        dimensions: Of the first generation.
        embedder: Whose that is; None for whoever's it is.
        another: Gives that of a later one; None: there is none.
        most_bytes: Of one campaign. Older turns are found by words alone.

    Attributes:
        embedder: The latest whose vectors the feed had.
        dimensions: Of its vectors.
    """

    def __init__(
        self, feed: TalkFeed, *, dimensions: int, embedder: Embedder | None, another: Another | None, most_bytes: int
    ) -> None:
        self._feed = feed
        self.dimensions = dimensions
        self.embedder = embedder
        self._another = another
        self._most_bytes = most_bytes
        self._not_to_be_had: tuple[IndexGeneration | None, float] = (None, 0.0)

    async def is_ours(self, generation: IndexGeneration) -> bool:
        """Whether questions can be embedded by whoever embedded that talk."""
        if self.embedder is None or generation.is_of(self.embedder.name, self.embedder.dimensions):
            return True
        now = asyncio.get_running_loop().time()
        missed, asked_at = self._not_to_be_had
        if self._another is None or (missed == generation and now - asked_at < _ANOTHER_AGAIN_S):
            return False
        another = await self._another(generation.model, generation.dimensions)
        if another is None:
            self._not_to_be_had = (generation, now)
            return False
        logger.info("talk is embedded by {} from now on", another.name)
        self.embedder, self.dimensions = another, another.dimensions
        return True

    async def index_for(self, generation: IndexGeneration, index: TalkIndex, *, is_seen: bool) -> TalkIndex:
        """The same talk without the vectors of another generation, for those of this one.

        Args:
            is_seen: Somebody may look into `index`, with a question's vector of the other model: it keeps its vectors.
        """
        if not is_seen and index.dimensions == self.dimensions and not index.n_vectors:
            index.edition = generation
            return index
        return await asyncio.to_thread(index.for_edition, generation, dimensions=self.dimensions)

    async def read(
        self, campaign: CampaignId, index: TalkIndex, generation: IndexGeneration, *, is_first: bool
    ) -> None:
        """The latest first: of more talk than memory may hold the oldest is found by words alone, for good. Talk is
        embedded the oldest first, so that later readings look at both ends of what is missing.

        Args:
            is_first: Nothing of this generation was read yet.

        Raises:
            Unavailable: The feed cannot be read; what has come stays.
        """
        most = self._most_bytes // (4 * index.dimensions)
        wanted = index.unembedded(limit=max(most - index.n_vectors, _PAGE))
        pages = [wanted[at : at + _PAGE] for at in range(0, len(wanted), _PAGE)]
        from_the_oldest = False
        while pages:
            page = pages.pop(0)
            found = await self._feed.embeddings(campaign, page, generation)
            if found:
                await asyncio.to_thread(index.put_meanings, found)
            elif from_the_oldest:
                break
            elif not is_first:
                pages.reverse()
                from_the_oldest = True
            if index.n_vectors >= most:
                index.want_no_meanings(before=page[-1])
                break
