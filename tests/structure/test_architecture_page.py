"""docs/architecture.md draws the packages as the import contracts hold them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_the_packages_stand_in_the_order_of_the_import_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = {contract["name"]: contract.get("layers", []) for contract in contracts}
    expected = [layer for layer in layers["Imports point down"] if layer != "glyphoxa"]
    expected += layers["Layers inside glyphoxa"]
    section = PAGE.partition("## Packages\n")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)`", cell) for cell in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)]
    assert rows == [re.findall(r"\w+", layer) for layer in expected]


def test_every_package_is_in_a_layer() -> None:
    section = PAGE.partition("## Packages\n")[2].partition("\n## ")[0]
    there = {path.parent.name for path in (ROOT / "glyphoxa").glob("*/__init__.py")}
    assert there <= set(re.findall(r"`(\w+)`", section))


def test_architecture_page_has_one_page() -> None:
    assert len(PAGE.splitlines()) < 100
