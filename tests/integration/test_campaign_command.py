"""`glyphoxa campaign`, as a DM types it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.command_line import CommandLine, a_settings_file, run

CAMPAIGN = Path(__file__).parents[1] / "support" / "campaign.yaml"


@pytest.fixture
def cli(tmp_path: Path, dsn: str, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, dsn), capsys)


@pytest.fixture(autouse=True)
def nobody_at_the_keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open("/dev/null") as nothing:  # noqa: PTH123
        monkeypatch.setattr("sys.stdin", nothing)
        yield


def load(file: Path, *more: object) -> tuple[object, ...]:
    return ("campaign", "load", file, "--yes", *more)


def changed(tmp_path: Path, was: str, now: str) -> Path:
    text = CAMPAIGN.read_text()
    assert was in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(was, now))
    return path


async def test_a_campaign_is_loaded_listed_and_shown(cli: CommandLine, dsn: str) -> None:
    told = await cli.told(*load(CAMPAIGN))
    assert "+ Grimjaw (npc)\n" in told and "The Bell of Saltmere (saltmere): 11 entities" in told
    connection = await asyncpg.connect(dsn)
    counted = "SELECT type, count(*) FROM entities WHERE campaign_id = 'saltmere' GROUP BY type"
    counts = {row["type"]: row["count"] for row in await connection.fetch(counted)}
    await connection.close()
    assert counts == {"npc": 2, "location": 2, "item": 1, "faction": 2, "quest": 1, "spell": 1, "player": 2}
    shown = await cli.told("campaign", "show")
    assert "NPCs: Grimjaw, Elowen" in shown
    assert re.search(r"npc +Grimjaw +is at The Anvil, knows Elowen", shown)
    assert re.search(r"faction +Reavers of Skarn +is hostile to Wardens of the Tide", shown)
    assert "owes money to" not in shown  # waits for the DM
    assert re.search(r"saltmere +The Bell of Saltmere +0", await cli.told("campaign", "list"))


async def test_nothing_is_changed_before_the_dm_has_seen_it(cli: CommandLine, tmp_path: Path) -> None:
    await cli.told(*load(CAMPAIGN))
    smaller = changed(tmp_path, "  - name: Tidewhisper\n    type: spell\n", "")
    code, told, asked = await cli.run("campaign", "load", smaller)
    assert (code, "- Tidewhisper (spell)" in told, "Use --yes" in asked) == (1, True, True)
    assert "Tidewhisper" in await cli.told("campaign", "show")
    await cli.told(*load(smaller))
    assert "Tidewhisper" not in await cli.told("campaign", "show")


async def test_the_same_file_again_has_nothing_to_change(cli: CommandLine) -> None:
    await cli.told(*load(CAMPAIGN))
    assert await cli.told("campaign", "load", CAMPAIGN) == "The Bell of Saltmere (saltmere): nothing to change\n"


async def test_a_decision_of_the_dm_is_pointed_out_where_the_file_meets_it(cli: CommandLine, tmp_path: Path) -> None:
    await cli.told(*load(CAMPAIGN))
    await cli.told("entity", "remove", "Vaelith", "--yes")
    told = await cli.told(*load(changed(tmp_path, "magical: true", "magical: false")))
    assert "! Vaelith: you removed it, so the file's changes to it are skipped" in told


async def test_tables_are_reviewed_and_join_the_campaign(cli: CommandLine, tmp_path: Path) -> None:
    await cli.told(*load(CAMPAIGN))
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "entities.csv").write_text("name,type,aliases,hat\nOrla,npc,the miller,red\n")
    (folder / "relationships.csv").write_text("source,type,target,since\nGrimjaw,KNOWS,Orla,childhood\n")
    said = await cli.problem("campaign", "load", folder, "--yes")
    assert f"{folder} is no campaign file (YAML); to bring in tables: glyphoxa import csv {folder}" in said
    assert "2 new" in await cli.told("import", "csv", folder)
    told = await cli.told("import", "accept", "--all", "--yes")
    assert "+ Orla (npc)\n" in told and "+ Grimjaw knows Orla\n" in told and "+ Grimjaw (" not in told
    assert "2 unchanged" in await cli.told("import", "csv", folder)
    assert "nothing to change" in await cli.told(*load(CAMPAIGN))  # the file is not about them


async def test_a_campaign_is_forked(cli: CommandLine, tmp_path: Path) -> None:
    await cli.told(*load(CAMPAIGN))
    await cli.told("campaign", "fork", "saltmere", "saltmere-2", "--name", "Other")
    smaller = changed(tmp_path, "  - name: Tidewhisper\n    type: spell\n", "")
    await cli.told(*load(smaller))
    shown = await cli.told("campaign", "show", "saltmere-2")
    assert shown.startswith("Other (saltmere-2)") and "Tidewhisper" in shown
    assert "a campaign 'saltmere-2' already exists" in await cli.problem("campaign", "fork", "saltmere", "saltmere-2")


async def test_a_new_campaign_file_can_be_played_and_never_takes_the_place_of_another(
    cli: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "harrow-quay.yaml"
    assert await run("campaign", "new", file, "--npc", "Brunhild", "--player", "Borin") == 0
    assert f"glyphoxa serve --open --campaign {file}" in cli.capsys.readouterr().out
    assert "Harrow Quay (harrow-quay): 3 entities" in await cli.told(*load(file))
    before = file.read_text()
    assert await run("campaign", "new", file) == 1
    assert "exists already; nothing was written" in cli.capsys.readouterr().err
    assert file.read_text() == before
    assert await run("campaign", "new", tmp_path / "other.yaml", "--language", "klingon!") == 1
    assert "is not a language tag" in cli.capsys.readouterr().err
    assert not (tmp_path / "other.yaml").exists()


async def test_without_long_term_memory_there_is_nothing_to_load_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text("memory: {postgres_dsn: none}\n")
    assert await run("campaign", "load", CAMPAIGN, "--config", tmp_path / "s.yaml") == 1
    assert "there is no long-term memory" in capsys.readouterr().err
