"""`glyphoxa show turns` over turns that a table has recorded, with the real database."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glyphoxa.config.settings import Settings
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn_record import TurnRecord
from tests.support.command_line import CommandLine, a_settings_file, rows, the_campaign
from tests.support.live_table import Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_MS

Capture = pytest.CaptureFixture[str]
GRIMJAW = NpcId("grimjaw")


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    campaign = write_campaign(tmp_path, others=["Eldrinax"])
    settings = settings_for(campaign, dsn, tmp_path)
    # A slow machine is no reason to leave a part out here.
    patient = {"recall_deadline_ms": DEADLINE_MS}
    return settings.model_copy(update={"context": settings.context.model_copy(update=patient)})


@pytest.fixture
def cli(tmp_path: Path, dsn: str, capsys: Capture) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, dsn), capsys)


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


async def test_the_dm_sees_why_an_npc_said_what_it_said(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_sessions(settings, monkeypatch)
    latest, *_ = rows(await cli.told("show", "turns"))
    assert latest[2:] == ["Tamsin: Grimjaw, where was my brother Joren lost?", "Grimjaw: In the fen.", "1 of 3"]

    explained = await cli.told("show", "turns", latest[0])
    for line in (
        r"^s2-\w+-t\d+: Tamsin to Grimjaw, \d{4}-\d\d-\d\d \d\d:\d\d$",
        r"^  heard: session 2, line 1, ",
        r"^    recognised as: Grim jaw, where was my brother Joren lost\?$",
        r"^    Grim jaw was corrected to Grimjaw: .+, [01]\.\d\d$",
        r"^  addressed: Grimjaw was called$",
        r"^  memory tier: FAST: first turn of the conversation; limited by this NPC's tier$",
        r"^  answered, \d+ ms after the end of speech$",
        r"^    Tamsin said \(last session\): Grimjaw, my brother Joren was lost in the fen\.$",
        r"^      known because: witnessed in session 1, line 2, ",
        r"^      found by: .*words \d",
        r"^    found by words only",
        r"^    You said \(last session\): I am sorry\.$\n"
        r"^      left out: its own words, and the question does not ask for them$",
        r"^    memory_query_entities \(name: Ironhold\), \d+ ms$",
        r'^      found: \{"name": "Ironhold"',
    ):
        assert re.search(line, explained, re.MULTILINE), (line, explained)
    assert "since then" not in explained

    prompt = await cli.told("show", "turns", "last", "--prompt")
    assert "Remembered: Tamsin said (last session): Grimjaw, my brother Joren was lost in the fen." in prompt


async def test_turns_are_those_of_a_session_and_of_an_npc(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_sessions(settings, monkeypatch)
    brother, night = rows(await cli.told("show", "turns", "--session", "s1"))
    assert night[2:] == ["Bran: What a night.", "(answered by nobody: no name, and several NPCs are here)"]
    assert brother[2] == "Tamsin: Grimjaw, my brother Joren was lost in the fen."
    assert len(rows(await cli.told("show", "turns", "--npc", "grimjaw"))) == 2
    assert await cli.told("show", "turns", "--npc", "Eldrinax") == "no turn like that was recorded\n"
    assert "the last 1; --limit shows more" in await cli.told("show", "turns", "--limit", "1")
    assert "Bran to nobody" in await cli.told("show", "turns", night[0])
    assert "brother" in await cli.told("show", "turns", "last", "--session", "s1")

    said = await cli.problem("show", "turns", "--session", "s3")
    assert "no session 's3' in campaign 'town': valid: 1 (s1), 2 (s2), last" in said
    assert "--prompt needs a turn" in await cli.problem("show", "turns", "--prompt")


async def test_a_fork_has_the_turns_of_its_campaign_and_no_other_sees_them(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_sessions(settings, monkeypatch)
    await cli.told("campaign", "fork", "town", "what-if")
    of_fork = await cli.told("show", "turns", "last", "--campaign", "what-if")
    assert "Tamsin said (last session): Grimjaw, my brother Joren was lost in the fen." in of_fork
    await the_campaign(str(settings.memory.postgres_dsn))
    assert await cli.told("show", "turns", "--campaign", "saltmere") == "no turn was recorded yet\n"
    assert "no turn in campaign 'saltmere' yet" in await cli.problem("show", "turns", "last", "--campaign", "saltmere")


async def test_without_long_term_memory_there_is_nothing_to_look_into(tmp_path: Path, capsys: Capture) -> None:
    cli = CommandLine(a_settings_file(tmp_path, "none"), capsys)
    assert "memory.postgres_dsn is none" in await cli.problem("show", "turns")
