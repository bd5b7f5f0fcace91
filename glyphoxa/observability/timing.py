"""Observers of an open table, the time that a service in a graph takes, and event loop lag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from glyphoxa.domain.events import TableEvent

Measure = Literal["ttfb", "ttfa", "ttfat", "processing", "aggregation"]
"""Time to the first byte, to the first audible sound, to the first token of the answer; total time of a request; and
time from the first token to the first sentence.
"""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """
    Attributes:
        graph: Where the service runs: "ear-hanna", "mouth-korvald".
        service: "OpenAILLMService".
        at_ms: When it was reported, Unix epoch.
    """

    graph: str
    service: str
    measure: Measure
    took_s: float
    at_ms: int


class Observer:
    """Follows an open table. Each method does nothing unless it is overridden, and has to return at once."""

    def on(self, event: TableEvent) -> None:
        """Take an event of the table."""

    def measured(self, time: ServiceTime) -> None:
        """Take the time that a service took."""

    def lagged(self, late_s: float) -> None:
        """Take how late a timer of the event loop was. Called twice a second."""

    async def close(self) -> None:
        """End with the table."""


EVERY_S = 0.5


async def measure_lag(report: Callable[[float], None], *, every_s: float = EVERY_S) -> None:
    """Measure until cancelled how late a timer is: whatever blocks the loop stops all voices at the table.

    Args:
        report: Receives the seconds by which a timer was late.
    """
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + every_s
        await asyncio.sleep(every_s)
        report(max(0.0, loop.time() - due_s))
