"""What counts as the product: the packages in the wheel, and the demo."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.support.reach import sources_below

PROJECT = Path(__file__).parents[2]
_PACKAGES = ("glyphoxa", "processors/glyphoxa_processors", "pipelines/glyphoxa_pipelines", "demo")


@cache
def sources() -> dict[str, str]:
    """The text of each module, by its dotted name."""
    return sources_below(*(PROJECT / package for package in _PACKAGES))
