"""How long the tools really take, so that a model is shown only those that fit its tier.

Only calls that a model made count, for they ask what models ask. What was measured is forgotten after ten minutes: a
tool that was too slow for every tier would otherwise never be called, and so never be measured, again.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Final

_MOST: Final = 100
_LEAST: Final = 5
"""Calls from which there is a usual time; before that, what is declared stands for it."""
_LASTS_MS: Final = 600_000


class ToolLatencies:
    """See the module. One for all NPCs of a table: they ask the same memory."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[tuple[int, int]]] = {}

    def took(self, tool: str, took_ms: int, *, at_ms: int) -> None:
        """A call was answered, or was cut when it had lasted so long."""
        self._calls.setdefault(tool, deque(maxlen=_MOST)).append((at_ms, took_ms))

    def usual_ms(self, tool: str, *, declared_ms: int, at_ms: int) -> int:
        """The median of the newest calls; what is declared while there are too few.

        Args:
            at_ms: Now, by the same clock as the calls.
        """
        newest = [took_ms for called_ms, took_ms in self._calls.get(tool, ()) if at_ms - called_ms < _LASTS_MS]
        return declared_ms if len(newest) < _LEAST else round(median(newest))
