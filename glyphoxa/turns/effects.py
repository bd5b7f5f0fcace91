"""Effects: what turn taking decides and the room performs. A turn is as it stands when its effect is performed."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.turn import Turn


@dataclass(frozen=True, slots=True)
class Prime:
    """Somebody is probably speaking to this NPC: prime its engine."""

    npc: NpcId
    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Let the NPC generate an answer. Nothing may be heard yet."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Commit:
    """The turn is final: its words are stored, and it will end in exactly one outcome."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Release:
    """The NPC has the floor."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Fill:
    """The answer is late: play a short sound in character."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Hold:
    """A player's voice overlaps the NPC: silence it for now.

    Attributes:
        voice_ms: When the voice had lasted long enough to hold the NPC.
    """

    turn: Turn
    voice_ms: int


@dataclass(frozen=True, slots=True)
class Resume:
    """The voice was no interruption: the NPC continues where it was held."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop this turn. If no engine was asked, nothing will report its end."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Keep:
    """Store a player's words and pass them to the NPCs of the scene.

    A turn that no NPC answers is recorded, so that figures have no survivorship bias.

    Attributes:
        addressed: Who they were meant for.
    """

    draft: Draft
    addressed: Addressed


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Call `tick` at this time. It is earlier than any other pending request."""

    at_ms: int


Effect = Prime | Begin | Commit | Release | Fill | Hold | Resume | Cancel | Keep | AskAgain
