"""Decide who may speak.

Rules of the floor:

1. Players outrank NPCs: an NPC does not begin while a player speaks.
2. One NPC speaks at a time. The highest priority is next; among equals, the one whose turn ended first. An NPC that
   was passed over several times is next in any case.
3. After an NPC falls silent, the next one leaves a gap of varying length. After a player there is no gap, because the
   end-of-turn wait has already passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from glyphoxa.domain.campaign import DEFAULT_PRIORITY
from glyphoxa.domain.defaults import GAP_MS
from glyphoxa.domain.ids import PlayerId, TurnId

MAX_PASSED_OVER = 3
"""Later turns of a higher priority that may go first."""
_JITTER_SHARE = 6
"""The gap varies by up to a sixth."""


@dataclass(slots=True)
class _Waiting:
    turn: TurnId
    priority: int
    passed_over: int = 0


@dataclass(slots=True)
class Floor:
    """Grants the floor to one NPC turn at a time.

    Args:
        gap_ms: Silence between two NPCs. No gap is added after a player, because the end-of-turn wait has passed.
        jitter: Position in the range of the gap, -1 to 1; called once for each gap.
    """

    gap_ms: int = GAP_MS
    jitter: Callable[[], float] = lambda: 0.0
    _speaking_players: set[PlayerId] = field(default_factory=set)
    _waiting: list[_Waiting] = field(default_factory=list)
    """Ordered by request."""
    _holder: TurnId | None = None
    _open_from_ms: int = 0

    @property
    def holder(self) -> TurnId | None:
        return self._holder

    @property
    def is_quiet(self) -> bool:
        """Whether nobody speaks and nobody waits."""
        return not self._speaking_players and not self._waiting and self._holder is None

    @property
    def hears_players(self) -> bool:
        """Whether a player speaks."""
        return bool(self._speaking_players)

    def is_speaking(self, player: PlayerId) -> bool:
        return player in self._speaking_players

    def player_started(self, player: PlayerId) -> None:
        self._speaking_players.add(player)

    def player_stopped(self, player: PlayerId) -> None:
        self._speaking_players.discard(player)

    def request(self, turn: TurnId, *, priority: int = DEFAULT_PRIORITY) -> None:
        """Queue a turn. `grant` decides when it may begin."""
        if turn != self._holder and all(waiting.turn != turn for waiting in self._waiting):
            self._waiting.append(_Waiting(turn, priority))

    def withdraw(self, turn: TurnId) -> None:
        """Remove a waiting turn. A turn that holds the floor keeps it until it has fallen silent."""
        self._waiting = [waiting for waiting in self._waiting if waiting.turn != turn]

    def give_up(self, turn: TurnId, *, at_ms: int, was_heard: bool = True) -> None:
        """End a turn that held the floor or waited for it."""
        self.withdraw(turn)
        if self._holder == turn:
            self._holder = None
            if was_heard:
                self._open_from_ms = at_ms + self._gap_ms()

    def grant(self, *, at_ms: int) -> TurnId | None:
        """Give the floor to the next turn if it is free. None if no turn may begin now."""
        if self._holder is not None or self._speaking_players or not self._waiting or at_ms < self._open_from_ms:
            return None
        at = self._next()
        for passed_over in self._waiting[:at]:
            passed_over.passed_over += 1
        self._holder = self._waiting.pop(at).turn
        return self._holder

    def ask_again_ms(self, *, at_ms: int) -> int | None:
        """When the gap allows the next `grant`; None if another event must come first."""
        if self._waiting and self._holder is None and not self._speaking_players and at_ms < self._open_from_ms:
            return self._open_from_ms
        return None

    def _next(self) -> int:
        waited_enough = (at for at, each in enumerate(self._waiting) if each.passed_over >= MAX_PASSED_OVER)
        highest = max(range(len(self._waiting)), key=lambda at: (self._waiting[at].priority, -at))
        return next(waited_enough, highest)

    def _gap_ms(self) -> int:
        return self.gap_ms + round(self.gap_ms / _JITTER_SHARE * self.jitter())
