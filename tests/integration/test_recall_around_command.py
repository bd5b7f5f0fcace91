"""`glyphoxa recall --around` on a real database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.recall.vectors import Embedder
from tests.support.command_line import SALTMERE, CommandLine, a_settings_file

Capture = pytest.CaptureFixture[str]


async def embed(texts: list[str]) -> NDArray[float32]:
    return np.eye(len(texts), 384, dtype=np.float32)


@pytest.fixture
async def cli(tmp_path: Path, evenings_dsn: str, capsys: Capture) -> CommandLine:
    async with open_store(evenings_dsn, embedder=Embedder("m", 384, embed)) as store:
        await store.chunks.fill_missing(SALTMERE)
    return CommandLine(a_settings_file(tmp_path, evenings_dsn), capsys)


ASKED = ("recall", "Who keeps from the water?", "--lexical", "--around", "The Anvil", "--npc")


async def test_lines_about_people_at_a_place_are_found_by_the_place(cli: CommandLine) -> None:
    shown = await cli.told(*ASKED, "Grimjaw", "--explain")
    assert "Elowen never goes near the water" in shown
    assert "names Elowen, 1 relation from The Anvil" in shown
    assert "forty silver" not in shown


async def test_who_heard_nothing_is_reminded_of_nothing(cli: CommandLine) -> None:
    told = "Elowen has heard nothing relevant about The Anvil or related entities\n"
    assert await cli.told(*ASKED, "Elowen") == told


async def test_around_whom_nobody_is_called_is_an_error_with_the_names_that_are(cli: CommandLine) -> None:
    asked = ("recall", "Who?", "--npc", "Grimjaw", "--around")
    assert "The Anvil" in await cli.problem(*asked, "The Anvill", "--lexical")
    assert "cannot be combined with --method" in await cli.problem(*asked, "The Anvil", "--method", "llm")
