"""Knowledge of a campaign's world: claims, their scope, validity and provenance."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Final, Literal, TypeAlias

from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS, Entity, Relationship, Secret
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, FactId, NpcId, SessionId, SpeakerId, UtteranceId

AUTO_ACCEPT: Final = 0.70
"""A fact with at least this confidence needs no review, unless the settings say otherwise."""
NEVER: Final = 2.0
"""A threshold that no confidence reaches: the DM must confirm the fact."""

ScopeName = Literal["public", "witnessed", "told", "secret", "hidden"]
Status = Literal["accepted", "pending", "conflict", "stale"]
"""Only accepted facts are true in the world and may reach an NPC."""
EndedAs = Literal["superseded", "closed", "rejected", "edited", "retconned", "merged", "entity_removed"]
Origin = Literal["campaign_file", "import", "dm", "talk", "player"]


Json: TypeAlias = object
"""Anything JSON can hold."""


class Dm:
    """The viewer who sees everything. The only instance is `DM`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DM"


DM: Final = Dm()
Viewer: TypeAlias = Dm | NpcId
"""For whom memory is queried. Always required, so that no query sees everything by omission."""


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

    `public`: everybody. `witnessed`, `told`: the knowers, who were present or were told. `secret`: the knowers chosen
    by the DM. `hidden`: nobody, until the DM reveals it.

    Attributes:
        knowers: One entry per NPC, sorted by NPC: create with `Visibility.of`.
    """

    scope: ScopeName = "public"
    knowers: tuple[Knower, ...] = ()

    @classmethod
    def of(cls, scope: ScopeName, knowers: Iterable[Knower] = ()) -> Visibility:
        """The first entry for each NPC wins: a witness does not become told."""
        by_npc: dict[NpcId, Knower] = {}
        for knower in knowers:
            by_npc.setdefault(knower.npc, knower)
        return cls(scope, tuple(by_npc[npc] for npc in sorted(by_npc)))

    def is_visible_to(self, viewer: Viewer) -> bool:
        if self.scope == "public" or isinstance(viewer, Dm):
            return True
        return self.scope != "hidden" and any(knower.npc == viewer for knower in self.knowers)

    def known_to(self, *knowers: Knower) -> Visibility:
        """The same visibility with additional knowers."""
        return Visibility.of(self.scope, (*self.knowers, *knowers))

    def within(self, other: Visibility) -> Visibility:
        """The same visibility, limited to those who may see `other` too."""
        if other.scope == "public":
            return self
        if self.scope == "public":
            return other
        if "hidden" in (self.scope, other.scope):
            return HIDDEN
        also = {knower.npc for knower in other.knowers}
        return Visibility.of(self.scope, (knower for knower in self.knowers if knower.npc in also))

    def is_within(self, other: Visibility) -> bool:
        """Whether everyone who may see this may see `other` too."""
        if self.scope == "public" or other.scope == "public":
            return other.scope == "public"
        return self.scope == "hidden" or all(other.is_visible_to(knower.npc) for knower in self.knowers)


PUBLIC: Final = Visibility()
HIDDEN: Final = Visibility("hidden")


def witnessed_by(
    npcs: Iterable[NpcId], *, at_ms: int | None = None, utterance: UtteranceId | None = None
) -> Visibility:
    """Visibility for those present when it was said."""
    return Visibility.of("witnessed", (Knower(npc, "witnessed", None, at_ms, utterance) for npc in npcs))


def secret_of(npcs: Iterable[NpcId]) -> Visibility:
    """Visibility for those chosen by the DM."""
    return Visibility.of("secret", (Knower(npc, "secret") for npc in npcs))


def visibility_of(stated: Entity | Relationship | Secret) -> Visibility:
    """Return the visibility that a campaign file states with `known_by` and `hidden`. A secret is never public."""
    if stated.hidden or (isinstance(stated, Secret) and not stated.known_by):
        return Visibility.of("hidden", (Knower(npc, "secret") for npc in stated.known_by))
    return secret_of(stated.known_by) if stated.known_by else PUBLIC


@dataclass(frozen=True, slots=True)
class Validity:
    """When something holds: `from` is included, `to` is not; None is open.

    Attributes:
        from_ms: Session time, milliseconds since the Unix epoch.
        story_from: Story time, in days of the story's own calendar.
    """

    from_ms: int | None = None
    to_ms: int | None = None
    story_from: int | None = None
    story_to: int | None = None

    @property
    def is_open(self) -> bool:
        return self.from_ms is None and self.to_ms is None

    def holds(self, now_ms: int) -> bool:
        return (self.from_ms is None or self.from_ms <= now_ms) and (self.to_ms is None or now_ms < self.to_ms)


ALWAYS: Final = Validity()


@dataclass(frozen=True, slots=True)
class Between:
    """A time span in milliseconds since the Unix epoch: `after_ms` is included, `before_ms` is not; None is open."""

    after_ms: int | None = None
    before_ms: int | None = None

    def holds(self, at_ms: int | None) -> bool:
        """Whether a time is known and lies inside."""
        if at_ms is None:
            return self == EVER
        return (self.after_ms is None or self.after_ms <= at_ms) and (self.before_ms is None or at_ms < self.before_ms)


EVER: Final = Between()


MEANING: Final = "meaning"
"""Attribute of a coined term."""
TOOK_PART: Final = "PARTICIPATED_IN"
HOLDINGS: Final = ("OWNS", "gave", "took", "bought", "sold", "lost")
"""Claims about who has what, and how it changed hands."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a fact comes from and how certain it is.

    Attributes:
        confidence: 0 to 1.
        accept_at: The confidence required for acceptance when it was stated.
        source: Whether it was stated or inferred.
        ordinal: Number of the utterance in its session.
        at_ms: When it was said or decided, milliseconds since the Unix epoch.
        reason: A short explanation for the DM.
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
        """Whether it needs no review by the DM."""
        return self.dm_confirmed or self.confidence >= self.accept_at


