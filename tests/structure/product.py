"""The sources of the product: the packages in the wheel, and the demo."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_PACKAGES = ("glyphoxa", "processors/glyphoxa_processors", "pipelines/glyphoxa_pipelines", "demo")


@cache
def sources() -> dict[str, str]:
    """Return the text of each module, by its dotted name."""
    found = {}
    for folder in (PROJECT / package for package in _PACKAGES):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path.read_text("utf-8")
    return found
