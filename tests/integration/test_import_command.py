"""`glyphoxa import`, as a DM types it."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_portrait
from tests.support.command_line import CAMPAIGN_FILE, CommandLine, a_settings_file, rows, run
from tests.support.pictures import AUTHOR, a_picture
from tests.support.vault import a_vault


@pytest.fixture
def cli(tmp_path: Path, campaign_dsn: str, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, campaign_dsn), capsys)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return a_vault(tmp_path)


async def test_preview_lists_documents_without_a_database(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("memory:\n  postgres_dsn: postgresql://127.0.0.1:1/away\n")
    assert await run("import", "markdown", vault, "--preview", "--config", settings) == 0
    shown = capsys.readouterr().out
    assert ["Ysolde Marr", "npc", "note", "DM", "NPCs", "NPCs/Ysolde Marr.md"] in rows(shown)
    assert "brinewatch: 4 documents" in shown
    assert await run("import", "markdown", vault, "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(each["name"], each["type"], each["hidden"]) for each in found} == {
        ("Korvald Stane", "npc", False),
        ("Ysolde Marr", "npc", True),
        ("Gull Tower", "location", False),
        ("The Old Mill", "location", False),
    }
    assert found[0].keys() == {"name", "type", "kind", "hidden", "file", "key", "folders"}


async def test_import_changes_nothing_before_it_is_accepted(cli: CommandLine, vault: Path) -> None:
    told = await cli.told("import", "markdown", vault)
    assert "brinewatch (markdown:brinewatch): 4 new" in told
    assert "Gull Tower" not in await cli.told("campaign", "show")
    assert ["markdown:brinewatch", "note", "npc", "NPCs", "2"] in rows(await cli.told("import", "review"))
    one = await cli.told("import", "review", "the quartermaster")
    assert "Korvald Stane (npc), id" in one and "becomes: new" in one and "players): Korvald Stane keeps" in one
    accepted = await cli.told("import", "accept", "--type", "location", "--yes")
    assert "accepted: 2 documents" in accepted
    assert "Gull Tower" in await cli.told("campaign", "show")
    assert "Korvald" not in await cli.told("campaign", "show")


async def test_second_import_proposes_nothing_and_keeps_decisions(cli: CommandLine, vault: Path) -> None:
    await cli.told("import", "markdown", vault)
    await cli.told("import", "accept", "Gull Tower", "--yes")
    assert "skipped: 1 document" in await cli.told("import", "skip", "The Old Mill")
    assert "changed: 1 document" in await cli.told("import", "edit", "Korvald Stane", "--new-name", "Korvald")
    again = await cli.told("import", "markdown", vault)
    assert again.splitlines()[0] == "brinewatch (markdown:brinewatch): 3 unchanged, 1 skipped"
    assert [row[0] for row in rows(await cli.told("import", "review", "--all"))] == ["Korvald", "Ysolde Marr"]
    assert "restored: 1 document" in await cli.told("import", "restore", "the old mill")
    assert [row[0] for row in rows(await cli.told("import", "review", "--type", "location"))] == ["The Old Mill"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("accept",), "name documents, or select them with --type"),
        (("accept", "Nobody", "--yes"), "no imported document 'Nobody'"),
        (("edit", "Korvald Stane"), "nothing to change; use --new-name"),
        (("edit", "Korvald Stane", "--same-as", "Grimjow"), "no entity 'Grimjow' in campaign 'saltmere': did you mean"),
        (("markdown", "nowhere"), "nowhere is no file or folder"),
        (("markdown", "nowhere", "--preview"), "nowhere is no file or folder"),
    ],
)
async def test_refused_import_command_says_why(
    cli: CommandLine, vault: Path, arguments: tuple[str, ...], words: str
) -> None:
    await cli.told("import", "markdown", vault)
    assert words in await cli.problem("import", *arguments)


async def test_accept_asks_before_it_changes_the_campaign(
    cli: CommandLine, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cli.told("import", "markdown", vault)
    monkeypatch.setattr("sys.stdin", StringIO())
    code, shown, asked = await cli.run("import", "accept", "--all")
    assert code == 1 and "+ Gull Tower" in shown and "This accepts 4 documents. Use --yes" in asked
    assert "Gull Tower" not in await cli.told("campaign", "show")


def a_foundry_world(directory: Path) -> Path:
    """Three people: with a picture, with one of Foundry's own, and with one that is damaged."""
    world = directory / "brinewatch"
    actors = [
        ("k1", "Korvald Stane", "worlds/brinewatch/faces/korvald%20stane.png"),
        ("y1", "Ysolde Marr", "icons/svg/mystery-man.svg"),
        ("v1", "Vex", "worlds/brinewatch/faces/vex.png"),
    ]
    lines = [
        json.dumps({"_id": key, "name": name, "type": "npc", "img": path, "ownership": {"default": 2}})
        for key, name, path in actors
    ]
    for name, content in {
        "world.json": b'{"id": "brinewatch", "title": "Brinewatch", "coreVersion": "10.291"}',
        "data/actors.db": "\n".join(lines).encode(),
        "faces/korvald stane.png": a_picture("PNG"),
        "faces/vex.png": b"no picture",
    }.items():
        (world / name).parent.mkdir(parents=True, exist_ok=True)
        (world / name).write_bytes(content)
    return world


async def test_portraits_of_accepted_people_are_drawn_again(cli: CommandLine, tmp_path: Path) -> None:
    world, faces = a_foundry_world(tmp_path), tmp_path / "faces"
    file = Path(shutil.copy(CAMPAIGN_FILE, tmp_path / "campaign.yaml"))
    portraits = ("import", "foundry", world, "--campaign", file, "--portraits")
    assert "0 pictures of accepted people" in await cli.told(*portraits, faces)
    await cli.told("import", "accept", "--all", "--yes")
    told = await cli.told(*portraits, faces)
    assert "portrait: faces/korvald-stane.png  # Korvald Stane\n" in told
    assert "! Vex: 'worlds/brinewatch/faces/vex.png' is damaged, or is no PNG, JPEG or WebP\n" in told
    assert "1 picture of accepted people" in told
    assert [each.name for each in faces.iterdir()] == ["korvald-stane.png"]
    assert AUTHOR.encode() not in (faces / "korvald-stane.png").read_bytes()
    assert read_portrait(tmp_path, "faces/korvald-stane.png").content_type == "image/png"
    (faces / "korvald-stane.png").write_bytes(b"mine")
    assert "1 picture" in await cli.told(*portraits, faces)
    assert (faces / "korvald-stane.png").read_bytes() == b"mine"
    code, _, problem = await cli.run(*portraits, tmp_path.parent)
    assert code == 1 and "is outside of the campaign file's folder" in problem


async def test_show_says_from_which_document_an_entity_and_a_fact_come(cli: CommandLine, vault: Path) -> None:
    await cli.told("import", "markdown", vault)
    await cli.told("import", "accept", "--all", "--yes")
    shown = await cli.told("show", "entity", "Korvald Stane")
    where = "imported: markdown note Korvald Stane"
    assert f"{where} (NPCs/Korvald Stane.md)" in shown
    fact = next(line.split()[0] for line in shown.splitlines() if "description" in line)
    assert where in await cli.told("show", "fact", fact)
