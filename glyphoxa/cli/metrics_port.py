"""The port of its own on which `glyphoxa serve` answers a monitoring system."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from glyphoxa.actors.deadline import within
from glyphoxa.config.sections import ObservabilitySettings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from glyphoxa.bootstrap.observers import Observers

STOP_WITHIN_MS = 2_000


def bind_metrics(settings: ObservabilitySettings) -> contextlib.AbstractContextManager[socket.socket | None]:
    """Take the port, so that one that is in use is found before models are loaded. None where nobody asked for one.

    Raises:
        Unavailable: The port is in use, or may not be used.
        InvalidInput: The host is not an address of this machine.
    """
    from glyphoxa.web.serving import AddressOptions, bind

    if settings.metrics_port is None:
        return contextlib.nullcontext()
    named = AddressOptions("observability.metrics_host", "observability.metrics_port")
    return bind(settings.metrics_host, settings.metrics_port, named=named)


@contextlib.asynccontextmanager
async def serving_metrics(
    page: FastAPI, observers: Observers, listener: socket.socket | None
) -> AsyncIterator[str | None]:
    """While the page runs. Yields the address of the figures; None where nobody asked for them."""
    if listener is None or observers.metrics is None:
        yield None
        return
    from glyphoxa.web.app import create_metrics_app
    from glyphoxa.web.serving import Server, url_of

    server = Server(create_metrics_app(page, observers.metrics.registry))
    serving = asyncio.create_task(server.listen(listener))
    listener.listen()
    try:
        yield f"{url_of(listener)}metrics"
    finally:
        server.stop()
        await within(STOP_WITHIN_MS, "the port for figures", serving)
