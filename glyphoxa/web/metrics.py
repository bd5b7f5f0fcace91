"""What a monitoring system asks, on a port of its own: figures, and whether the table lives and is ready."""

from __future__ import annotations

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.responses import Response
from starlette.routing import Route


def create_metrics_app(page: FastAPI, registry: CollectorRegistry) -> FastAPI:
    """
    Args:
        page: The app of `create_app` whose health is told, all of it: this port is not for players. It has to be
            running.
    """
    app = FastAPI(title="Glyphoxa metrics", docs_url=None, redoc_url=None, openapi_url=None)

    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/metrics", metrics, methods=["GET"])
    app.add_api_route("/healthz", page.state.whole_health, methods=["GET"])
    app.router.routes.extend(route for route in page.routes if isinstance(route, Route) and route.path == "/readyz")
    return app
