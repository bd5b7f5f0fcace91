"""Days as a DM writes them: the months of Faerûn with a festival between two of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.transcript.sessions import BETWEEN, DayTold, KeptTimes
from tests.support.proof import n_examples

HARPTOS = StoryCalendar(
    (("Hammer", 30), ("Midwinter", 1), ("Alturiak", 30), ("Feast of the Moon", 1), ("Nightal", 30)),
    ("Moonday", "Starday", "The Long Day"),
)
COUNTED = StoryCalendar()


@pytest.mark.parametrize(
    ("written", "number", "shown"),
    [
        ("1 Hammer", 0, "1 Hammer"),
        ("30 Hammer", 29, "30 Hammer"),
        ("Midwinter", 30, "Midwinter"),
        ("1 Alturiak", 31, "1 Alturiak"),
        ("Hammer 12, 2", 2 * 92 + 11, "12 Hammer 2"),
        ("the 12th of hammer 2 DR", 2 * 92 + 11, "12 Hammer 2"),
        ("12. Hammer 2", 2 * 92 + 11, "12 Hammer 2"),
        ("the Feast of the Moon 1492", 1492 * 92 + 61, "Feast of the Moon 1492"),
        ("Feast of the Moon", 61, "Feast of the Moon"),
        ("1 Midwinter 3", 3 * 92 + 30, "Midwinter 3"),
    ],
)
def test_a_day_is_written_as_people_write_days(written: str, number: int, shown: str) -> None:
    assert HARPTOS.day_named(written) == number
    assert HARPTOS.in_words(number) == shown


@settings(derandomize=True, deadline=None, max_examples=n_examples(200))
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=15),
    st.integers(0, 10**8),
)
def test_every_day_is_in_one_month_and_is_read_as_it_is_written(lengths: list[int], number: int) -> None:
    calendar = StoryCalendar(tuple((f"{chr(97 + nth)}month", days) for nth, days in enumerate(lengths)), ("a", "b"))
    year, month, day = calendar.date_of(number)
    assert calendar.days_of(month, year=year, day=day) == StoryDays(number, number)
    if year <= 999_999:
        assert calendar.day_named(calendar.in_words(number)) == number
        weekday = calendar.weekdays[calendar.weekday_of(number)]
        assert calendar.day_named(f"{weekday}, {calendar.in_words(number)}") == number


@settings(derandomize=True, deadline=None, max_examples=n_examples(300))
@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(["12", "Hammer", "1492", "of", "the", "Midwinter", "3rd", "DR", "Starday", "0", ","]),
            max_size=6,
        ).map(" ".join),
    )
)
def test_whatever_is_written_is_a_day_or_an_error_that_quotes_it(text: str) -> None:
    for calendar in (HARPTOS, COUNTED):
        try:
            number = calendar.day_named(text)
        except InvalidInput as error:
            assert repr(text) in str(error)
        else:
            assert calendar.day_named(calendar.in_words(number)) == number


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("31 Hammer", "Hammer has days 1 to 30"),
        ("0 Hammer", "Hammer has days 1 to 30"),
        ("12 Hamer 1492", "did you mean 'Hammer'?"),
        ("Hammer", "write it like '12 Hammer 1492'"),
        ("12", "write it like '12 Hammer 1492'"),
        ("2 Midwinter", "Midwinter has days 1 to 1"),
        ("12 Hammer 1492 5", "write it like"),
        ("", "write it like"),
    ],
)
def test_a_day_that_is_not_there_is_said_to_be_none(written: str, why: str) -> None:
    with pytest.raises(InvalidInput, match="is not a day of the story") as caught:
        HARPTOS.day_named(written)
    assert why in str(caught.value)


def test_the_weekday_of_one_day_is_that_of_all() -> None:
    settled = HARPTOS.settled("The Long Day, 12 Hammer 1492")
    assert settled.weekdays[settled.weekday_of(settled.day_named("13 Hammer 1492"))] == "Moonday"
    assert settled.day_named("Long Day, 15 Hammer 1492") == settled.day_named("15 Hammer 1492")
    with pytest.raises(InvalidInput, match="'Starday, 12 Hammer 1492' is a The Long Day, not a Starday"):
        settled.day_named("Starday, 12 Hammer 1492")


def test_the_word_that_was_said_last_holds() -> None:
    opened = DayTold("s1", "12 Hammer", "12 Hammer")
    assert KeptTimes(file_day="12 Hammer").day_now == "12 Hammer"
    told = [opened, DayTold("s1", "14 Hammer", "12 Hammer")]
    assert KeptTimes(file_day="12 Hammer", told=told).day_now == "14 Hammer"
    # The file says something else than when the DM spoke: that is news.
    assert KeptTimes(file_day="1 Alturiak", told=told).day_now == "1 Alturiak"
    assert KeptTimes(told=[opened]).day_now == "12 Hammer"
    assert KeptTimes().day_now == ""


def test_a_session_has_the_days_from_the_first_to_the_last_that_was_told_of_it() -> None:
    told = [DayTold("s1", day, "") for day in ("13 Hammer", "12 Hammer", "15 Hammer")]
    told += [DayTold(BETWEEN, "20 Hammer", ""), DayTold("s2", "20 Hammer", "")]
    times = KeptTimes(calendar=HARPTOS, told=told).times()
    assert times.sessions == {"s1": StoryDays(11, 14), "s2": StoryDays(19, 19)}
    assert times.today == 19


def test_a_day_without_a_year_is_the_one_nearest_to_where_the_story_stands() -> None:
    new_year = CampaignTimes(calendar=HARPTOS, today=HARPTOS.day_named("2 Hammer 1493"))
    assert HARPTOS.in_words(new_year.day_named("30 Nightal")) == "30 Nightal 1492"
    assert HARPTOS.in_words(new_year.day_named("20 Hammer")) == "20 Hammer 1493"
    assert CampaignTimes(calendar=HARPTOS).day_named("20 Hammer") == HARPTOS.day_named("20 Hammer")


def test_without_a_calendar_days_are_only_counted() -> None:
    assert CampaignTimes().day_named("day 12") == 12
    with pytest.raises(InvalidInput, match="write a number like 12, as only days are counted"):
        CampaignTimes().day_named("12 Hammer")


def test_who_adds_a_month_to_a_calendar_moves_no_evening() -> None:
    told = [DayTold("s1", "12 Alturiak 1492", "")]
    longer = StoryCalendar((("Frost", 10), *HARPTOS.months))
    day = KeptTimes(calendar=longer, told=told).times().sessions["s1"].first
    assert day is not None
    assert longer.in_words(day) == "12 Alturiak 1492"


def test_a_day_that_left_the_calendar_is_no_day_of_a_session() -> None:
    told = [DayTold("s1", "12 Hammer", ""), DayTold("s2", "3 Frost", "")]
    times = KeptTimes(calendar=StoryCalendar((("Frost", 10),)), told=told).times()
    assert times.sessions == {"s2": StoryDays(2, 2)}
