"""Questions as they are asked at a table, and the time that is read from them (`times.tsv`). It is Sunday 22 November
2026, 20:00, and 5 Alturiak 1492 of the story.
"""

import csv
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays, Zone
from glyphoxa.language.words import fold, words
from glyphoxa.recall.signals import PastSession, TurnTimes, fit_in_time
from glyphoxa.recall.table_calendar import DAY_MS, Days
from glyphoxa.recall.time_reader import (
    MOST_CHARACTERS,
    NO_STORY,
    NO_TIME,
    Asks,
    SessionReference,
    TimeAsk,
    TimeWords,
    read_time,
    read_words,
    tells_time,
)
from tests.support.proof import n_examples

NOW = round(datetime(2026, 11, 22, 20, tzinfo=UTC).timestamp() * 1_000)
HARPTOS = StoryCalendar(
    (("Hammer", 30), ("Midwinter", 1), ("Alturiak", 30), ("Claw of the Sunset", 30), ("Feast of the Moon", 1)),
    ("Moonday", "Starday", "Godsday"),
)
TODAY = HARPTOS.day_named("5 Alturiak 1492")
STORIES = {
    "": NO_STORY,
    "harptos": CampaignTimes(calendar=HARPTOS, today=TODAY),
    "counted": CampaignTimes(calendar=StoryCalendar(), today=40),
    "lost": CampaignTimes(calendar=HARPTOS),  # nobody has said what day it is
}
QUESTIONS = Path(__file__).with_name("times.tsv")
ASKS: Final[Mapping[Asks, str]] = {
    "when": "asks for time",
    "how_long": "asks how long",
    "recap": "asks for recap",
    "order": "asks for order",
}


def read(question: str, language: str = "en", *, zone: Zone = UTC, story: CampaignTimes = NO_STORY) -> TimeAsk:
    return read_time(question, language=language, days=Days(NOW, zone), story=story)


def in_words(ask: TimeAsk, story: CampaignTimes) -> str:
    """Return the notation of the table of questions: "2026-11-09..2026-11-15; asks for recap"."""
    told = []
    if ask.window is not None:
        first, until = ask.window.from_ms, ask.window.until_ms
        told.append(_span("" if first is None else _day(first), "" if until is None else _day(until - 1)))
    if ask.story is not None and story.calendar is not None:
        days = ("" if day is None else story.calendar.in_words(day) for day in (ask.story.first, ask.story.last))
        told.append(f"story {_span(*days)}")
    if (place := ask.place) is not None:
        which = f"-{place.back}" if place.back is not None else f"#{place.number}" if place.number is not None else ""
        relation = "" if place.relation == "during" else place.relation
        told.append(" ".join(word for word in (place.kind, which, relation, place.part or "") if word))
    return "; ".join(told + [wording for kind, wording in ASKS.items() if kind in ask.asks])


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first}..{last}"


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d")


with QUESTIONS.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", ROWS, ids=[row["question"] for row in ROWS])
def test_what_a_question_says_of_time_is_read(row: dict[str, str]) -> None:
    story = STORIES[row["calendar"]]
    ask = read(row["question"], row["language"], story=story)
    assert in_words(ask, story) == row["reading"]
    assert row["reading"] or ask == NO_TIME


@pytest.mark.parametrize("language", ["fr", "ja", "", "xx-YY", "../en"])
def test_nothing_is_read_in_a_language_without_words_for_it(language: str) -> None:
    assert read("What happened last session, on 3 June 2023?", language) == NO_TIME
    assert not tells_time("yesterday", language=language)


def test_the_times_in_a_question_are_pointed_at() -> None:
    question = "What did Mira, at the end of last session, say?"
    ask = read(question)
    assert ask.words == "end of last session"
    assert read("since 2022").words == "since 2022"


def test_a_day_begins_where_the_table_is() -> None:
    here, there = read("yesterday").window, read("yesterday", zone=timezone(timedelta(hours=5))).window
    assert here is not None
    assert there is not None
    assert here.from_ms is not None
    # At 20:00 in London it is past midnight in Karachi.
    assert there.from_ms == here.from_ms + DAY_MS - 5 * 3_600_000


def test_months_that_are_ours_too_are_read_as_both() -> None:
    ours = StoryCalendar((("January", 31), ("February", 28)), ("Monday", "Tuesday"))
    ask = read("on 12 January 1926", story=CampaignTimes(calendar=ours, today=ours.day_named("1 February 1926")))
    assert ask.window is not None
    assert ask.story == StoryDays(*[ours.day_named("12 January 1926")] * 2)
    assert ask.words == "12 January 1926"
    ask = read("last Monday", story=CampaignTimes(calendar=ours, today=40))
    assert ask.window is not None
    assert ask.story is not None


