"""The DM reads how far the background has come."""

from __future__ import annotations

from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.dm.wording import backlog_in_words
from glyphoxa.domain.ids import SessionId


def test_backlog_is_the_sum_of_all_sessions() -> None:
    sessions = [SessionProgress(SessionId("one"), 900, 900), SessionProgress(SessionId("two"), 600, 40)]
    assert backlog_in_words(sessions) == (
        "Read in the background: 940 of 1,500 lines. Reading waits while somebody speaks."
    )


def test_finished_backlog_says_that_everything_was_read() -> None:
    assert backlog_in_words([SessionProgress(SessionId("one"), 900, 900)]) == "Read in the background: all 900 lines."
