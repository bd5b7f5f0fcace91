"""Sends a trace of each turn to a collector over OTLP/HTTP. An unreachable collector does not affect the table."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from loguru import logger
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from glyphoxa.domain.events import TableEvent, TurnFinished
from glyphoxa.domain.turn import Outcome, Stage, TurnRecord
from glyphoxa.observability import Observer, ServiceTime

# A turn is one span with a child span for each step. No spoken words are included.


STEPS: Final = (
    ("end of turn", Stage.SPEECH_END, Stage.TURN_END),
    ("transcription", Stage.SPEECH_END, Stage.TRANSCRIPT_FINAL),
    ("name correction", Stage.TRANSCRIPT_FINAL, Stage.CORRECTED),
    ("hot context", Stage.ADDRESSED, Stage.CONTEXT_READY),
    ("first token", Stage.CONTEXT_READY, Stage.FIRST_TOKEN),
    ("first sentence", Stage.FIRST_TOKEN, Stage.FIRST_SENTENCE),
    ("voice", Stage.FIRST_SENTENCE, Stage.FIRST_AUDIO),
    ("speaking", Stage.FIRST_AUDIO, Stage.AUDIO_END),
)
"""Steps of a turn with their start and end marks. Steps overlap: an NPC starts to answer while the end of the turn is
still awaited.
"""
_FAILED: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})

AttributeValue = str | int | float | bool


class StepTime(NamedTuple):
    """When a step of a turn took place, in milliseconds since the Unix epoch."""

    name: str
    start_ms: int
    end_ms: int


def steps_of(record: TurnRecord) -> list[StepTime]:
    """Return the steps of a turn. A step whose end was marked before its start is left out."""
    marks = record.stages
    return [
        StepTime(name, marks[begin], marks[end])
        for name, begin, end in STEPS
        if begin in marks and end in marks and marks[begin] <= marks[end]
    ]


def _attributes_of(record: TurnRecord) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "glyphoxa.session": record.session_id,
        "glyphoxa.turn": record.id,
        "glyphoxa.speaker": record.speaker_id,
        "glyphoxa.outcome": record.outcome.value,
        "glyphoxa.recalled": len(record.prompt.recalled),
        "glyphoxa.unsaid": len(record.unsaid),
        "glyphoxa.prompt_tokens": record.prompt.tokens,
    }
    if record.npc_id is not None:
        attributes["glyphoxa.npc"] = record.npc_id
    if record.tier:
        attributes["glyphoxa.tier"] = record.tier
    if record.unaddressed is not None:
        attributes["glyphoxa.unaddressed"] = record.unaddressed.value
    if record.first_audio_ms is not None:
        attributes["glyphoxa.first_audio_ms"] = record.first_audio_ms
    return attributes


SEND_WITHIN_S = 5.0
MAX_TIMES = 64
"""Service times kept until their turn ends."""
_NS = 1_000_000


class TurnTracer(Observer):
    """Receives the events of a table and records a trace of each turn.

    Args:
        exporter: Destination of the spans; see `to_collector`.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "glyphoxa"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_Reporting(exporter)))
        self._tracer = self._provider.get_tracer("glyphoxa")
        self._times: deque[ServiceTime] = deque(maxlen=MAX_TIMES)

    def on(self, event: TableEvent) -> None:
        if isinstance(event, TurnFinished) and event.turn.stages:
            self._record(event.turn, self._times_of(event.turn))

    def measured(self, time: ServiceTime) -> None:
        self._times.append(time)

    async def close(self) -> None:
        """Send pending spans and stop."""
        await asyncio.to_thread(self._provider.shutdown)

    def _times_of(self, turn: TurnRecord) -> list[ServiceTime]:
        graphs = {f"ear-{turn.speaker_id}", f"mouth-{turn.npc_id}", f"rescue-{turn.npc_id}"}
        begin_ms = min(turn.stages.values())
        mine = [time for time in self._times if time.graph in graphs and time.at_ms >= begin_ms]
        self._times = deque((time for time in self._times if time not in mine), maxlen=MAX_TIMES)
        return mine

    def _record(self, record: TurnRecord, times: Sequence[ServiceTime]) -> None:
        begin_ms, end_ms = min(record.stages.values()), max(record.stages.values())
        turn = self._tracer.start_span("turn", start_time=begin_ms * _NS, attributes=_attributes_of(record))
        for time in sorted(times, key=lambda time: time.at_ms):
            attributes: dict[str, AttributeValue] = {"seconds": time.took_s, "graph": time.graph}
            turn.add_event(f"{time.service} {time.measure}", attributes, timestamp=time.at_ms * _NS)
        if Stage.FILLER in record.stages:
            turn.add_event("filler", timestamp=record.stages[Stage.FILLER] * _NS)
        for look in record.looked_up:
            turn.add_event("look-up", {"tool": look.tool, "ms": look.took_ms}, timestamp=end_ms * _NS)
        if record.outcome in _FAILED:
            turn.set_status(Status(StatusCode.ERROR))
        within = set_span_in_context(turn)
        for step in steps_of(record):
            span = self._tracer.start_span(step.name, context=within, start_time=step.start_ms * _NS)
            span.end(step.end_ms * _NS)
        turn.end(end_ms * _NS)


def to_collector(endpoint: str) -> SpanExporter:
    """Return an exporter to an OTLP collector.

    Args:
        endpoint: The full URL: `http://127.0.0.1:4318/v1/traces`.
    """
    # The SDK logs a traceback for every lost batch. `_Reporting` logs once instead.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    return OTLPSpanExporter(endpoint=endpoint, timeout=SEND_WITHIN_S)


class _Reporting(SpanExporter):
    """Logs once when spans are lost, and once when they arrive again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_lost = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # whatever an exporter raises, only the batch is lost
            logger.debug("exporting traces: {}: {}", type(error).__name__, error)
            result = SpanExportResult.FAILURE
        is_lost = result is not SpanExportResult.SUCCESS
        if is_lost and not self._is_lost:
            logger.warning("observability.traces_endpoint is unreachable; traces are dropped until it responds")
        elif self._is_lost and not is_lost:
            logger.info("observability.traces_endpoint is reachable again")
        self._is_lost = is_lost
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
