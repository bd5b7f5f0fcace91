"""Somebody's name in what was said."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.ids import NpcId, PlayerId


@dataclass(frozen=True, slots=True)
class AddresseeMention:
    """Somebody's name in what was said.

    Attributes:
        npc: Whose name, None for a player's and for somebody whom nobody plays.
        position: Index of its first word.
        is_vocative: The name is called rather than talked about.
        is_sure: It is called beyond doubt: enough to say that who is not here was meant.
        is_whispered: It says to whom all that was said is directed: "(to Mira) ...".
        is_played: An NPC or a player has this name, and not only somebody in the story.
        is_owner: It says whose something is: "Mira's hat".
        player: Whose name, if it is a player's.
        start: Place of its first character in the text; `end` is one past the last, 0 where the place is not known.
    """

    npc: NpcId | None
    name: str
    position: int
    is_vocative: bool
    is_sure: bool = False
    is_whispered: bool = False
    is_played: bool = True
    player: PlayerId | None = None
    start: int = 0
    end: int = 0
    is_owner: bool = False
