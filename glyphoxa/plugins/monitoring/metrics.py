"""Count what happens at a table, for Prometheus. No label contains a name, an id or speech."""

from __future__ import annotations

import socket
from enum import StrEnum
from functools import partial
from typing import Final

from fastapi import FastAPI
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.routing import Route

from glyphoxa.domain.events import Degraded, MemoryChanged, TableEvent, Trouble, TurnFinished, UtteranceKept
from glyphoxa.domain.turn import Fault, Outcome, Stage, TurnRecord, Unaddressed
from glyphoxa.observability import Observer, ServiceTime
from glyphoxa.plugins.monitoring.tracing import STEPS, steps_of

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
        for name, _, _ in STEPS:
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
