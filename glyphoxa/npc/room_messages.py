"""What the room is told, and the mailbox that it is told through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import EarEvent
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import LookUp
from glyphoxa.npc.mouth import MouthEvent


@dataclass(frozen=True, slots=True)
class RoomTick:
    """Time has come for something that was put off."""


@dataclass(frozen=True, slots=True)
class Move:
    scene: Scene


@dataclass(frozen=True, slots=True)
class Leave:
    """A human stands up. What they were in the middle of saying is kept as far as it was heard."""

    player: PlayerId


@dataclass(frozen=True, slots=True)
class End:
    """The session ends: NPCs fall silent, unfinished speech is kept."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """An NPC's model was answered by one of its tools."""

    npc: NpcId
    look_up: LookUp


@dataclass(frozen=True, slots=True)
class LooksUpLong:
    """An NPC's model waits for one of its tools."""

    npc: NpcId


@dataclass(frozen=True, slots=True)
class Obey:
    """The DM commands this. `answer` is told what was done, or why nothing was."""

    command: TableCommand
    answer: Callable[[str | InvalidInput], None]


RoomMessage = EarEvent | MouthEvent | LookedUp | LooksUpLong | RoomTick | Move | Leave | Obey | End


def room_mailbox() -> Mailbox[RoomMessage]:
    """Made before the room, as ears and mouths report to it."""
    return Mailbox("room", capacity=100_000)
