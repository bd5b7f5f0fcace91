"""The settings of metrics and traces, and what they open with a table. Nothing is imported for what is off."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import Field

from glyphoxa.config.located_yaml import written_as
from glyphoxa.config.sections import Section
from glyphoxa.config.settings import HERE, Settings, host_of
from glyphoxa.observability.timing import Observer
from glyphoxa.providers.extras import need


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
    from glyphoxa.plugins.monitoring.metrics import TableMetrics
    from glyphoxa.web.serving import bind

    options = ("observability.metrics_host", "observability.metrics_port")
    return TableMetrics(bind(chosen.metrics_host, chosen.metrics_port, options=options))


def open_traces(settings: Settings) -> Observer | None:
    """Raises: InvalidInput: A required package is not installed."""
    chosen = settings.section(ObservabilitySettings)
    if chosen.traces_endpoint is None:
        return None
    need("opentelemetry.sdk", by="observability.traces_endpoint", extra="observe")
    from glyphoxa.plugins.monitoring.tracing import TurnTracer, to_collector

    return TurnTracer(to_collector(chosen.traces_endpoint))
