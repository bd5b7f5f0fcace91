"""What the rest of Glyphoxa asks of memory. `glyphoxa.adapters.postgres` answers; so do the twins in tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Fact, Viewer
from glyphoxa.domain.turn import Recalled, TurnRecord
from glyphoxa.domain.utterance import Utterance
from glyphoxa.memory.world.happenings import Cause, Happening, WorldEvent
from glyphoxa.memory.world.state import WorldState
from glyphoxa.speech.learning.history import Happened, LearnedName, Step
from glyphoxa.speech.learning.wrong_forms import Uses
from glyphoxa.speech.names.gazetteer import Entry


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
        """Put `utterance.text` in place of `was.text`, and add those of its corrections that `was` has not (C-08).

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
class Found:
    """An utterance that a search found.

    Attributes:
        floor: Its number in its session, from 1.
        score: How well the words fit, higher is better; 0 when no words were asked for.
    """

    utterance: Utterance
    floor: int
    score: float


class TalkSearch(Protocol):
    """Memory level 1, searched by words and by who said it, when and where (R-056, R-057)."""

    async def search(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        words: str = "",
        *,
        match: Literal["any", "all"] = "any",
        session: SessionId | None = None,
        speaker: SpeakerId | None = None,
        after_ms: int | None = None,
        before_ms: int | None = None,
        limit: int = 20,
    ) -> list[Found]:
        """What an NPC witnessed, or anybody said for the DM; not what was rolled back. Best first, the latest first
        among equals; without words the latest first. Decided in SQL before LIMIT: what the viewer did not witness is
        neither returned nor counted.

        Args:
            words: As somebody types them; no spelling of them is an error. Inflected forms of the campaign's
                language are found; the names of speakers are part of what is searched.
            match: Whether any of the words is enough or all must be there (C-53).
            after_ms: Utterances that began then or later.
            before_ms: Utterances that began earlier.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        ...


class PastTalk(Protocol):
    """Recall of what was said, limited to what one NPC witnessed."""

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
    ) -> list[Recalled]:
        """What `npc` heard that bears on `question`, best first. Decided in SQL before LIMIT: an utterance that
        the NPC did not witness is neither returned nor counted. Empty when nothing bears on it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of talk as it is found by its meaning (R-070 to R-077).

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
    """What a search is limited to; what is None limits nothing (R-083).

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
        """Put in a chunk of an utterance, or replace it (R-080). Who may know of it follows from the utterance.

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
        """The nearest chunks that the viewer witnessed, with their cosine distances, nearest first (R-081, R-082). All
        is decided in SQL before LIMIT. Exact as long as few chunks are in question, approximate beyond.
        """
        ...

    async def fill_missing(self, campaign: CampaignId, *, limit: int | None = None) -> Filled:
        """Embed what is new or says something else now, oldest first (R-421, R-424). What fails is logged and left
        out (R-426).

        Args:
            limit: At most so many utterances.

        Raises:
            Unavailable: The database or the model is away; what was done so far is stored.
        """
        ...

    async def full_rebuild(self, campaign: CampaignId) -> Filled:
        """Embed everything anew (R-424). What is there serves until it is replaced, utterance by utterance.

        Raises:
            Unavailable: As for `fill_missing`; the rest is done by the next `fill_missing`.
        """
        ...


class SessionSummaries(Protocol):
    """Summaries of past sessions, as far as they have been written. See `glyphoxa.memory.episodes`."""

    async def summary(self, campaign: CampaignId, npc: NpcId, session: SessionId) -> str | None:
        """What `npc` may know of it; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """An entity and current facts about it, as far as the viewer may see both and the facts' other ends.

    Attributes:
        attributes: Facts whose claim has a value.
        relations: Facts between it and another entity, with that entity; one that holds both ways is told once.
    """

    entity: Entity
    attributes: tuple[Fact, ...] = ()
    relations: tuple[tuple[Fact, Entity], ...] = ()


@dataclass(frozen=True, slots=True)
class IdentitySnapshot:
    """What an NPC knows of itself (R-134): its node, its relations with their other ends, and its secrets.

    Attributes:
        secrets: Facts that are secret or hidden from others and known to it, whomever they are about.
    """

    known: Known
    secrets: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity on a walk over relations.

    Attributes:
        depth: Relations between it and the beginning, 0 for the beginning itself; the fewest there are.
    """

    entity: Entity
    depth: int


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Entities within reach, nearest first, and the accepted facts between them."""

    reached: tuple[Reached, ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of talk near to a question, inside a neighbourhood of the graph.

    Attributes:
        score: Higher is better; a rank of words or a cosine.
        depth: How far from the neighbourhood's middle the nearest entity is that it speaks of.
    """

    recalled: Recalled
    score: float
    entity_ids: tuple[EntityId, ...] = ()
    depth: int = 0


Direction = Literal["out", "in", "both"]

KNOWN_THROUGH: Final = ("KNOWS", "LOCATED_AT", "MEMBER_OF", "ALLIED_WITH")
"""Relations along which an NPC hears of things (C-17)."""


