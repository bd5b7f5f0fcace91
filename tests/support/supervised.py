from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from glyphoxa.actors.supervisor import Supervisor


@asynccontextmanager
async def closing(supervisor: Supervisor) -> AsyncIterator[Supervisor]:
    """End a supervisor's actors after the block."""
    try:
        yield supervisor
    finally:
        await supervisor.close()
