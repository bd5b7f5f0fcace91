"""What the DM commands at a table that is being played. Who is named in a command is of the campaign that is played.

None of them is talk: only the words of `SayAs` are ever heard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.ids import NpcId, PlayerId

MOST_TURNS: Final = 25
"""How many turns of an NPC a direction may stand in its prompt."""
MOST_IN_A_ROW: Final = 10
"""Answers of NPCs to each other."""
MOST_DIRECTED: Final = 400
"""Characters of a direction: the local model reads it anew in every turn."""
MOST_SAID: Final = 600
"""Characters that an NPC is given to say, or a player is whispered, at once."""


@dataclass(frozen=True, slots=True)
class Mute:
    """It answers nobody until `Unmute`, and what it is saying ends. `npc` None: all of them."""

    npc: NpcId | None = None


@dataclass(frozen=True, slots=True)
class Unmute:
    """It may answer again. `npc` None: all of them."""

    npc: NpcId | None = None


@dataclass(frozen=True, slots=True)
class SayAs:
    """These words are said in the NPC's voice, and are the NPC's own from then on."""

    npc: NpcId
    text: str


@dataclass(frozen=True, slots=True)
class Direct:
    """An instruction for an NPC's next answers. `text` empty: the one that stands is lifted."""

    npc: NpcId
    text: str
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Puppet:
    """What this player says goes to this NPC, whomever it seems meant for. `npc` None: no more."""

    player: PlayerId
    npc: NpcId | None


@dataclass(frozen=True, slots=True)
class StopAll:
    """Whoever speaks stops, and no answer that is under way is heard. What is said next is answered again."""


@dataclass(frozen=True, slots=True)
class WhisperTo:
    """Words for one player's eyes."""

    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class LetNpcsTalk:
    """An NPC that another one calls by name answers it, for so many answers in a row; 0: none does."""

    most_in_a_row: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Nobody is heard or answered until `Unpause`, and nothing that is said is kept."""


@dataclass(frozen=True, slots=True)
class Unpause:
    """The table is played on."""


@dataclass(frozen=True, slots=True)
class EndSession:
    """The table is closed, as by whoever opened it."""


@dataclass(frozen=True, slots=True)
class ShowControls:
    """Tell what is in force."""


Session = Pause | Unpause | EndSession
TableCommand = Mute | Unmute | SayAs | Direct | Puppet | StopAll | WhisperTo | LetNpcsTalk | Session | ShowControls
