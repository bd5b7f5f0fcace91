"""Count what happens at a table, for Prometheus. No label contains a name, an id or speech."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from glyphoxa.domain.events import Degraded, MemoryChanged, TableEvent, Trouble, TurnFinished, UtteranceKept
from glyphoxa.domain.turn import Fault, Outcome, Stage, TurnRecord, Unaddressed
from glyphoxa.observability.timing import ServiceTime
from glyphoxa.observability.tracing import STEPS, steps_of

_FIRST_AUDIO_S: Final = (0.2, 0.35, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
_STEP_S: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0, 10.0)
_LAG_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
OTHER: Final = "other"
MAX_SERVICES: Final = 32
"""Any pipeline can add service classes. Further ones are counted as `OTHER`."""


class TableMetrics:
    """Count the events of a table in `registry`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._turns = self._counter("turns", "Turns, by outcome", "outcome", [o.value for o in Outcome])
        self._unaddressed = self._counter(
            "unaddressed", "Turns that addressed no NPC, by reason", "reason", [u.value for u in Unaddressed]
        )
        self._unsaid = self._counter(
            "unsaid_sentences",
            "Sentences of NPCs rejected before they were spoken",
            "fault",
            [f.value for f in Fault],
        )
        self._troubles = self._counter(
            "troubles", "Failures during which the table continued", "trouble", [t.value for t in Trouble]
        )
        self._utterances = Counter("glyphoxa_utterances", "Utterances written to disk", registry=self.registry)
        self._fillers = Counter("glyphoxa_fillers", "Turns with a filler before the answer", registry=self.registry)
        self._omitted = Counter(
            "glyphoxa_omitted_parts", "Parts of a prompt that were late or failed", registry=self.registry
        )
        self._first_audio = Histogram(
            "glyphoxa_first_audio_seconds",
            "Time from the end of speech to the first sound of the answer, fillers excluded",
            buckets=_FIRST_AUDIO_S,
            registry=self.registry,
        )
        self._silenced = Histogram(
            "glyphoxa_silenced_seconds",
            "Time from 250 ms of a player's interrupting voice to the NPC's last sound",
            buckets=_LAG_S,
            registry=self.registry,
        )
        self._steps = Histogram(
            "glyphoxa_turn_step_seconds",
            "Duration of a step of a turn; steps overlap",
            ["step"],
            buckets=_STEP_S,
            registry=self.registry,
        )
        for name, _, _ in STEPS:
            self._steps.labels(name)
        self._services = Histogram(
            "glyphoxa_service_seconds",
            "Duration that pipecat measured for a service",
            ["service", "measure"],
            buckets=_STEP_S,
            registry=self.registry,
        )
        self._known_services: set[str] = set()
        self._lag = Histogram(
            "glyphoxa_event_loop_lag_seconds",
            "Delay of a timer in the event loop; a delay affects every voice",
            buckets=_LAG_S,
            registry=self.registry,
        )
        self._is_degraded = Gauge(
            "glyphoxa_memory_degraded", "1 while the database is unavailable", registry=self.registry
        )
        self._waiting = Gauge(
            "glyphoxa_memory_waiting_utterances",
            "Utterances on disk that are not in the database yet",
            registry=self.registry,
        )

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

    def _counter(self, name: str, text: str, label: str, values: list[str]) -> Counter:
        """Create a counter with all its series, so that the rate of the first event is visible."""
        counter = Counter(f"glyphoxa_{name}", text, [label], registry=self.registry)
        for value in values:
            counter.labels(value)
        return counter
