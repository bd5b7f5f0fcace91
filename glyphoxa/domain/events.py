"""What happens at a table, as those who watch it are told: captions, reports, benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.heard import EarEvent
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.domain.utterance import Utterance


@dataclass(frozen=True, slots=True)
class UtteranceKept:
    """It is on disk: from here on it is not lost."""

    utterance: Utterance


@dataclass(frozen=True, slots=True)
class UtteranceRevised:
    """A second look found better words for something that was kept before: what names it holds is known better now.

    Attributes:
        utterance: As it is now; the same id and the same `raw_text`.
        was: As it was until now.
    """

    utterance: Utterance
    was: Utterance


@dataclass(frozen=True, slots=True)
class NpcSpeaks:
    """An NPC's voice can be heard from now on. `text` is the sentence that begins."""

    npc: NpcId
    npc_name: str
    turn: TurnId
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class NpcSilent:
    npc: NpcId
    turn: TurnId
    at_ms: int


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn: TurnRecord


@dataclass(frozen=True, slots=True)
class SceneChanged:
    scene: Scene
    at_ms: int


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something does not work now and the table plays on without it. `what` is for the DM."""

    what: str
    at_ms: int


TableEvent = (
    EarEvent | UtteranceKept | UtteranceRevised | NpcSpeaks | NpcSilent | TurnFinished | SceneChanged | Degraded
)
