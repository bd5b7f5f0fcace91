"""After an evening the DM decides what to keep of it, and only those who heard a line know what was accepted of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from glyphoxa.config.settings import Settings
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.turn_record import TurnRecord
from tests.support.command_line import CommandLine
from tests.support.live_table import Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_MS

HEARD = "Grimjaw, we burned the old mill at Ironhold because the rats carried the plague."
ELSEWHERE = "Grimjaw, I hid the silver bell of the abbey under the third stone bridge."


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    settings = settings_for(write_campaign(tmp_path, others=["Eldrinax"]), dsn, tmp_path)
    patient = {"recall_deadline_ms": DEADLINE_MS}
    return settings.model_copy(update={"context": settings.context.model_copy(update=patient)})


@pytest.fixture
def cli(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    path = tmp_path / "settings.yaml"
    stored = {
        "data_dir": str(settings.data_dir),
        "campaign": str(settings.campaign),
        "memory": {"postgres_dsn": settings.memory.postgres_dsn},
        "providers": {"embeddings": {"name": "none"}},
    }
    path.write_text(yaml.safe_dump(stored), "utf-8")
    return CommandLine(path, capsys)


async def asked(evening: Evening, text: str) -> TurnRecord:
    (await evening.ear(evening.table.campaign.players[0])).say(text)
    turns = await evening.until(
        lambda: [e.turn for e in evening.told if isinstance(e, TurnFinished) and e.turn.raw_text == text]
    )
    return turns[0]


async def play(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line is heard by both NPCs, the second by Grimjaw at the inn."""
    async with an_evening(settings, monkeypatch, session="first") as evening:
        await asked(evening, "Grimjaw, good evening.")
        await asked(evening, HEARD)
        await evening.table.move(evening.table.campaign.scenes[1].id)
        await asked(evening, ELSEWHERE)


def number_of(text: str, words: str) -> str:
    found = re.search(rf"^ +(\S+)  .*{re.escape(words)}", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


async def test_only_listeners_know_an_accepted_line(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await play(settings, monkeypatch)
    text = await cli.told("wrap-up", "first")
    mill, bell = number_of(text, "old mill"), number_of(text, "silver bell")
    assert "good evening" not in text
    text = await cli.told("wrap-up", "first", "--accept", bell, "--edit", mill, "The party burned the mill.")
    assert "The party burned the mill." in text
    aloud = [line for line in text.splitlines() if line.startswith("to read aloud: ")]
    assert aloud == ["to read aloud: The party burned the mill.", f"to read aloud: Tamsin said: “{ELSEWHERE}”"]
    text = await cli.told("wrap-up", "first")
    assert text.startswith("nothing is left to decide")
    facts = {npc: await cli.told("show", "facts", "--as", npc) for npc in ("Grimjaw", "Eldrinax")}
    assert "silver bell" in facts["Grimjaw"]
    assert "silver bell" not in facts["Eldrinax"]
    assert "The party burned the mill." in facts["Eldrinax"]
    async with an_evening(settings, monkeypatch, session="second") as evening:
        knows = await asked(evening, "Grimjaw, where is the silver bell of the abbey?")
        assert any("silver bell" in each.text for each in knows.prompt.recalled)
        knows = await asked(evening, "Grimjaw, what do you know about Tamsin?")
        assert "The party burned the mill." in knows.prompt.text, "only the accepted fact has these words"
        not_heard = await asked(evening, "Eldrinax, where is the silver bell of the abbey?")
        assert "third stone bridge" not in not_heard.prompt.text


async def test_undo_retraction_and_dropping(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await play(settings, monkeypatch)
    text = await cli.told("wrap-up")
    mill, bell = number_of(text, "old mill"), number_of(text, "silver bell")
    await cli.told("wrap-up", "--accept", bell, "--drop", mill)
    text = await cli.told("wrap-up")
    assert text.startswith("nothing is left to decide")
    assert "old mill" not in text
    assert f"'{bell}' is not proposed, or decided already" in await cli.problem("wrap-up", "--accept", bell)
    undone = await cli.told("facts", "undo")
    assert [words for words in undone.splitlines() if "silver bell" not in words and "old mill" not in words] == []
    assert "no facts need review" in await cli.told("facts", "review")
    text = await cli.told("wrap-up")
    assert (number_of(text, "old mill"), number_of(text, "silver bell")) == (mill, bell)
    assert "silver bell" not in await cli.told("show", "facts", "--as", "Grimjaw")
    await cli.told("wrap-up", "--to", bell, "Grimjaw", "--accept", mill)
    assert "silver bell" in await cli.told("show", "facts", "--as", "Grimjaw", "--about", "Grimjaw")
    await cli.told("transcript", "retract", "silver bell", "--yes")
    assert "silver bell" not in await cli.told("show", "facts")
    assert "silver bell" not in await cli.told("wrap-up")


async def test_what_cannot_be_decided_is_refused_whole(
    settings: Settings, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await play(settings, monkeypatch)
    text = await cli.told("wrap-up")
    mill, bell = number_of(text, "old mill"), number_of(text, "silver bell")
    assert f"open: {bell}, {mill}" in await cli.problem("wrap-up", "--accept", f"{mill},99")
    assert "two decisions" in await cli.problem("wrap-up", "--accept", mill, "--drop", f"{mill},{bell}")
    assert "one line, not" in await cli.problem("wrap-up", "--edit", "1-99", "So it was.")
    assert "no session" in await cli.problem("wrap-up", "7")
    assert await cli.told("wrap-up") == text
    async with an_evening(settings, monkeypatch, session="first") as evening:
        await asked(evening, "Grimjaw, good evening.")
        assert "is still open" in await cli.problem("wrap-up")
