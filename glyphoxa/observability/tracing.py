"""Sends a trace of each turn to a collector that speaks OTLP over HTTP. One that is away costs the table nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from loguru import logger
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from glyphoxa.domain.events import TableEvent, TurnFinished
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.observability.service_time import ServiceTime
from glyphoxa.observability.turn_spans import TurnTrace, trace_of

SEND_WITHIN_S = 5.0
MOST_TIMES = 64
"""Of services, that are kept for the turn they belong to."""
_NS = 1_000_000


class TurnTracer:
    """Takes what happens at a table, and makes a trace of each turn.

    Args:
        exporter: Where spans go; see `to_collector`.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "glyphoxa"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_Reporting(exporter)))
        self._tracer = self._provider.get_tracer("glyphoxa")
        self._times: deque[ServiceTime] = deque(maxlen=MOST_TIMES)

    def on(self, event: TableEvent) -> None:
        if isinstance(event, TurnFinished):
            trace = trace_of(event.turn, self._times_of(event.turn))
            if trace is not None:
                self._record(trace)

    def measured(self, time: ServiceTime) -> None:
        self._times.append(time)

    async def close(self) -> None:
        """Send what waits, and stop."""
        await asyncio.to_thread(self._provider.shutdown)

    def _times_of(self, turn: TurnRecord) -> list[ServiceTime]:
        graphs = {f"ear-{turn.speaker_id}", f"mouth-{turn.npc_id}", f"rescue-{turn.npc_id}"}
        begin_ms = min(turn.stages.values(), default=0)
        mine = [time for time in self._times if time.graph in graphs and time.at_ms >= begin_ms]
        self._times = deque((time for time in self._times if time not in mine), maxlen=MOST_TIMES)
        return mine

    def _record(self, trace: TurnTrace) -> None:
        turn = self._tracer.start_span(
            trace.turn.name, start_time=trace.turn.start_ms * _NS, attributes=trace.turn.attributes
        )
        for event in trace.events:
            turn.add_event(event.name, event.attributes, timestamp=event.at_ms * _NS)
        if trace.has_failed:
            turn.set_status(Status(StatusCode.ERROR))
        within = set_span_in_context(turn)
        for step in trace.steps:
            span = self._tracer.start_span(step.name, context=within, start_time=step.start_ms * _NS)
            span.end(step.end_ms * _NS)
        turn.end(trace.turn.end_ms * _NS)


def to_collector(endpoint: str) -> SpanExporter:
    """
    Args:
        endpoint: The whole address: `http://127.0.0.1:4318/v1/traces`.
    """
    # The SDK tells its own log of every batch that is lost, with a traceback: `_Reporting` says it once.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    return OTLPSpanExporter(endpoint=endpoint, timeout=SEND_WITHIN_S)


class _Reporting(SpanExporter):
    """Says once that spans do not arrive, and once that they do again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_lost = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # whatever an exporter raises, a batch is lost and no more
            logger.debug("exporting traces: {}: {}", type(error).__name__, error)
            result = SpanExportResult.FAILURE
        is_lost = result is not SpanExportResult.SUCCESS
        if is_lost and not self._is_lost:
            logger.warning("traces do not reach observability.traces_endpoint; they are dropped until they do")
        elif self._is_lost and not is_lost:
            logger.info("traces reach observability.traces_endpoint again")
        self._is_lost = is_lost
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
