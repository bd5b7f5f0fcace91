"""What is known of a campaign's world: claims, by whom they are known, since when they hold, and why we think so."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Final, Literal, TypeAlias

from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, FactId, NpcId, SessionId, SpeakerId, UtteranceId

AUTO_ACCEPT: Final = 0.70
"""A fact at least so certain is accepted without the DM, unless the settings say otherwise."""

ScopeName = Literal["public", "witnessed", "told", "secret", "hidden"]
Status = Literal["accepted", "pending", "conflict", "stale"]
"""Only what is accepted is true in the world and may reach an NPC."""
EndedAs = Literal["superseded", "closed", "rejected", "edited", "retconned", "merged", "entity_removed"]
Origin = Literal["campaign_file", "import", "dm", "talk"]


Json: TypeAlias = object
"""Anything JSON can hold."""


class Dm:
    """Who sees everything. There is one: `DM`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DM"


DM: Final = Dm()
Viewer: TypeAlias = Dm | NpcId
"""In whose name memory is asked. Never left out, so that no query sees everything by forgetting to say who asks."""


@dataclass(frozen=True, slots=True)
class Knower:
    """How one NPC came to know something that is not public.

    Attributes:
        by: Who told it; the DM is "dm".
        at_ms: When, milliseconds since the Unix epoch.
    """

    npc: NpcId
    how: Literal["witnessed", "told", "secret"]
    by: SpeakerId | None = None
    at_ms: int | None = None
    utterance_id: UtteranceId | None = None


@dataclass(frozen=True, slots=True)
class Visibility:
    """Who may know something.

    `public`: everybody. `witnessed`, `told`: the knowers, by being there or by being told. `secret`: the knowers,
    whom the DM named. `hidden`: nobody, until the DM reveals it.

    Attributes:
        knowers: One an NPC, sorted by NPC: make it with `Visibility.of`.
    """

    scope: ScopeName = "public"
    knowers: tuple[Knower, ...] = ()

    @classmethod
    def of(cls, scope: ScopeName, knowers: Iterable[Knower] = ()) -> Visibility:
        """The first word on each NPC counts: who witnessed it is not told it."""
        by_npc: dict[NpcId, Knower] = {}
        for knower in knowers:
            by_npc.setdefault(knower.npc, knower)
        return cls(scope, tuple(by_npc[npc] for npc in sorted(by_npc)))

    def is_visible_to(self, viewer: Viewer) -> bool:
        if isinstance(viewer, Dm) or self.scope == "public":
            return True
        return self.scope != "hidden" and any(knower.npc == viewer for knower in self.knowers)

    def known_to(self, *knowers: Knower) -> Visibility:
        """The same, known to these too."""
        return Visibility.of(self.scope, (*self.knowers, *knowers))

    def within(self, other: Visibility) -> Visibility:
        """The same, for those only who may see the other too."""
        if other.scope == "public":
            return self
        if self.scope == "public":
            return other
        if "hidden" in (self.scope, other.scope):
            return HIDDEN
        also = {knower.npc for knower in other.knowers}
        return Visibility.of(self.scope, (knower for knower in self.knowers if knower.npc in also))

    def is_within(self, other: Visibility) -> bool:
        """Whether all who may see this may see the other too."""
        if self.scope == "public" or other.scope == "public":
            return other.scope == "public"
        return self.scope == "hidden" or all(other.is_visible_to(knower.npc) for knower in self.knowers)


PUBLIC: Final = Visibility()
HIDDEN: Final = Visibility("hidden")


def witnessed_by(
    npcs: Iterable[NpcId], *, at_ms: int | None = None, utterance: UtteranceId | None = None
) -> Visibility:
    """Known to those who were there when it was said."""
    return Visibility.of("witnessed", (Knower(npc, "witnessed", None, at_ms, utterance) for npc in npcs))


