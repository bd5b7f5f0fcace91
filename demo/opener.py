"""How the demo gets its table: the product's own, on this machine's models and database unless settings say else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from glyphoxa.config.settings import read_settings
from glyphoxa.npc.table import Table


class OpenTable(Protocol):
    """Lays a table for a campaign file. The caller closes it. `tell` takes lines about what takes long."""

    async def __call__(self, campaign: Path, *, session: str, config: Path, tell: Callable[[str], None]) -> Table: ...


async def open_local(campaign: Path, *, session: str, config: Path, tell: Callable[[str], None]) -> Table:
    """The table as `glyphoxa serve` opens it.

    Raises:
        InvalidInput: The settings or the campaign file cannot be used.
        Unavailable: A model or the database cannot be reached.
    """
    # The voice stack takes a second to import; a mistake in the script is reported before.
    from glyphoxa.app.table import open_table

    settings = read_settings(config).model_copy(update={"campaign": campaign})
    table = await open_table(settings, session_name=session, tell=tell)
    await table.wait_until_ready()
    return table
