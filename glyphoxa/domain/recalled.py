"""What an NPC recalls: something that was said, a fact, or the summary of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

from glyphoxa.domain.ids import FactId, NpcId, SessionId, SpeakerId, UtteranceId


class Signal(StrEnum):
    """What speaks for an utterance, each with its share of the score.

    The ranking knows the first ones: see `glyphoxa.recall.ranking.signals`. The time has two of its own; the others are
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
