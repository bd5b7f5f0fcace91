"""An NPC's words where nothing of its reply may be said."""

from __future__ import annotations

from itertools import pairwise

from glyphoxa.domain.turn import Fault
from glyphoxa.prompt.wording import StandIns, wording


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
