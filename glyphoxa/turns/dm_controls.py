"""What the DM has in force at a table: who is muted, who is directed, whose words go to whom.

1. A muted NPC is still found when it is called, so that nobody else answers in its place, and it does not answer. Where
   somebody calls another NPC too, that one answers.
2. A direction stands in its NPC's prompt for so many answers as were heard of it, and is then lifted by itself.
3. What a player says who is bound to an NPC goes to that NPC as if they were talking to it: unless they call somebody
   by name, or plainly speak out of character.
4. What the DM says aloud and is a command opens no turn.
5. While the table is paused nobody is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from glyphoxa.domain.commands import Direct, LetNpcsTalk, Mute, Pause, Puppet, Resume, TableCommand, Unmute
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.turns.address import Addressed, Said
from glyphoxa.turns.dm_voice import spoken_command

Decide = Callable[[Said], Addressed]
"""Whom words are meant for, by `glyphoxa.turns.address` alone."""

_PAST_ALL: Final = (Unaddressed.OUT_OF_CHARACTER, Unaddressed.FILLER)


@dataclass(frozen=True, slots=True)
class Direction:
    """
    Attributes:
        turns_left: Answers of the NPC for which it still stands.
    """

    text: str
    turns_left: int


@dataclass(slots=True)
class DmControls:
    """
    Args:
        npcs: Everybody in the campaign, with what they are called.
        dms: The players who may command by voice.
        npc_to_npc: So many answers in a row may NPCs give each other; None: as the settings have it.
    """

    npcs: Mapping[NpcId, str] = field(default_factory=dict)
    dms: Collection[PlayerId] = ()
    muted: set[NpcId] = field(default_factory=set)
    directions: dict[NpcId, Direction] = field(default_factory=dict)
    puppets: dict[PlayerId, NpcId] = field(default_factory=dict)
    npc_to_npc: int | None = None
    is_paused: bool = False

    def take(self, command: TableCommand) -> None:
        """Note what is in force from now on. What is to be done at once is not for here."""
        match command:
            case Mute(npc):
                self.muted |= set(self.npcs) if npc is None else {npc}
            case Unmute(npc):
                self.muted -= set(self.npcs) if npc is None else {npc}
            case Direct(npc, text, turns) if text:
                self.directions[npc] = Direction(text, turns)
            case Direct(npc):
                self.directions.pop(npc, None)
            case Puppet(player, npc) if npc is not None:
                self.puppets[player] = npc
            case Puppet(player):
                self.puppets.pop(player, None)
            case LetNpcsTalk(most):
                self.npc_to_npc = most
            case Pause() | Resume():
                self.is_paused = isinstance(command, Pause)
            case _:
                pass

    def answered(self, npc: NpcId) -> bool:
        """An answer of this NPC was heard. Whether that changed what is in force."""
        standing = self.directions.get(npc)
        if standing is None:
            return False
        if standing.turns_left > 1:
            self.directions[npc] = replace(standing, turns_left=standing.turns_left - 1)
        else:
            del self.directions[npc]
        return True

    def direction(self, npc: NpcId) -> str:
        """What it is to keep to in its next answer; empty for nothing."""
        return self.directions[npc].text if npc in self.directions else ""

    def commanded(self, said: Said) -> TableCommand | None:
        """What the DM commands with these words; None when it is talk, or somebody else's."""
        return spoken_command(said.text, said.mentions) if said.player in self.dms else None

    def meant(self, said: Said, decide: Decide, *, present: Collection[NpcId]) -> Addressed:
        """Whom words are meant for."""
        if self.commanded(said) is not None:
            return Addressed(None, "a command of the DM", Unaddressed.COMMAND)
        if self.is_paused:
            return Addressed(None, "the table is paused", Unaddressed.PAUSED)
        addressed = self._bound(said, decide(said), present)
        if addressed.npc is None or addressed.npc not in self.muted:
            return addressed
        others = [mention for mention in said.mentions if mention.npc not in self.muted]
        if any(mention.is_vocative and mention.npc is not None for mention in others):
            instead = decide(replace(said, mentions=others))
            if instead.npc is not None and instead.npc not in self.muted:
                return instead
        return Addressed(None, f"{addressed.reason}; muted by the DM", Unaddressed.MUTED)

    def _bound(self, said: Said, addressed: Addressed, present: Collection[NpcId]) -> Addressed:
        npc = self.puppets.get(said.player)
        is_free = any(mention.is_vocative for mention in said.mentions) or addressed.unaddressed in _PAST_ALL
        if npc is None or npc not in present or is_free:
            return addressed
        return Addressed(npc, f"what they say goes to {self.npcs[npc]}, as the DM has it")
