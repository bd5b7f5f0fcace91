"""Evenings on different days of a story, from the campaign file to what an NPC recalls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.background import timeline_writer
from glyphoxa.config.settings import Settings
from glyphoxa.domain.calendar import StoryDays
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn_record import TurnRecord
from tests.support.builders import SMITH
from tests.support.command_line import run
from tests.support.live_table import an_evening, patient, settings_for, write_campaign

TOWN = CampaignId("town")
MONTHS = {"Hammer": 30, "Midwinter": 1, "Alturiak": 30}
Capture = pytest.CaptureFixture[str]
NINE, TWO = "The ferryman asked nine silver of me.", "The ferryman asked two silver of me."


def campaign_file(directory: Path, *, today: str = "", language: str = "en") -> Path:
    return write_campaign(
        directory,
        campaign={"id": "town", "name": "The Town", "language": language, "time_zone": "Europe/Berlin"},
        calendar={"months": MONTHS, "weekdays": ["Moonday", "Starday"], "today": today},
    )


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    settings = settings_for(campaign_file(tmp_path, today="12 Hammer 1492"), dsn, tmp_path)
    return patient(settings)


@pytest.fixture
def settings_file(tmp_path: Path, dsn: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(f"data_dir: {tmp_path}\nmemory:\n  postgres_dsn: {dsn}\nproviders:\n  embeddings: {{name: none}}\n")
    return path


async def two_evenings(settings: Settings, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One on 12 Hammer, one on 25 Hammer."""
    async with an_evening(settings, monkeypatch, session="s1") as evening:
        await evening.asked(NINE)
    campaign_file(directory, today="25 Hammer 1492")
    async with an_evening(settings, monkeypatch, session="s2") as evening:
        await evening.asked(TWO)
    campaign_file(directory, today="3 Alturiak 1492")


def best(turn: TurnRecord) -> str:
    """The session of what was recalled first."""
    talk = [one for one in turn.prompt.recalled if one.source == "said" and "silver" in one.text]
    return str(max(talk, key=lambda one: one.score).session_id)


