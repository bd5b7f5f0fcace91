from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import TurnId
from glyphoxa.npc.mouth import MAX_FAILURES, FailedEarly, Finished, MouthEvent, RescuedMouth
from glyphoxa.prompt.prompt import Message, Prompt
from tests.support.mouth_twin import MouthTwin
from tests.support.pipecat_fakes import GRIMJAW

PROMPT = Prompt(GRIMJAW.id, (Message("user", "Alice: How is my blade?"),), "How is my blade?", "Alice")
T1, T2 = TurnId("t1"), TurnId("t2")


def _clock() -> int:
    return 0


@dataclass
class Both:
    """An NPC with two engines, and what it told the table."""

    events: list[MouthEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mouth = RescuedMouth("Grimjaw", self.events.append, _clock)
        self.first = MouthTwin(GRIMJAW, self.mouth.from_first, _clock)
        self.second = MouthTwin(GRIMJAW, self.mouth.from_second, _clock)
        self.mouth.join(self.first, self.second)

    def fail(self, turn: TurnId, *, heard: str = "") -> None:
        self.mouth.begin(turn, PROMPT)
        self.mouth.release(turn)
        self.first.fail("refused", heard=heard)

    @property
    def finished(self) -> list[Finished]:
        return [event for event in self.events if isinstance(event, Finished)]


def test_an_engine_that_does_well_answers_alone() -> None:
    both = Both()
    both.mouth.begin(T1, PROMPT)
    both.mouth.release(T1)
    both.first.end()
    assert [event.heard for event in both.finished] == ["Aye."]
    assert both.second.asked == []


def test_failed_turn_is_answered_by_the_second_engine() -> None:
    both = Both()
    both.fail(T1)
    assert both.second.asked == [PROMPT]
    assert both.second.is_heard
    both.second.end()
    assert [(event.heard, event.error) for event in both.finished] == [("Aye.", "")]


def test_failure_before_release_is_not_reported() -> None:
    both = Both()
    both.mouth.begin(T1, PROMPT)
    both.first.fail_early()
    assert not any(isinstance(event, FailedEarly) for event in both.events)
    assert not both.second.is_heard
    both.mouth.release(T1)
    both.second.end()
    assert [event.heard for event in both.finished] == ["Aye."]


def test_broken_reply_keeps_what_was_heard_and_gets_an_excuse() -> None:
    both = Both()
    both.fail(T1, heard="It is sharp and")
    assert both.second.given_up == [T1]
    assert [(event.heard, event.audio_ms, event.error) for event in both.finished] == [
        ("It is sharp and", 300, "refused")
    ]


def test_second_engine_takes_over_after_repeated_failures() -> None:
    both = Both()
    for n in range(MAX_FAILURES):
        both.fail(TurnId(f"t{n}"))
        both.second.end()
    n_asked = len(both.first.asked)
    both.mouth.begin(TurnId("later"), PROMPT)
    both.second.end()
    assert n_asked == len(both.first.asked) == MAX_FAILURES
    assert len(both.finished) == MAX_FAILURES + 1


def test_success_resets_the_failure_count() -> None:
    both = Both()
    for n in range(MAX_FAILURES - 1):
        both.fail(TurnId(f"t{n}"))
        both.second.end()
    both.mouth.begin(T1, PROMPT)
    both.first.end()
    both.fail(T2)
    both.second.end()
    both.mouth.begin(TurnId("later"), PROMPT)
    assert both.first.turn == "later"


def test_a_cancelled_turn_is_no_failure_and_stays_cancelled() -> None:
    both = Both()
    both.mouth.begin(T1, PROMPT)
    both.mouth.cancel(T1)
    assert both.second.asked == []
    assert len(both.finished) == 1


def test_a_turn_cancelled_while_the_second_engine_answers_ends_once() -> None:
    both = Both()
    both.fail(T1)
    both.mouth.begin(T2, PROMPT)
    assert [event.turn for event in both.finished] == [T1]
    assert both.first.turn == T2


def test_given_words_go_to_the_engine_that_supports_them() -> None:
    both = Both()
    both.first.says_given_words = False
    both.mouth.begin(T1, Prompt(GRIMJAW.id, PROMPT.messages, "", "Alice", words="Halt!"))
    assert both.second.turn == T1


async def test_an_npc_whose_second_engine_cannot_start_plays_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both()

    async def refuse() -> None:
        raise Unavailable("no voice")

    monkeypatch.setattr(both.second, "start", refuse)
    await both.mouth.start()
    both.fail(T1)
    assert [event.error for event in both.finished] == ["refused"]
