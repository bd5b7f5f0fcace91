"""The desk's page Import: a file is uploaded and read, and the game master decides on its documents."""

from __future__ import annotations

import asyncio
import html
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest
from playwright.async_api import expect

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.desk import desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.app.source_reader import SourceReader, _reader_of
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.dm.source_world import ImportKind, SourceWorld
from glyphoxa.domain.campaign import NodeType
from glyphoxa.plugins.imports.files import TEMPORARY
from glyphoxa.web.access.roles import Grant, Role
from tests.support.axe import violations
from tests.support.browser import a_browser, a_page
from tests.support.command_line import CAMPAIGN_FILE, SALTMERE
from tests.support.patience import DEADLINE_S
from tests.support.vault import CACHE_TEXT, a_vault, a_zip
from tests.support.web_door import Door, Visitor, a_door
from tests.support.web_table import TAMSIN, TwinTable

SOURCE = "markdown:brinewatch"


@pytest.fixture
async def store(campaign_dsn: str) -> AsyncIterator[Store]:
    async with open_store(campaign_dsn) as store:
        yield store


@pytest.fixture
async def door(store: Store, tmp_path: Path) -> AsyncIterator[Door]:
    campaign = read_campaign(CAMPAIGN_FILE).campaign
    table = TwinTable(campaign)
    async with a_door(tmp_path, table, desk=Scope(store, Settings(), SALTMERE)) as door:
        yield door


@pytest.fixture
async def importer(door: Door) -> Visitor:
    """The game master, whose files a process reads as it is used."""
    return await door.invited(Grant(Role.DM))


