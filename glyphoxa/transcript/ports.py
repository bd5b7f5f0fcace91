"""What the transcript is asked: by its log, by search, by recall, and by a process that holds talk in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.events import UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import EVER, Between, RecalledTalk, Viewer
from glyphoxa.domain.turn import TurnRecord


class TranscriptLog(Protocol):
    """Memory level 1: everything said, verbatim. Append-only and idempotent by utterance id."""

    async def append(self, utterances: Sequence[Utterance]) -> None:
        """Store them in this order; one that is already there is left as it is. All or nothing, campaign by campaign:
        sent again as a whole, each is stored once.

        Raises:
            Unavailable: The database cannot be reached; nothing of the campaign it failed at was stored.
            Unstorable: The database cannot hold one of them; nothing of its campaign was stored.
        """
        ...

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        """Put `utterance.text` in place of `was.text`, and add those of its corrections that `was` has not.

        `raw_text` never changes. All or nothing; what was derived from the old text goes with it. False, and nothing
        is done, when the text that is stored is not `was.text` (any more): so it may be done twice.

        Raises:
            Unavailable: The database cannot be reached; nothing was changed.
            NotFound: There is no such utterance.
            Unstorable: The database cannot hold this.
        """
        ...

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None: ...

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        """The session's utterances that began at or after `since_ms`, oldest first, at most the last `limit`. Not what
        was rolled back.
        """
        ...

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        """Utterances of a campaign, or of one of its sessions, what was rolled back included."""
        ...


@dataclass(frozen=True, slots=True)
class Decided:
    """An utterance of which the DM has decided something.

    Attributes:
        utterance: As it stands in the log now.
        is_retracted: Nobody is to recall it: it was retracted, or rolled back.
        own_text: What it said before the DM put other words for it; None: nobody did.
    """

    utterance: Utterance
    is_retracted: bool
    own_text: str | None = None


class TalkDecisions(Protocol):
    """What the DM has decided of talk, for whoever holds some of it."""

    async def decided(self, campaign: CampaignId, session: SessionId) -> Sequence[Decided]:
        """All of a session, in its order, as it is now.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...

    def changes(self, campaign: CampaignId) -> AsyncGenerator[object, None]:
        """Something whenever the DM may have decided something, at first at once. Never ends: close it.

        Raises:
            GlyphoxaError: That cannot be known, for a reason that does not pass by itself.
        """
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """An utterance that a search found.

    Attributes:
        ordinal: Its number in its session, from 1.
        score: How well the words fit, higher is better; 0 when no words were asked for.
    """

    utterance: Utterance
    ordinal: int
    score: float


@dataclass(frozen=True, slots=True)
class TalkFilter:
    """What of talk is searched for.

    Attributes:
        words: As somebody types them; no spelling of them is an error. Inflected forms of the campaign's language are
            found; the names of speakers are part of what is searched.
        match: Whether any of the words is enough or all must be there, as they seldom are for a question.
        between: When an utterance began.
    """

    words: str = ""
    match: Literal["any", "all"] = "any"
    session: SessionId | None = None
    speaker: SpeakerId | None = None
    between: Between = EVER
    limit: int = 20


class TalkSearch(Protocol):
    """Memory level 1, searched by words and by who said it, when and where."""

    async def search(self, campaign: CampaignId, viewer: Viewer, wanted: TalkFilter) -> list[Found]:
        """What an NPC witnessed, or anybody said for the DM; not what was rolled back. Best first, the latest first
        among equals; without words the latest first. Decided in SQL before LIMIT: what the viewer did not witness is
        neither returned nor counted.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


@dataclass(frozen=True, slots=True)
class TalkQuery:
    """What is asked of past talk.

    Attributes:
        text: The question.
        exclude: What is in the prompt already.
        limit: At most so many are recalled.
        between: When it was said; what was said at another time takes no place in `limit`.
    """

    text: str
    exclude: Sequence[UtteranceId] = ()
    limit: int = 5
    between: Between = EVER


class PastTalk(Protocol):
    """Recall of what was said, limited to what one NPC witnessed."""

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        """What `npc` heard that bears on the question, by words and by meaning, best first. An utterance that the NPC
        did not witness is neither returned nor counted, and changes nothing of what is. Empty when nothing bears on
        it.

        Args:
            patient: Nobody waits for the answer: a model that is far away may take its time to read the question.
                Whoever asks the same again in a hurry has that ready.

        Raises:
            Unavailable: The campaign's talk is not in memory, and cannot be read in time.
        """
        ...

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        """The same by words alone and from what is in memory now, at once: for every partial transcript, and while the
        database is away. What was said or rolled back since the last `recall` is as it was then. None: nothing of the
        campaign is in memory.
        """
        ...


class SessionSummaries(Protocol):
    """Summaries of past sessions, as far as they have been written. See `glyphoxa.transcript.sessions`."""

    async def summary(self, campaign: CampaignId, npc: NpcId, session: SessionId) -> str | None:
        """What `npc` may know of it; None when there is none."""
        ...

    async def latest(self, campaign: CampaignId, npc: NpcId, *, but: SessionId, limit: int) -> list[str]:
        """Those that `npc` may know of, the latest session first, but for one session's."""
        ...


# What a process that holds talk in memory reads of it.


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
    of changes, read with a cursor: `glyphoxa.recall.campaign_cache`.
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


# What the DM decides of this evening's talk, as news for a table that is being played.


News = UtteranceRetracted | UtteranceRevised


class DecidedTalk:
    """Compares what is decided now with what was decided when it was looked at last.

    Args:
        text_of: What the table believes was said; None for what it does not know.
    """

    def __init__(self, text_of: Callable[[UtteranceId], str | None]) -> None:
        self._text_of = text_of
        self._last: dict[UtteranceId, Decided] = {}

    def take(self, decided: Sequence[Decided]) -> list[News]:
        """What the table is to be told, in the order of the talk; what was taken back first.

        Args:
            decided: Everything that is decided of its session.
        """
        now = {each.utterance.id: each for each in decided}
        before, self._last = self._last, now
        news: list[News] = []
        for utterance, old in before.items():
            if utterance not in now and old.own_text is not None:
                own = replace(old.utterance, text=old.own_text)
                news += self._worded(replace(old, utterance=own), old.utterance.text)
            if old.is_retracted and (utterance not in now or not now[utterance].is_retracted):
                news.append(UtteranceRetracted(old.utterance, is_retracted=False))
        for utterance, new in now.items():
            known = before.get(utterance)
            was = (self._text_of(utterance) or new.own_text) if known is None else known.utterance.text
            if was is not None and (new.own_text is not None or known is not None):
                news += self._worded(new, was)
            if new.is_retracted and (known is None or not known.is_retracted):
                news.append(UtteranceRetracted(new.utterance))
        return news

    def _worded(self, decided: Decided, was: str) -> list[News]:
        said = decided.utterance
        return [] if said.text == was else [UtteranceRevised(said, replace(said, text=was))]