def secret_of(npcs: Iterable[NpcId], *, at_ms: int | None = None) -> Visibility:
    """Known to those whom the DM named."""
    return Visibility.of("secret", (Knower(npc, "secret", None, at_ms) for npc in npcs))


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when something holds: `from` is in it, `to` is not; None is open.

    Attributes:
        from_ms: Session time, milliseconds since the Unix epoch.
        story_from: Story time, in days of the story's own calendar.
    """

    from_ms: int | None = None
    to_ms: int | None = None
    story_from: int | None = None
    story_to: int | None = None


ALWAYS: Final = Validity()


@dataclass(frozen=True, slots=True)
class Between:
    """A time, in milliseconds since the Unix epoch: `after_ms` is in it, `before_ms` is not; None is open."""

    after_ms: int | None = None
    before_ms: int | None = None

    def holds(self, at_ms: int | None) -> bool:
        """Whether that is known to lie inside."""
        if at_ms is None:
            return self == EVER
        return (self.after_ms is None or self.after_ms <= at_ms) and (self.before_ms is None or at_ms < self.before_ms)


EVER: Final = Between()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a fact comes from and how sure we are of it.

    Attributes:
        confidence: 0 to 1.
        accept_at: The confidence that was enough to be accepted when it was stated.
        source: Whether it was said, or concluded from what was said.
        ordinal: Number of the utterance in its session.
        at_ms: When it was said or decided, milliseconds since the Unix epoch.
        reason: Short words for the DM: why.
    """

    confidence: float = 1.0
    source: Literal["stated", "inferred"] = "stated"
    dm_confirmed: bool = False
    origin: Origin = "talk"
    session_id: SessionId | None = None
    utterance_id: UtteranceId | None = None
    ordinal: int | None = None
    at_ms: int | None = None
    reason: str = ""
    accept_at: float = AUTO_ACCEPT

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise InvalidInput(f"confidence must be from 0 to 1, not {self.confidence}")

    @property
    def is_enough(self) -> bool:
        """By itself it needs no look by the DM."""
        return self.dm_confirmed or self.confidence >= self.accept_at


CERTAIN: Final = Provenance()


@dataclass(frozen=True, slots=True)
class Claim:
    """That something is so: a subject related to an object, or an attribute with its value.

    Attributes:
        predicate: `LOCATED_AT`, `occupation`, ...
        object: The other entity; None for an attribute.
        value: The attribute's, as JSON text in canonical form (make it with `Claim.attribute`); None for a relation.
    """

    subject: EntityId
    predicate: str
    object: EntityId | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        if (self.object is None) == (self.value is None):
            raise InvalidInput(f"a claim has an object or a value, one of both: {self}")
        if not self.predicate.strip():
            raise InvalidInput("a claim needs a predicate, such as LOCATED_AT or occupation")

    @classmethod
    def relation(cls, subject: EntityId, predicate: str, object: EntityId) -> Claim:  # noqa: A002 - the field's word
        """One that holds both ways is the same claim from either end."""
        if predicate in BIDIRECTIONAL_RELATIONS and object < subject:
            subject, object = object, subject  # noqa: A001
        return cls(subject, predicate, object)

    @classmethod
    def attribute(cls, subject: EntityId, name: str, value: Json) -> Claim:
        """
        Raises:
            InvalidInput: JSON cannot hold the value.
        """
        try:
            text = _canonical(value)
            if _REWRITTEN.search(text):
                text = _canonical(json.loads(text, parse_float=_as_stored))
        except (TypeError, ValueError):
            raise InvalidInput(f"{name!r} of {subject!r} is no value that JSON can hold: {value!r}") from None
        return cls(subject, name, None, text)

    @property
    def content(self) -> Json:
        """The attribute's value; None for a relation."""
        return None if self.value is None else json.loads(self.value)

    @property
    def fact_id(self) -> FactId:
        """The name of the fact that states this first: a digest of the claim, so that who derives one fact from
        another knows its name without asking. 16 hexadecimal digits.
        """
        parts = (self.subject, self.predicate, self.object or "", self.value or "")
        return FactId(hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16])


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


_REWRITTEN: Final = re.compile(r"\de\+\d|-0\.0")
"""Perhaps a number that a database gives back in another form: 1e+22, -0.0."""


