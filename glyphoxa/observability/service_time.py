"""How long one service of a graph took, as the framework that runs it measured it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Measure = Literal["ttfb", "ttfa", "ttfat", "processing", "aggregation"]
"""To the first byte, to the first sound that is heard, to the first token of the answer; all of a request; from the
first token to the first sentence.
"""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """
    Attributes:
        graph: Where it runs: "ear-hanna", "mouth-korvald".
        service: "OpenAILLMService".
        at_ms: When it was reported, Unix epoch.
    """

    graph: str
    service: str
    measure: Measure
    took_s: float
    at_ms: int
