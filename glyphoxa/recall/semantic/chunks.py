"""What is asked of memory level 2: talk by its meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Viewer


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of talk as it is found by its meaning.

    Attributes:
        id: The utterance's own, or that with `#2` and so on behind it for the further pieces of a long one.
        content: What was embedded.
        entity_ids: Whom and what it speaks of, in the order in which they are named.
        topic: A coarse label such as "trade"; "" when nobody gave one.
    """

    id: str
    utterance_id: UtteranceId
    session_id: SessionId
    content: str
    speaker_id: SpeakerId
    at_ms: int
    entity_ids: tuple[EntityId, ...] = ()
    topic: str = ""


@dataclass(frozen=True, slots=True)
class ChunkFilter:
    """What a search is limited to; what is None limits nothing.

    Attributes:
        after_ms: Said at or after this time, milliseconds since the Unix epoch.
        before_ms: Said before this time.
    """

    session: SessionId | None = None
    speaker: SpeakerId | None = None
    entity: EntityId | None = None
    after_ms: int | None = None
    before_ms: int | None = None


EVERYTHING: Final = ChunkFilter()


@dataclass(frozen=True, slots=True)
class Filled:
    """How a run over what was to be embedded went, in utterances.

    Attributes:
        failed: The model could do nothing with them; they are tried again in later runs, but not for ever.
        skipped: They were embedded already, as they are, or say nothing.
    """

    embedded: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Filled) -> Filled:
        return Filled(self.embedded + other.embedded, self.failed + other.failed, self.skipped + other.skipped)


class ChunkIndex(Protocol):
    """Memory level 2: talk by its meaning. Only vectors of one model are in it, and compared."""

    async def upsert(self, campaign: CampaignId, chunk: Chunk, embedding: NDArray[float32]) -> None:
        """Put in a chunk of an utterance, or replace it. Who may know of it follows from the utterance.

        Raises:
            NotFound: There is no such utterance.
            InvalidInput: The embedding has other dimensions than the index.
            Unavailable: The database is away, or holds vectors of another model by now.
        """
        ...

    async def search(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        top_k: int = 10,
        only: ChunkFilter = EVERYTHING,
    ) -> list[tuple[Chunk, float]]:
        """The nearest chunks that the viewer witnessed, with their cosine distances, nearest first. All
        is decided in SQL before LIMIT. Exact as long as few chunks are in question, approximate beyond.
        """
        ...

    async def fill_missing(self, campaign: CampaignId, *, limit: int | None = None) -> Filled:
        """Embed what is new or says something else now, oldest first. What fails is logged and left
        out.

        Args:
            limit: At most so many utterances.

        Raises:
            Unavailable: The database or the model is away; what was done so far is stored.
        """
        ...

    async def full_rebuild(self, campaign: CampaignId) -> Filled:
        """Embed everything anew. What is there serves until it is replaced, utterance by utterance.

        Raises:
            Unavailable: As for `fill_missing`; the rest is done by the next `fill_missing`.
        """
        ...
