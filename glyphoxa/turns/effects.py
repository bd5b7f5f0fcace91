"""What turn taking decides; the room performs it."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.address import Addressed


@dataclass(frozen=True, slots=True)
class Prime:
    """Somebody is speaking, probably to this NPC: get ready."""

    npc: NpcId
    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Let the NPC think of an answer; nothing may be heard yet.

    Attributes:
        player: Who asks; an NPC where one is answered by another.
        n_kept: So many of the last utterances that were kept of this player are in `text`.
        is_brief: A sentence is enough.
    """

    turn: TurnId
    npc: NpcId
    player: PlayerId
    text: str
    n_kept: int
    is_brief: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """Let the NPC get the DM's words ready; nothing may be heard yet."""

    turn: TurnId
    npc: NpcId
    text: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The turn is real: its words were kept and it will end in one outcome."""

    turn: TurnId
    npc: NpcId
    draft: Draft
    addressed: Addressed
    at_ms: int


@dataclass(frozen=True, slots=True)
class Release:
    """The NPC has the floor."""

    turn: TurnId
    npc: NpcId


@dataclass(frozen=True, slots=True)
class Fill:
    """The answer takes long: a short sound in character."""

    turn: TurnId
    npc: NpcId


@dataclass(frozen=True, slots=True)
class Hold:
    """A player's voice: the NPC that is heard falls silent for now.

    Attributes:
        voice_ms: When the voice had lasted so long that it holds.
    """

    turn: TurnId
    npc: NpcId
    voice_ms: int


@dataclass(frozen=True, slots=True)
class GoOn:
    """It was nothing that cuts it off: the NPC goes on where it was held."""

    turn: TurnId
    npc: NpcId


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop this turn.

    Attributes:
        outcome: None for a speculation, which leaves no record.
        begun: False when the NPC was never asked: nothing will report its end.
    """

    turn: TurnId
    npc: NpcId
    outcome: Outcome | None
    begun: bool


@dataclass(frozen=True, slots=True)
class Keep:
    """Something a player said: write it down, tell the NPCs that are here.

    Attributes:
        addressed: Whom it was meant for.
    """

    draft: Draft
    addressed: Addressed


@dataclass(frozen=True, slots=True)
class NotAddressed:
    """A turn that no NPC answers: recorded, so that figures are not survivor-biased.

    Attributes:
        is_between: It came in the middle of a question, which is still asked.
    """

    draft: Draft
    addressed: Addressed
    is_between: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Call `tick` at this time. It is sooner than any time that was asked for before and is still to come."""

    at_ms: int


Effect = Prime | Begin | Say | Commit | Release | Fill | Hold | GoOn | Cancel | Keep | NotAddressed | AskAgain
