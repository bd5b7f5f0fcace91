"""Observers of a table for the programs of its host: metrics for Prometheus, and traces over OTLP/HTTP.

Neither contains speech; no label of a metric contains a name or an id. An unreachable collector of traces does not
affect the table.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from fastapi import FastAPI
from fastapi.responses import Response
from loguru import logger
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode, set_span_in_context
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.routing import Route

from glyphoxa.domain.events import Degraded, MemoryChanged, TableEvent, Trouble, TurnFinished, UtteranceKept
from glyphoxa.domain.turn_record import Fault, Outcome, Stage, TurnRecord, Unaddressed
from glyphoxa.observability import Observer, ServiceTime

_STEPS: Final = (
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
        for name, begin, end in _STEPS
        if begin in marks and end in marks and marks[begin] <= marks[end]
    ]


# Metrics

_FIRST_AUDIO_S: Final = (0.2, 0.35, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
_STEP_S: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0, 10.0)
_LAG_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_NAMESPACE: Final = "glyphoxa"
OTHER: Final = "other"
MAX_SERVICES: Final = 32
"""Any pipeline can add service classes. Further ones are counted as `OTHER`."""


class TableMetrics(Observer):
    """Count the events of a table.

    Attributes:
        registry: Holds the figures.
        listener: The bound port on which they are served; None without one.
    """

    def __init__(self, listener: socket.socket | None = None) -> None:
        self.listener = listener
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        counter = partial(Counter, namespace=_NAMESPACE, registry=self.registry)
        gauge = partial(Gauge, namespace=_NAMESPACE, registry=self.registry)
        seconds = partial(Histogram, namespace=_NAMESPACE, unit="seconds", registry=self.registry)
        self._turns = self._counter("turns", "Turns, by outcome", "outcome", Outcome)
        self._unaddressed = self._counter(
            "unaddressed", "Turns that addressed no NPC, by reason", "reason", Unaddressed
        )
        self._unsaid = self._counter(
            "unsaid_sentences", "Sentences of NPCs rejected before they were spoken", "fault", Fault
        )
        self._troubles = self._counter("troubles", "Failures during which the table continued", "trouble", Trouble)
        self._utterances = counter("utterances", "Utterances written to disk")
        self._fillers = counter("fillers", "Turns with a filler before the answer")
        self._omitted = counter("omitted_parts", "Parts of a prompt that were late or failed")
        self._first_audio = seconds(
            "first_audio",
            "Time from the end of speech to the first sound of the answer, fillers excluded",
            buckets=_FIRST_AUDIO_S,
        )
        self._silenced = seconds(
            "silenced", "Time from 250 ms of a player's interrupting voice to the NPC's last sound", buckets=_LAG_S
        )
        self._steps = seconds("turn_step", "Duration of a step of a turn; steps overlap", ["step"], buckets=_STEP_S)
        for name, _, _ in _STEPS:
            self._steps.labels(name)
        self._services = seconds(
            "service", "Duration that pipecat measured for a service", ["service", "measure"], buckets=_STEP_S
        )
        self._known_services: set[str] = set()
        self._lag = seconds(
            "event_loop_lag", "Delay of a timer in the event loop; a delay affects every voice", buckets=_LAG_S
        )
        self._is_degraded = gauge("memory_degraded", "1 while the database is unavailable")
        self._waiting = gauge("memory_waiting_utterances", "Utterances on disk that are not in the database yet")

    def on(self, event: TableEvent) -> None:
        match event:
            case TurnFinished(turn):
                self._count(turn)
            case UtteranceKept():
                self._utterances.inc()
            case MemoryChanged(health):
                self._is_degraded.set(health.state == "degraded")
                self._waiting.set(health.waiting)
            case Degraded():
                self._troubles.labels(event.trouble.value).inc()
            case _:
                pass

    def measured(self, time: ServiceTime) -> None:
        if len(self._known_services) < MAX_SERVICES:
            self._known_services.add(time.service)
        service = time.service if time.service in self._known_services else OTHER
        self._services.labels(service, time.measure).observe(time.took_s)

    def lagged(self, late_s: float) -> None:
        """Record how late a timer of the event loop was."""
        self._lag.observe(late_s)

    async def close(self) -> None:
        if self.listener is not None:
            self.listener.close()

    def _count(self, turn: TurnRecord) -> None:
        self._turns.labels(turn.outcome.value).inc()
        if turn.unaddressed is not None:
            self._unaddressed.labels(turn.unaddressed.value).inc()
        for unsaid in turn.unsaid:
            self._unsaid.labels(unsaid.fault.value).inc()
        self._omitted.inc(len(turn.prompt.omitted))
        if Stage.FILLER in turn.stages:
            self._fillers.inc()
        if turn.first_audio_ms is not None:
            self._first_audio.observe(turn.first_audio_ms / 1_000)
        if turn.silenced_after_ms is not None:
            self._silenced.observe(turn.silenced_after_ms / 1_000)
        for step in steps_of(turn):
            self._steps.labels(step.name).observe((step.end_ms - step.start_ms) / 1_000)

    def _counter(self, name: str, text: str, label: str, values: type[StrEnum]) -> Counter:
        """Create a counter with all its series, so that the rate of the first event is visible."""
        counter = Counter(name, text, [label], namespace=_NAMESPACE, registry=self.registry)
        for value in values:
            counter.labels(value.value)
        return counter


def create_metrics_app(page: FastAPI, registry: CollectorRegistry) -> FastAPI:
    """Make the app for monitoring on a port of its own: metrics, health and readiness.

    Args:
        page: The app of `create_app`, which has to be running. All of its health is told: this port is not for players.
    """
    app = FastAPI(title="Glyphoxa metrics", docs_url=None, redoc_url=None, openapi_url=None)

    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/metrics", metrics, methods=["GET"])
    app.add_api_route("/healthz", page.state.whole_health, methods=["GET"])
    app.router.routes.extend(route for route in page.routes if isinstance(route, Route) and route.path == "/readyz")
    return app


# Traces: a turn is one span with a child span for each step.

_SEND_WITHIN_S: Final = 5.0
_MAX_TIMES: Final = 64
"""Service times kept until their turn ends."""
_NS: Final = 1_000_000
_FAILED: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})

_AttributeValue = str | int | float | bool


class TurnTracer(Observer):
    """Receives the events of a table and records a trace of each turn.

    Args:
        exporter: Destination of the spans; see `to_collector`.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "glyphoxa"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_Reporting(exporter)))
        self._tracer = self._provider.get_tracer("glyphoxa")
        self._times: deque[ServiceTime] = deque(maxlen=_MAX_TIMES)

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
        self._times = deque((time for time in self._times if time not in mine), maxlen=_MAX_TIMES)
        return mine

    def _record(self, record: TurnRecord, times: Sequence[ServiceTime]) -> None:
        begin_ms, end_ms = min(record.stages.values()), max(record.stages.values())
        turn = self._tracer.start_span("turn", start_time=begin_ms * _NS, attributes=_attributes_of(record))
        for time in sorted(times, key=lambda time: time.at_ms):
            attributes: dict[str, _AttributeValue] = {"seconds": time.took_s, "graph": time.graph}
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


def _attributes_of(record: TurnRecord) -> dict[str, _AttributeValue]:
    attributes: dict[str, _AttributeValue | None] = {
        "glyphoxa.session": record.session_id,
        "glyphoxa.turn": record.id,
        "glyphoxa.speaker": record.speaker_id,
        "glyphoxa.outcome": record.outcome.value,
        "glyphoxa.recalled": len(record.prompt.recalled),
        "glyphoxa.unsaid": len(record.unsaid),
        "glyphoxa.prompt_tokens": record.prompt.tokens,
        "glyphoxa.discarded_tokens": record.discarded_tokens,
        "glyphoxa.npc": record.npc_id,
        "glyphoxa.tier": record.tier or None,
        "glyphoxa.unaddressed": record.unaddressed and record.unaddressed.value,
        "glyphoxa.first_audio_ms": record.first_audio_ms,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def to_collector(endpoint: str) -> SpanExporter:
    """Return an exporter to an OTLP collector.

    Args:
        endpoint: The full URL: `http://127.0.0.1:4318/v1/traces`.
    """
    # The SDK logs a traceback for every lost batch. `_Reporting` logs once instead.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    return OTLPSpanExporter(endpoint=endpoint, timeout=_SEND_WITHIN_S)


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
