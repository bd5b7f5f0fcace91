"""What a process that holds talk in memory reads of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId


@dataclass(frozen=True, slots=True)
class FeedUtterance:
    """An utterance as it stands in the log now.

    Attributes:
        change_seq: Number of its last change. Within a campaign the numbers become visible in their order.
        ordinal: Its number in its session, from 1.
        witnesses: The NPCs that were there.
        retracted: It was rolled back: nobody recalls it.
    """

    change_seq: int
    utterance_id: UtteranceId
    session_id: SessionId
    ordinal: int
    speaker_id: SpeakerId
    speaker_name: str
    text: str
    at_ms: int
    witnesses: frozenset[NpcId]
    retracted: bool = False


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
    """Which vectors there are. Those of two generations are never compared, whether or not their model has one name.

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


@dataclass(frozen=True, slots=True)
class TalkHead:
    """What else there is to know for who holds a campaign's talk, as of the moment at which a page was read.

    Attributes:
        language: BCP 47 tag; "en" for a campaign that is not stored.
        generation: Of the vectors that there are; None if no vectors are read.
        embedded: Another text whenever talk may have been embedded since.
        times: Another text whenever the campaign tells the time otherwise.
    """

    language: str = "en"
    generation: IndexGeneration | None = None
    embedded: str = ""
    times: str = ""


@dataclass(frozen=True, slots=True)
class TalkPage:
    """
    Attributes:
        said: In the order of their change_seqs.
    """

    said: Sequence[FeedUtterance]
    head: TalkHead


class TalkFeed(Protocol):
    """Talk of a campaign, for all who may know of it: whoever holds it decides for whom what is there. It is a stream
    of changes, read with a cursor: `glyphoxa.recall.cursor`.
    """

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> TalkPage:
        """The changes from a change_seq on (0: all), at most `limit`.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...

    async def embeddings(
        self, campaign: CampaignId, utterances: Sequence[UtteranceId], generation: IndexGeneration
    ) -> Sequence[Embedding]:
        """The vectors of those that are embedded; none if it is not that generation any more.

        Raises:
            Unavailable: As above.
        """
        ...