CERTAIN: Final = Provenance()


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement: a relation between two entities, or an attribute of one with its value.

    Attributes:
        predicate: `LOCATED_AT`, `occupation`, ...
        object: The other entity; None for an attribute.
        value: An attribute's value as canonical JSON (create with `Claim.attribute`); None for a relation.
    """

    subject: EntityId
    predicate: str
    object: EntityId | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        if (self.object is None) == (self.value is None):
            raise InvalidInput(f"a claim has either an object or a value: {self}")
        if not self.predicate.strip():
            raise InvalidInput("a claim needs a predicate, such as LOCATED_AT or occupation")

    @classmethod
    def relation(cls, subject: EntityId, predicate: str, object: EntityId) -> Claim:  # noqa: A002 - the field's word
        """A symmetric relation is the same claim from either end."""
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
            raise InvalidInput(f"{name!r} of {subject!r} is not a value that JSON can hold: {value!r}") from None
        return cls(subject, name, None, text)

    @property
    def ends(self) -> tuple[EntityId, ...]:
        """The entities that it is about."""
        return (self.subject,) if self.object is None else (self.subject, self.object)

    @property
    def content(self) -> Json:
        """The attribute's value; None for a relation."""
        return None if self.value is None else json.loads(self.value)

    @property
    def fact_id(self) -> FactId:
        """Id of the fact that first states this: a digest of the claim, 16 hexadecimal digits.

        A fact's supports can therefore be named without a look-up.
        """
        parts = (self.subject, self.predicate, self.object or "", self.value or "")
        return FactId(hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16])


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


_REWRITTEN: Final = re.compile(r"\de\+\d|-0\.0")
"""A number that a database may return in another form: 1e+22, -0.0."""


def _as_stored(number: str) -> float | int:
    value = float(number)
    return int(value) if "e+" in number else value or 0.0


