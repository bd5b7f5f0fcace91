"""The summary of a running session comes in time, and nothing is missing or there twice."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.prompt.conversation import RollingSummary
from glyphoxa.transcript.sessions import SessionState, SummarySentence
from tests.support.builders import SMITH, an_utterance

MINUTE_MS = 60_000


def asked(n: int, text: str = "How is my blade?") -> Utterance:
    return an_utterance(text, id=f"asked-{n}", at_ms=n * MINUTE_MS, typed=True)


def answered(n: int, text: str = "It is done.") -> Utterance:
    return an_utterance(text, id=f"said-{n}", speaker="Grimjaw", npc=SMITH, at_ms=n * MINUTE_MS + 5_000)


def rounds(n: int, *, first: int = 1) -> list[Utterance]:
    return [line for at in range(first, first + n) for line in (asked(at), answered(at))]


def spoken(n: int) -> list[Utterance]:
    return [replace(line, typed=False, duration_ms=2_000) for line in rounds(n)]


def a_view(lines: list[Utterance], *, window_tokens: int = 10_000) -> RollingSummary:
    view = RollingSummary(window_tokens)
    for line in lines:
        view.hear(line)
    return view


def about(*lines: Utterance) -> SummarySentence:
    return SummarySentence(f"Grimjaw answered {lines[0].id}.", tuple(line.id for line in lines))


def test_four_typed_rounds_stay_and_four_older_ones_are_due() -> None:
    assert a_view(rounds(7)).due() == []
    assert a_view(rounds(8)).due() == rounds(4)
    assert a_view([*rounds(8), asked(9)]).due() == rounds(5)


def test_five_minutes_of_speech_stay() -> None:
    view = a_view(spoken(20))
    assert [line.at_ms // MINUTE_MS for line in view.lines[len(view.due()) :]][0] == 15
    assert a_view(spoken(8)).due() == []


def test_event_makes_older_lines_due_at_once() -> None:
    assert a_view(rounds(5)).due(at_once=True) == rounds(1)
    assert a_view(rounds(4)).due(at_once=True) == []


def test_full_window_makes_the_oldest_half_due_also_if_it_is_hot() -> None:
    lines = rounds(3)
    view = a_view(lines, window_tokens=50)
    assert view.due() == lines[:3]
    assert not view.is_over
    assert a_view(lines, window_tokens=30).is_over
    assert a_view([asked(1, "word " * 400)], window_tokens=40).due() == []


def test_summary_replaces_its_lines_and_continues() -> None:
    lines = rounds(8)
    view = a_view(lines)
    view.cover([about(lines[1])], lines[:4])
    view.cover([*view.summary, about(lines[5])], lines[4:6])
    assert [one.evidence for one in view.summary] == [("said-1",), ("said-3",)]
    assert view.lines == lines[6:]
    assert (view.covered_to, view.is_stored) == (lines[5].id, False)
    view.cover([about(lines[1])], lines[:4])
    assert len(view.summary) == 2


def test_what_is_retracted_while_it_is_summarised_is_not_told() -> None:
    lines = rounds(8)
    view = a_view(lines)
    view.retract(lines[0].id)
    view.revise(replace(lines[3], text="It is broken."))
    view.cover([about(lines[0]), about(lines[1]), about(lines[2], lines[3])], lines[:4])
    assert view.summary == (about(lines[1]),)
    assert view.lines == lines[4:]


def test_retracted_or_corrected_line_leaves_the_summary() -> None:
    lines = rounds(8)
    view = a_view(lines)
    view.cover([about(line) for line in lines[:3]], lines[:4])
    view.retract(lines[0].id)
    view.revise(replace(lines[1], text="It is broken."))
    assert view.summary == (about(lines[2]),)
    assert not view.is_stored


def test_stored_state_that_reaches_further_is_continued_without_repeating() -> None:
    view = a_view(rounds(8))
    view.cover([about(asked(2)), about(asked(3))], rounds(4))
    view.adopt(SessionState((about(asked(1)), about(asked(2))), last_ordinal=12))
    assert [one.evidence[0] for one in view.summary] == ["asked-1", "asked-2", "asked-3"]
    assert view.last_ordinal == 12


def test_restored_view_continues_its_state() -> None:
    view = a_view([])
    view.restore(SessionState((about(asked(1)),), flags={"new_npc": True}, last_ordinal=4), rounds(8, first=3))
    assert (view.last_ordinal, view.flags, view.is_stored) == (4, {"new_npc"}, True)
    assert view.due() == rounds(4, first=3)
    assert UtteranceId("asked-1") in view.summary[0].evidence
