"""Players' questions and their addressees, across the parts in which they are spoken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.names.people import Understood
from glyphoxa.turns.address import Addressed, Addressing
from glyphoxa.turns.dm_controls import DmControls, spoken_command
from glyphoxa.turns.turn import QuestionPart, SpokenQuestion, Turn

_PAST_ALL = (Unaddressed.OUT_OF_CHARACTER, Unaddressed.FILLER)
"""Words for which a player is not bound to an NPC."""


@dataclass(slots=True)
class Questions:
    """Assigns players' words to NPCs.

    Args:
        understand: Returns who is named and called in a text; asked again for the same text, at once.
        names: Names of all NPCs of the campaign.
        controls: The DM's controls in force.

    Attributes:
        present: The NPCs of the scene.
    """

    understand: Callable[[str], Understood]
    names: Mapping[NpcId, str]
    addressing: Addressing = field(default_factory=Addressing)
    controls: DmControls = field(default_factory=DmControls)
    present: tuple[NpcId, ...] = ()
    _carried: dict[PlayerId, Turn] = field(default_factory=dict)

    def move(self, present: Sequence[NpcId]) -> None:
        """Change the scene and end all conversations."""
        self.present = tuple(present)
        self.addressing.forget_all()
        self._carried.clear()

    def forget_all(self) -> None:
        """Forget all carried questions and conversations."""
        self._carried.clear()

    def carry(self, turn: Turn) -> None:
        """Keep the question of a turn that is cancelled because its speaker seems to continue."""
        self._carried[turn.player] = turn

    def has_carried(self, player: PlayerId) -> bool:
        return player in self._carried

    def take_carried(self, player: PlayerId) -> Turn | None:
        """Remove and return the cancelled turn whose question the player seemed to continue."""
        return self._carried.pop(player, None)

    def passed(self, player: PlayerId, addressed: Addressed, *, at_ms: int) -> None:
        """Note words of a player that were meant for no NPC."""
        if addressed.unaddressed in (Unaddressed.PLAYER, Unaddressed.WHISPER):
            others = (addressed.player,) if addressed.player is not None else ()
            self.addressing.remember_players(player, *others, at_ms=at_ms)

    def decide(self, player: PlayerId, text: str, *, at_ms: int) -> Addressed:
        """Decide who these words alone are meant for, by the rules of `glyphoxa.turns.dm_controls`."""
        said, controls = self.understand(text), self.controls
        command = spoken_command(said.text, said.mentions) if player in controls.dms else None
        if command is not None:
            return Addressed(None, "a command of the DM", Unaddressed.COMMAND, is_apart=True, command=command)
        if controls.is_paused:
            return Addressed(None, "the table is paused", Unaddressed.PAUSED)
        addressed = self._bound(player, said, self._by_address(player, said, at_ms))
        if addressed.npc is None or addressed.npc not in controls.muted:
            return addressed
        others = tuple(mention for mention in said.mentions if mention.npc not in controls.muted)
        if any(mention.is_called and mention.npc is not None for mention in others):
            instead = self._by_address(player, replace(said, mentions=others), at_ms)
            if instead.npc is not None and instead.npc not in controls.muted:
                return instead
        return Addressed(None, f"{addressed.reason}; muted by the DM", Unaddressed.MUTED)

    def _by_address(self, player: PlayerId, said: Understood, at_ms: int) -> Addressed:
        return self.addressing.decide(player, said, present=self.present, names=self.names, at_ms=at_ms)

    def _bound(self, player: PlayerId, said: Understood, addressed: Addressed) -> Addressed:
        npc = self.controls.puppets.get(player)
        is_free = said.calls_somebody or addressed.unaddressed in _PAST_ALL
        if npc is None or npc not in self.present or is_free:
            return addressed
        return Addressed(npc, f"the DM directs their words to {self.names[npc]}")

    def called_by(self, npc: NpcId, text: str) -> NpcId | None:
        """Return which NPC of the scene another NPC calls with these words."""
        mentions = self.understand(text).mentions
        called = (m for m in mentions if m.is_called and m.npc != npc and self.may_speak(m.npc))
        first = min(called, key=lambda m: m.position, default=None)
        return first.npc if first is not None else None

    def may_speak(self, npc: NpcId | None) -> bool:
        """Return whether an NPC is present and not muted."""
        return npc in self.present and npc not in self.controls.muted

    def meant(self, player: PlayerId, said: QuestionPart, *, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Return who these words are meant for, and the whole question."""
        carried = self._carried.get(player)
        alone = self.decide(player, said.text, at_ms=at_ms)
        if carried is None or alone.is_aside:
            return alone, SpokenQuestion((said,))
        question = carried.question.going_on(said)
        return self.decide(player, question.text, at_ms=at_ms), question