@dataclass(frozen=True, slots=True)
class Fact:
    """A stated claim and its current status.

    Attributes:
        seq: The event that stated it first.
        attributes: Attributes of a relation ("description").
        supports: Facts it was derived from; when one of them ends, this one becomes stale.
        disputes: Accepted facts it conflicts with; the DM decides.
        mentions: How often it was stated.
        doubted: The DM rejected this claim before: hearing it again is not enough, only the DM accepts it.
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


def lines_of(fact: Fact) -> tuple[UtteranceId, ...]:
    """Return the utterances that a fact was learned from, or that it sums up, as far as they are recorded."""
    lines = fact.attributes.get("evidence")
    if isinstance(lines, list):
        return tuple(UtteranceId(str(each)) for each in lines)
    return () if fact.provenance.utterance_id is None else (fact.provenance.utterance_id,)


@dataclass(frozen=True, slots=True)
class EndedFact:
    """A fact that no longer holds, kept for the history."""

    fact: Fact
    ended_seq: int
    ended_as: EndedAs
    superseded_by: FactId | None = None


# What an NPC recalls: utterances, facts and session summaries.


class Signal(StrEnum):
    """Signals that rank an utterance, each with its share of the score.

    The first ones belong to `glyphoxa.recall.ranking`, two to time, and the rest to `glyphoxa.plugins.memory_graph` (if
    enabled).
    """

    WORDS = "words"
    LED_UP = "led_up"
    SCENE = "scene"
    SPEAKER = "speaker"
    ASKS = "asks"
    ANSWERS = "answers"
    TELLS_TIME = "tells_time"
    TIME = "time"
    MEANING = "meaning"
    MEANING_BEFORE = "meaning_before"
    MEANING_AFTER = "meaning_after"
    MEANING_ANSWERS = "meaning_answers"
    MEANING_NEAR = "meaning_near"

    THEN = "then"
    """It was said on the days the question names, which are over."""
    RECAP = "recap"
    """It was said then, whether or not it resembles the question."""

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


NEAR: Final = 0.45
"""From this cosine on, MiniLM's sentences are about the same thing without a common word."""
RELATED: Final = 0.25
"""Below this cosine a common word is chance. True hits are often as low (0.25 to 0.45)."""


@dataclass(frozen=True, slots=True)
class RecalledUtterance:
    """An utterance that the NPC heard or said itself.

    Attributes:
        text: The words, possibly truncated.
        speaker_name: Empty in records of older versions, whose `text` includes it.
        is_own: The NPC said it itself.
        score: 0 to 1, relative to the other candidates for the same question.
        reason: Why this NPC may know it: "witnessed in session s1".
        similarity: Cosine similarity to the question, if computed in time.
        signals: The parts of the score.
        when: When it was said, in words; empty if unknown.
        verbatim: The words as they were said, if `text` has days instead of "yesterday"; else empty.
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
    when: str = ""
    verbatim: str = ""

    def is_near(self, n_shared: int = 0) -> bool:
        """Return whether its meaning bears on the question.

        Args:
            n_shared: Telling words that it shares with the question.
        """
        answers_when = self.signals.get(Signal.TELLS_TIME, 0.0) > 0  # only if the question asks for a time
        near = self.similarity or 0.0
        return near >= NEAR or (near >= RELATED and (n_shared > 0 or answers_when))


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """A known fact about an entity.

    Attributes:
        text: A sentence.
        session_id: Where it was learned; None if not recorded. The same holds for `utterance_id` and `at_ms`.
        score: 0 to 1, relative to the other facts for the same question.
        reason: Why this NPC may know it: "public", "secret", "told by tamsin", "witnessed in session s1".
        path: How it was found: "named 'the smith', asks for OWNS".
        similarity: How near to the question a fact is that was found by its meaning.
        is_named: The question names whom it is about.
        is_summary: It is a summary of its session.
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
    similarity: float | None = None
    is_named: bool = False
    is_summary: bool = False

    @property
    def is_asked(self) -> bool:
        """Whether the question asks for this, and not only for its entity."""
        return "asks for" in self.path

    @property
    def is_written(self) -> bool:
        """Whether this is a sentence of the persona or bible, which is no fact of the world."""
        return self.reason in ("persona", "bible")


@dataclass(frozen=True, slots=True)
class RecalledSummary:
    """A summary of a session, as far as the NPC may know it.

    Attributes:
        at_ms: When the session began.
        reason: "summary of session s1; asked about last session".
        evidence: The lines it rests on, if they are known.
    """

    source: ClassVar[str] = "summary"
    is_own: ClassVar[bool] = False
    similarity: ClassVar[float | None] = None

    session_id: SessionId
    text: str
    at_ms: int | None = None
    score: float = 1.0
    reason: str = ""
    evidence: tuple[UtteranceId, ...] = ()


RecalledTalk: TypeAlias = RecalledUtterance | RecalledSummary
Recalled: TypeAlias = RecalledUtterance | RecalledFact | RecalledSummary


def learned_from(one: Recalled) -> UtteranceId | None:
    """The utterance itself, or the one a fact was learned from; None if unknown, and for a summary."""
    return None if isinstance(one, RecalledSummary) else one.utterance_id
