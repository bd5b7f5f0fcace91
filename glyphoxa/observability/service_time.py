"""Processing time of one service in a graph, as measured by the framework that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
