"""Commands that the DM gives at a running table. Players and NPCs named in one belong to the open campaign.

Commands are not part of the transcript: only the words of `SayAs` are heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.ids import NpcId, PlayerId, SceneId

MAX_TURNS: Final = 25
"""Maximum number of an NPC's turns for which a direction stays in its prompt."""
MAX_IN_A_ROW: Final = 10
"""Maximum number of consecutive answers of NPCs to each other."""
MAX_ROUNDS: Final = 50
"""Maximum number of rounds between two summaries of a running session."""
MAX_DIRECTED: Final = 400
"""Maximum characters of a direction: the local model reads it again in every turn."""
MAX_SAID: Final = 600
"""Maximum characters of one `SayAs` or whisper."""


@dataclass(frozen=True, slots=True)
class Mute:
    """Stop an NPC from answering until `Unmute`, and end what it is saying. `npc` None: all NPCs."""

    npc: NpcId | None = None


@dataclass(frozen=True, slots=True)
class Unmute:
    """Let an NPC answer again. `npc` None: all NPCs."""

    npc: NpcId | None = None


@dataclass(frozen=True, slots=True)
class SayAs:
    """Say these words in the NPC's voice; from then on they count as the NPC's own."""

    npc: NpcId
    text: str


@dataclass(frozen=True, slots=True)
class Direct:
    """Give an instruction for an NPC's next answers. An empty `text` removes the current one."""

    npc: NpcId
    text: str
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Puppet:
    """Send everything this player says to this NPC. `npc` None ends it."""

    player: PlayerId
    npc: NpcId | None


@dataclass(frozen=True, slots=True)
class StopAll:
    """Stop all speech and discard pending answers. The next utterance is answered again."""


@dataclass(frozen=True, slots=True)
class WhisperTo:
    """Show words to one player only."""

    player: PlayerId
    text: str


@dataclass(frozen=True, slots=True)
class LetNpcsTalk:
    """Let NPCs that are called by name answer each other, at most this many times in a row; 0: never."""

    most_in_a_row: int


@dataclass(frozen=True, slots=True)
class SummariseEvery:
    """Bring the summaries of this session up to date after this many rounds."""

    rounds: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop listening, answering and recording until `Unpause`."""


@dataclass(frozen=True, slots=True)
class Unpause:
    """Resume a paused table."""


@dataclass(frozen=True, slots=True)
class EndSession:
    """Close the table and end the session."""


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Move the table to another scene."""

    scene: SceneId


@dataclass(frozen=True, slots=True)
class ShowControls:
    """Show which commands are in force."""


Session = Pause | Unpause | EndSession
Setting = LetNpcsTalk | SummariseEvery
TableCommand = Mute | Unmute | SayAs | Direct | Puppet | StopAll | WhisperTo | Setting | Session | ShowControls
SessionCommand = TableCommand | MoveTo
"""The session performs `MoveTo` itself, because it takes time; the room performs the others."""
COMMANDS: Final[Mapping[str, type[SessionCommand]]] = {
    "mute": Mute,
    "unmute": Unmute,
    "say": SayAs,
    "direct": Direct,
    "puppet": Puppet,
    "whisper": WhisperTo,
    "talk": LetNpcsTalk,
    "summarise": SummariseEvery,
    "scene": MoveTo,
    "stop": StopAll,
    "pause": Pause,
    "resume": Unpause,
    "end": EndSession,
    "show": ShowControls,
}
"""The commands by the names under which a DM gives them."""


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that this table has taken."""

    id: str
    told: Mapping[str, object]
