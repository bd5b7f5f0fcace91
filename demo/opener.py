"""How the demo gets its table: the product's own, on this machine's models and database."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from glyphoxa.npc.table import Table


class OpenTable(Protocol):
    """Lays a table for a campaign file. The caller closes it."""

    async def __call__(self, campaign: Path, session_name: str) -> Table: ...
