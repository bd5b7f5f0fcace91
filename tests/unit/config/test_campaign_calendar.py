"""How a campaign file says how the story counts its days."""

from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.domain.calendar import StoryCalendar

FILE = """\
campaign:
  name: Town
  time_zone: Europe/Berlin
calendar:
  months: {Hammer: 30, Midwinter: 1, Alturiak: 30}
  weekdays: [Moonday, Starday]
  today: Starday, 12 Hammer 1492
"""


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    return path


def test_a_calendar_is_a_few_lines_of_the_campaign_file(tmp_path: Path) -> None:
    campaign = read_campaign(file(tmp_path, FILE)).campaign
    assert campaign.time_zone == "Europe/Berlin"
    assert campaign.story_day == "12 Hammer 1492"
    assert campaign.calendar is not None
    assert campaign.calendar.months == (("Hammer", 30), ("Midwinter", 1), ("Alturiak", 30))
    day = campaign.calendar.day_named(campaign.story_day)
    assert campaign.calendar.weekdays[campaign.calendar.weekday_of(day)] == "Starday"


def test_days_may_only_be_counted(tmp_path: Path) -> None:
    campaign = read_campaign(file(tmp_path, "campaign: {name: Town}\ncalendar: {today: 12}\n")).campaign
    assert (campaign.calendar, campaign.story_day, campaign.time_zone) == (StoryCalendar(), "12", "")


@pytest.mark.parametrize(
    ("right", "wrong", "line", "why"),
    [
        ("Europe/Berlin", "Europe/Berlni", 3, "unknown time zone 'Europe/Berlni', did you mean 'Europe/Berlin'?"),
        ("Midwinter: 1", "Midwinter: 0", 5, "calendar.months.Midwinter must be at least 1, not 0"),
        ("Midwinter: 1", "Midwinter: thirty", 5, "calendar.months.Midwinter must be a whole number, not 'thirty'"),
        ("Midwinter: 1", "Midwinter: yes", 5, "calendar.months.Midwinter must be a whole number, not 'yes'"),
        ("Midwinter: 1", "Midwinter: 1001", 5, "must be at most 1000, not 1001"),
        ("Midwinter", "Hammer", 5, "key 'Hammer' is here twice, first on line 5"),
        ("Midwinter", "hammer", 5, "months: 'hammer' is in the calendar twice, first on line 5"),
        ("Midwinter", "the Hammer", 5, "months: 'the Hammer' is in the calendar twice, first on line 5"),
        ("Moonday", "Starday", 6, "weekdays: 'Starday' is in the calendar twice, first on line 6"),
        ("Moonday", "Hammer", 6, "weekdays: 'Hammer' is in the calendar twice, first on line 5"),
        ("Midwinter", "'13'", 5, "months: '13' is not a name made of letters, such as Hammer"),
        ("12 Hammer 1492", "31 Hammer 1492", 7, "calendar.today: 'Starday, 31 Hammer 1492' is not a day of the story: "
         "Hammer has days 1 to 30"),
        ("Starday, 12 Hammer 1492", "12 Hamer 1492", 7, "did you mean 'Hammer'?"),
        ("today: Starday, 12 Hammer 1492", "todya: 12", 7, "unknown key 'todya', did you mean 'today'?"),
    ],
)  # fmt: skip
def test_a_calendar_with_a_mistake_is_told_with_its_line(
    tmp_path: Path, right: str, wrong: str, line: int, why: str
) -> None:
    path = file(tmp_path, FILE.replace(right, wrong, 1))
    with pytest.raises(InvalidFile) as caught:
        read_campaign(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert why in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