async def shown(capsys: Capture, *arguments: object) -> str:
    capsys.readouterr()
    assert await run(*arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def first_recalled(capsys: Capture, settings_file: Path, question: str, *options: str) -> str:
    """Return what Tamsin said that has the highest score."""
    explained = await shown(
        capsys, "recall", question, "--npc", "Grimjaw", "--explain", *options, "--config", settings_file
    )
    scored = re.findall(
        r"^  Tamsin said: (.*\.)\n(?:    .*\n)*?    found by: .*\(score ([\d.]+)", explained, re.MULTILINE
    )
    return str(max(scored, key=lambda each: float(each[1]))[0])


async def test_a_question_that_names_a_day_of_the_story_finds_its_evening(
    settings: Settings, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    await two_evenings(settings, tmp_path, monkeypatch)
    async with an_evening(settings, monkeypatch, session="s3") as evening:
        for day, session in (("on 12 Hammer", "s1"), ("on the 25th of Hammer", "s2"), ("before 20 Hammer", "s1")):
            assert best(await evening.asked(f"Grimjaw, how much silver did the ferryman ask of me {day}?")) == session
    asked = "How much silver did the ferryman ask of Tamsin {}?"
    for options in (["--lexical"], ["--method", "hybrid"]):
        for day, said in (("on 12 Hammer", NINE), ("on 25 Hammer 1492", TWO)):
            assert said in await first_recalled(capsys, settings_file, asked.format(day), *options)
    assert TWO in await first_recalled(capsys, settings_file, "What happened on 25 Hammer?", "--lexical")


async def test_in_german_too(
    settings: Settings, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    campaign_file(tmp_path, today="12 Hammer 1492", language="de")
    async with an_evening(settings, monkeypatch, session="s1") as evening:
        await evening.asked("Der Fährmann wollte neun Silber.")
    campaign_file(tmp_path, today="25 Hammer 1492", language="de")
    async with an_evening(settings, monkeypatch, session="s2") as evening:
        await evening.asked("Der Fährmann wollte zwei Silber.")
    for day, number in (("am 12. Hammer", "neun"), ("am 25. Hammer 1492", "zwei")):
        question = f"Was wollte der Fährmann {day}?"
        assert number in await first_recalled(capsys, settings_file, question, "--lexical")


async def test_dm_advances_and_corrects_story_days(
    settings: Settings, settings_file: Path, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    async def calendar(*arguments: object) -> str:
        return await shown(capsys, "campaign", *arguments, "--config", settings_file)

    async def days() -> dict[str, StoryDays]:
        async with open_store(dsn) as store:
            times = await store.times.times(TOWN)
        assert times.time_zone == "Europe/Berlin"
        return times.sessions

    async with an_evening(settings, monkeypatch, session="s1") as evening:
        await evening.asked(NINE)
        assert "session s1 continues on it" in await calendar("today", "13", "Hammer")
    number = 1492 * 61 + 11
    assert await days() == {"s1": StoryDays(number, number + 1)}
    # The file still says the 12th, as it did before. The DM's date also holds for the next evening.
    async with an_evening(settings, monkeypatch, session="s2") as evening:
        await evening.asked(TWO)
    assert (await days())["s2"] == StoryDays(number + 1, number + 1)
    assert "was played on 14 Hammer 1492 to Midwinter 1492" in await calendar("days", "s2", "14 Hammer", "Midwinter")
    table = await calendar("calendar")
    assert table.splitlines()[0] == "it is Midwinter 1492"
    assert "12 Hammer 1492 to 13 Hammer 1492" in table
    assert await days() == {"s1": StoryDays(number, number + 1), "s2": StoryDays(number + 2, number + 19)}
    # Correcting an earlier evening does not make it the current one, and a day after the end belongs to the next one.
    await calendar("days", "s1", "11 Hammer")
    assert "the next session begins on it" in await calendar("today", "1 Alturiak")
    assert await days() == {"s1": StoryDays(number - 1, number - 1), "s2": StoryDays(number + 2, number + 19)}
    async with an_evening(settings, monkeypatch, session="s3") as evening:
        await evening.asked(TWO)
    assert (await days())["s3"] == StoryDays(number + 20, number + 20)


async def test_summary_of_an_earlier_session_has_the_day_that_yesterday_meant(
    settings: Settings, settings_file: Path, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    here, asked = ("--config", settings_file), ("--npc", "Grimjaw", "--say", "When did the granary burn?")
    async with an_evening(settings, monkeypatch, session="s1") as evening:
        await evening.asked("Grimjaw, yesterday the granary burned down.")
    async with open_store(dsn) as store:
        told = await (await timeline_writer(store, TOWN)).sum_up(SessionId("s1"))
    assert told is not None
    assert "on 11 Hammer 1492 the granary burned" in told[SMITH]
    await shown(capsys, "campaign", "today", "30", "Alturiak", *here)
    prompt = await shown(capsys, "show", "context", *asked, *here)
    assert "Earlier: (12 Hammer 1492) Tamsin said: “Grimjaw, on 11 Hammer 1492 the granary burned down.”" in prompt
    assert "yesterday" not in prompt


async def test_since_which_day_a_fact_is_no_longer_so_is_told_by_the_calendar(
    settings: Settings, settings_file: Path, capsys: Capture
) -> None:
    here = ("--config", settings_file)
    await shown(capsys, "campaign", "load", settings.campaign, "--yes", *here)
    fact = (await shown(capsys, "facts", "state", "Grimjaw", "fears", "--value", "rats", *here)).split()[0]
    assert await run("facts", "close", fact, "--day", "40 Hammer", *here) == 1
    assert "'40 Hammer' is not a day of the story: Hammer has days 1 to 30" in capsys.readouterr().err
    await shown(capsys, "facts", "close", fact, "--day", "14 Hammer", *here)
    assert "until 14 Hammer 1492" in await shown(capsys, "show", "fact", fact, *here)


NO_DAYS = {
    ("today", "31", "Hammer"): "'31 Hammer' is not a day of the story: Hammer has days 1 to 30",
    ("days", "s9", "3 Hammer"): "no session 's9' in campaign 'town': valid: 1 (s1), last",
    ("days", "s1", "3 Hammer", "2 Hammer"): "3 Hammer 1492 is after 2 Hammer 1492: write the earlier day first",
    ("days", "s1", "3 Hammer", "40 Hammer"): "Hammer has days 1 to 30",
}


async def test_a_day_that_there_is_not_changes_nothing(
    settings: Settings, settings_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    async with an_evening(settings, monkeypatch, session="s1") as evening:
        await evening.asked(NINE)
    before = await shown(capsys, "campaign", "calendar", "--config", settings_file)
    for arguments, why in NO_DAYS.items():
        assert await run("campaign", *arguments, "--config", settings_file) == 1
        assert why in capsys.readouterr().err
    assert await shown(capsys, "campaign", "calendar", "--config", settings_file) == before


async def test_a_new_day_in_the_file_is_told_before_it_is_loaded(
    settings: Settings, settings_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    load = ("campaign", "load", settings.campaign, "--yes", "--config", settings_file)
    await shown(capsys, *load)
    campaign_file(tmp_path, today="13 Hammer 1492")
    assert "~ the campaign's story day" in await shown(capsys, *load)
    assert "nothing to change" in await shown(capsys, *load)
    shown_now = await shown(capsys, "campaign", "calendar", "--config", settings_file)
    assert shown_now.startswith("it is 13 Hammer 1492")


async def test_a_campaign_without_a_calendar_has_no_days(
    settings: Settings, settings_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    write_campaign(tmp_path)
    await shown(capsys, "campaign", "load", settings.campaign, "--yes", "--config", settings_file)
    assert await run("campaign", "calendar", "--config", settings_file) == 1
    assert "has no calendar: add a block `calendar:` to its file" in capsys.readouterr().err
