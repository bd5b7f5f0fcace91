"""Define how the transcript is accessed: log, search, recall, and feeds for copies in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.events import UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import EVER, Between, Recalled, Viewer
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.language.text import Text
from glyphoxa.transcript.sessions import SessionState, SummarySentence, View


class TranscriptLog(Protocol):
    """Memory level 1: all utterances, verbatim. Append-only and idempotent by utterance id."""

    async def append(self, utterances: Sequence[Utterance]) -> None:
        """Store utterances in this order; skip those that exist.

        All or nothing for each campaign, so a retry stores each once.

        Raises:
            Unavailable: The database is unreachable; nothing of the failing campaign was stored.
            Unstorable: The database cannot store one of them; nothing of its campaign was stored.
        """
        ...

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        """Replace `was.text` by `utterance.text`, and add the corrections that `was` does not have.

        `raw_text` never changes. All or nothing; data derived from the old text is removed. Returns False and changes
        nothing if the stored text is not `was.text`, so a retry is harmless.

        Raises:
            Unavailable: The database cannot be reached; nothing was changed.
            NotFound: There is no such utterance.
            Unstorable: The database cannot store this.
        """
        ...

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None: ...

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        """Count utterances of a campaign or of one of its sessions, including those that were rolled back."""
        ...


class SessionStates(Protocol):
    """The stored memory of a running session. All methods raise `Unavailable` if the database is away or late.

    A sentence that rests on a retracted, erased or reworded utterance is neither stored nor returned.
    """

    async def state(self, view: View) -> SessionState:
        """Return a view's state; an empty one if nothing is stored."""
        ...

    async def cover(
        self, view: View, summary: Sequence[SummarySentence], *, up_to: UtteranceId, after: int
    ) -> int | None:
        """Replace a view's summary by one that covers more. Flags stay.

        Args:
            up_to: The last utterance that it covers.
            after: `last_ordinal` of the state that it continues.

        Returns: The new `last_ordinal`. None: nothing was stored, because another writer was first, or because the log
            does not have the utterance yet.
        """
        ...

    async def note(self, view: View, flags: Mapping[str, bool]) -> None:
        """Add flags to a view's state, replacing those of the same name."""
        ...


@dataclass(frozen=True, slots=True)
class Decided:
    """An utterance that the DM has decided on.

    Attributes:
        utterance: Its present version in the log.
        is_retracted: It was retracted or rolled back, and nobody may recall it.
        own_text: Its text before the DM's correction; None without one.
    """

    utterance: Utterance
    is_retracted: bool
    own_text: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An utterance that a search found.

    Attributes:
        ordinal: Its number in its session, from 1.
        score: How well the words fit, higher is better; 0 without words.
    """

    utterance: Utterance
    ordinal: int
    score: float


@dataclass(frozen=True, slots=True)
class TalkFilter:
    """A search of the transcript.

    Attributes:
        words: Words as a user types them; any spelling is valid. Inflected forms of the campaign's language match; the
            names of speakers are searched as well.
        match: Whether any of the words is enough or all must occur, as they seldom do for a question.
        between: When an utterance began.
    """

    words: str = ""
    match: Literal["any", "all"] = "any"
    session: SessionId | None = None
    speaker: SpeakerId | None = None
    between: Between = EVER
    limit: int = 20


class TalkSearch(Protocol):
    """Search of memory level 1 by words, speaker, time and session."""

    async def search(self, campaign: CampaignId, viewer: Viewer, wanted: TalkFilter) -> list[Found]:
        """Return what an NPC witnessed, or for the DM everything, without what was rolled back.

        Best first, and the latest first among equals; without words the latest first. Scope is applied in SQL before
        LIMIT: what the viewer did not witness is neither returned nor counted.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


