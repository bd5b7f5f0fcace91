"""Who may speak.

Rules:

1. Players outrank NPCs: an NPC does not begin while a player speaks.
2. One NPC at a time; the others wait in the order in which their turns ended.
3. After an NPC falls silent, the next one leaves a gap before it begins. After a player none does: the wait for the
   end of their turn was one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from glyphoxa.domain.ids import PlayerId, TurnId

GAP_MS = 300


@dataclass(slots=True)
class Floor:
    """Grants the floor to one NPC turn at a time.

    Args:
        gap_ms: Silence after an NPC that was heard before the next one begins. After a player none is added: the
            end-of-turn wait has already passed.
    """

    gap_ms: int = GAP_MS
    _speaking_players: set[PlayerId] = field(default_factory=set)
    _waiting: list[TurnId] = field(default_factory=list)
    _holder: TurnId | None = None
    _open_from_ms: int = 0

    @property
    def holder(self) -> TurnId | None:
        return self._holder

    @property
    def is_quiet(self) -> bool:
        """Nobody speaks and nobody waits."""
        return not self._speaking_players and not self._waiting and self._holder is None

    def player_started(self, player: PlayerId) -> None:
        self._speaking_players.add(player)

    def player_stopped(self, player: PlayerId) -> None:
        self._speaking_players.discard(player)

    def request(self, turn: TurnId) -> None:
        """Queue up. `grant` says when it is this turn's time."""
        if turn not in self._waiting and turn != self._holder:
            self._waiting.append(turn)

    def withdraw(self, turn: TurnId) -> None:
        """The turn no longer waits. One that holds the floor keeps it until it has fallen silent."""
        if turn in self._waiting:
            self._waiting.remove(turn)

    def give_up(self, turn: TurnId, *, at_ms: int, was_heard: bool = True) -> None:
        """The turn is over, whether it held the floor or waited for it."""
        self.withdraw(turn)
        if self._holder == turn:
            self._holder = None
            if was_heard:
                self._open_from_ms = at_ms + self.gap_ms

    def grant(self, *, at_ms: int) -> TurnId | None:
        """Give the floor to the next turn if it is free now; None if nobody may begin."""
        if self._holder is not None or self._speaking_players or not self._waiting or at_ms < self._open_from_ms:
            return None
        self._holder = self._waiting.pop(0)
        return self._holder

    def ask_again_ms(self, *, at_ms: int) -> int | None:
        """When `grant` is worth asking again because of the gap alone; None if another event must come first."""
        if self._waiting and self._holder is None and not self._speaking_players and at_ms < self._open_from_ms:
            return self._open_from_ms
        return None
