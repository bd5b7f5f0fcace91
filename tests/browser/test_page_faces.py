"""Who is here, by a picture or by initials, and what each is doing; and nobody whom a player has not met."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import expect

from glyphoxa.domain.campaign import Portrait
from glyphoxa.domain.events import NpcSilent, NpcSpeaks, NpcThinks, PauseChanged
from glyphoxa.domain.ids import SceneId, TurnId
from glyphoxa.web.access.roles import Grant, Role
from glyphoxa.web.app import STATIC
from tests.support.axe import violations
from tests.support.browser import Open, sit
from tests.support.pictures import a_picture
from tests.support.web_door import a_door
from tests.support.web_table import CAMPAIGN, GRIMJAW, ODWINA, TAMSIN, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PICTURE = Portrait("image/png", a_picture("PNG"))


def with_pictures() -> TwinTable:
    """Grimjaw has a picture, and is at the forge; Odwina has none."""
    campaign = replace(CAMPAIGN, npcs=(replace(GRIMJAW, portrait=PICTURE), ODWINA))
    return TwinTable(campaign, reply_ms=0)


def contrasts() -> Iterator[float]:
    """Yield the contrast of white letters with each colour of a name."""
    for colour in re.findall(r'data-tint="\d+"\] \{ background: #(\w{6})', (STATIC / "app.css").read_text("utf-8")):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        yield 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


async def test_every_colour_of_a_name_can_be_read() -> None:
    found = list(contrasts())
    assert len(found) == 12
    assert min(found) >= 4.5


@pytest.mark.parametrize("width", [390, 1_440])
async def test_faces_show_who_listens_thinks_and_speaks(opened: Open, width: int) -> None:
    table = with_pictures()
    async with served(table) as url, opened(url, width=width, height=844) as page:
        await sit(page, "tamsin")
        shown = page.locator("#faces" if width == 390 else "#people")
        grimjaw, odwina = (shown.locator(f'[data-id="{npc.id}"]') for npc in (GRIMJAW, ODWINA))
        await expect(grimjaw.get_by_role("img", name="Portrait of Grimjaw")).to_be_visible()
        await expect(grimjaw.locator("img")).to_have_js_property("naturalWidth", 32)
        await expect(odwina.locator(".avatar")).to_have_text("OV")
        await expect(odwina.locator("small")).to_have_text("listening")
        table.tell(NpcThinks(ODWINA.id, ODWINA.name, TurnId("t1"), TAMSIN.id, 1))
        await expect(odwina.locator("small")).to_have_text("thinking")
        await expect(grimjaw.locator("small")).to_have_text("listening")
        table.tell(NpcSpeaks(ODWINA.id, ODWINA.name, TurnId("t1"), "Aye.", 1))
        await expect(odwina.locator("small")).to_have_text("speaking")
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        table.tell(NpcSilent(ODWINA.id, TurnId("t1"), 1))
        await expect(odwina.locator("small")).to_have_text("listening")
        table.tell(PauseChanged(is_paused=True, at_ms=1))
        await expect(odwina.locator("small")).to_have_text("paused")
        # What is not in the scene is not shown, and its picture is not asked for: that would be told in the console.
        await table.move(SceneId("inn-night"))
        await expect(grimjaw).to_have_count(0)
    await table.close()


async def test_the_picture_of_an_npc_that_is_elsewhere_is_for_the_game_master_alone(tmp_path: Path) -> None:
    table = with_pictures()
    async with a_door(tmp_path, table) as door:
        dm, player = await door.invited(Grant(Role.DM)), await door.invited(Grant(Role.PLAYER, TAMSIN.id))
        stranger = await door.invited(None)
        met = await player.http.get("/api/portraits/grimjaw")
        assert met.status_code == 200
        assert met.content == PICTURE.content
        assert met.headers["content-type"] == "image/png"
        assert met.headers["x-content-type-options"] == "nosniff"
        assert (await stranger.http.get("/api/portraits/grimjaw")).status_code == 401
        await table.move(SceneId("inn-night"))
        answers = [await player.http.get(f"/api/portraits/{npc}") for npc in ("grimjaw", "odwina", "nobody")]
        assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[2].content)}
        assert (await dm.http.get("/api/portraits/grimjaw")).status_code == 200
        told = (await player.http.get("/api/table")).text
        assert "grimjaw" not in told.lower()
