"""axe-core finds what keeps people with assistive technology out of a page. Its script comes from a PyPI package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from playwright.async_api import Page


async def violations(page: Page) -> list[str]:
    """Return serious and critical faults of the present page: the rule, the node and why, a line each."""
    await page.evaluate(_source())
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']} ({violation['impact']}): {' '.join(node['target'])}: {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
