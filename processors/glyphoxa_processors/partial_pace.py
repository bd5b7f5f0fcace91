"""How often a partial transcript is worth its cost."""

from __future__ import annotations

_REST = 3
"""Times as long as a run took: partials of a long turn take longer, and may keep the recogniser from others for a
quarter of the time at most."""


class PartialPace:
    """Says when the next partial transcript is due. Times are milliseconds of sound heard."""

    def __init__(self, *, every_ms: int) -> None:
        self._every_ms = every_ms
        self._asked_ms = 0
        self._due_ms = 0

    def speech_began(self, at_ms: int) -> None:
        """The first one comes sooner: it is the first thing anybody knows of what is said."""
        self._due_ms = max(self._due_ms, at_ms + self._every_ms // 2)

    def is_due(self, at_ms: int) -> bool:
        return at_ms >= self._due_ms

    def asked(self, at_ms: int) -> None:
        self._asked_ms = at_ms
        self._due_ms = at_ms + self._every_ms

    def took(self, ms: int) -> None:
        """The run that was asked for last is done."""
        self._due_ms = max(self._due_ms, self._asked_ms + _REST * ms)

    def turn_over(self) -> None:
        self._due_ms = 0
