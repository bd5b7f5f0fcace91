"""`glyphoxa show context` prints the prompt that a table sends for the same line, and what it consists of."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.turn_record import TurnRecord
from tests.support.command_line import run
from tests.support.live_table import an_evening, settings_for, write_campaign

Capture = pytest.CaptureFixture[str]
LINE = "Grimjaw, do you remember what I told you of my brother and of Eldrinacks?"
ODO = "Grimjaw, who is Odo?"
KNOWN = {"name": "Odo", "type": "npc", "attributes": {"description": "Odo keeps bees."}}


@pytest.fixture
def settings_file(tmp_path: Path, dsn: str) -> Path:
    """Write settings of a campaign that nobody has played. Nothing is late, however slow the machine."""
    campaign = write_campaign(tmp_path, more=[KNOWN])
    settings = settings_for(campaign, dsn, tmp_path / "data")
    document = settings.model_dump(mode="json", include={"campaign", "data_dir", "memory", "providers"})
    document["context"] = {"recall_deadline_ms": 5_000}
    path = tmp_path / "settings.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


async def shown(capsys: Capture, settings_file: Path, *options: object, line: str = LINE) -> dict[str, Any]:
    capsys.readouterr()
    asked = ("show", "context", "--npc", "Grimjaw", "--say", line, "--json", *options, "--config", settings_file)
    assert await run(*asked) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


async def played(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *lines: str, session: str = "evening"
) -> TurnRecord:
    """Return the turn record of the last of these lines."""
    async with an_evening(settings, monkeypatch, session=session) as evening:
        await evening.ear()

        def finished(n: int) -> list[TurnRecord]:
            turns = [event.turn for event in evening.told if isinstance(event, TurnFinished)]
            return turns if len(turns) == n else []

        for n, line in enumerate(lines, start=1):
            evening.table.say(evening.table.campaign.players[0].id, line)
            turns = await evening.until(partial(finished, n))
        await evening.table.kept()
        return turns[-1]


def text_of(prompt: dict[str, Any]) -> str:
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in prompt["messages"])


def sizes(parts: Any) -> dict[str, int]:
    return {part["name"]: part["tokens"] for part in parts}


async def explains_each_part(settings_file: Path, capsys: Capture) -> None:
    capsys.readouterr()
    asked = ("show", "context", "--npc", "grimjaw", "--player", "Liora", "--say", LINE, "--config", settings_file)
    assert await run(*asked) == 0
    out = capsys.readouterr().out
    assert out.startswith("[system]\nYou are Grimjaw.")
    assert "Liora says: Grimjaw, do you remember" in out
    assert "\nits prompt: about " in out
    for part in ("persona: ", "identity: ", "question: ", "recall: "):
        assert f"\n  {part}" in out
    assert ", recalled now, " in out
    said = "  Tamsin said (last session): Grimjaw, my brother Joren was lost in the fen."
    assert f"{said}\n    known because: witnessed in session 1, line 1, " in out


async def test_the_prompt_that_is_printed_is_the_one_that_is_sent(
    settings_file: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the beginning of a session, and within one."""
    settings = read_settings(settings_file)
    turn = await played(settings, monkeypatch, "Grimjaw, my brother Joren was lost in the fen.", session="first")
    first = await shown(capsys, settings_file)
    assert "Joren was lost in the fen" in text_of(first)
    await explains_each_part(settings_file, capsys)
    turn = await played(settings, monkeypatch, LINE, session="second")
    assert text_of(first) == turn.prompt.text
    assert sizes(first["parts"]) == {part.name: part.tokens for part in turn.prompt.parts}
    goes_on = await shown(capsys, settings_file, "--session", "second", line=ODO)
    turn = await played(settings, monkeypatch, ODO, session="second")
    assert text_of(goes_on) == turn.prompt.text


async def test_a_campaign_that_is_not_stored_is_shown_as_its_first_turn_sends_it(
    settings_file: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await shown(capsys, settings_file, line=ODO)
    turn = await played(read_settings(settings_file), monkeypatch, ODO)
    assert "Odo keeps bees." in text_of(before)
    assert text_of(before) == turn.prompt.text


async def test_what_cannot_be_shown_is_one_clear_line(settings_file: Path, capsys: Capture) -> None:
    for options, wrong in (
        (("--npc", "Grimjaw", "--say", " "), "--say is empty"),
        (("--npc", "Nobody", "--say", "Hello"), "no NPC 'Nobody'"),
        (("--npc", "Grimjaw", "--say", "Hello", "--scene", "moon"), "no scene 'moon'"),
        (("--npc", "Grimjaw", "--say", "Hello", "--session", "never"), "no session 'never'"),
    ):
        capsys.readouterr()
        assert await run("show", "context", *options, "--config", settings_file) == 1
        err = capsys.readouterr().err
        assert wrong in err
        assert "Traceback" not in err