class KnowledgeGraph(Protocol):
    """Memory level 3, as it is asked. Everything is asked in the name of a viewer, and decided in SQL before LIMIT: an
    NPC is given accepted facts in its scope whose both ends it may know of, and nothing of the others, not even a
    count. The DM is given all. One round trip each.
    """

    async def entities(self, campaign: CampaignId, viewer: Viewer, *, of_type: str | None = None) -> list[Entity]: ...

    async def known(self, campaign: CampaignId, viewer: Viewer, entity: EntityId) -> Known | None:
        """None when there is no such entity for this viewer."""
        ...

    async def identity_snapshot(self, campaign: CampaignId, npc: NpcId, entity: EntityId) -> IdentitySnapshot | None:
        """
        Args:
            entity: The NPC's own node.
        """
        ...

    async def visible_subgraph(
        self,
        campaign: CampaignId,
        npc: NpcId,
        entity: EntityId,
        *,
        depth: int = 1,
        through: Collection[str] = KNOWN_THROUGH,
    ) -> Subgraph:
        """What the NPC would logically know (R-132, R-133): its own node, all that is directly related to it, and
        beyond that what is connected by `through`, `depth` relations away at most.
        """
        ...

    async def traverse(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        entity: EntityId,
        *,
        depth: int = 3,
        direction: Direction = "both",
        types: Collection[str] | None = None,
        limit: int = 200,
    ) -> list[Reached]:
        """Everything within `depth` relations (of these types), by depth, then name; cycles do no harm (R-120)."""
        ...

    async def path(
        self, campaign: CampaignId, viewer: Viewer, source: EntityId, target: EntityId, *, max_depth: int = 6
    ) -> list[tuple[Fact, Entity]] | None:
        """A shortest chain of relations, each with the entity it leads to; None when there is none, `[]` from an entity
        to itself.
        """
        ...

    async def facts(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        *,
        words: str = "",
        about: EntityId | None = None,
        after_ms: int | None = None,
        before_ms: int | None = None,
        limit: int = 20,
    ) -> list[Fact]:
        """Current facts that share a word with `words` (their entities' names are part of them), or concern `about`,
        and were stated in that time; best first, the latest first among equals.
        """
        ...


@runtime_checkable
class GraphRag(Protocol):
    """Talk near to a question inside a neighbourhood of the graph (R-121, R-135). Not every graph can: callers ask
    with `isinstance` (R-140).
    """

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, depth: int = 2, limit: int = 10
    ) -> list[Passage]:
        """By words (R-138): for when there is no embedding."""
        ...

    async def query_with_embedding(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        around: EntityId,
        depth: int = 2,
        limit: int = 10,
    ) -> list[Passage]:
        """By meaning (R-139)."""
        ...


class World(Protocol):
    """Memory level 3, as it is changed: only by what happens. See `glyphoxa.memory.world`."""

    async def commit(
        self, campaign: CampaignId, happenings: Sequence[Happening], cause: Cause, *, expect: int | None = None
    ) -> list[WorldEvent]:
        """Append them and bring the projections along, in one transaction. All or nothing.

        Args:
            expect: Only if this is the last event so far: what was decided was decided on that state.

        Raises:
            InvalidInput: One of them speaks of an entity or a fact that is not there, or of the campaign's past
                (`Undone`, `RolledBack`: there are methods for these); the message names it. Or `expect` is past.
            NotFound: There is no such campaign.
            Unavailable: The database is away; nothing was written.
        """
        ...

    async def undo(self, campaign: CampaignId, seq: int, cause: Cause) -> WorldEvent:
        """As if that event had not been; undoing an undoing brings it back.

        Raises:
            NotFound: There is no such event, or it is undone already.
        """
        ...

    async def undo_all(self, campaign: CampaignId, seqs: Sequence[int], cause: Cause) -> list[WorldEvent]:
        """The same for several in one transaction, all or nothing; returns the events that undo, in that order.

        Raises:
            NotFound: One of them is not there, or is undone already.
        """
        ...

    async def rollback(self, campaign: CampaignId, session: SessionId, floor: int, cause: Cause) -> WorldEvent | None:
        """Back to what was known when that floor of the session had been said: drops what was learned from later
        utterances of that session and of later sessions, and strikes these utterances from what anybody is reminded
        of. Decisions of the DM and campaign files stay. None when there is nothing to drop.

        Raises:
            NotFound: There is no such session.
        """
        ...

    async def events(
        self, campaign: CampaignId, *, after: int = 0, limit: int = 1_000, latest_first: bool = False
    ) -> list[WorldEvent]: ...

    async def as_of(
        self,
        campaign: CampaignId,
        *,
        at_ms: int | None = None,
        session: SessionId | None = None,
        seq: int | None = None,
    ) -> WorldState:
        """The world as it was known at that time, at the end of that session, or after that event; now if none is
        given. Built by replay, for looking at.
        """
        ...

    async def fork(self, campaign: CampaignId, into: CampaignId, *, name: str) -> None:
        """A new campaign with the same past: talk, chunks, events and all that follows from them. From now on neither
        sees the other.

        Raises:
            InvalidInput: There is a campaign of that id.
            NotFound: There is none to fork.
        """
        ...


class LearnedNames(Protocol):
    """Wrong forms of names and what was found out about them. Append-only: see `glyphoxa.speech.learning.history`."""

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        """The names in the graph (all, or of these entities) with the wrong forms that are active; people first."""
        ...

    async def standings(self, campaign: CampaignId, heard: str | None = None) -> list[LearnedName]:
        """Every pair of form and name (or of one form, however it is spaced), those most often heard first."""
        ...

    async def record(self, campaign: CampaignId, heard: str, step: Step) -> LearnedName:
        """Add a step to a form's history, unless it would change nothing; return where the pair stands now.

        Raises:
            AlreadyTaken: It confirms what was confirmed for another name.
        """
        ...

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        """Take back the DM's last decision (on one form, if given); return it, or None if there is none left."""
        ...

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """What happened, latest first."""
        ...

    async def uses(self, campaign: CampaignId, heard: str, *, exclude: Collection[UtteranceId] = ()) -> Uses:
        """Where the words of a form stand as themselves; utterances of `exclude` are not counted."""
        ...
