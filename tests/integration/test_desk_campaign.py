"""The campaign file in the desk: looked at, added to, kept in the file and in the world, or refused as a whole."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import text_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId
from glyphoxa.web.access.roles import Grant, Role
from tests.support.command_line import CAMPAIGN_FILE, SALTMERE
from tests.support.web_door import Visitor, a_door
from tests.support.web_table import TwinTable

ORLA = {
    "person-name": "Orla Fenn",
    "person-voice": "old_woman",
    "person-scene": "smithy",
    "person-persona": "You are Orla Fenn, the ferrywoman: tired, # and kind.\r\nYou speak little.",
}


@pytest.fixture
async def store(evenings_dsn: str) -> AsyncIterator[Store]:
    async with open_store(evenings_dsn) as store:
        yield store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAMPAIGN_FILE, tmp_path / "campaign.yaml"))


@pytest.fixture
async def dm(store: Store, file: Path, tmp_path: Path) -> AsyncIterator[Visitor]:
    campaign = read_campaign(file).campaign
    await store.campaigns.load(campaign)
    table = TwinTable(campaign)
    async with a_door(tmp_path, table, desk=Scope(store, Settings(campaign=file), SALTMERE)) as door:
        yield await door.invited(Grant(Role.DM))


async def shown(dm: Visitor, form: Mapping[str, str] | None = None) -> httpx.Response:
    """The page, or what it answers."""
    if form is None:
        return await dm.http.get("/desk/campaign")
    return await dm.http.post("/desk/campaign", data=dict(form), follow_redirects=True)


def carried(page: httpx.Response) -> dict[str, str]:
    """Return the hidden fields and the text of the page's form."""
    assert page.status_code == 200, page.text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w*)">', page.text))
    found = re.search(r'<textarea name="text".*?>\n(.*?)</textarea>', page.text, re.DOTALL)
    assert found
    return {**hidden, "text": html.unescape(found[1])}


async def names(store: Store) -> set[str]:
    return {each.name for each in (await store.world.now(SALTMERE)).entities.values()}


async def test_npc_added_by_form_is_saved_to_file_and_world(dm: Visitor, store: Store, file: Path) -> None:
    before = text_of(file)
    added = await shown(dm, {**carried(await shown(dm)), **ORLA, "do": "add person"})
    assert "<li>NPC Orla Fenn</li>" in added.text
    assert text_of(file) == before, "nothing is kept yet"
    kept = await shown(dm, {**carried(added), "do": "save"})
    assert "The campaign file is saved" in kept.text
    campaign = read_campaign(file).campaign
    orla = campaign.npcs[-1]
    assert (orla.name, orla.voice.preset) == ("Orla Fenn", "old_woman")
    assert orla.persona == "You are Orla Fenn, the ferrywoman: tired, # and kind. You speak little."
    assert orla.id in campaign.scenes[0].npcs
    left = [line for line in before.splitlines() if line not in text_of(file).splitlines()]
    assert left == ["    npcs: [Grimjaw]"], "comments and all other lines stay as their author wrote them"
    assert "Orla Fenn" in await names(store)
    assert "The campaign matches this file" in (await shown(dm)).text


async def test_text_with_mistakes_is_shown_with_lines_and_not_saved(dm: Visitor, file: Path) -> None:
    before = text_of(file)
    form = carried(await shown(dm))
    wrong = {**form, "text": before.replace("type: location", "type: lokation", 1)}
    looked = await shown(dm, {**wrong, "do": "check"})
    line = next(n for n, each in enumerate(wrong["text"].splitlines(), 1) if "lokation" in each)
    assert f"Line {line}: unknown entity type" in looked.text
    assert 'value="save"' not in looked.text
    refused = await shown(dm, {**carried(looked), "do": "save"})
    assert "cannot be saved" in refused.text
    assert "lokation" in carried(refused)["text"], "what was typed is not lost"
    assert text_of(file) == before


async def test_save_is_refused_after_a_change_that_was_not_shown(dm: Visitor, store: Store, file: Path) -> None:
    looked = carried(await shown(dm, {**carried(await shown(dm)), **ORLA, "do": "add person"}))
    other = {**looked, "text": looked["text"].replace("Orla", "Arla")}
    assert "not what you were shown" in (await shown(dm, {**other, "do": "save"})).text
    _append(file, "# changed with an editor\n")
    changed = await shown(dm, {**looked, "do": "save"})
    assert "was changed by somebody else in the meantime" in changed.text
    assert "Orla" in carried(changed)["text"]
    assert "Orla Fenn" not in await names(store)
    assert "Orla" not in text_of(file)


async def test_file_is_unchanged_if_the_database_refuses_the_campaign(dm: Visitor, store: Store, file: Path) -> None:
    """Another window loads the campaign between preview and saving."""
    before = text_of(file)
    looked = carried(await shown(dm, {**carried(await shown(dm)), **ORLA, "do": "add person"}))
    campaign = read_campaign(file).campaign
    other = Entity(EntityId("newcomer"), "npc", "Newcomer")
    await store.campaigns.load(type(campaign)(**{**_fields(campaign), "entities": (*campaign.entities, other)}))
    refused = await shown(dm, {**looked, "do": "save"})
    assert "not what you were shown" in refused.text
    assert "Newcomer" in refused.text, "what keeping it would do now is shown"
    assert text_of(file) == before


def _append(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]


async def test_refused_campaign_form_reports_why(dm: Visitor, file: Path) -> None:
    before = text_of(file)
    for form, words in (
        ({"do": "add person"}, "Name is empty"),
        ({"do": "add person", "person-name": "Zed", "person-scene": "smithi"}, "There is no scene 'smithi'"),
        ({"do": "add dragon"}, "Cannot add a 'dragon'"),
        ({"do": "add secret", "secret-text": "It burns.", "secret-known_by": "Nobody"}, "is not listed under `npcs:`"),
        ({"do": "save", "shown": "x"}, "not what you were shown"),
    ):
        answer = await shown(dm, {**carried(await shown(dm)), **form})
        assert answer.status_code == 200, form
        assert words in html.unescape(answer.text), form
    assert text_of(file) == before


async def test_text_of_another_campaign_or_too_long_is_refused(dm: Visitor, file: Path) -> None:
    form = carried(await shown(dm))
    other = await shown(dm, {**form, "text": form["text"].replace("id: saltmere", "id: elsewhere"), "do": "check"})
    assert "the one that is open is 'saltmere'" in html.unescape(other.text)
    long = await shown(dm, {**form, "text": "#" * 1_000_001, "do": "check"})
    assert long.status_code == 400
    assert "can be changed here" in long.text


async def test_campaign_file_is_downloaded_unchanged(dm: Visitor, file: Path) -> None:
    answer = await dm.http.get("/desk/campaign.yaml")
    assert answer.text == text_of(file)
    assert "attachment" in answer.headers["content-disposition"]
