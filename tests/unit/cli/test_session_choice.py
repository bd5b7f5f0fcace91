"""Which session is opened: never a silent surprise, and never a lost evening."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from glyphoxa.cli.table import RECENT_MS, TO_OPEN, choose
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import CampaignId, SceneId, SessionId
from glyphoxa.transcript.sessions import LastSession, LastSessions
from tests.support.builders import CAMPAIGN, a_campaign

BEGAN_MS = 1_800_000_000_000
"""2027-01-15 08:00 UTC"""
NOW_MS = BEGAN_MS + 3_600_000
LAST = LastSession(SessionId("evening-7"), BEGAN_MS, SceneId("market"))


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    TO_OPEN(parser)
    return parser.parse_args(arguments)


class Terminal:
    """Answers what a test says; what it is shown is kept."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.shown: list[str] = []

    def ask(self, line: str) -> str:
        self.shown.append(line)
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)


def chosen(
    data: Path, *arguments: str, terminal: Terminal | None = None, now_ms: int = NOW_MS
) -> tuple[SessionId | None, list[str]]:
    campaign = replace(a_campaign(), time_zone="UTC")
    ask: Callable[[str], str] | None = terminal.ask if terminal is not None else None
    with redirect_stdout(StringIO()) as said:
        session = choose(options(*arguments), campaign, data, now_ms=now_ms, ask=ask)
    return session, said.getvalue().splitlines()


@pytest.mark.parametrize(("answer", "session"), [("", "evening-7"), ("Y", "evening-7"), ("no", None)])
def test_a_session_that_was_not_closed_is_offered(tmp_path: Path, answer: str, session: str | None) -> None:
    LastSessions(tmp_path).note(CAMPAIGN, LAST)
    terminal = Terminal("what?", answer)
    assert chosen(tmp_path, terminal=terminal) == (session, [])
    assert terminal.shown == ["the session evening-7 of 08:00 was not closed. Continue it? [Y/n] "] * 2


def test_one_that_was_closed_a_moment_ago_is_offered_and_a_new_one_is_the_default(tmp_path: Path) -> None:
    LastSessions(tmp_path).note(CAMPAIGN, replace(LAST, closed_ms=NOW_MS - 60_000))
    terminal = Terminal("")
    assert chosen(tmp_path, terminal=terminal) == (None, [])
    assert terminal.shown == ["the session evening-7 of 08:00 was closed at 08:59. Continue it? [y/N] "]


def test_one_that_was_closed_long_ago_is_over(tmp_path: Path) -> None:
    LastSessions(tmp_path).note(CAMPAIGN, replace(LAST, closed_ms=NOW_MS - RECENT_MS - 1))
    assert chosen(tmp_path, terminal=Terminal()) == (None, [])


def test_the_day_is_said_when_it_was_another(tmp_path: Path) -> None:
    LastSessions(tmp_path).note(CAMPAIGN, LAST)
    terminal = Terminal()
    assert chosen(tmp_path, terminal=terminal, now_ms=BEGAN_MS + 86_400_000) == (None, [])  # and nobody answered
    assert "of 2027-01-15 08:00 was not closed" in terminal.shown[0]


def test_without_a_terminal_a_new_session_begins_and_one_line_says_how_to_go_on(tmp_path: Path) -> None:
    LastSessions(tmp_path).note(CAMPAIGN, LAST)
    assert chosen(tmp_path) == (
        None,
        [
            "The session evening-7 of 08:00 was not closed. This is a new one; `--session evening-7` continues it.",
        ],
    )


def test_what_is_named_is_taken_and_nobody_is_asked(tmp_path: Path) -> None:
    LastSessions(tmp_path).note(CAMPAIGN, LAST)
    terminal = Terminal()
    assert chosen(tmp_path, "--session", "evening-3", terminal=terminal) == ("evening-3", [])
    assert chosen(tmp_path, "--continue", terminal=terminal) == ("evening-7", [])
    assert chosen(tmp_path, "--session", "last", terminal=terminal) == ("evening-7", [])
    assert chosen(tmp_path, "--new", terminal=terminal) == (None, [])
    assert terminal.shown == []


def test_there_must_be_a_session_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="--continue: no session of campaign"):
        chosen(tmp_path, "--continue")
    assert chosen(tmp_path, terminal=Terminal()) == (None, [])


def test_sessions_of_other_campaigns_stay_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    sessions = LastSessions(tmp_path)
    other = CampaignId("another")
    sessions.note(other, replace(LAST, session=SessionId("theirs")))
    sessions.note(CAMPAIGN, LAST)
    assert [sessions.of(campaign) for campaign in (other, CAMPAIGN)] == [
        replace(LAST, session=SessionId("theirs")),
        LAST,
    ]
    (tmp_path / "sessions.json").write_text("{half")
    assert sessions.of(CAMPAIGN) is None
