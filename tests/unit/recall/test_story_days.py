"""Days of a story that a question names, and how a campaign file says how they are counted. It is 5 Alturiak 1492."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.domain.calendar import StoryCalendar, StoryDays
from glyphoxa.recall.temporal.ask import TimeAsk
from glyphoxa.recall.temporal.days import Days
from glyphoxa.recall.temporal.fit import PastSession, TurnTimes, fit_in_time
from glyphoxa.recall.temporal.reader import read_time
from glyphoxa.recall.temporal.story import Story

HARPTOS = StoryCalendar(
    (("Hammer", 30), ("Midwinter", 1), ("Alturiak", 30), ("Claw of the Sunset", 30), ("Feast of the Moon", 1)),
    ("Moonday", "Starday", "Godsday"),
)
TODAY = HARPTOS.day_named("5 Alturiak 1492")
NOW = round(datetime(2026, 11, 22, 20, tzinfo=UTC).timestamp() * 1_000)


def read(question: str, language: str = "en", *, story: Story | None = None) -> TimeAsk:
    return read_time(question, language=language, days=Days(NOW), story=story or Story(HARPTOS, TODAY))


def days(first: str | None, last: str | None = "") -> StoryDays:
    last = first if last == "" else last
    return StoryDays(*(None if day is None else HARPTOS.day_named(day) for day in (first, last)))


def before(day: str) -> StoryDays:
    return StoryDays(None, HARPTOS.day_named(day) - 1)


@pytest.mark.parametrize(
    ("question", "language", "expected"),
    [
        ("What did she tell us on the 12th of Hammer?", "en", days("12 Hammer 1492")),
        ("Where were we on 12 Hammer 1491?", "en", days("12 Hammer 1491")),
        ("Where were we on Hammer 12, 1491?", "en", days("12 Hammer 1491")),
        ("on the third of Hammer in the year 1490", "en", days("3 Hammer 1490")),
        ("on the twenty-fifth of Hammer", "en", days("25 Hammer 1492")),
        ("on the third day of Hammer", "en", days("3 Hammer 1492")),
        ("am fünfundzwanzigsten Hammer", "de", days("25 Hammer 1492")),
        ("am dritten Tag des Hammer", "de", days("3 Hammer 1492")),
        ("What happened in Hammer?", "en", days("1 Hammer 1492", "30 Hammer 1492")),
        ("What happened in the Claw of the Sunset?", "en", None),
        ("What happened last Claw of the Sunset?", "en",
         days("1 Claw of the Sunset 1491", "30 Claw of the Sunset 1491")),
        ("Who was there at Midwinter?", "en", days("Midwinter 1492")),
        ("Who came to the inn at the Feast of the Moon?", "en", days("Feast of the Moon 1491")),
        ("What did he say before the Feast of the Moon?", "en", before("Feast of the Moon 1491")),
        ("What has changed since Midwinter?", "en", StoryDays(days("Midwinter 1492").first, None)),
        ("on 6 Alturiak", "en", days("6 Alturiak 1491")),  # that of this year is still to come
        ("What did you do on Moonday?", "en", StoryDays(TODAY - 1, TODAY - 1)),
        ("last month", "en", days("1 Hammer 1492", "30 Hammer 1492")),
        ("this month", "en", days("1 Alturiak 1492", "30 Alturiak 1492")),
        ("last year", "en", days("1 Hammer 1491", "Feast of the Moon 1491")),
        ("before last year", "en", before("1 Hammer 1491")),
        ("yesterday", "en", StoryDays(TODAY - 1, TODAY - 1)),
        ("Was geschah am 12. Hammer?", "de", days("12 Hammer 1492")),
        ("Wo waren wir am dritten Hammer 1491?", "de", days("3 Hammer 1491")),
        ("Wo waren wir am dritten Hammer im Jahr 1490?", "de", days("3 Hammer 1490")),
        ("Was geschah im Hammer?", "de", days("1 Hammer 1492", "30 Hammer 1492")),
        ("Wer war an Midwinter da?", "de", days("Midwinter 1492")),
        ("Was hat er vor Midwinter gesagt?", "de", before("Midwinter 1492")),
        ("Was haben wir am Moonday gemacht?", "de", StoryDays(TODAY - 1, TODAY - 1)),
        ("Was haben wir letzten Monat gemacht?", "de", days("1 Hammer 1492", "30 Hammer 1492")),
        ("gestern", "de", StoryDays(TODAY - 1, TODAY - 1)),
        ("He swung his Hammer at five goblins", "en", None),
        ("Er schwang den Hammer", "de", None),
        ("on the 31st of Hammer", "en", None),
        ("Is there a day 12?", "en", None),
    ],
)  # fmt: skip
def test_a_day_of_the_story_is_named_in_many_ways(question: str, language: str, expected: StoryDays | None) -> None:
    assert read(question, language).story == expected


@pytest.mark.parametrize(
    ("question", "language", "expected"),
    [
        ("What did we do on day 12?", "en", StoryDays(12, 12)),
        ("What did we do on the third day?", "en", StoryDays(3, 3)),
        ("What did we do on the twenty-third day?", "en", StoryDays(23, 23)),
        ("What happened before day 12?", "en", StoryDays(None, 11)),
        ("Was war an Tag 12?", "de", StoryDays(12, 12)),
        ("three days ago", "en", StoryDays(37, 37 + 1)),
        ("vor drei Tagen", "de", StoryDays(37, 37 + 1)),
    ],
)
def test_where_days_are_only_counted_their_numbers_are_read(question: str, language: str, expected: StoryDays) -> None:
    assert read(question, language, story=Story(StoryCalendar(), 40)).story == expected


def test_where_nobody_has_said_what_day_it_is_only_whole_dates_are_days() -> None:
    lost = Story(HARPTOS)
    assert read("on 12 Hammer 1492", story=lost).story == days("12 Hammer 1492")
    for question in ("on 12 Hammer", "yesterday", "on Godsday", "last month"):
        assert read(question, story=lost).story is None


def test_months_that_are_ours_too_are_read_as_both() -> None:
    ours = StoryCalendar((("January", 31), ("February", 28)), ("Monday", "Tuesday"))
    ask = read("on 12 January 1926", story=Story(ours, ours.day_named("1 February 1926")))
    assert ask.window is not None
    assert ask.story is not None
    assert ask.story.first == ours.day_named("12 January 1926")
    assert ask.words == "12 January 1926"
    ask = read("last Monday", story=Story(ours, 40))
    assert ask.window is not None
    assert ask.story is not None


def test_whether_the_days_that_are_told_are_over() -> None:
    day = HARPTOS.day_named("12 Hammer 1492")
    of_the_story = read("Who came on 12 Hammer 1492?")
    for story_day, is_over in ((day + 1, True), (day, False), (None, False)):
        assert of_the_story.tells_what_is_over(now_ms=NOW, story_day=story_day) is is_over
    for question, is_over in (("Who came yesterday?", True), ("Who comes tonight?", False), ("Who is there?", False)):
        assert read(question).tells_what_is_over(now_ms=NOW, story_day=TODAY) is is_over


def test_the_evening_of_the_day_is_meant_and_not_that_of_the_next() -> None:
    sessions = [PastSession(n, n, n, StoryDays(day, day)) for n, day in ((1, TODAY - 3), (2, TODAY - 2), (3, TODAY))]
    turns = TurnTimes(np.arange(3, dtype=np.int64), np.arange(3, dtype=np.int32))
    fit = fit_in_time(read("on 3 Alturiak"), sessions, turns, current=None)
    assert fit is not None
    assert fit.scores[1] == 1
    assert fit.scores[0] < 0.5
    assert fit.scores[2] < 0.5


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
        ("Midwinter: 1", "Midwinter: 0", 5, "calendar.months.Midwinter: should be greater than or equal to 1, not 0"),
        ("Midwinter: 1", "Midwinter: thirty", 5, "calendar.months.Midwinter: should be a valid integer, not 'thirty'"),
        ("Midwinter: 1", "Midwinter: yes", 5, "calendar.months.Midwinter: should be a valid integer, not 'yes'"),
        ("Midwinter: 1", "Midwinter: 1001", 5, "should be less than or equal to 1000, not 1001"),
        ("Midwinter", "Hammer", 5, "key 'Hammer' stands here twice, first on line 5"),
        ("Midwinter", "hammer", 5, "months: 'hammer' stands in the calendar twice, first on line 5"),
        ("Midwinter", "the Hammer", 5, "months: 'the Hammer' stands in the calendar twice, first on line 5"),
        ("Moonday", "Starday", 6, "weekdays: 'Starday' stands in the calendar twice, first on line 6"),
        ("Moonday", "Hammer", 6, "weekdays: 'Hammer' stands in the calendar twice, first on line 5"),
        ("Midwinter", "'13'", 5, "months: '13' is no name of letters, such as Hammer"),
        ("12 Hammer 1492", "31 Hammer 1492", 7, "calendar.today: 'Starday, 31 Hammer 1492' is no day of the story: "
         "Hammer has the days 1 to 30"),
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
