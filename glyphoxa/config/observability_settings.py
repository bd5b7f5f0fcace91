from __future__ import annotations

from typing import Annotated

from pydantic import Field

from glyphoxa.config.sections import Section


class ObservabilitySettings(Section):
    """How a table is watched from outside. Nothing of it holds what anybody said.

    Attributes:
        metrics_port: Where `glyphoxa serve` answers `/metrics` for Prometheus, and `/healthz` and `/readyz` once more,
            on a port of their own; 0 takes any free one. Left out: nowhere.
        metrics_host: The address for that port; the default is reachable from this machine only.
        traces_endpoint: Where a trace of each turn is sent, as OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`. Left
            out: nowhere.
    """

    metrics_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    metrics_host: str = "127.0.0.1"
    traces_endpoint: Annotated[str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$")] | None = None
