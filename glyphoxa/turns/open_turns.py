"""The turns that are under way at one table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import DEFAULT_PRIORITY
from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.effects import Begin, Cancel, Say
from glyphoxa.turns.floor import Floor
from glyphoxa.turns.question import SpokenQuestion
from glyphoxa.turns.turn import Phase, Turn

_HUSHED_AS = {Phase.PREPARING: None, Phase.HEARD: Outcome.INTERRUPTED}
"""Otherwise SUPERSEDED."""
_OF_THE_DM, _NEXT, _LAST = 1_001, 1_000, -1
"""Priorities beside those of NPCs: of words that the DM gave, of a reaction, of other talk among NPCs."""


@dataclass(slots=True)
class OpenTurns:
    """Iterates over them in the order in which they were opened.

    Args:
        priorities: Of NPCs, as the floor has them; `DEFAULT_PRIORITY` for who is not in it.
    """

    floor: Floor = field(default_factory=Floor)
    priorities: Mapping[NpcId, int] = field(default_factory=dict)
    moved_ms: int = 0
    """When the floor was last given or given back, or an NPC cut off."""
    _turns: dict[TurnId, Turn] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Turn]:
        return iter(tuple(self._turns.values()))

    def get(self, turn: TurnId) -> Turn | None:
        return self._turns.get(turn)

    def of(self, player: PlayerId) -> list[Turn]:
        """What this player asks and is still to be answered."""
        return [t for t in self if t.player == player and t.cancelled_as is None]

    def to(self, npc: NpcId) -> list[Turn]:
        """What this NPC is being asked. An engine answers one thing at a time: a speculation must not cut
        another off, and a committed turn waits for the one before it.
        """
        return [turn for turn in self if turn.npc == npc]

    @property
    def heard(self) -> Turn | None:
        """The one whose answer is being heard, unless it was called off."""
        holder = self._turns.get(self.floor.holder) if self.floor.holder is not None else None
        return holder if holder is not None and holder.phase is Phase.HEARD and holder.cancelled_as is None else None

    def open(self, npc: NpcId, draft: Draft, question: SpokenQuestion, *, words: str = "") -> Turn:
        """
        Args:
            words: What the NPC is to say instead of an answer.
        """
        turn = Turn(TurnId(f"t{next(self._numbers):04d}"), npc, draft.player, question, draft, Phase.PREPARING)
        turn.words = words
        self._turns[turn.id] = turn
        return turn

    def begin(self, turn: Turn) -> Begin | Say:
        turn.begun = True
        if turn.words:
            return Say(turn.id, turn.npc, turn.words)
        # What is only prepared for was not kept yet.
        n_kept = len(turn.question.parts) - (turn.phase is Phase.PREPARING)
        return Begin(turn.id, turn.npc, turn.player, turn.question.text, n_kept, is_brief=turn.behind is not None)

    def queue_up(self, turn: Turn) -> None:
        """For the floor. The DM's words come first, a reaction right behind what it is a reaction to, and other talk
        among NPCs last.
        """
        priority = self.priorities.get(turn.npc, DEFAULT_PRIORITY)
        if turn.words:
            priority = _OF_THE_DM
        elif turn.answers is not None:
            priority = _NEXT if turn.behind is not None else _LAST
        self.floor.request(turn.id, priority=priority)

    def cancel(self, turn: Turn, outcome: Outcome | None) -> Cancel:
        turn.cancelled_as = outcome
        self.floor.withdraw(turn.id)
        if turn.phase is Phase.PREPARING or not turn.begun:
            del self._turns[turn.id]
        return Cancel(turn.id, turn.npc, outcome, turn.begun)

    def hush(self, turns: Iterable[Turn]) -> list[Cancel]:
        """Call these off."""
        return [
            self.cancel(turn, _HUSHED_AS.get(turn.phase, Outcome.SUPERSEDED))
            for turn in turns
            if turn.cancelled_as is None
        ]

    def close(self, turn_id: TurnId) -> Turn | None:
        """Its engine is done with it."""
        return self._turns.pop(turn_id, None)
