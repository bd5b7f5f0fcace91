"""What pipecat measures of its services, in our words."""

from __future__ import annotations

from collections.abc import Iterator

from pipecat.frames.frames import MetricsFrame
from pipecat.metrics.metrics import (
    MetricsData,
    ProcessingMetricsData,
    TextAggregationMetricsData,
    TTFAMetricsData,
    TTFATMetricsData,
    TTFBMetricsData,
)

from glyphoxa.observability.service_time import Measure, ServiceTime


def service_times(frame: MetricsFrame, *, graph: str, at_ms: int) -> Iterator[ServiceTime]:
    """Usage and what was not measured (pipecat begins with zeros) is left out."""
    for data in frame.data:
        measured = _measured(data)
        if measured is not None and measured[1] > 0:
            # "OpenAILLMService#3": the third that was made.
            yield ServiceTime(graph, data.processor.partition("#")[0], *measured, at_ms)


def _measured(data: MetricsData) -> tuple[Measure, float] | None:
    match data:
        case TTFBMetricsData():
            return "ttfb", data.value
        case TTFAMetricsData():
            return "ttfa", data.ttfa
        case TTFATMetricsData():
            return "ttfat", data.ttfat
        case ProcessingMetricsData():
            return "processing", data.value
        case TextAggregationMetricsData():
            return "aggregation", data.value
        case _:
            return None
