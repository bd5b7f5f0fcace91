"""How long an answer is waited for, and what is done when that time is over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from glyphoxa.turns.turn import Phase, Turn

_CLAUSE_MS = 1_000
"""Behind its first word an answer is heard within this time: a filler would only hold it back."""


class Overdue(Enum):
    """What is to be done about a turn because time has passed."""

    DROP = auto()
    """Its answer waited too long for players to fall silent."""
    GIVE_UP = auto()
    """Its answer did not come."""
    FILL = auto()
    """Its answer takes long: a sound in character."""


@dataclass(frozen=True, slots=True)
class Patience:
    """
    Args:
        reply_deadline_ms: From when the answer may be heard (usually the end of the player's turn) to the first audio.
        filler_after_ms: From the end of the player's turn to a filler, which is never heard before the answer may be
            nor while its first clause is about to come; 0 for none.
        hold_ms: How long an answer waits for players to fall silent.
    """

    reply_deadline_ms: int = 15_000
    filler_after_ms: int = 0
    hold_ms: int = 20_000

    def due_ms(self, turn: Turn, *, waits_since_ms: int | None) -> int | None:
        """When something is to be done about a turn because time has passed; None for not before something happens.

        Args:
            waits_since_ms: Since when players alone keep answers from being heard; None while an NPC is heard.
        """
        if turn.cancelled_as is not None:
            return None
        if turn.phase is Phase.RELEASED:
            return min(self._filler_ms(turn), turn.released_ms + self.reply_deadline_ms)
        if turn.phase is Phase.COMMITTED and waits_since_ms is not None:
            return max(turn.committed_ms, waits_since_ms) + self.hold_ms
        return None

    def overdue(self, turn: Turn, *, at_ms: int) -> Overdue:
        """What is to be done about a turn of which `due_ms` has come."""
        if turn.phase is Phase.COMMITTED:
            return Overdue.DROP
        return Overdue.GIVE_UP if at_ms >= turn.released_ms + self.reply_deadline_ms else Overdue.FILL

    def _filler_ms(self, turn: Turn) -> int:
        """Not before the deadline if it has had one, or is to have none."""
        if not turn.filled and turn.looks_up_long:
            return turn.released_ms
        if turn.filled or not self.filler_after_ms:
            return turn.released_ms + self.reply_deadline_ms
        # Who waited for another NPC to finish is not silent for as long again.
        due_ms = max(turn.released_ms, turn.committed_ms + self.filler_after_ms)
        return due_ms if turn.first_word_ms is None else max(due_ms, turn.first_word_ms + _CLAUSE_MS)
