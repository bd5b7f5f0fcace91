"""What a process that holds talk in memory reads of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId


@dataclass(frozen=True, slots=True)
class Said:
    """An utterance as it stands in the log now.

    Attributes:
        mark: Of its last change. Within a campaign marks become visible in their order.
        floor: Its number in its session, from 1.
        witnesses: The NPCs that were there.
        struck: It was rolled back: nobody is reminded of it.
    """

    mark: int
    utterance_id: UtteranceId
    session_id: SessionId
    floor: int
    speaker_id: SpeakerId
    speaker_name: str
    text: str
    at_ms: int
    witnesses: frozenset[NpcId]
    struck: bool = False


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vectors of an utterance: one, or one for each piece of a long one.

    Attributes:
        vectors: Shape (pieces, dimensions), of unit length.
    """

    utterance_id: UtteranceId
    vectors: NDArray[float32]


@dataclass(frozen=True, slots=True)
class IndexGeneration:
    """Which vectors there are. Those of two editions are never compared, whether or not their model has one name.

    Attributes:
        model: Whose; "" as long as nobody has embedded anything.
        dimensions: Of each.
        number: Another one when all talk was embedded anew.
    """

    model: str
    dimensions: int
    number: int

    def is_of(self, model: str, dimensions: int) -> bool:
        """Whether questions that are embedded so may be compared with them."""
        return not self.model or (self.model, self.dimensions) == (model, dimensions)


class TalkFeed(Protocol):
    """Talk of a campaign, for all who may know of it: whoever holds it decides for whom what is there."""

    async def language(self, campaign: CampaignId) -> str:
        """BCP 47 tag; "en" for a campaign that is not stored.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...

    async def changed(self, campaign: CampaignId, *, after: int, limit: int) -> Sequence[Said]:
        """What has changed since a mark (-1: everything), at most `limit`, in the order of the marks. As many as
        asked for: there may be more.

        Raises:
            Unavailable: As above.
        """
        ...

    async def edition(self, campaign: CampaignId) -> IndexGeneration | None:
        """Of the vectors that there are now; None if no vectors are read.

        Raises:
            Unavailable: As above.
        """
        ...

    async def meanings(
        self, campaign: CampaignId, utterances: Sequence[UtteranceId], edition: IndexGeneration
    ) -> Sequence[Embedding]:
        """The vectors of those that are embedded; none if it is not that edition any more.

        Raises:
            Unavailable: As above.
        """
        ...
