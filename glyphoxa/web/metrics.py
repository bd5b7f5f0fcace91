"""What a monitoring system asks, on a port of its own: figures, and whether the table lives and is ready."""

from __future__ import annotations

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.responses import Response
from starlette.routing import Route

SHARED = ("/healthz", "/readyz")
"""Routes that the page has as well."""


def create_metrics_app(page: FastAPI, registry: CollectorRegistry) -> FastAPI:
    """
    Args:
        page: The app whose health is told. It has to be running.
    """
    app = FastAPI(title="Glyphoxa metrics", docs_url=None, redoc_url=None, openapi_url=None)

    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/metrics", metrics, methods=["GET"])
    app.router.routes.extend(route for route in page.routes if isinstance(route, Route) and route.path in SHARED)
    return app
