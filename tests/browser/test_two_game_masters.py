"""Two game masters and three players at one real table, each in a browser: who sees what, and who does not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, WebSocket, expect

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance, witnessed_by
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import Cause
from tests.support.axe import violations
from tests.support.browser import a_page, say, sit
from tests.support.builders import an_utterance
from tests.support.live_table import an_evening, settings_for, write_campaign
from tests.support.postgres import TestServer, a_test_server
from tests.support.web_table import served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PLAYERS = ("tamsin", "bran", "mira")
DIRECTION = "Hint that the miller lies."
WHISPER = "Your pocket holds a cold coin."
DEBT, FEAR = "debt", "fear"


@pytest.fixture(scope="module")
def postgres() -> Iterator[TestServer]:
    with a_test_server() as server:
        yield server


@dataclass
class Tab:
    """A page, and every message that it was sent."""

    page: Page
    sent: list[str]
    problems: list[str]

    async def shows(self, selector: str, text: str | re.Pattern[str]) -> None:
        await expect(self.page.locator(selector).last).to_have_text(text)

    async def presses(self, name: str) -> None:
        """With the keyboard alone."""
        await self.page.get_by_role("button", name=name, exact=True).focus()
        await self.page.keyboard.press("Enter")


def watched(page: Page) -> Tab:
    tab = Tab(page, [], [])

    def opened(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: tab.sent.append(str(frame)))

    page.on("websocket", opened)
    page.on("pageerror", lambda error: tab.problems.append(str(error)))
    page.on("console", lambda line: tab.problems.append(line.text))
    return tab


@dataclass
class House:
    """Two windows of the game masters, on a screen and on a phone, and the pages of `PLAYERS`."""

    url: str
    dms: tuple[Tab, Tab]
    players: dict[str, Tab]

    @property
    def tabs(self) -> list[Tab]:
        return [*self.dms, *self.players.values()]


@asynccontextmanager
async def a_house(
    browser: Browser,
    postgres: TestServer,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    seats: Sequence[str] = PLAYERS,
) -> AsyncIterator[House]:
    dsn = postgres.server.dsn(await postgres.create())
    players = [{"name": name.capitalize()} for name in PLAYERS]
    campaign = write_campaign(directory, others=["Eldrinax"], players=players)
    async with AsyncExitStack() as stack:
        evening = await stack.enter_async_context(an_evening(settings_for(campaign, dsn, directory), monkeypatch))
        await learned(dsn, directory)
        links = Links(evening.table.campaign, directory)
        entrance = Entrance(links)
        url = await stack.enter_async_context(served(evening.table, entrance=entrance, desk=evening.desk))
        links.served_at(f"{url}/")

        async def tab(link: str, width: int) -> Tab:
            made = watched(await stack.enter_async_context(a_page(browser, width=width, height=900)))
            await made.page.goto(link)
            return made

        first = await tab(links.dm_link(), 1_440)
        second = await tab(links.dm_link(), 390)
        for dm in (first, second):
            await expect(dm.page.locator("#wire-state")).to_have_text("live")
        seated = {}
        for name, width in zip(seats, (390, 1_440, 390), strict=False):
            grant = next(Grant(Role.PLAYER, player) for player in links.players if player == name)
            seated[name] = await tab(links.link(grant), width)
            await sit(seated[name].page, name)
        yield House(url, (first, second), seated)


async def learned(dsn: str, directory: Path) -> None:
    """Store lines of an earlier session, and two facts about Grimjaw that need review."""
    campaign, line = CampaignId("town"), UtteranceId("old-1")
    async with open_store(dsn) as store:
        said = [replace(an_utterance(text, id=f"old-{n}"), witnesses=HEARD) for n, text in enumerate(SAID, start=1)]
        await store.log.append([replace(each, session_id=SessionId("old")) for each in said])
        for value, predicate in (("40", DEBT), ('"the sea"', FEAR)):
            claim = Claim(EntityId("grimjaw"), predicate, value=value)
            provenance = Provenance(0.4, "inferred", False, "talk", SessionId("old"), line, 1, 1)
            stated = FactStated(claim, provenance, witnessed_by([NpcId("grimjaw")], at_ms=1, utterance=line))
            await store.world.commit(campaign, [stated], Cause("talk", 1, SessionId("old"), 1, line))


HEARD = frozenset({NpcId("grimjaw")})
SAID = (
    "Grimjaw never goes near the water, and he owes the captain forty crowns.",
    "I hid the silver bell of the abbey under the third stone bridge.",
    "We promised the miller that Bran will bring the ledger to the tower.",
    "The queen was poisoned with hemlock by her own sister in winter.",
)


async def test_lines_are_decided_on_by_keyboard(
    chromium: Browser, postgres: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(chromium, postgres, tmp_path, monkeypatch, seats=()) as house:
        (one, other), keys, facts = house.dms, house.dms[0].page.keyboard, house.dms[0].page.locator(".fact")
        focused = one.page.locator(".fact:focus")

        async def left(n: int) -> None:
            await expect(facts).to_have_count(n)
            await expect(focused).to_have_count(1)

        await one.page.goto(f"{house.url}/desk/sessions")
        await one.page.get_by_role("link", name="Wrap-up: decide what to keep").click()
        await expect(facts).to_have_count(5)
        assert await violations(one.page) == []
        await other.page.goto(one.page.url)
        await keys.press("j")
        first = await focused.locator(".fact-words").inner_text()
        await keys.press("a")
        await expect(one.page.locator(".done")).to_contain_text("Decided: ")
        await left(4)
        await keys.press("u")
        await left(5)
        await expect(focused.locator(".fact-words")).to_have_text(first)
        await keys.press("e")
        await keys.press("Escape")
        await expect(focused.locator(".fact-words")).to_have_text(first)
        await keys.press("e")
        await keys.type("Nobody knows where it is.")
        await keys.press("Enter")
        await left(4)
        await keys.press("t")
        await keys.type("Eldrinax")
        await keys.press("Enter")
        await left(3)
        await keys.press("d")
        await left(2)
        # The second game master still sees the first one.
        await other.page.keyboard.press("j")
        await other.page.keyboard.press("a")
        await expect(other.page.locator(".problem")).to_contain_text("is not proposed, or decided already")
        await one.page.goto(f"{house.url}/desk/knowledge?npc=grimjaw")
        await expect(one.page.locator("main")).to_contain_text("Nobody knows where it is.")
        assert one.problems == []


async def test_each_command_reaches_only_its_recipients(
    chromium: Browser, postgres: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(chromium, postgres, tmp_path, monkeypatch) as house:
        (one, other), (tamsin, bran, mira) = house.dms, house.players.values()

        # Muted: the player who asks is told, others read only the question, and the other game master sees the mute.
        await one.presses("Mute Grimjaw")
        for dm in house.dms:
            await expect(dm.page.locator("#in-force")).to_contain_text(re.compile("mute", re.IGNORECASE))
        await say(tamsin.page, "Grimjaw, is it done?")
        await tamsin.shows("#said .note", "The game master has muted the character you spoke to.")
        await bran.shows("#said .said .words", "Grimjaw, is it done?")
        await expect(bran.page.locator("#said .note")).to_have_count(0)
        await other.presses("Unmute Grimjaw")
        await expect(one.page.locator("#in-force")).not_to_contain_text(re.compile("mute", re.IGNORECASE))

        # Directed: both game masters see it, and no player is sent a word of it.
        await other.page.get_by_label("Direct Grimjaw").fill(DIRECTION)
        await other.page.get_by_label("Direct Grimjaw").press("Enter")
        for dm in house.dms:
            await expect(dm.page.locator("#in-force")).to_contain_text(DIRECTION)

        # Whispered: to Bran alone.
        await one.page.get_by_label("Whisper to").select_option("bran")
        await one.page.get_by_label("Message", exact=True).fill(WHISPER)
        await one.page.get_by_label("Message", exact=True).press("Enter")
        await bran.shows("#said .whisper", f"The game master whispers to you: {WHISPER}")

        # Paused and resumed: everybody.
        await one.presses("Pause the table")
        for player in house.players.values():
            await expect(player.page.locator('.notice[data-topic="paused"]')).to_be_visible()
        await expect(other.page.locator("#wire-state")).to_have_text("paused")
        await other.presses("Resume")
        await expect(one.page.locator("#wire-state")).to_have_text("live")
        await expect(mira.page.locator('.notice[data-topic="paused"]')).to_have_count(0)

        # Said as an NPC, and stopped: everybody hears it.
        await other.page.get_by_label("Say as Eldrinax").fill("Who goes there?")
        await other.page.get_by_label("Say as Eldrinax").press("Enter")
        for tab in house.tabs:
            await expect(tab.page.locator("#said .said.npc .words").last).to_have_text("Who goes there?")
        await one.page.keyboard.press("Alt+Shift+S")
        for dm in house.dms:
            await expect(dm.page.locator("#answer")).to_have_text("everybody was stopped")

        # Moved: everybody, and whoever is not there has no face there.
        await other.page.get_by_label("Scene").select_option("inn")
        await other.presses("Move the table")
        for player in house.players.values():
            await player.shows("#place", "The Drowned Lantern")
            await expect(player.page.locator('[data-id="eldrinax"]')).to_have_count(0)
        await expect(one.page.locator(".npc-card[data-here]")).to_have_count(1)
        await say(mira.page, "Grimjaw, are you here?")
        for tab in house.tabs:
            await tab.shows("#said .said.npc .words", "Aye.")

        for name, player in house.players.items():
            sent = "\n".join(player.sent)
            assert DIRECTION not in sent, name
            assert (WHISPER in sent) == (name == "bran"), name
            assert '"in_force"' not in sent, name
        for tab in house.tabs:
            assert await violations(tab.page) == []
            assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert tab.problems == []
