"""`glyphoxa campaign`, as a DM types it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.cli.main import main

CAMPAIGN = Path(__file__).parents[1] / "support" / "campaign.yaml"


@pytest.fixture
def settings_file(tmp_path: Path, dsn: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(f"memory:\n  postgres_dsn: {dsn}\n")
    return path


@pytest.fixture(autouse=True)
def nobody_at_the_keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open("/dev/null") as nothing:  # noqa: PTH123
        monkeypatch.setattr("sys.stdin", nothing)
        yield


async def run(*arguments: object) -> int:
    """The command line, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(main, [str(argument) for argument in arguments])


async def load(file: Path, settings_file: Path, *more: object) -> int:
    return await run("campaign", "load", file, "--yes", "--config", settings_file, *more)


def changed(tmp_path: Path, was: str, now: str) -> Path:
    text = CAMPAIGN.read_text()
    assert was in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(was, now))
    return path


async def test_a_campaign_is_loaded_listed_and_shown(
    settings_file: Path, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await load(CAMPAIGN, settings_file) == 0
    told = capsys.readouterr().out
    assert "+ Grimjaw (npc)\n" in told and "The Bell of Saltmere (saltmere): 11 entities" in told
    connection = await asyncpg.connect(dsn)
    counted = "SELECT type, count(*) FROM entities WHERE campaign_id = 'saltmere' GROUP BY type"
    counts = {row["type"]: row["count"] for row in await connection.fetch(counted)}
    await connection.close()
    assert counts == {"npc": 2, "location": 2, "item": 1, "faction": 2, "quest": 1, "spell": 1, "player": 2}
    assert await run("campaign", "show", "--config", settings_file) == 0
    shown = capsys.readouterr().out
    assert "NPCs: Grimjaw, Elowen" in shown
    assert re.search(r"npc +Grimjaw +LOCATED_AT The Anvil, KNOWS Elowen", shown)
    assert re.search(r"faction +Reavers of Skarn +HOSTILE_TO Wardens of the Tide", shown)
    assert "OWES_MONEY_TO" not in shown  # waits for the DM
    assert await run("campaign", "list", "--config", settings_file) == 0
    assert re.search(r"saltmere +The Bell of Saltmere +0", capsys.readouterr().out)


async def test_nothing_is_changed_before_the_dm_has_seen_it(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await load(CAMPAIGN, settings_file)
    smaller = changed(tmp_path, "  - name: Tidewhisper\n    type: spell\n", "")
    capsys.readouterr()
    assert await run("campaign", "load", smaller, "--config", settings_file) == 1
    told = capsys.readouterr()
    assert "- Tidewhisper (spell)" in told.out and "Use --yes" in told.err
    await run("campaign", "show", "--config", settings_file)
    assert "Tidewhisper" in capsys.readouterr().out
    assert await load(smaller, settings_file) == 0
    capsys.readouterr()
    await run("campaign", "show", "--config", settings_file)
    assert "Tidewhisper" not in capsys.readouterr().out


async def test_the_same_file_again_has_nothing_to_change(
    settings_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await load(CAMPAIGN, settings_file)
    capsys.readouterr()
    assert await run("campaign", "load", CAMPAIGN, "--config", settings_file) == 0
    assert capsys.readouterr().out == "The Bell of Saltmere (saltmere): nothing to change\n"


async def test_a_decision_of_the_dm_is_pointed_out_where_the_file_meets_it(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await load(CAMPAIGN, settings_file)
    assert await run("entity", "remove", "Vaelith", "--yes", "--config", settings_file) == 0
    capsys.readouterr()
    assert await load(changed(tmp_path, "magical: true", "magical: false"), settings_file) == 0
    told = capsys.readouterr().out
    assert "! Vaelith: you removed it, so that what the file changed about it is left out" in told


async def test_tables_are_added_to_a_campaign(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await load(CAMPAIGN, settings_file)
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "entities.csv").write_text("name,type,aliases,hat\nOrla,npc,the miller,red\nGrimjaw,npc,,\n")
    (folder / "relationships.csv").write_text("source,type,target\nOrla,KNOWS,Grimjaw\n")
    capsys.readouterr()
    assert await load(folder, settings_file) == 0
    assert capsys.readouterr().out.startswith(
        "+ Orla (npc)\n+ Orla KNOWS Grimjaw\nThe Bell of Saltmere (saltmere): 12 ent"
    )
    assert await load(folder, settings_file) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert await load(CAMPAIGN, settings_file) == 0  # the file is not about them
    assert "nothing to change" in capsys.readouterr().out


async def test_a_table_makes_a_campaign_of_the_name_that_is_given(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "people.csv"
    table.write_text("name;type\nOrla;npc\n")
    assert await load(table, settings_file) == 1
    assert "no campaign is stored" in capsys.readouterr().err
    assert await load(table, settings_file, "--campaign", "New Town") == 1
    assert "'New Town' is no id of a campaign: lower-case words joined by `-`; 'new-town' would be" in (
        capsys.readouterr().err
    )
    assert await load(table, settings_file, "--campaign", "new-town") == 0
    assert "new-town (new-town): 1 entities" in capsys.readouterr().out
    assert await run("campaign", "show", "new-town", "--config", settings_file) == 0
    assert "Orla" in capsys.readouterr().out


async def test_a_campaign_is_forked(settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await load(CAMPAIGN, settings_file)
    assert await run("campaign", "fork", "saltmere", "saltmere-2", "--name", "Other", "--config", settings_file) == 0
    smaller = changed(tmp_path, "  - name: Tidewhisper\n    type: spell\n", "")
    await load(smaller, settings_file)
    capsys.readouterr()
    assert await run("campaign", "show", "saltmere-2", "--config", settings_file) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Other (saltmere-2)") and "Tidewhisper" in shown
    assert await run("campaign", "fork", "saltmere", "saltmere-2", "--config", settings_file) == 1
    assert "there is a campaign 'saltmere-2' already" in capsys.readouterr().err


async def test_a_campaign_file_is_for_its_own_campaign(settings_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await load(CAMPAIGN, settings_file, "--campaign", "town") == 1
    assert "is the file of campaign 'saltmere', not of 'town'" in capsys.readouterr().err


async def test_tables_are_checked_without_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "entities.csv").write_text("name,type\nOrla,npc\nBo,ncp\n")
    assert await run("campaign", "check", tmp_path) == 1
    assert f"{tmp_path}/entities.csv:3: unknown entity type 'ncp', did you mean 'npc'?" in capsys.readouterr().err
    assert await run("campaign", "check", tmp_path, "--entity-type", "ncp") == 0
    assert "2 entities, 0 relationships" in capsys.readouterr().out


async def test_links_of_tables_into_a_campaign_are_checked_where_one_is_named(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "entities.csv").write_text("name,type,known_by\nOrla,npc,Elowen\n")
    (tables / "relationships.csv").write_text("source,type,target\nOrla,KNOWS,Grimjaw\nOrla,OWNS,The Mil\n")
    assert await run("campaign", "check", tables) == 0
    told = capsys.readouterr().out
    assert (
        "not checked, as these are not in the tables: Elowen, Grimjaw, The Mil; to look for them: --campaign ID" in told
    )
    with_file = tmp_path / "with-file.yaml"
    with_file.write_text(f"campaign: {CAMPAIGN}\nmemory: {{postgres_dsn: none}}\n")
    assert await run("campaign", "check", tables, "--config", with_file) == 1
    assert "relationships.csv:3: unknown entity 'The Mil'" in capsys.readouterr().err
    assert await load(CAMPAIGN, settings_file) == 0
    assert await run("campaign", "check", tables, "--config", settings_file, "--campaign", "saltmere") == 1
    assert "relationships.csv:3: unknown entity 'The Mil'" in capsys.readouterr().err
    (tables / "relationships.csv").write_text("source,type,target\nOrla,KNOWS,Grimjaw\n")
    assert await run("campaign", "check", tables, "--config", settings_file, "--campaign", "saltmere") == 0
    assert "1 entities, 1 relationships" in capsys.readouterr().out
    assert await run("campaign", "check", tables, "--config", settings_file, "--campaign", "town") == 1
    assert "no campaign 'town' here" in capsys.readouterr().err


async def test_a_new_campaign_file_can_be_played_and_never_takes_the_place_of_another(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "harrow-quay.yaml"
    assert await run("campaign", "new", file, "--npc", "Brunhild", "--player", "Borin") == 0
    assert f"glyphoxa serve --open --campaign {file}" in capsys.readouterr().out
    assert await load(file, settings_file) == 0
    assert "Harrow Quay (harrow-quay): 3 entities" in capsys.readouterr().out
    before = file.read_text()
    assert await run("campaign", "new", file) == 1
    assert "exists already; nothing was written" in capsys.readouterr().err
    assert file.read_text() == before
    assert await run("campaign", "new", tmp_path / "other.yaml", "--language", "klingon!") == 1
    assert "is no tag of a language" in capsys.readouterr().err
    assert not (tmp_path / "other.yaml").exists()


async def test_without_long_term_memory_there_is_nothing_to_load_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text("memory: {postgres_dsn: none}\n")
    assert await run("campaign", "load", CAMPAIGN, "--config", tmp_path / "s.yaml") == 1
    assert "there is no long-term memory" in capsys.readouterr().err
