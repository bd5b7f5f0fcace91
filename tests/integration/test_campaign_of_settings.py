"""Which campaign a verb means when its settings name one."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.config.campaign_file import read_campaign
from tests.support.command_line import a_settings_file, run

Capture = pytest.CaptureFixture[str]
OTHER = """
campaign: {name: The Mill, id: mill}
entities:
  - {name: Orla, type: npc}
  - {name: The Mill, type: location}
npcs: [{entity: Orla, persona: You are Orla., voice: heart}]
players: [{name: Wren}]
scenes: [{location: The Mill, npcs: [Orla]}]
"""


@pytest.fixture
async def two_campaigns(tmp_path: Path, campaign_dsn: str) -> Path:
    """Settings of a database with two campaigns, which name that of `mill.yaml`."""
    path = a_settings_file(tmp_path, campaign_dsn)
    mill = tmp_path / "mill.yaml"
    mill.write_text(OTHER)
    path.write_text(f"{path.read_text()}campaign: mill.yaml\n")
    async with open_store(campaign_dsn) as store:
        await store.campaigns.load(read_campaign(mill).campaign)
    return path


def a_table(settings: Path) -> Path:
    path = settings.with_name("entities.csv")
    path.write_text("name,type\nThe Weir,location\n")
    return path


def naming_none(settings: Path) -> Path:
    path = settings.with_name("naming-none.yaml")
    path.write_text(settings.read_text().replace("campaign: mill.yaml\n", ""))
    return path


@pytest.mark.parametrize(
    "verb", [("show", "entities"), ("names", "list"), ("show", "facts", "--about", "Orla"), ("campaign", "show")]
)
async def test_a_verb_means_the_campaign_of_its_settings(
    two_campaigns: Path, capsys: Capture, verb: tuple[str, ...]
) -> None:
    assert await run(*verb, "--config", two_campaigns) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "Grimjaw" not in shown
    assert "Orla" in shown or "nothing is known" in shown


async def test_tables_are_imported_into_the_campaign_of_the_settings(two_campaigns: Path, capsys: Capture) -> None:
    table = a_table(two_campaigns)
    assert await run("import", "csv", table, "--config", two_campaigns) == 0, capsys.readouterr().err
    assert await run("import", "review", "--campaign", "mill", "--config", two_campaigns) == 0
    assert "csv:entities" in capsys.readouterr().out


async def test_one_that_is_named_comes_first(two_campaigns: Path, capsys: Capture) -> None:
    assert await run("show", "entities", "--campaign", "saltmere", "--config", two_campaigns) == 0
    assert "Grimjaw" in capsys.readouterr().out


async def test_without_either_the_stored_ones_are_told(two_campaigns: Path, capsys: Capture) -> None:
    assert await run("show", "entities", "--config", naming_none(two_campaigns)) == 1
    assert "2 campaigns are stored; name one with --campaign" in capsys.readouterr().err


async def test_one_that_was_never_loaded_is_told_with_its_file(two_campaigns: Path, capsys: Capture) -> None:
    (two_campaigns.parent / "mill.yaml").write_text(OTHER.replace("id: mill", "id: new"))
    assert await run("facts", "review", "--config", two_campaigns) == 1
    assert "campaign 'new' of" in capsys.readouterr().err


async def test_a_stored_campaign_is_looked_into_though_its_file_has_gone(two_campaigns: Path, capsys: Capture) -> None:
    (two_campaigns.parent / "mill.yaml").unlink()
    assert await run("show", "entities", "--config", two_campaigns) == 1
    assert "no such file" in capsys.readouterr().err
    assert await run("show", "entities", "--campaign", "mill", "--config", two_campaigns) == 0
