"""How much of everything one seat may send, so that nobody's haste is another's silence.

Plain objects: what happens is an argument, and so is the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Ration:
    """So many at once, and then one after each `every_ms`.

    Keeps one number: when all that was taken so far would have been taken, had it come evenly.
    """

    burst: int
    every_ms: int
    _even_until_ms: int = 0

    def take(self, n: int = 1, *, at_ms: int) -> int:
        """Take `n`. Returns 0, or after how many milliseconds they may be asked for again; nothing is taken then.

        More than `burst` at once are never to be had.
        """
        wait_ms = self._after(n, at_ms) - self.burst * self.every_ms
        if wait_ms > 0:
            return wait_ms
        self._even_until_ms = at_ms + self._after(n, at_ms)
        return 0

    def borrow(self, *, at_ms: int) -> int:
        """Take one in any case. Returns for how many milliseconds whoever took it must pause."""
        self._even_until_ms = at_ms + self._after(1, at_ms)
        return max(0, self._even_until_ms - at_ms - self.burst * self.every_ms)

    def wait_ms(self, n: int = 1, *, at_ms: int) -> int:
        """Like `take`, without taking."""
        return max(0, self._after(n, at_ms) - self.burst * self.every_ms)

    def _after(self, n: int, at_ms: int) -> int:
        return max(self._even_until_ms, at_ms) + n * self.every_ms - at_ms


@dataclass(slots=True)
class SeatRations:
    """What the one who sits there may send; generous for whoever types fast with both hands.

    Attributes:
        messages: Of any kind over the websocket. Whoever sends more is read more slowly.
        sittings: Websockets that ask for the seat.
    """

    lines: Ration = field(default_factory=lambda: Ration(8, 1_000))
    characters: Ration = field(default_factory=lambda: Ration(2_400, 25))
    moves: Ration = field(default_factory=lambda: Ration(5, 2_000))
    offers: Ration = field(default_factory=lambda: Ration(10, 2_000))
    messages: Ration = field(default_factory=lambda: Ration(60, 50))
    sittings: Ration = field(default_factory=lambda: Ration(20, 500))

    def take_line(self, n_characters: int, *, at_ms: int) -> int:
        """As `Ration.take`, for one typed line of so many characters."""
        if wait_ms := max(self.lines.wait_ms(at_ms=at_ms), self.characters.wait_ms(n_characters, at_ms=at_ms)):
            return wait_ms
        self.lines.take(at_ms=at_ms)
        self.characters.take(n_characters, at_ms=at_ms)
        return 0
