"""Days at tables in Berlin, Denver and where clocks are changed; evenings that go on after midnight."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.calendar import read_zone
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.recall.signals import PastSession, TurnTimes, fit_in_time
from glyphoxa.recall.table_calendar import (
    DAY_MS,
    HOUR_MS,
    STILL_PLAYED_MS,
    Days,
    TableTimes,
    evenings_in,
    zone_of_campaign,
)
from glyphoxa.recall.time_reader import TimeAsk, read_time
from tests.support.proof import n_examples

BERLIN, DENVER = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Denver")
ZONES = [
    ZoneInfo(name)
    for name in (
        "UTC",
        "Europe/Berlin",
        "America/Denver",
        "America/Sao_Paulo",
        "Pacific/Apia",
        "America/St_Johns",
        "Asia/Kathmandu",
        "Africa/Cairo",
        "Australia/Lord_Howe",
    )
]


def ms(moment: str, zone: ZoneInfo = BERLIN) -> int:
    """Return the time that a clock there shows."""
    return round(datetime.fromisoformat(moment).replace(tzinfo=zone).timestamp() * 1_000)


def number(day: str) -> int:
    return (datetime.fromisoformat(day).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(days=1)


moments = st.integers(ms("1975-01-01"), ms("2060-01-01"))


@settings(derandomize=True, deadline=None, max_examples=n_examples(400))
@given(moments, st.sampled_from(ZONES))
def test_every_moment_is_in_exactly_one_day(at_ms: int, zone: ZoneInfo) -> None:
    days = Days(at_ms, zone)
    there = [
        day for day in range(days.today - 2, days.today + 3) if days.begins_ms(day) <= at_ms < days.begins_ms(day + 1)
    ]
    assert there == [days.today]


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-10-26", 24), ("2026-07-01", 24)]
)
def test_a_day_on_which_the_clock_is_changed_is_longer_or_shorter(day: str, hours: int) -> None:
    window = Days(ms("2026-12-01"), BERLIN).window(number(day), number(day))
    assert window.from_ms == ms(day)
    assert window.until_ms is not None
    assert window.until_ms - window.from_ms == hours * HOUR_MS


@pytest.mark.parametrize("question", ["What did we do yesterday?", "Was haben wir gestern gemacht?"])
@pytest.mark.parametrize("zone", [BERLIN, DENVER])
def test_yesterday_is_the_day_before_at_the_table(zone: ZoneInfo, question: str) -> None:
    language = "de" if "gestern" in question else "en"
    window = read_time(question, language=language, days=Days(ms("2026-03-30 19:00", zone), zone)).window
    assert window is not None
    assert (window.from_ms, window.until_ms) == (ms("2026-03-29", zone), ms("2026-03-30", zone))


def test_this_morning_is_told_by_the_clock_on_the_day_it_is_changed() -> None:
    window = read_time("this morning", language="en", days=Days(ms("2026-03-29 20:00"), BERLIN)).window
    assert window is not None
    assert (window.from_ms, window.until_ms) == (ms("2026-03-29 04:00"), ms("2026-03-29 13:00"))


# Saturday evening, from eight until half past one.
SATURDAY = [ms("2026-11-21 20:00") + nth * 10 * 60_000 for nth in range(34)]
SUNDAY = [ms("2026-11-22 19:00") + nth * 10 * 60_000 for nth in range(6)]
TALK = np.array([*SATURDAY, *SUNDAY], np.int64)


def asked(question: str, now: str, *, language: str = "en", talk: np.ndarray = TALK) -> tuple[TimeAsk, TableTimes]:
    times = TableTimes(BERLIN, said_at_ms=lambda: talk)
    return read_time(question, language=language, days=times.days(ms(now))), times


def found(question: str, now: str, *, language: str = "en") -> list[bool]:
    """Return for each utterance whether it fits."""
    ask, times = asked(question, now, language=language)
    is_of_days = ask.window is not None and ask.window.is_of_days
    at_ms = times.as_of_its_evening(TALK) if is_of_days else TALK
    turns = TurnTimes(at_ms, np.repeat(np.arange(2, dtype=np.int32), (34, 6)))
    sessions = [PastSession(1, SATURDAY[-1]), PastSession(2, SUNDAY[-1])]
    fit = fit_in_time(ask, sessions, turns, current=None)
    assert fit is not None
    return [bool(score == 1) for score in fit.scores]


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What happened yesterday?", "en"),
        ("What did she say on Saturday?", "en"),
        ("What did she say on 21 November?", "en"),
        ("Was ist gestern passiert?", "de"),
        ("Was hat sie am Samstag gesagt?", "de"),
        ("Was hat sie am 21. November gesagt?", "de"),
    ],
)
def test_what_was_said_after_midnight_belongs_to_the_evening(question: str, language: str) -> None:
    assert found(question, "2026-11-22 21:00", language=language) == [True] * 34 + [False] * 6


def test_what_is_asked_after_midnight_is_asked_on_that_evening() -> None:
    """At half past twelve yesterday is Friday, and Saturday is today."""
    ask, _ = asked("What did we do yesterday?", "2026-11-22 00:30")
    assert ask.window is not None
    assert (ask.window.from_ms, ask.window.until_ms) == (ms("2026-11-20"), ms("2026-11-21"))
    ask, _ = asked("What was that today?", "2026-11-22 00:30")
    assert ask.window is not None
    assert ask.window.from_ms == ms("2026-11-21")


def test_an_hour_ago_is_an_hour_ago_after_midnight_too() -> None:
    ask, _ = asked("What did you say an hour ago?", "2026-11-22 00:30")
    assert ask.window is not None
    assert ask.window.from_ms is not None
    assert ask.window.until_ms is not None
    assert ask.window.from_ms <= ms("2026-11-21 23:30") < ask.window.until_ms


def test_table_reopened_after_midnight_continues_the_evening() -> None:
    """Evenings follow from the talk, whatever its sessions are called."""
    assert len(evenings_in(TALK)) == 2
    assert evenings_in(TALK[::-1]).tolist() == evenings_in(TALK).tolist()
    assert len(evenings_in(np.zeros(0, np.int64))) == 0


def test_an_evening_ends_at_noon_at_the_latest() -> None:
    endless = np.arange(ms("2026-11-21 20:00"), ms("2026-11-23 20:00"), HOUR_MS)
    times = TableTimes(BERLIN, said_at_ms=lambda: endless)
    assert len(times.evenings) == 1
    counted = times.as_of_its_evening(endless)
    days = Days(0, BERLIN)
    by_day = {
        day: [int(at) for at, as_of in zip(endless, counted, strict=True) if days.day_of(int(as_of)) == day]
        for day in map(number, ("2026-11-21", "2026-11-22", "2026-11-23"))
    }
    assert by_day[number("2026-11-21")][-1] == ms("2026-11-22 11:00")
    assert by_day[number("2026-11-22")][0] == ms("2026-11-22 12:00")
    assert times.days(ms("2026-11-22 11:30")).today == number("2026-11-21")
    assert times.days(ms("2026-11-22 12:30")).today == number("2026-11-22")


@settings(derandomize=True, deadline=None, max_examples=n_examples(150))
@given(
    st.lists(st.tuples(st.integers(0, 40 * DAY_MS), st.integers(1, 30)), min_size=1, max_size=8),
    st.sampled_from(ZONES),
)
def test_talk_is_of_the_day_it_was_said_or_of_the_evening_before(spells: list[tuple[int, int]], zone: ZoneInfo) -> None:
    begin = ms("2026-10-10")
    at_ms = np.unique([begin + start + nth * 20 * 60_000 for start, n in spells for nth in range(n)]).astype(np.int64)
    times = TableTimes(zone, said_at_ms=lambda: at_ms)
    evenings, counted = times.evenings, times.as_of_its_evening(at_ms)
    days = Days(0, zone)
    assert (counted <= at_ms).all()
    for at, as_of in zip(at_ms.tolist(), counted.tolist(), strict=True):
        said, day = days.day_of(at), days.day_of(as_of)
        assert said - day in (0, 1)
        if said != day:  # the evening began then
            first = max(first for first, _ in evenings.tolist() if first <= at)
            assert days.day_of(first) == day
            assert at < days.begins_ms(day + 1, hour=12)
    assert all(
        later - earlier >= STILL_PLAYED_MS for earlier, later in zip(evenings[:-1, 1], evenings[1:, 0], strict=True)
    )


def test_no_zone_is_that_of_the_machine() -> None:
    assert read_zone("") is None
    now_ms = ms("2026-11-22 12:00")
    today = datetime.fromtimestamp(now_ms / 1_000).date()
    assert Days(now_ms, None).today == number(today.isoformat())


@pytest.mark.parametrize(
    "name", ["Europe/Berlni", "europe/berlin", "Berlin", "../etc/passwd", "Europe", "+01:00", "\0"]
)
def test_a_zone_that_there_is_not_is_an_error_with_what_would_be_one(name: str) -> None:
    with pytest.raises(InvalidInput, match="unknown time zone"):
        read_zone(name)


def test_a_stored_zone_that_this_machine_does_not_know_is_utc() -> None:
    assert zone_of_campaign("Moon/Tycho") is UTC
