"""What the stages of a mouth report of a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn import Stage
from glyphoxa.npc.mouth import Listener, Marked

OnFailure = Callable[[TurnId, str], None]


@dataclass(frozen=True, slots=True)
class MouthReports:
    """Where they go.

    Attributes:
        on_failure: Ends the reply.
        on_trouble: Costs at most a piece of the reply.
    """

    npc: NpcId
    listener: Listener
    on_failure: OnFailure
    on_trouble: OnFailure
    clock: Callable[[], int]

    def mark(self, turn: TurnId, stage: Stage) -> None:
        """A turn has come to a stage now."""
        self.listener(Marked(self.npc, turn, stage, self.clock()))
