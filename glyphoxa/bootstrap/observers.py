"""Who watches a table from outside, as the settings want it: figures for Prometheus, traces for a collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyphoxa.config.sections import ObservabilitySettings
from glyphoxa.domain.events import TableEvent
from glyphoxa.observability.service_time import ServiceTime
from glyphoxa.providers.extras import need

if TYPE_CHECKING:
    from glyphoxa.observability.metrics import TableMetrics
    from glyphoxa.observability.tracing import TurnTracer


@dataclass(frozen=True, slots=True)
class Observers:
    """Each is None where nobody asked for it; nothing of it is imported then."""

    metrics: TableMetrics | None = None
    tracer: TurnTracer | None = None

    @property
    def any(self) -> bool:
        return self.metrics is not None or self.tracer is not None

    def on(self, event: TableEvent) -> None:
        for observer in (self.metrics, self.tracer):
            if observer is not None:
                observer.on(event)

    def measured(self, time: ServiceTime) -> None:
        for observer in (self.metrics, self.tracer):
            if observer is not None:
                observer.measured(time)

    async def close(self) -> None:
        """Send what waits to be sent."""
        if self.tracer is not None:
            await self.tracer.close()


NOBODY = Observers()


def make_observers(settings: ObservabilitySettings) -> Observers:
    """
    Raises:
        InvalidInput: What a setting needs is not installed.
    """
    metrics: TableMetrics | None = None
    tracer: TurnTracer | None = None
    if settings.metrics_port is not None:
        need("prometheus_client", by="observability.metrics_port", extra="observe")
        from glyphoxa.observability.metrics import TableMetrics

        metrics = TableMetrics()
    if settings.traces_endpoint is not None:
        need("opentelemetry.sdk", by="observability.traces_endpoint", extra="observe")
        from glyphoxa.observability.tracing import TurnTracer, to_collector

        tracer = TurnTracer(to_collector(settings.traces_endpoint))
    return Observers(metrics, tracer)
