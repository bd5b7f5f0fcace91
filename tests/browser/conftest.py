from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.support.browser import Open, a_browser, a_page
from tests.support.web_table import TwinTable


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for all tests of this run that need no flags of their own. It belongs to the session's event loop."""
    async with a_browser() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def table() -> AsyncIterator[TwinTable]:
    table = TwinTable(reply_ms=300)
    yield table
    await table.close()


@pytest.fixture
def opened(chromium: Browser) -> Open:
    """Opens pages that share nothing; in the end none may have had an error or asked another server."""

    @asynccontextmanager
    async def open_page(
        url: str, *, may_lose_server: bool = False, flags: dict[str, object] | None = None, **options: int | str
    ) -> AsyncIterator[Page]:
        """
        Args:
            flags: Arguments of `a_browser`, for a browser of its own.
            options: Options of `a_page`.
        """
        async with AsyncExitStack() as stack:
            browser = await stack.enter_async_context(a_browser(**flags)) if flags else chromium  # type: ignore[arg-type]
            page = await stack.enter_async_context(a_page(browser, **options))  # type: ignore[arg-type]
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
