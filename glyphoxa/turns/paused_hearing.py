"""What is heard of a table that the DM has paused.

1. Who was speaking when the pause began is heard to their end: nothing that was said before it is lost.
2. What anybody begins to say in the pause is not heard: it is shown to nobody, kept nowhere, and no NPC knows of it.
3. A typed line that was on its way is taken. Whoever types later is told that the table is paused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from glyphoxa.domain.heard import EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechPaused, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import PlayerId


@dataclass(slots=True)
class PausedHearing:
    """Takes every event of every ear, also while the table is not paused."""

    _speaking: set[PlayerId] = field(default_factory=set)

    def hears(self, event: EarEvent, *, is_paused: bool) -> bool:
        """Whether the table does."""
        match event:
            case SpeechStarted(player):
                if not is_paused:
                    self._speaking.add(player)
                return not is_paused
            case TurnEnded(draft):
                return self._ends(draft.player) or draft.typed or not is_paused
            case NothingSaid(player):
                return self._ends(player) or not is_paused
            case EagerTurn(draft):
                return draft.player in self._speaking or not is_paused
            case PartialHeard() | SpeechPaused():
                return event.player in self._speaking or not is_paused

    def left(self, player: PlayerId) -> None:
        self._speaking.discard(player)

    def _ends(self, player: PlayerId) -> bool:
        """Whether they were heard until now."""
        was_heard = player in self._speaking
        self._speaking.discard(player)
        return was_heard
