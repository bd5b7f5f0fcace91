"""`make screenshots`: every page of the desk and of the players, as a real browser draws it, to be looked at.

    python -m tests.support.screenshots [--out DIR] [--only PART]

Pages are drawn at 390 and 1,440 pixels, light and dark, on a campaign with two evenings. A page that writes an error to
the browser's console, or is wider than the window, is named, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page, expect

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.web.access.roles import Grant, Role
from tests.support.browser import a_browser
from tests.support.builders import an_utterance
from tests.support.command_line import CAMPAIGN_FILE, DEBT, SALTMERE, two_evenings
from tests.support.postgres import TestServer, a_directory, a_test_server
from tests.support.web_door import Door, a_door
from tests.support.web_table import TwinTable

DESK = (
    "/desk",
    "/desk/review",
    "/desk/knowledge?npc=grimjaw",
    "/desk/ask?npc=elowen&player=tamsin&say=Who+owes+you+money%3F",
    f"/desk/facts/{DEBT.fact_id}",
    "/desk/secrets",
    "/desk/world",
    "/desk/world/elowen?hops=2",
    "/desk/sessions",
    "/desk/sessions/s1",
    "/desk/sessions/s1/recap",
    "/desk/sessions/s1/memory",
    "/desk/sessions/s1/line?line=2",
    "/desk/sessions/s1/back?line=1",
    "/desk/names",
    "/desk/campaign",
    "/desk/turns",
    "/desk/table",
    "/desk/links",
)
README_PAGES = ("player-table", "desk-review")
GAP_PX = 20
SAID = (
    ("Tamsin", "Grimjaw, is my blade done?"),
    ("Grimjaw", "Sharp as the north wind, Tamsin. Come and see it."),
    ("Borin", "What do you ask for it?"),
    ("Grimjaw", "Five crowns, as we agreed."),
    ("Tamsin", "And what do you know about the bell?"),
    ("Grimjaw", "Only what the miller told me: it rang, and nobody was in the tower."),
)
SIZES = {"phone": (390, 844), "screen": (1_440, 900)}


@asynccontextmanager
async def a_played_campaign(directory: Path, server: TestServer) -> AsyncIterator[Door]:
    """A served table with a desk on two evenings."""
    file = Path(shutil.copy(CAMPAIGN_FILE, directory / "campaign.yaml"))
    campaign = read_campaign(file).campaign
    name = await server.create(filled=two_evenings)
    async with open_store(server.server.dsn(name)) as store:
        table = TwinTable(campaign=campaign, scene=campaign.scenes[0])
        table.earlier = [an_utterance(text, id=f"said-{n}", speaker=who) for n, (who, text) in enumerate(SAID)]
        source = Scope(store, Settings(campaign=file), SALTMERE)
        async with a_door(directory, table, desk=source) as door:
            yield door


async def draw(options: argparse.Namespace, directory: Path, server: TestServer) -> list[str]:
    """Write the pictures. Returns: What is wrong with pages."""
    problems: list[str] = []
    options.out.mkdir(parents=True, exist_ok=True)
    async with a_browser() as browser, a_played_campaign(directory, server) as door:
        for size in SIZES:
            for scheme in ("light", "dark"):
                problems += await _all(browser, door, (size, scheme), options)
    return problems


async def _all(browser: Browser, door: Door, how: tuple[str, str], options: argparse.Namespace) -> list[str]:
    size, scheme = how
    width, height = SIZES[size]
    problems: list[str] = []
    for who, paths in (("dm", DESK), ("player", ("/",))):
        context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        page = await context.new_page()
        page.on(
            "console",
            lambda line, told=problems: told.append(f"console: {line.text}") if line.type == "error" else None,
        )
        player = Grant(Role.PLAYER, door.table.campaign.players[0].id)
        await page.goto(door.links.dm_link() if who == "dm" else door.links.link(player))
        await page.wait_for_url(re.compile(r"/(desk)?$"))
        for path in paths:
            if options.only in path:
                await page.goto(f"{door.origin}{path}")
                problems += await _one(page, path, options.out / f"{size}-{scheme}-{_named(path)}.png")
        if who == "player" and options.only in "/":
            problems += await _at_the_table(page, options.out, f"{size}-{scheme}")
        await context.close()
    return problems


async def _at_the_table(page: Page, out: Path, look: str) -> list[str]:
    """Draw a player's way from the lobby: the test of the microphone, then their seat."""
    await page.get_by_role("button", name="Test the microphone").click()
    await expect(page.locator("#test-dialog")).to_be_visible()
    problems = await _one(page, "the microphone test", out / f"{look}-player-microphone.png")
    await page.keyboard.press("Escape")
    await page.locator(".seat").click()
    await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")
    return problems + await _one(page, "a seat", out / f"{look}-player-table.png")


async def _one(page: Page, path: str, file: Path) -> list[str]:
    await expect(page.locator("main:visible").first).to_be_visible()
    await page.screenshot(path=file, full_page=True)
    widest = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [f"{file.stem}: {path} is {widest} pixels wider than the window"] if widest > 0 else []


def join_for_readme(out: Path) -> None:
    """Write `table.png`: the players' page beside the DM's review page, as the README shows them."""
    pages = [Image.open(out / f"screen-light-{name}.png").crop((0, 0, *SIZES["screen"])) for name in README_PAGES]
    picture = Image.new("RGB", (sum(page.width for page in pages) + GAP_PX, pages[0].height), "white")
    for n, page in enumerate(pages):
        picture.paste(page, (n * (page.width + GAP_PX), 0))
    half = picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.LANCZOS)
    half.quantize(128).save(out / "table.png", optimize=True)


def _named(path: str) -> str:
    return re.sub(r"\W+", "-", path.partition("?")[0]).strip("-") or "player"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("screenshots"), help="a folder for the pictures (PNG)")
    parser.add_argument("--only", default="", help="a part of the paths of the pages that are drawn")
    options = parser.parse_args()
    with a_directory() as directory, a_test_server() as server:
        problems = asyncio.run(draw(options, directory, server))
    if not options.only:
        join_for_readme(options.out)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    sys.stdout.write(f"{len(list(options.out.glob('*.png')))} pictures are in {options.out}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
