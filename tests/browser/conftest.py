from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.support.browser import Open, browser
from tests.support.patience import DEADLINE_MS
from tests.support.web_table import TwinTable

# A machine that does much else at once is slow; waiting longer costs nothing when all is well.
expect.set_options(timeout=DEADLINE_MS)


@pytest.fixture
async def table() -> AsyncIterator[TwinTable]:
    table = TwinTable(reply_ms=3_000)
    yield table
    await table.close()


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens pages in browsers of their own; in the end none may have had an error or asked another server."""
    numbers = iter(range(99))

    @asynccontextmanager
    async def open_page(url: str, *, may_lose_server: bool = False, **options: object) -> AsyncIterator[Page]:
        async with browser(tmp_path / f"profile-{next(numbers)}", **options) as page:  # type: ignore[arg-type]
            errors: list[str] = []
            strangers: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
            page.on("request", lambda asked: strangers.append(asked.url) if not asked.url.startswith(url) else None)
            await page.goto(url)
            yield page
            assert strangers == []
            assert may_lose_server or errors == []

    return open_page
