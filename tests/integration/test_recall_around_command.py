"""`glyphoxa recall --around` on a real database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.recall.vectors import Embedder
from tests.support.command_line import SALTMERE, a_settings_file, run

Capture = pytest.CaptureFixture[str]


async def embed(texts: list[str]) -> NDArray[float32]:
    return np.eye(len(texts), 384, dtype=np.float32)


@pytest.fixture
async def settings_file(tmp_path: Path, evenings_dsn: str) -> Path:
    async with open_store(evenings_dsn, data_dir=tmp_path, embedder=Embedder("m", 384, embed)) as store:
        await store.chunks.fill_missing(SALTMERE)
    return a_settings_file(tmp_path, evenings_dsn)


async def recalled(capsys: Capture, settings_file: Path, question: str, npc: str, *options: str) -> tuple[int, str]:
    capsys.readouterr()
    code = await run("recall", question, "--npc", npc, *options, "--config", settings_file)
    shown = capsys.readouterr()
    return code, shown.out or shown.err


async def test_what_was_said_of_who_is_there_is_found_by_the_place(settings_file: Path, capsys: Capture) -> None:
    asked = ("Who keeps from the water?", "Grimjaw", "--lexical", "--around", "The Anvil", "--explain")
    code, shown = await recalled(capsys, settings_file, *asked)
    assert code == 0
    assert "Elowen never goes near the water" in shown
    assert "names Elowen, 1 relation from The Anvil" in shown
    assert "forty silver" not in shown


async def test_who_heard_nothing_is_reminded_of_nothing(settings_file: Path, capsys: Capture) -> None:
    asked = ("Who keeps from the water?", "Elowen", "--lexical", "--around", "The Anvil")
    assert await recalled(capsys, settings_file, *asked) == (
        0,
        "Elowen has heard nothing of The Anvil, or of who is related, that bears on it\n",
    )


async def test_around_whom_nobody_is_called_is_an_error_with_the_names_that_are(
    settings_file: Path, capsys: Capture
) -> None:
    code, shown = await recalled(capsys, settings_file, "Who?", "Grimjaw", "--lexical", "--around", "The Anvill")
    assert code == 1
    assert "The Anvil" in shown
    code, shown = await recalled(capsys, settings_file, "Who?", "Grimjaw", "--method", "llm", "--around", "The Anvil")
    assert (code, "leave out --method" in shown) == (1, True)
