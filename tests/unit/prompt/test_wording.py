"""The words of a prompt: the days of remembered lines, and an NPC's words where nothing of its reply may be said."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.ids import FactId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledFact, RecalledSummary, RecalledUtterance
from glyphoxa.domain.turn_record import Fault
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.prompt.wording import SaidWhen, StandIns, days_in, story_days, with_days, wording
from glyphoxa.recall.transcript_memory import TranscriptMemory
from glyphoxa.transcript.sessions import DayTold, KeptTimes
from tests.support.builders import a_campaign

CALENDAR = StoryCalendar((("Frostmoon", 30), ("Thawmoon", 30)), ("Sunday", "Market Day", "Restday"))
SAID = CALENDAR.day_named("5 Frostmoon 812")
NUMBERED = StoryCalendar()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Yesterday the barn burned.", "On 4 Frostmoon 812 the barn burned."),
        ("The barn burned yesterday evening.", "The barn burned on the evening of 4 Frostmoon 812."),
        ("I saw her the day before yesterday.", "I saw her on 3 Frostmoon 812."),
        ("Last night a wolf came.", "On the night of 4 Frostmoon 812 a wolf came."),
        ("The feast begins tomorrow.", "The feast begins on 6 Frostmoon 812."),
        ("Today we rest.", "On 5 Frostmoon 812 we rest."),
        ("She comes back in three days.", "She comes back on 8 Frostmoon 812."),
        ("We crossed the moor in three days.", "We crossed the moor in three days."),
        ("I have waited since yesterday.", "I have waited since 4 Frostmoon 812."),
        ("A week ago the king fell ill.", "On 2 Frostmoon 812 the king fell ill."),
        ("Two months ago the king died.", "Around 5 Frostmoon 811 the king died."),
        ("A few days ago he left.", "Around 2 Frostmoon 812 he left."),
        ("Come on the next market day.", "Come on 8 Frostmoon 812."),
        ("On Sunday the bell rang.", "On 4 Frostmoon 812 the bell rang."),
        ("The mass begins on Sunday.", "The mass begins on 7 Frostmoon 812."),
        ("We sleep in the Tomorrow Inn.", "We sleep in the Tomorrow Inn."),
        ("Two sessions ago we met.", "Two sessions ago we met."),
    ],
)  # fmt: skip
def test_words_for_days_become_the_days_that_were_meant(said: str, meant: str) -> None:
    assert CALENDAR.weekday_of(SAID) == 1, "it was said on a market day"
    assert with_days(said, SAID, story_days(CALENDAR, "en")) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Gestern brannte die Scheune.", "Am 4 Frostmoon 812 brannte die Scheune."),
        ("Das Fest beginnt morgen.", "Das Fest beginnt am 6 Frostmoon 812."),
        ("Guten Morgen, Grimjaw!", "Guten Morgen, Grimjaw!"),
        ("Am Morgen war sie fort.", "Am Morgen war sie fort."),
        ("Vorgestern sah ich sie.", "Am 3 Frostmoon 812 sah ich sie."),
        ("Übermorgen kommt sie.", "Am 7 Frostmoon 812 kommt sie."),
        ("Sie kommt in drei Tagen zurück.", "Sie kommt am 8 Frostmoon 812 zurück."),
        ("Vor einer Woche starb der König.", "Am 2 Frostmoon 812 starb der König."),
        ("Bis morgen ist das Seil fertig.", "Bis 6 Frostmoon 812 ist das Seil fertig."),
    ],
)  # fmt: skip
def test_german_words_for_days_become_the_days_that_were_meant(said: str, meant: str) -> None:
    assert with_days(said, SAID, story_days(CALENDAR, "de")) == meant


def test_days_without_months_are_numbers() -> None:
    assert with_days("It fell yesterday.", 12, story_days(NUMBERED, "en")) == "It fell on day 11."
    assert with_days("Gestern fiel er.", 12, story_days(NUMBERED, "de")) == "Am Tag 11 fiel er."


class Memory(TranscriptMemory):
    """Three sessions; the first one was played on two days."""

    def __init__(self, calendar: StoryCalendar | None) -> None:
        told = [
            DayTold("s1", "5 Frostmoon 812", "", 1_000),
            DayTold("s1", "9 Frostmoon 812", "", 2_000),
            DayTold("s3", "20 Thawmoon 812", "", 9_000),
        ]
        self.times = KeptTimes("UTC", calendar, told=told).times()

    def session_numbers(self) -> Mapping[SessionId, int]:
        return {SessionId(f"s{n}"): n for n in (1, 2, 3)}


def dated(text: str, session: str, at_ms: int = 1_500, *, calendar: StoryCalendar | None = CALENDAR) -> str:
    said = RecalledUtterance(UtteranceId("u"), SessionId(session), SpeakerId("t"), "Tamsin", text, at_ms)
    return recalled_line(SaidWhen(a_campaign(), SessionId("s3"), Memory(calendar)).dated(said))


def test_line_has_the_day_of_its_moment_in_the_session() -> None:
    assert dated("It fell yesterday.", "s1") == "Tamsin said (5 Frostmoon 812): It fell on 4 Frostmoon 812."
    assert dated("It fell yesterday.", "s1", 2_500) == "Tamsin said (9 Frostmoon 812): It fell on 8 Frostmoon 812."
    assert dated("It fell yesterday.", "s3", 9_500) == "Tamsin said (earlier this evening): It fell yesterday."
    assert dated("It fell yesterday.", "s2") == "Tamsin said (last session): It fell yesterday.", "its day is unknown"
    assert dated("It fell.", "elsewhere") == "Tamsin said: It fell."


def test_sentence_of_a_summary_has_the_day_of_its_own_line() -> None:
    said: Any = {"times": Memory(CALENDAR).times, "language": "en"}
    assert days_in("It fell yesterday.", SessionId("s1"), 1_500, **said) == "It fell on 4 Frostmoon 812."
    assert days_in("It fell yesterday.", SessionId("s1"), 2_500, **said) == "It fell on 8 Frostmoon 812."
    assert days_in("It fell yesterday.", SessionId("s2"), 2_500, **said) == "It fell yesterday."


def test_line_has_its_session_if_the_story_has_no_calendar() -> None:
    assert dated("It fell.", "s1", calendar=None) == "Tamsin said (two sessions ago): It fell."
    assert dated("It fell.", "s3", calendar=None) == "Tamsin said (earlier this evening): It fell."


def test_summary_has_its_day_and_a_fact_only_the_days_in_it() -> None:
    when, session = SaidWhen(a_campaign(), SessionId("s1"), Memory(CALENDAR)), SessionId("s3")
    summary = RecalledSummary(session, "It fell yesterday.", 9_500)
    assert recalled_line(when.dated(summary)) == "(20 Thawmoon 812) It fell on 19 Thawmoon 812."
    session = SessionId("s1")
    summary = RecalledSummary(session, "It fell yesterday.", 1_500)
    assert recalled_line(when.dated(summary)) == "(5 Frostmoon 812) It fell yesterday.", "or on the 8th"
    fact = RecalledFact(FactId("f"), "Bran returns tomorrow.", session, at_ms=1_500)
    assert recalled_line(when.dated(fact)) == "Bran returns on 6 Frostmoon 812."
    assert SaidWhen(a_campaign(), session, None).dated(fact) is fact


def test_no_line_comes_twice_running() -> None:
    lines = StandIns("en")
    said = [lines.line("What is that?", None) for _ in range(7)]
    assert all(one != following for one, following in pairwise(said))


def test_a_line_is_in_the_language_of_the_question() -> None:
    lines = StandIns("en")
    assert lines.line("Was ist das für ein Turm?", None) in wording("de").at_a_loss
    assert lines.line("Bodo!", None) in wording("en").at_a_loss


def test_who_does_not_know_says_so() -> None:
    assert StandIns("de").line("Grimjaw?", Fault.UNFOUNDED) in wording("de").knows_nothing
    assert StandIns("en").line("Who is he?", Fault.UNFOUNDED) in wording("en").knows_nothing


def test_a_secret_is_turned_aside() -> None:
    assert StandIns("de").line("Grimjaw?", Fault.SECRET) in wording("de").deflects


def test_a_shrug_is_another_one_each_time() -> None:
    lines, shrugs = StandIns("en"), ("I do not know.", "Nobody told me.")
    assert [lines.shrug(shrugs) for _ in range(3)] == [
        "I do not know.",
        "Nobody told me.",
        "I do not know.",
    ]
