from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from glyphoxa.cli.main import main
from tests.support.postgres import wait_until

CAMPAIGN = Path(__file__).parents[1] / "support" / "campaign.yaml"


@pytest.fixture
def settings_file(tmp_path: Path, dsn: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(f"memory:\n  postgres_dsn: {dsn}\n")
    return path


async def run(*arguments: object) -> int:
    """The command line, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(main, [str(argument) for argument in arguments])


async def test_a_campaign_is_loaded_and_shown(
    settings_file: Path, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-203, R-209"""
    assert await run("campaign", "load", CAMPAIGN, "--config", settings_file) == 0
    assert "The Bell of Saltmere (saltmere): 11 entities" in capsys.readouterr().out
    connection = await asyncpg.connect(dsn)
    counted = "SELECT type, count(*) FROM entities WHERE campaign_id = 'saltmere' GROUP BY type"
    counts = {row["type"]: row["count"] for row in await connection.fetch(counted)}
    await connection.close()
    assert counts == {"npc": 2, "location": 2, "item": 1, "faction": 2, "quest": 1, "spell": 1, "player": 2}
    assert await run("campaign", "show", "saltmere", "--config", settings_file) == 0
    shown = capsys.readouterr().out
    assert "Wardens of the Tide" in shown and "LOCATED_AT The Anvil" in shown


async def test_entities_are_only_removed_when_that_was_said(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await run("campaign", "load", CAMPAIGN, "--config", settings_file)
    smaller = tmp_path / "smaller.yaml"
    smaller.write_text(CAMPAIGN.read_text().replace("  - name: Tidewhisper\n    type: spell\n", ""))
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: SIM115, ASYNC230, PTH123
    assert await run("campaign", "load", smaller, "--config", settings_file) == 1
    told = capsys.readouterr()
    assert "Tidewhisper" in told.out and "--yes" in told.err
    assert await run("campaign", "load", smaller, "--yes", "--config", settings_file) == 0
    capsys.readouterr()
    await run("campaign", "show", "saltmere", "--config", settings_file)
    assert "Tidewhisper" not in capsys.readouterr().out


async def test_a_mistake_is_one_line_with_its_place_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("campaign:\n  nmae: Town\n")
    assert await run("campaign", "check", wrong) == 1
    told = capsys.readouterr().err
    assert f"{wrong}:2: unknown key 'nmae', did you mean 'name'?" in told
    assert "Traceback" not in told


async def test_without_long_term_memory_there_is_nothing_to_load_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C-54"""
    (tmp_path / "s.yaml").write_text("memory: {postgres_dsn: none}\n")
    assert await run("campaign", "load", CAMPAIGN, "--config", tmp_path / "s.yaml") == 1
    assert "there is no long-term memory" in capsys.readouterr().err


async def test_without_a_server_of_ones_own_the_embedded_one_is_started_and_stopped(
    reachable_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C-54"""
    from glyphoxa.adapters.postgres.embedded import EmbeddedPostgres

    monkeypatch.setenv("GLYPHOXA_DATA", str(reachable_dir))
    assert await run("campaign", "load", CAMPAIGN) == 0
    server = EmbeddedPostgres(reachable_dir / "postgres")
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)
    assert await run("campaign", "show") == 0
    assert "saltmere" in capsys.readouterr().out
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)