@dataclass(frozen=True, slots=True)
class TalkQuery:
    """A query for past utterances.

    Attributes:
        text: The question.
        exclude: Utterances that are in the prompt already.
        limit: Most results.
        between: The time of the results; others take no place in `limit`. The same holds for those of another session
            or speaker.
        speaker: Words of a speaker's name, in any case; empty: everybody.
    """

    text: str
    exclude: Sequence[UtteranceId] = ()
    limit: int = 5
    between: Between = EVER
    session: SessionId | None = None
    speaker: str = ""

    def admits(self, session: SessionId | None, at_ms: int | None, speaker: str = "") -> bool:
        """Return whether something of this session, time and speaker may be a result."""
        return self.admits_time(session, at_ms) and self.is_by(speaker)

    def admits_time(self, session: SessionId | None, at_ms: int | None) -> bool:
        return (self.session is None or session == self.session) and self.between.holds(at_ms)

    def is_by(self, speaker: str) -> bool:
        wanted = set(Text.of(self.speaker).folded)
        return not self.speaker or (bool(wanted) and wanted <= set(Text.of(speaker).folded))


class MemorySearch(Protocol):
    """Search of everything that one NPC may know."""

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> Sequence[Recalled]:
        """See `glyphoxa.recall.recall.Recall`."""
        ...


# Feeds for components that hold utterances in memory.


@dataclass(frozen=True, slots=True)
class FeedUtterance:
    """An utterance as the log has it now.

    Attributes:
        change_seq: Number of its last change. Within a campaign, numbers become visible in order.
        ordinal: Its number in its session, from 1.
        witnesses: The NPCs that were there.
        retracted: It was rolled back, and nobody recalls it.
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
class TalkHead:
    """Further state of a campaign's transcript, as of the time at which a page was read.

    Attributes:
        language: BCP 47 tag; "en" for a campaign that is not stored.
        model: The model of the vectors, and their length; None while nothing is embedded.
        embedded: Changes whenever utterances may have been embedded.
        times: Changes whenever the campaign's way of counting time changes.
    """

    language: str = "en"
    model: tuple[str, int] | None = None
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
    """Utterances of a campaign for all viewers; the holder applies scopes.

    It is a stream of changes, read with a cursor: `glyphoxa.recall.transcript_memory`.
    """

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> TalkPage:
        """Return the changes from a change_seq on (0: all), at most `limit`.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...

    async def embeddings(
        self, campaign: CampaignId, utterances: Sequence[UtteranceId], model: str
    ) -> Sequence[Embedding]:
        """Return the vectors of those that are embedded by this model.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


# The DM's decisions on this session's utterances, as events for an open table.


News = UtteranceRetracted | UtteranceRevised


class DecidedTalk:
    """Compare the present decisions with those of the last look.

    Args:
        utterance_of: Returns an utterance as the table has it; None for an unknown one.
    """

    def __init__(self, utterance_of: Callable[[UtteranceId], Utterance | None]) -> None:
        self._utterance_of = utterance_of
        self._last: dict[UtteranceId, Decided] = {}
        self._first: dict[UtteranceId, Utterance] = {}

    def take(self, decided: Sequence[Decided]) -> list[News]:
        """Return the events for the table, in the order of the utterances; revoked decisions first.

        Args:
            decided: All decisions of its session.
        """
        now = {each.utterance.id: each for each in decided}
        before, self._last = self._last, now
        news: list[News] = []
        for utterance, old in before.items():
            if utterance not in now and old.own_text is not None:
                own = replace(self._first.get(utterance, old.utterance), text=old.own_text)
                news += self._worded(old.utterance, own)
            if old.is_retracted and (utterance not in now or not now[utterance].is_retracted):
                news.append(UtteranceRetracted(old.utterance, is_retracted=False))
        for utterance, new in now.items():
            known = before.get(utterance)
            was = self._utterance_of(utterance) if known is None else known.utterance
            if new.own_text is not None or known is not None:
                was = was or replace(new.utterance, text=new.own_text or new.utterance.text)
                self._first.setdefault(utterance, was)
                news += self._worded(was, new.utterance)
            if new.is_retracted and (known is None or not known.is_retracted):
                news.append(UtteranceRetracted(new.utterance))
        return news

    def _worded(self, was: Utterance, said: Utterance) -> list[News]:
        before = replace(said, text=was.text, speaker_id=was.speaker_id, speaker_name=was.speaker_name)
        return [] if said == before else [UtteranceRevised(said, before)]
