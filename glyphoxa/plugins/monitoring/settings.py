"""The settings of metrics and traces, and what they open with a table. Nothing is imported for what is off."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from glyphoxa.config.located_yaml import written_as
from glyphoxa.config.sections import Section
from glyphoxa.config.settings import HERE, Settings, host_of
from glyphoxa.observability import Observer
from glyphoxa.providers.extras import need

if TYPE_CHECKING:
    from glyphoxa.web.desk.frame import ServedTable

_STOP_MS: Final = 2_000


class ObservabilitySettings(Section):
    """How to monitor a table. Metrics and traces never contain speech.

    Attributes:
        metrics_port: Port on which `glyphoxa serve` answers `/metrics` for Prometheus, `/healthz` and `/readyz`; 0
            takes any free port. Default: none.
        metrics_host: Address for that port. The default is reachable from this machine only.
        traces_endpoint: Address to which a trace of each turn is sent, as OTLP over HTTP:
            `http://127.0.0.1:4318/v1/traces`. Default: none.
    """

    metrics_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    metrics_host: str = "127.0.0.1"
    traces_endpoint: (
        Annotated[str, written_as(r"^https?://[^/\s]+(/\S*)?$", "http://localhost:4318/v1/traces")] | None
    ) = None

    def recipients(self) -> Mapping[str, Collection[str]]:
        return {"observability.traces_endpoint": {host_of(self.traces_endpoint)} - {"", *HERE}}

    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        return {"observability.metrics_port": (self.metrics_host, self.metrics_port)}


def open_metrics(settings: Settings) -> Observer | None:
    """Bind the metrics port, so that a port in use is reported before models load. None if no port is set.

    Raises:
        Unavailable: The port is in use, or may not be used.
        InvalidInput: The host is not an address of this machine, or a required package is not installed.
    """
    chosen = settings.section(ObservabilitySettings)
    if chosen.metrics_port is None:
        return None
    need("prometheus_client", by="observability.metrics_port", extra="observe")
    from glyphoxa.plugins.monitoring.observers import TableMetrics
    from glyphoxa.web.serving import bind

    options = ("observability.metrics_host", "observability.metrics_port")
    return TableMetrics(bind(chosen.metrics_host, chosen.metrics_port, options=options))


def open_traces(settings: Settings) -> Observer | None:
    """Raises: InvalidInput: A required package is not installed."""
    chosen = settings.section(ObservabilitySettings)
    if chosen.traces_endpoint is None:
        return None
    need("opentelemetry.sdk", by="observability.traces_endpoint", extra="observe")
    from glyphoxa.plugins.monitoring.observers import TurnTracer, to_collector

    return TurnTracer(to_collector(chosen.traces_endpoint))


def serve_metrics(served: ServedTable) -> None:
    """Serve metrics, health and readiness while the page runs, if a port is set."""
    if served.settings.section(ObservabilitySettings).metrics_port is None:
        return
    from glyphoxa.cli.scope import say
    from glyphoxa.plugins.monitoring.observers import TableMetrics, create_metrics_app
    from glyphoxa.web.serving import Server, url_of

    [metrics] = (each for each in served.observers if isinstance(each, TableMetrics))
    if metrics.listener is None:
        return
    server = Server(create_metrics_app(served.app, metrics.registry))
    serving = asyncio.create_task(server.listen(metrics.listener))
    metrics.listener.listen()

    async def stop() -> None:
        server.stop()
        await serving

    served.stack.push_step("the port for figures", _STOP_MS, stop)
    say(f"metrics for Prometheus are at {url_of(metrics.listener)}metrics")
