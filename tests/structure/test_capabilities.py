"""Each capability names a module of the product and a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "capabilities.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([^|`]+) \| (`[^|]+) \| (`[^|]+) \|$", PAGE, re.MULTILINE)


def test_every_row_of_the_page_is_checked() -> None:
    titles = PAGE.count("| capability | module | test |") * 2
    assert len(ROWS) == len(re.findall(r"^\|", PAGE, re.MULTILINE)) - titles > 40


@pytest.mark.parametrize(("modules", "tests"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_row_names_existing_modules_and_tests(modules: str, tests: str) -> None:
    for path in re.findall(r"`([^`]+)`", modules):
        assert path.startswith(("glyphoxa/", "processors/", "pipelines/", "benchmarks/"))
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"`([^`]+)`", tests):
        assert re.search(r"/test_\w+\.py$", path), path
        assert "def test_" in (ROOT / path).read_text("utf-8"), path
