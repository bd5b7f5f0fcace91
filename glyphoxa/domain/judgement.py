"""The judgement of one turn: what it asks for, how risky it is, and whether it is worth remembering."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from glyphoxa.domain.ids import SessionId, SpeakerId, UtteranceId

LEGAL_FLOOR: Final = "legal_floor:"
"""Prefix of the flags that no campaign can switch off."""


class Mode(StrEnum):
    IN_WORLD_ANSWER = "in_world_answer"
    MEMORY_CONSENT = "memory_consent"
    """The speaker decides whether something may be remembered."""
    SAFE_REDIRECT = "safe_redirect"
    """The NPC must lead away from the topic."""


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class TurnJudgement:
    """The verdict of a judge. No judge is asked for what follows from it.

    Attributes:
        flags: Labels of what the turn violates: "line:spiders", "veil:torture", "legal_floor:minors".
        note: The reasons, and what an answer should respect. For the DM; never shown to players.
        extract_memory: The turn states something that matters in a later session.
    """

    mode: Mode = Mode.IN_WORLD_ANSWER
    risk: Risk = Risk.LOW
    flags: tuple[str, ...] = ()
    note: str = ""
    extract_memory: bool = False

    @property
    def is_blocked(self) -> bool:
        """Whether the turn is redirected or of high risk."""
        return self.mode is Mode.SAFE_REDIRECT or self.risk is Risk.HIGH

    @property
    def needs_review(self) -> bool:
        """Whether the DM should look at the turn."""
        return self.risk is not Risk.LOW

    @property
    def may_extract(self) -> bool:
        """Whether facts may be learned from the turn: never from one that is redirected or about consent."""
        return self.extract_memory and self.mode is Mode.IN_WORLD_ANSWER


ConsentState = Literal["given", "withheld"]


@dataclass(frozen=True, slots=True)
class ConsentChange:
    """A player's decision about whether their utterances may be remembered. It never concerns those of others.

    Attributes:
        utterances: The ones it concerns.
        session: Or all of this session so far. With neither, `given` takes back the last request to forget.
    """

    speaker: SpeakerId
    state: ConsentState
    utterances: tuple[UtteranceId, ...] = ()
    session: SessionId | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement and who made it.

    Attributes:
        by: `backstop`: the rules, when they judged again with what was said afterwards.
        reason: Why another judge decided than the configured one; else empty.
    """

    judgement: TurnJudgement
    by: Literal["rules", "llm", "backstop"] = "rules"
    reason: str = ""
