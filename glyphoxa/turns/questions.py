"""What players ask whom, over the parts in which they say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.turns.address import Addressed, Addressing, Said
from glyphoxa.turns.dm_controls import DmControls
from glyphoxa.turns.mention import AddresseeMention
from glyphoxa.turns.question import SpokenQuestion
from glyphoxa.turns.turn import Carried, Turn

FIND_MENTIONS = Callable[[str], Sequence[AddresseeMention]]


@dataclass(slots=True)
class Questions:
    """
    Args:
        mentions: Finds the names of NPCs and players in words.
        names: What each NPC of the campaign is called.
        controls: What the DM has in force.

    Attributes:
        present: The NPCs of the scene.
    """

    mentions: FIND_MENTIONS
    names: Mapping[NpcId, str]
    addressing: Addressing = field(default_factory=Addressing)
    controls: DmControls = field(default_factory=DmControls)
    present: tuple[NpcId, ...] = ()
    _carried: dict[PlayerId, Carried] = field(default_factory=dict)

    def move(self, present: Sequence[NpcId]) -> None:
        """The scene changed: what was going on is over."""
        self.present = tuple(present)
        self.addressing.forget_all()
        self._carried.clear()

    def forget_all(self) -> None:
        """Nobody goes on with what they asked."""
        self._carried.clear()

    def carry(self, turn: Turn) -> None:
        """Its answer was called off because its speaker seems to go on."""
        self._carried[turn.player] = Carried(turn.question, turn.draft)

    def is_carried(self, player: PlayerId) -> bool:
        return player in self._carried

    def take_carried(self, player: PlayerId) -> Carried | None:
        """What they seemed to go on with, which is not asked again behind this."""
        return self._carried.pop(player, None)

    def remember(self, player: PlayerId, npc: NpcId, *, at_ms: int) -> None:
        """An exchange between them took place."""
        self.addressing.remember(player, npc, at_ms=at_ms)

    def passed(self, player: PlayerId, addressed: Addressed, *, at_ms: int) -> None:
        """Their words went to another player."""
        if addressed.unaddressed is Unaddressed.PLAYER:
            others = (addressed.player,) if addressed.player is not None else ()
            self.addressing.remember_players(player, *others, at_ms=at_ms)

    def decide(self, player: PlayerId, text: str, *, at_ms: int) -> Addressed:
        """Whom these words alone are meant for."""

        def by_address(said: Said) -> Addressed:
            return self.addressing.decide(said, present=self.present, names=self.names, at_ms=at_ms)

        return self.controls.meant(self.said(player, text), by_address, present=self.present)

    def said(self, player: PlayerId, text: str) -> Said:
        """These words with who is named in them."""
        return Said(player, text, self.mentions(text))

    def called_by(self, npc: NpcId, text: str) -> NpcId | None:
        """Whom of those who are here an NPC calls with these words."""
        called = (m for m in self.mentions(text) if m.is_vocative and m.npc != npc and self.may_speak(m.npc))
        first = min(called, key=lambda m: m.position, default=None)
        return first.npc if first is not None else None

    def may_speak(self, npc: NpcId | None) -> bool:
        """It is here and not muted."""
        return npc in self.present and npc not in self.controls.muted

    def meant(self, player: PlayerId, text: str, *, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Whom these words are meant for, and what is asked with them."""
        carried = self._carried.get(player)
        alone = self.decide(player, text, at_ms=at_ms)
        if carried is None or alone.is_aside:
            return alone, SpokenQuestion((text,))
        question = carried.question.going_on(text)
        return self.decide(player, question.text, at_ms=at_ms), question
