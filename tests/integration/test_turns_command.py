"""`glyphoxa show turns` over turns that a table has recorded, with the real database."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glyphoxa.config.settings import Settings
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import TurnRecord
from tests.support.command_line import run, the_campaign
from tests.support.live_table import Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_MS

Capture = pytest.CaptureFixture[str]
GRIMJAW = NpcId("grimjaw")


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    campaign = write_campaign(tmp_path, others=["Eldrinax"])
    settings = settings_for(campaign, dsn, tmp_path)
    # A slow machine is no reason to leave a part out here.
    patient = {"part_deadline_ms": DEADLINE_MS, "recall_deadline_ms": DEADLINE_MS}
    return settings.model_copy(update={"context": settings.context.model_copy(update=patient)})


@pytest.fixture
def settings_file(tmp_path: Path, dsn: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(f"memory:\n  postgres_dsn: {dsn}\n")
    return path


async def asked(evening: Evening, text: str, *, player: int = 0) -> TurnRecord:
    (await evening.ear(evening.table.campaign.players[player])).say(text)
    turns = await evening.until(
        lambda: [e.turn for e in evening.told if isinstance(e, TurnFinished) and e.turn.raw_text == text]
    )
    return turns[0]


async def two_sessions(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grimjaw is told something; the next evening he is asked for it, and his model looks something up."""
    async with an_evening(settings, monkeypatch, session="s1", reply="I am sorry.") as evening:
        await asked(evening, "What a night.", player=1)
        await asked(evening, "Grimjaw, my brother Joren was lost in the fen.")
    async with an_evening(settings, monkeypatch, session="s2", reply="In the fen.") as evening:
        evening.mouths[GRIMJAW].looks_up = ("memory_query_entities", {"name": "Ironhold"})
        await asked(evening, "Grim jaw, where was my brother Joren lost?")


async def told(capsys: Capture, settings_file: Path, *arguments: object) -> str:
    """What the verb prints when it succeeds."""
    capsys.readouterr()
    assert await run("show", "turns", *arguments, "--config", settings_file) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def rows(shown: str) -> list[list[str]]:
    """Cells of a table, without its headings; cells are two spaces apart."""
    return [re.split(r" {2,}", line.strip()) for line in shown.splitlines()[1:]]


async def problem(capsys: Capture, settings_file: Path, *arguments: object) -> str:
    capsys.readouterr()
    assert await run("show", "turns", *arguments, "--config", settings_file) == 1
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    return err


async def test_the_dm_sees_why_an_npc_said_what_it_said(
    settings: Settings, settings_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    await two_sessions(settings, monkeypatch)
    latest, *_ = rows(await told(capsys, settings_file))
    assert latest[2:] == ["Tamsin: Grimjaw, where was my brother Joren lost?", "Grimjaw: In the fen.", "1 of 3"]

    explained = await told(capsys, settings_file, latest[0])
    for line in (
        r"^s2-\w+-t\d+: Tamsin to Grimjaw, \d{4}-\d\d-\d\d \d\d:\d\d$",
        r"^  heard: s2, ordinal 1, ",
        r"^    recognised as: Grim jaw, where was my brother Joren lost\?$",
        r"^    Grim jaw was put right as Grimjaw: .+, [01]\.\d\d$",
        r"^  addressed: Grimjaw was called$",
        r"^  might look into memory: FAST: the talk begins; this NPC may go no deeper$",
        r"^  answered, \d+ ms after the end of speech$",
        r"^    Tamsin said: Grimjaw, my brother Joren was lost in the fen\.$",
        r"^      known because: witnessed in session s1, ordinal 2, ",
        r"^      found by: .*words \d",
        r"^    found by words alone",
        r"^    You said: I am sorry\.$\n^      left out: its own words, and it is not asked what it said$",
        r"^    memory_query_entities \(name: Ironhold\), \d+ ms$",
        r'^      found: \{"name": "Ironhold"',
    ):
        assert re.search(line, explained, re.MULTILINE), (line, explained)
    assert "since then" not in explained

    prompt = await told(capsys, settings_file, "last", "--prompt")
    assert "Remembered: Tamsin said: Grimjaw, my brother Joren was lost in the fen." in prompt


async def test_what_was_rolled_back_since_is_marked(
    settings: Settings, settings_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    await two_sessions(settings, monkeypatch)
    assert await run("facts", "rollback", "s1", "1", "--yes", "--config", settings_file) == 0
    explained = (await told(capsys, settings_file, "last")).splitlines()
    # What was said to Grimjaw, what he said, what he recalled, and what of it he was not told.
    assert [len(line) - len(line.lstrip()) for line in explained if "since then: rolled back" in line] == [4, 4, 6, 6]


async def test_turns_are_those_of_a_session_and_of_an_npc(
    settings: Settings, settings_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    await two_sessions(settings, monkeypatch)
    brother, night = rows(await told(capsys, settings_file, "--session", "s1"))
    assert night[2:] == ["Bran: What a night.", "(answered by nobody: no name, and more than one could be meant)"]
    assert brother[2] == "Tamsin: Grimjaw, my brother Joren was lost in the fen."
    assert len(rows(await told(capsys, settings_file, "--npc", "grimjaw"))) == 2
    assert await told(capsys, settings_file, "--npc", "Eldrinax") == "no turn like that was recorded\n"
    assert "the last 1; --limit shows more" in await told(capsys, settings_file, "--limit", "1")
    assert "Bran to nobody" in await told(capsys, settings_file, night[0])
    assert "brother" in await told(capsys, settings_file, "last", "--session", "s1")

    assert "no session 's3' in campaign 'town': valid: 1 (s1), 2 (s2), last" in await problem(
        capsys, settings_file, "--session", "s3"
    )
    assert "did you mean 'Grimjaw'?" in await problem(capsys, settings_file, "--npc", "Grimjow")
    assert "no turn 't99' in campaign 'town': the latest are " in await problem(capsys, settings_file, "t99")
    assert "--prompt needs a turn" in await problem(capsys, settings_file, "--prompt")


async def test_a_fork_has_the_turns_of_its_campaign_and_no_other_sees_them(
    settings: Settings, settings_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    await two_sessions(settings, monkeypatch)
    assert await run("campaign", "fork", "town", "what-if", "--config", settings_file) == 0
    of_fork = await told(capsys, settings_file, "last", "--campaign", "what-if")
    assert "Tamsin said: Grimjaw, my brother Joren was lost in the fen." in of_fork
    await the_campaign(str(settings.memory.postgres_dsn))
    assert await told(capsys, settings_file, "--campaign", "saltmere") == "no turn was recorded yet\n"
    assert "no turn in campaign 'saltmere' yet" in await problem(
        capsys, settings_file, "last", "--campaign", "saltmere"
    )


async def test_without_long_term_memory_there_is_nothing_to_look_into(tmp_path: Path, capsys: Capture) -> None:
    settings_file = tmp_path / "settings.yaml"
    settings_file.write_text("memory:\n  postgres_dsn: none\n")
    assert "memory.postgres_dsn is none" in await problem(capsys, settings_file)