def test_whether_the_days_that_are_told_are_over() -> None:
    day = HARPTOS.day_named("12 Hammer 1492")
    of_the_story = read("Who came on 12 Hammer 1492?", story=STORIES["harptos"])
    for story_day, is_over in ((day + 1, True), (day, False), (None, False)):
        assert of_the_story.tells_what_is_over(now_ms=NOW, story_day=story_day) is is_over
    for question, is_over in (("Who came yesterday?", True), ("Who comes tonight?", False), ("Who is there?", False)):
        ask = read(question, story=STORIES["harptos"])
        assert ask.tells_what_is_over(now_ms=NOW, story_day=TODAY) is is_over


def test_the_evening_of_the_day_of_the_story_is_meant_and_not_that_of_the_next() -> None:
    sessions = [PastSession(n, n, StoryDays(day, day)) for n, day in ((1, TODAY - 3), (2, TODAY - 2), (3, TODAY))]
    turns = TurnTimes(np.arange(3, dtype=np.int64), np.arange(3, dtype=np.int32))
    fit = fit_in_time(read("on 3 Alturiak", story=STORIES["harptos"]), sessions, turns, current=None)
    assert fit is not None
    assert fit.scores[1] == 1
    assert fit.scores[0] < 0.5
    assert fit.scores[2] < 0.5


@pytest.mark.parametrize(
    ("text", "language", "is_told"),
    [
        ("I went there yesterday", "en", True),
        ("It burned two weeks ago", "en", True),
        ("We start next month", "en", True),
        ("It was founded in 1987", "en", True),
        ("He may march at once", "en", False),
        ("Next door", "en", False),
        ("Das war gestern", "de", True),
        ("vor zwei Wochen", "de", True),
        ("vor dem Tor", "de", False),
    ],
)
def test_turns_that_tell_a_time_are_told_apart(text: str, language: str, is_told: bool) -> None:
    assert tells_time(text, language=language) is is_told


def known(language: str) -> TimeWords:
    found = read_words(language)
    assert found is not None
    return found


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_files_hold_words_as_they_are_looked_up(language: str) -> None:
    table = known(language)
    for group in (*table.values.values(), *table.lists.values(), table.relations, table.triggers):
        for each in group:
            assert [fold(word) for word in each.split()] == each.split()


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_phrase_is_found_by_one_of_the_words_that_it_is_looked_for_by(language: str) -> None:
    texts = [" ".join(word.full for word in words(row["question"])) for row in ROWS]
    for kind, begins, pattern in known(language).phrases:
        for text in texts if kind != "recap_of" else ():
            assert pattern.search(text) is None or begins & set(text.split())


VOCABULARY = sorted(
    known("en").triggers | known("de").triggers | known("en").lists["hollow"]
    | {"2023", "3rd", "12", "5", "the", "dragon", ",", "?", "."}
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=n_examples(150))
@given(
    st.one_of(st.text(max_size=300), st.lists(st.sampled_from(VOCABULARY), max_size=60).map(" ".join)),
    st.sampled_from(["en", "de"]),
    st.integers(-(10**15), 10**15),
    st.sampled_from([UTC, None, *map(ZoneInfo, ("Pacific/Apia", "America/Denver", "Europe/Berlin"))]),
    st.one_of(st.none(), st.integers(0, 30_000)),
)
def test_no_text_and_no_time_is_an_error(
    text: str, language: str, now_ms: int, zone: Zone, evening: int | None
) -> None:
    story = CampaignTimes(calendar=StoryCalendar((("Hammer", 30), ("may", 1)), ("Moonday", "dragon")), today=3)
    read_time(text, language=language, days=Days(now_ms, zone, evening), story=story)
    tells_time(text, language=language)


@pytest.mark.parametrize(
    "word", ["before the ", "last ", "two ", "in may ", "what ", "a", "1 ", "what a first ", "ä ", "."]
)
def test_of_a_long_speech_only_the_end_is_read(word: str) -> None:
    speech = (word * 10_000)[:10_000]
    assert read(speech + " last session").place == SessionReference("session", back=1) or word in (
        "last ",
        "a",
        "before the ",
    )
    assert len(read(speech).words) <= MOST_CHARACTERS
