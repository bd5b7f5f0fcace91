"""The DM says who a line was meant for."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.heard import Draft, SpeechStarted
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.domain.turn_record import READDRESSED, Outcome, Unaddressed
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.turn import Begin, Cancel, Commit, Effect, Readdressed, Release
from tests.support.builders import INNKEEPER, TAMSIN, a_draft
from tests.support.evening import Evening

REASON = f"{READDRESSED}somebody"


def a_line(text: str, *, at_ms: int = 0) -> Draft:
    return replace(a_draft(TAMSIN, text, end_ms=at_ms + 500), utterance=UtteranceId(f"line at {at_ms}"))


def readdressed(evening: Evening, line: Draft, npc: NpcId | None, *, at_ms: int) -> list[Effect]:
    addressed = Addressed(npc, REASON, None if npc else Unaddressed.NOT_MEANT)
    effects = evening.talk.readdress(line, addressed, at_ms=at_ms)
    evening.done += effects
    return effects


def goes_on_with(evening: Evening, *, at_ms: int) -> NpcId | None:
    return evening.talk.questions.decide(TAMSIN, "And then?", at_ms=at_ms).npc


def test_wrong_answer_is_interrupted_and_the_right_npc_answers_once() -> None:
    evening, line = Evening(), a_line("Grimjaw, an ale.")
    evening.says_line(line, at_ms=0)
    wrong = evening.the_turn()
    evening.is_heard(wrong, "There is no ale here.")
    effects = readdressed(evening, line, INNKEEPER, at_ms=2_000)
    assert [type(effect) for effect in effects] == [Cancel, Readdressed, Begin, Commit]
    right = evening.the_turn()
    assert (wrong.cancelled_as, right.npc, right.question.text) == (Outcome.INTERRUPTED, INNKEEPER, line.text)
    assert wrong.addressed is not None
    assert wrong.addressed.reason == f"Grimjaw was called; {REASON}"
    assert readdressed(evening, line, INNKEEPER, at_ms=2_010) == [], "a second press changes nothing"
    evening.finish(wrong, at_ms=2_020, heard="There is no")
    assert goes_on_with(evening, at_ms=2_100) == INNKEEPER
    assert Release(right) in evening.tick(at_ms=2_500)
    evening.is_heard(right)
    evening.finish(right, at_ms=3_000)
    assert goes_on_with(evening, at_ms=4_000) == INNKEEPER


def test_answer_that_was_not_heard_is_dropped_and_nobody_answers() -> None:
    evening, line = Evening(), a_line("Grimjaw, an ale.")
    evening.says_line(line, at_ms=0)
    wrong = evening.the_turn()
    effects = readdressed(evening, line, None, at_ms=1_200)
    assert [type(effect) for effect in effects] == [Cancel, Readdressed]
    assert wrong.cancelled_as is Outcome.SUPERSEDED
    evening.finish(wrong, at_ms=1_210)
    assert goes_on_with(evening, at_ms=2_000) is None
    assert evening.talk.is_quiet


def test_npc_answers_a_line_after_the_wrong_answer_was_over() -> None:
    evening, line = Evening(), a_line("Grimjaw, an ale.")
    evening.says_line(line, at_ms=0)
    evening.is_heard(evening.the_turn())
    evening.finish(evening.the_turn(), at_ms=2_000)
    effects = readdressed(evening, line, INNKEEPER, at_ms=9_000)
    assert [type(effect) for effect in effects][:3] == [Readdressed, Begin, Commit]


def test_answers_to_other_lines_go_on() -> None:
    evening, line = Evening(), a_line("Grimjaw, an ale.")
    evening.says_line(line, at_ms=0)
    evening.is_heard(evening.the_turn())
    evening.finish(evening.the_turn(), at_ms=2_000)
    evening.says_line(a_line("Grimjaw, how is my blade?", at_ms=3_000), at_ms=3_000)
    other = evening.the_turn()
    readdressed(evening, line, INNKEEPER, at_ms=4_100)
    assert other.cancelled_as is None


def test_line_is_no_longer_part_of_what_its_speaker_continues() -> None:
    evening, line = Evening(), a_line("Grimjaw, an ale.")
    evening.says_line(line, at_ms=0)
    first = evening.the_turn()
    evening.hear(SpeechStarted(TAMSIN, 1_200), at_ms=1_200)
    evening.finish(first, at_ms=1_210)
    readdressed(evening, line, None, at_ms=1_300)
    evening.says_line(a_line("Mirelle, an ale.", at_ms=1_300), at_ms=1_300)
    assert evening.the_turn().question.text == "Mirelle, an ale."


def test_right_npc_answers_a_readdressed_line_that_its_speaker_continues() -> None:
    evening, line = Evening(), a_line("Grimjaw, an ale.")
    evening.says_line(line, at_ms=0)
    wrong = evening.the_turn()
    readdressed(evening, line, INNKEEPER, at_ms=1_100)
    right = evening.the_turn()
    evening.finish(wrong, at_ms=1_110)
    evening.hear(SpeechStarted(TAMSIN, 1_200), at_ms=1_200)
    evening.finish(right, at_ms=1_210)
    evening.says_line(a_line("And some bread.", at_ms=1_200), at_ms=1_200)
    both = evening.the_turn()
    assert (right.cancelled_as, both.npc, both.question.text) == (
        Outcome.MERGED,
        INNKEEPER,
        "Grimjaw, an ale. And some bread.",
    )
    assert both.addressed is not None
    assert both.addressed.reason == f"continued; {REASON}"