@pytest.fixture
def dm(importer: Visitor, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    """The game master, whose files are read here: a process takes a second to start."""

    async def read(_: SourceReader, kind: ImportKind, path: Path) -> SourceWorld:
        return await asyncio.to_thread(_reader_of(kind), kind, path)

    monkeypatch.setattr(SourceReader, "read", read)
    return importer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return a_zip(a_vault(tmp_path))


async def upload(visitor: Visitor, file: Path) -> httpx.Response:
    params = {"kind": "markdown", "name": file.name}
    content = await asyncio.to_thread(file.read_bytes)
    return await visitor.http.post("/desk/import/file", params=params, content=content)


def copies(file: Path) -> list[Path]:
    """Return the remaining copies of uploads of this file."""
    return list(Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*/{file.name}"))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - a folder tells nobody when it changes
            await asyncio.sleep(0.01)


async def post(dm: Visitor, form: Mapping[str, str]) -> str:
    """The line about what was done, or why it was not."""
    page = await dm.http.post("/desk/import", data=dict(form), follow_redirects=True)
    found = re.search(r'<p class="(?:done|problem)".*?>(.*?)</p>', page.text)
    assert found, page.text
    return found[1]


async def key_of(dm: Visitor, name: str) -> str:
    page = (await dm.http.get("/desk/import")).text
    found = re.search(r'name="key" value="([^"]*)">(?:(?!name="key").)*?: ' + name, page, re.DOTALL)
    assert found, page
    return found[1]


async def entities(store: Store) -> dict[str, str]:
    return {each.name: each.type for each in (await store.world.now(SALTMERE)).entities.values()}


async def test_uploaded_file_is_read_and_needs_review(importer: Visitor, store: Store, file: Path) -> None:
    before = await entities(store)
    answer = (await upload(importer, file)).json()
    assert answer["lines"][0] == f"brinewatch ({SOURCE}): 4 new"
    page = (await importer.http.get("/desk/import")).text
    assert 'Needs review <span class="count-of">4</span>' in page
    assert "Korvald Stane" in page and CACHE_TEXT in page
    assert await entities(store) == before
    assert (await upload(importer, file)).json()["lines"][0] == f"brinewatch ({SOURCE}): 4 unchanged"
    assert copies(file) == []


async def test_a_document_gets_a_type_that_the_campaign_declares(dm: Visitor, store: Store, file: Path) -> None:
    await upload(dm, file)
    tower = {"source": SOURCE, "key": await key_of(dm, "Gull Tower")}
    edited = {"do": "edit", **tower, "new_name": "Gull Tower", "new_type": "beacon", "same_as": "", "hidden": ""}
    assert "nknown entity type" in await post(dm, edited)
    campaign = await store.campaigns.get(SALTMERE)
    await store.campaigns.load(replace(campaign, node_types={"beacon": NodeType()}))
    assert await post(dm, edited) == "Changed: Gull Tower."
    await post(dm, {"do": "accept", **tower})
    assert (await entities(store))["Gull Tower"] == "beacon"


async def test_documents_are_accepted_edited_and_skipped(dm: Visitor, store: Store, file: Path) -> None:
    await upload(dm, file)
    korvald = {"source": SOURCE, "key": await key_of(dm, "Korvald Stane")}
    edited = {"new_name": "Korvald", "new_type": "npc", "same_as": "", "hidden": ""}
    assert await post(dm, {"do": "edit", **korvald, **edited}) == "Changed: Korvald."
    assert (await post(dm, {"do": "accept", **korvald})).startswith("Accepted: 1 document, with ")
    assert (await entities(store))["Korvald"] == "npc"
    tower = {"source": SOURCE, "key": await key_of(dm, "Gull Tower")}
    assert await post(dm, {"do": "skip", **tower}) == "Skipped: 1 document."
    assert "Gull Tower" not in (await dm.http.get("/desk/import")).text
    assert "Gull Tower" in (await dm.http.get("/desk/import?decision=skipped")).text
    assert await post(dm, {"do": "restore", **tower}) == "Review again: 1 document."
    assert "Gull Tower" in (await dm.http.get("/desk/import")).text
    assert "no longer needs review" in await post(dm, {"do": "edit", **korvald, **edited})


async def test_group_is_shown_before_it_is_accepted(dm: Visitor, store: Store, file: Path) -> None:
    await upload(dm, file)
    page = (await dm.http.get("/desk/import/accept?type=location")).text
    assert "Accept 2 documents" in page and "Gull Tower" in page and "Korvald" not in page
    refused = await post(dm, {"do": "accept", "type": "location", "n": "3"})
    assert refused == "You saw 3 of these documents, and there are 2 now; nothing was changed."
    assert "Gull Tower" not in await entities(store)
    assert (await post(dm, {"do": "accept", "type": "location", "n": "2"})).startswith("Accepted: 2 documents")
    assert {"Gull Tower", "The Old Mill"} <= (await entities(store)).keys()


async def test_group_of_a_folder_leaves_other_groups_alone(dm: Visitor, tmp_path: Path) -> None:
    vault = a_vault(tmp_path)
    (vault / "Osric Fenn.md").write_text("---\ntype: npc\n---\nOsric Fenn mends nets.\n", "utf-8")
    (vault / "Places/NPCs").mkdir()
    (vault / "Places/NPCs/Tilda Roe.md").write_text("---\ntype: npc\n---\nTilda Roe sells eels.\n", "utf-8")
    await upload(dm, a_zip(vault))
    page = (await dm.http.get("/desk/import")).text
    assert f"source={SOURCE.replace(':', '%3A')}&amp;type=npc&amp;kind=note&amp;folder=%2F" in page
    group = {"source": SOURCE, "type": "npc", "kind": "note", "folder": "/", "n": "1"}
    assert "in no folder" in (await dm.http.get("/desk/import", params=group)).text
    assert await post(dm, {"do": "skip", **group}) == "Skipped: 1 document."
    assert await post(dm, {"do": "skip", **group, "folder": "/NPCs", "n": "2"}) == "Skipped: 2 documents."
    left = (await dm.http.get("/desk/import")).text
    assert "Tilda Roe" in left and "Gull Tower" in left and "Korvald Stane" not in left
    assert "nothing was changed" in await post(dm, {"do": "skip", "n": "1"})


async def test_page_says_why_a_document_is_hidden_and_what_may_be_secret(dm: Visitor, tmp_path: Path) -> None:
    vault = a_vault(tmp_path)
    (vault / "Osric Fenn.md").write_text("---\naccess: keeper\n---\nOsric Fenn mends nets.\n", "utf-8")
    (vault / "Tilda Roe.md").write_text("Tilda Roe is a spy.\n\n## DM\n\nShe lies.\n", "utf-8")
    lines = (await upload(dm, a_zip(vault))).json()["lines"]
    assert any("Osric Fenn (property 'access: keeper'); Tilda Roe, in part (heading 'DM')" in line for line in lines)
    assert any(line.startswith("! may be secret") and "Tilda Roe (spy)" in line for line in lines)
    page = html.unescape((await dm.http.get("/desk/import")).text)
    assert "Hidden by its mark: property 'access: keeper'" in page
    assert "Hidden in part by its mark: heading 'DM'" in page
    assert "May be secret, but players may know it: spy." in page


async def test_hidden_group_is_accepted_as_what_only_the_dm_knows(dm: Visitor, store: Store, file: Path) -> None:
    await upload(dm, file)
    assert "nothing was changed" in await post(dm, {"do": "hide", "type": "location", "n": "9"})
    assert await post(dm, {"do": "hide", "type": "location", "n": "2"}) == "Hidden: 2 documents."
    await post(dm, {"do": "accept", "type": "location", "n": "2"})
    seen = (await desk_of(Scope(store, Settings(), SALTMERE))).seen
    assert [each.visibility.scope for each in seen if each.entity.name == "Gull Tower"] == ["hidden"]


async def test_document_may_be_an_entity_of_the_campaign(dm: Visitor, store: Store, file: Path) -> None:
    await upload(dm, file)
    korvald = {"source": SOURCE, "key": await key_of(dm, "Korvald Stane")}
    edited = {"new_name": "Korvald Stane", "new_type": "npc", "same_as": "Grimjaw", "hidden": ""}
    await post(dm, {"do": "edit", **korvald, **edited})
    assert "part of Grimjaw" in (await dm.http.get("/desk/import")).text
    await post(dm, {"do": "accept", **korvald})
    [grimjaw] = [
        each.entity for each in (await desk_of(Scope(store, Settings(), SALTMERE))).seen if each.entity.id == "grimjaw"
    ]
    assert "Korvald Stane" in (grimjaw.name, *grimjaw.aliases)


@pytest.mark.parametrize(
    ("name", "kind", "content", "words"),
    [
        ("../../etc/x.zip", "markdown", b"PK\x03\x04 and no more", "x.zip is a damaged zip"),
        ("x.zip", "notes", b"", "unknown tool"),
    ],
)
async def test_upload_that_cannot_be_read_is_refused(
    importer: Visitor, name: str, kind: str, content: bytes, words: str
) -> None:
    params = {"kind": kind, "name": name}
    answer = await importer.http.post("/desk/import/file", params=params, content=content)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(words)
    assert tempfile.gettempdir() not in answer.text


async def test_upload_beyond_the_limit_is_refused_and_deleted(
    dm: Visitor, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glyphoxa.plugins.imports.page.MOST_BYTES", 100)
    answer = await upload(dm, file)
    assert answer.json() == {"error": "a request may have at most 100 bytes"}
    assert copies(file) == []


async def test_upload_that_breaks_off_leaves_nothing_behind(door: Door, dm: Visitor, file: Path) -> None:
    seen: list[list[Path]] = []

    async def half() -> AsyncIterator[bytes]:
        yield b"PK\x03\x04"
        await until(lambda: bool(copies(file)))
        seen.append(copies(file))
        raise ConnectionResetError

    params = {"kind": "markdown", "name": file.name}
    with pytest.raises(ConnectionResetError):
        await dm.http.post("/desk/import/file", params=params, content=half())
    await until(lambda: not copies(file))
    assert len(seen) == 1
    assert (await upload(dm, file)).json()["lines"][0].endswith(": 4 new")


def reading() -> list[psutil.Process]:
    def is_one(process: psutil.Process) -> bool:
        try:
            return "glyphoxa.app.source_reader" in process.cmdline()
        except psutil.NoSuchProcess:  # it has ended since it was listed
            return False

    return list(filter(is_one, psutil.Process().children()))


def a_program(path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Let another program run as the process that reads a source."""
    path.write_text(f"#!{sys.executable}\n{what}\n", "utf-8")
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a source takes as long as somebody waits for it."""
    a_program(tmp_path / "endless", monkeypatch, "import sys; sys.stdin.read()")


@pytest.mark.usefixtures("endless")
async def test_second_import_is_refused_while_one_is_read(importer: Visitor, file: Path) -> None:
    first = asyncio.create_task(upload(importer, file))
    await until(lambda: bool(reading()))
    second = await upload(importer, file)
    assert second.status_code == 409
    assert second.json() == {"error": "another import is being read now; try again when it has ended"}
    assert not first.done() and len(reading()) == 1
    first.cancel()
    await until(lambda: not reading() and not copies(file))


async def test_reading_process_that_crashes_is_reported(
    importer: Visitor, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_program(tmp_path / "crashes", monkeypatch, "import os; os.abort()")
    answer = await upload(importer, file)
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("brinewatch.zip was not read to its end (exit code -6): it needs more")


async def test_reading_process_has_the_lowest_priority_and_ends_with_its_input(tmp_path: Path) -> None:
    source = tmp_path / "v"
    source.mkdir()
    for n in range(200):
        (source / f"{n}.md").write_text("[[" * 70_000, "utf-8")
    program = (sys.executable, "-m", "glyphoxa.app.source_reader", "markdown", str(source))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe)
    await until(lambda: psutil.Process(process.pid).nice() == 19)
    assert process.stdin is not None
    process.stdin.close()  # as when the tables' process is killed
    assert await process.communicate() == (b"", None)
    assert process.returncode == 1


async def test_import_reports_that_the_database_is_away(store: Store, dm: Visitor, file: Path) -> None:
    await store.database.close()
    answer = await upload(dm, file)
    page = await dm.http.get("/desk/import")
    assert answer.status_code == page.status_code == 503
    assert "error" in answer.json() and "Something went wrong" in page.text


async def test_player_can_neither_see_nor_upload_imports(door: Door, file: Path) -> None:
    player = await door.invited(Grant(Role.PLAYER, TAMSIN.id))
    assert (await player.http.get("/desk/import")).status_code == 403
    assert (await upload(player, file)).status_code == 403
    assert (await player.http.post("/desk/import", data={"do": "accept", "n": "4"})).status_code == 403


@pytest.mark.browser
async def test_import_page_uploads_and_decides_in_a_browser(door: Door, file: Path) -> None:
    async with a_browser() as browser, a_page(browser, width=390, height=900) as page:
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        await page.goto(door.links.dm_link())
        await page.wait_for_url(f"{door.origin}/desk")
        await page.goto(f"{door.origin}/desk/import")
        assert await violations(page) == []
        await page.get_by_role("combobox", name="Tool").select_option("markdown")
        await page.locator("input[type=file]").set_input_files(file)
        await page.get_by_role("button", name="Upload and read").click()
        await expect(page.locator("#upload-result")).to_contain_text("4 new")
        await page.get_by_role("link", name="Show what needs review").click()
        await page.locator(".card", has_text="Ysolde Marr").get_by_text("Edit").click()
        for width in (390, 1_440):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await violations(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        await page.get_by_role("button", name=re.compile("^Skip.*Ysolde Marr")).click()
        await expect(page.locator(".done")).to_have_text("Skipped: 1 document.")
        await page.get_by_role("link", name="Accept all 3").click()
        assert await violations(page) == []
        await page.get_by_role("button", name="Accept").click()
        await expect(page.locator(".done")).to_contain_text("Accepted: 3 documents")
        assert errors == []
