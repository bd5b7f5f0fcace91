"""A campaign of four sessions, ten turns each, a week apart; the fifth is being played on 29 November 2026."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar, StoryDays
from glyphoxa.recall.recall import (
    LEAST_RECAP_TOKENS,
    RankedTalk,
    TimelinePiece,
    estimated_tokens,
    sessions_told,
    timeline_of,
)
from glyphoxa.recall.signals import Fit, PastSession, TurnTimes, fit_in_time
from glyphoxa.recall.table_calendar import DAY_MS, Days
from glyphoxa.recall.time_reader import NO_STORY, SessionReference, TimeAsk, read_time
from tests.support.proof import n_examples

N_TURNS = 10
MINUTE_MS = 60_000
FIRST_MS = round(datetime(2026, 11, 1, 19, tzinfo=UTC).timestamp() * 1000)
NOW = FIRST_MS + 28 * DAY_MS
SUMMARIES = ("They met.", None, "They fought. They fled.", None)
STORY = CampaignTimes(calendar=StoryCalendar(), today=40)


def campaign() -> list[PastSession]:
    return [
        PastSession(
            nth + 1,
            FIRST_MS + 7 * nth * DAY_MS + (N_TURNS - 1) * MINUTE_MS,
            story=StoryDays(10 * nth, 10 * nth + 9),
        )
        for nth in range(4)
    ]


SESSIONS = campaign()
TURNS = TurnTimes(
    at_ms=np.array(
        [each.last_ms - turn * MINUTE_MS for each in SESSIONS for turn in reversed(range(N_TURNS))], np.int64
    ),
    sessions=np.repeat(np.arange(len(SESSIONS), dtype=np.int32), N_TURNS),
)
WORTH = np.zeros(len(TURNS), np.float32)
TALK = RankedTalk(TURNS, WORTH, lambda place: f"turn {place}")


def asked(question: str, *, story: CampaignTimes = NO_STORY) -> TimeAsk:
    return read_time(question, language="en", days=Days(NOW), story=story)


def fit(question: str, *, current: int | None = 5) -> Fit:
    found = fit_in_time(asked(question), SESSIONS, TURNS, current=current)
    assert found is not None
    return found


def by_session(found: Fit) -> list[float]:
    """The best of each session."""
    return [round(float(found.scores[TURNS.sessions == nth].max()), 2) for nth in range(len(SESSIONS))]


def test_of_last_session_only_last_session_fits() -> None:
    found = fit("What did she say last session?")
    assert by_session(found) == [0, 0, 0, 1]
    assert found.reason == "asked about last session (session 4)"


def test_a_session_that_was_not_witnessed_is_not_replaced_by_another() -> None:
    found = fit_in_time(asked("last session"), SESSIONS[:3], _first_turns(3), current=5)
    assert found is not None
    assert found.scores.max() == 0
    assert found.reason == "asked about last session (session 4)"


@pytest.mark.parametrize(
    ("question", "sessions"),
    [
        ("two sessions ago", [0, 0, 1, 0]),
        ("in session 2", [0, 1, 0, 0]),
        ("this session", [0, 0, 0, 0]),
        ("since session 3", [0.25, 0.5, 1, 1]),
        ("before session 3", [1, 1, 0.5, 0.25]),
        ("in the beginning", [1, 0.5, 0.25, 0.12]),
        ("recently", [0.5, 0.71, 1, 1]),
        ("a while ago", [0.94, 0.88, 0.75, 0.5]),
        ("so far", [1, 1, 1, 1]),
    ],
)
def test_a_place_in_order_fits_sessions(question: str, sessions: list[float]) -> None:
    assert by_session(fit(question)) == sessions


def test_the_end_of_a_session_fits_better_than_its_beginning() -> None:
    scores = fit("at the end of last session").scores[-N_TURNS:]
    assert scores[-1] == scores[-3] == 1
    assert list(scores) == sorted(scores)
    assert scores[0] > 0


def test_the_first_time_is_early_and_the_last_time_late() -> None:
    first, last = fit("the first time we met").scores, fit("the last time we met").scores
    assert (first[0], first[-1], last[0], last[-1]) == (1, 0, 0, 1)


def test_a_span_of_time_fits_what_was_said_in_it_and_fades_slower_afterwards() -> None:
    scores = by_session(fit("on 8 November 2026"))
    assert scores[1] == 1
    assert 0 < scores[0] < scores[3] < scores[2] < 1


def test_all_of_several_times_must_fit() -> None:
    scores = fit("what did you say last session, on 8 November 2026?").scores
    assert scores[30:].max() < 0.6
    assert scores[:30].max() == 0


def test_yesterday_may_be_a_day_of_the_story() -> None:
    ask = asked("What did you do three days ago?", story=STORY)
    found = fit_in_time(ask, SESSIONS, TURNS, current=5)
    assert found is not None
    assert by_session(found)[3] == 1  # the story's day 37; no session was three days ago


def tell(
    question: str,
    *,
    summaries: Sequence[str | None] = SUMMARIES,
    talk: RankedTalk = TALK,
    budget: int = 400,
) -> list[TimelinePiece]:
    return tell_of(asked(question), summaries=summaries, talk=talk, budget=budget)


def tell_of(
    ask: TimeAsk,
    *,
    summaries: Sequence[str | None] = SUMMARIES,
    talk: RankedTalk = TALK,
    budget: int = 400,
    current: int | None = 5,
) -> list[TimelinePiece]:
    sessions = SESSIONS[: int(talk.turns.sessions.max(initial=-1)) + 1]
    found = fit_in_time(ask, sessions, talk.turns, current=current) if sessions else None
    talk = replace(talk, ask=ask, fit=found)
    told = sessions_told(talk, most=budget // LEAST_RECAP_TOKENS)
    written = {nth: summary for nth, summary in enumerate(summaries) if summary}
    return timeline_of(told, talk, written, budget_tokens=budget)


def test_what_happened_so_far_is_told_in_order_by_summaries_and_by_turns_where_none_is_written() -> None:
    told = tell("What happened so far?")
    assert [each.session for each in told] == sorted(each.session for each in told)
    assert [each.text for each in told if each.place is None] == ["They met.", "They fought. They fled."]
    assert {each.session for each in told if each.place is not None} == {1, 3}
    assert fit("What happened so far?").reason == "asked about so far"


def test_the_turns_that_stand_for_a_session_are_spread_over_it_and_the_best_of_their_stretch() -> None:
    worth = WORTH.copy()
    worth[[31, 33, 38]] = 1
    told = tell("What happened last session?", talk=replace(TALK, worth=worth), budget=60)
    assert [each.place for each in told] == [31, 38]


def test_a_long_turn_leaves_room_for_the_others_of_its_session() -> None:
    talk = replace(
        TALK, text_of=lambda place: f"Turn {place}. " + "And so it went on and on and on. " * 9 * (place == 31)
    )
    told = tell("What happened last session?", talk=talk, budget=70)
    assert len(told) == 2
    worth = WORTH.copy()
    worth[31] = 1
    told = tell("What happened last session?", talk=replace(talk, worth=worth), budget=70)
    assert [each.place for each in told] == [31, 35]
    assert told[0].text.startswith("Turn 31. And so it went on")
    assert estimated_tokens(told[0].text, is_turn=True) <= 35


def test_a_recap_without_a_time_is_one_of_the_last_session() -> None:
    assert {each.session for each in tell("Give me a recap")} == {3}


def test_where_we_left_off_is_the_end_of_the_session_though_a_summary_is_written() -> None:
    told = tell("Where did we leave off?", summaries=[*SUMMARIES[:3], "They slept."])
    assert told
    assert all(each.place is not None and each.place >= 36 for each in told)


def test_what_is_told_of_the_session_before_last_is_only_its_own() -> None:
    assert [each.text for each in tell("What happened two sessions ago?")] == ["They fought. They fled."]


def test_a_summary_without_room_is_cut_at_a_sentence() -> None:
    long = "They fought. " + "They fled and they ran and they hid. " * 20
    (told,) = tell("What happened two sessions ago?", summaries=["", None, long, None], budget=50)
    assert estimated_tokens(told.text) <= 50
    assert told.text.startswith("They fought. They fled")
    assert told.text.endswith("hid.")


@pytest.mark.parametrize("question", ["Who is Mira?", "When did we meet?", "", "What happened last year?"])
def test_there_is_no_timeline_of_what_was_not_asked_for_or_never_was(question: str) -> None:
    assert tell(question) == []


PLACES = st.builds(
    SessionReference,
    st.sampled_from(["session", "first", "latest", "recent", "long_ago", "opening", "whole"]),
    back=st.none() | st.integers(0, 999),
    number=st.none() | st.integers(0, 999),
    relation=st.sampled_from(["during", "before", "after", "since", "until"]),
    part=st.sampled_from([None, "beginning", "middle", "end"]),
)


@settings(derandomize=True, deadline=None, max_examples=n_examples(200))
@given(
    n=st.integers(0, 4),
    place=st.none() | PLACES,
    question=st.sampled_from(["last week", "in 1999", "since yesterday", "until 2100", "just now", ""]),
    current=st.none() | st.integers(1, 6),
    budget=st.integers(0, 500),
    recap=st.booleans(),
)
def test_every_turn_fits_from_not_at_all_to_wholly_and_no_budget_is_exceeded(
    n: int,
    place: SessionReference | None,
    question: str,
    current: int | None,
    budget: int,
    recap: bool,
) -> None:
    turns, sessions = _first_turns(n), SESSIONS[:n]
    asks = frozenset({"recap" if recap else "order"})
    ask = replace(asked(question, story=STORY), place=place, asks=asks)
    found = fit_in_time(ask, sessions, turns, current=current)
    if found is not None:
        assert found.scores.shape == (len(turns),)
        assert found.scores.dtype == np.float32
        assert found.prior.shape == (len(turns),)
        assert found.prior.dtype == np.float32
        assert ((found.scores >= 0) & (found.scores <= 1) & (found.prior >= 0) & (found.prior <= 1)).all()
    talk = RankedTalk(turns, WORTH[: len(turns)], lambda place: f"turn {place} " * (place + 1))
    told = tell_of(ask, talk=talk, budget=budget, current=current)
    assert sum(estimated_tokens(each.text, is_turn=each.place is not None) for each in told) <= budget
    places = [(each.session, each.place or 0) for each in told]
    assert places == sorted(places)


def _first_turns(n_sessions: int) -> TurnTimes:
    return TurnTimes(TURNS.at_ms[: n_sessions * N_TURNS], TURNS.sessions[: n_sessions * N_TURNS])
