"""A turn that is under way. See `glyphoxa.turns.turn_taking` for its life."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.question import SpokenQuestion


class Phase(Enum):
    PREPARING = auto()
    COMMITTED = auto()
    RELEASED = auto()
    HEARD = auto()


@dataclass(slots=True)
class Turn:
    """
    Attributes:
        player: Who asks; of a turn that answers an NPC, that NPC.
        second: The NPC that reacts to the answer.
        answers: The NPC whose words it answers: no player waits for it.
        behind: It is a reaction to this turn's answer.
        n_in_a_row: Answers of NPCs to NPCs up to it, since a player spoke.
    """

    id: TurnId
    npc: NpcId
    player: PlayerId
    question: SpokenQuestion
    draft: Draft
    phase: Phase
    begun: bool = False
    filled: bool = False
    looks_up_long: bool = False
    first_word_ms: int | None = None
    has_failed: bool = False
    """Before it may be heard: nothing but an excuse would be."""
    committed_ms: int = 0
    released_ms: int = 0
    cancelled_as: Outcome | None = None
    words: str = ""
    """What the DM gave it to say, instead of an answer."""
    second: NpcId | None = None
    answers: NpcId | None = None
    behind: TurnId | None = None
    n_in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Carried:
    """A question whose answer was called off because its speaker seemed to go on."""

    question: SpokenQuestion
    draft: Draft
