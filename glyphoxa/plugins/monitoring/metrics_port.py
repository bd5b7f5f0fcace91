"""Metrics, health and readiness of a served table, on a port of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.routing import Route

from glyphoxa.cli.scope import say
from glyphoxa.plugins.monitoring.settings import ObservabilitySettings
from glyphoxa.web.desk.frame import ServedTable
from glyphoxa.web.serving import Server, url_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_STOP_MS: Final = 2_000


def serve_metrics(served: ServedTable) -> None:
    """Serve metrics while the page runs, if a port is set."""
    if served.settings.section(ObservabilitySettings).metrics_port is None:
        return
    from glyphoxa.plugins.monitoring.metrics import TableMetrics

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


def create_metrics_app(page: FastAPI, registry: CollectorRegistry) -> FastAPI:
    """Make the app for monitoring on a port of its own: metrics, health and readiness.

    Args:
        page: The app of `create_app`, which has to be running. All of its health is told: this port is not for players.
    """
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    app = FastAPI(title="Glyphoxa metrics", docs_url=None, redoc_url=None, openapi_url=None)

    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/metrics", metrics, methods=["GET"])
    app.add_api_route("/healthz", page.state.whole_health, methods=["GET"])
    app.router.routes.extend(route for route in page.routes if isinstance(route, Route) and route.path == "/readyz")
    return app