def _as_stored(number: str) -> float | int:
    value = float(number)
    return int(value) if "e+" in number else value or 0.0


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim that somebody made, and what has become of it.

    Attributes:
        seq: The event that stated it first.
        attributes: What else is said of a relation ("description").
        supports: Facts it was derived from; when one of them ends, this one is stale.
        disputes: Accepted facts it disagrees with; the DM decides.
        mentions: How often it was stated.
        doubted: The DM refused this claim before: hearing it again is not enough, only the DM accepts it.
    """

    id: FactId
    claim: Claim
    seq: int
    status: Status = "accepted"
    provenance: Provenance = CERTAIN
    visibility: Visibility = PUBLIC
    validity: Validity = ALWAYS
    attributes: Mapping[str, object] = field(default_factory=dict)
    supports: tuple[FactId, ...] = ()
    disputes: tuple[FactId, ...] = ()
    mentions: int = 1
    doubted: bool = False

    def with_(self, **changes: object) -> Fact:
        return replace(self, **changes)  # type: ignore[arg-type] # the fields' own types


@dataclass(frozen=True, slots=True)
class EndedFact:
    """A fact that is no longer held, kept for the history."""

    fact: Fact
    ended_seq: int
    ended_as: EndedAs
    superseded_by: FactId | None = None


# What an NPC recalls: something that was said, a fact, or the summary of a session.


class Signal(StrEnum):
    """What speaks for an utterance, each with its share of the score.

    The ranking knows the first ones: see `glyphoxa.recall.ranking`. The time has two of its own; the others are
    of `glyphoxa.memory_graph`, and only where it is switched on.
    """

    WORDS = "words"
    LED_UP = "led_up"
    SCENE = "scene"
    SPEAKER = "speaker"
    ASKS = "asks"
    ANSWERS = "answers"
    TELLS_TIME = "tells_time"
    TELLS_NUMBER = "tells_number"
    TIME = "time"
    MEANING = "meaning"
    MEANING_BEFORE = "meaning_before"
    MEANING_AFTER = "meaning_after"
    MEANING_ANSWERS = "meaning_answers"
    MEANING_NEAR = "meaning_near"

    THEN = "then"
    """It was said in the days that the question tells, which are over."""
    RECAP = "recap"
    """It happened then, like the question or not."""

    SECOND_HOP = "second_hop"
    VECTOR = "vector"
    LEXICAL = "lexical"
    ANCHOR = "anchor"
    RECENCY = "recency"
    CO_OCCURRENCE = "co_occurrence"
    BASE = "base"
    DIFFUSION = "diffusion"
    ENERGY = "energy"
    TOPICS = "topics"
    RESIDUAL = "residual"
    NOVELTY = "novelty"
    ALGORITHM = "algorithm"
    RERANKER = "reranker"
    ROUND = "round"


ANSWERING: Final = frozenset((Signal.ANSWERS, Signal.MEANING_ANSWERS))
"""It follows a question like the one that is asked."""


@dataclass(frozen=True, slots=True)
class RecalledUtterance:
    """Something that was said, and that the NPC heard or said itself.

    Attributes:
        text: The words, or their beginning.
        speaker_name: Empty in the records of older versions, whose `text` has it.
        is_own: The NPC said it itself.
        score: 0 to 1, relative to the other candidates of the same question.
        reason: Why this NPC may know it: "witnessed in session s1".
        similarity: Cosine of its meaning and the question's, if that was asked in time.
        signals: What the score is made of.
    """

    source: ClassVar[str] = "said"

    utterance_id: UtteranceId
    session_id: SessionId
    speaker_id: SpeakerId
    speaker_name: str
    text: str
    at_ms: int | None
    is_own: bool = False
    score: float = 1.0
    reason: str = ""
    similarity: float | None = None
    signals: Mapping[Signal, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """Something that is known of somebody or something.

    Attributes:
        text: A sentence.
        session_id: Where it was learned; None where nobody noted it, likewise what was said and when.
        score: 0 to 1, relative to the other facts of the same question.
        reason: Why this NPC may know it: "public", "secret", "told by tamsin", "witnessed in session s1".
        path: By what it was found: "named 'the smith', asks for OWNS".
    """

    source: ClassVar[str] = "entity"

    fact_id: FactId
    text: str
    session_id: SessionId | None = None
    utterance_id: UtteranceId | None = None
    at_ms: int | None = None
    score: float = 1.0
    reason: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class RecalledSummary:
    """What happened in a session, as far as the NPC may know it.

    Attributes:
        at_ms: When the session began.
        reason: "summary of session s1; asked about last session".
    """

    source: ClassVar[str] = "summary"

    session_id: SessionId
    text: str
    at_ms: int | None = None
    score: float = 1.0
    reason: str = ""


RecalledTalk: TypeAlias = RecalledUtterance | RecalledSummary
Recalled: TypeAlias = RecalledUtterance | RecalledFact | RecalledSummary


def learned_from(one: Recalled) -> UtteranceId | None:
    """What was said, or from what it was learned; None when that is not known, and for a summary."""
    return None if isinstance(one, RecalledSummary) else one.utterance_id


def is_own_utterance(one: Recalled, npc: NpcId) -> bool:
    """Whether the NPC said it itself."""
    return isinstance(one, RecalledUtterance) and one.speaker_id == SpeakerId(npc)
