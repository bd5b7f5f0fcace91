"""NPCs answer the words of other NPCs (rules of `glyphoxa.turns.turn_taking`)."""

from __future__ import annotations

import itertools

import pytest

from glyphoxa.domain.heard import NothingSaid, SpeechStarted
from glyphoxa.domain.turn_record import Outcome
from glyphoxa.turns.turn import Begin, Cancel, Effect, Release, Turn
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, a_partial
from tests.support.evening import Evening

BOTH = "Grimjaw, Mirelle, what do you say?"
REPLY = "Iron is dear."


def led() -> tuple[Evening, Turn]:
    """Grimjaw answers a question to both, and is heard."""
    evening = Evening()
    evening.says(TAMSIN, BOTH, at_ms=0)
    lead = evening.the_turn()
    assert lead.npc == SMITH
    evening.is_heard(lead, REPLY, at_ms=1_500)
    return evening, lead


def test_reaction_gets_no_further_reaction() -> None:
    evening, lead = led()
    reaction = evening.the_turn()
    evening.finish(lead, at_ms=4_000)
    evening.tick(at_ms=4_300)
    n_done = len(evening.done)
    evening.is_heard(reaction, "Grimjaw, you are right.", at_ms=4_400)
    evening.finish(reaction, at_ms=6_000)
    assert not any(isinstance(effect, Begin) for effect in evening.done[n_done:])
    assert evening.talk.is_quiet


def test_a_reaction_answers_what_was_heard_and_not_what_was_meant() -> None:
    evening, lead = led()
    meant = evening.the_turn()
    evening.finish(lead, at_ms=4_000, heard="Iron is")
    assert Cancel(meant) in evening.done and meant.cancelled_as is None
    assert (evening.the_turn().npc, evening.the_turn().question.text) == (INNKEEPER, "Iron is")


def test_cutting_off_the_first_npc_cancels_the_reaction() -> None:
    evening, lead = led()
    reaction = evening.the_turn()
    evening.hear(SpeechStarted(BRAN, 2_000), at_ms=2_200)
    effects = evening.hear(a_partial(BRAN, "wait"), at_ms=2_500)
    assert Cancel(lead) in effects and lead.cancelled_as is Outcome.INTERRUPTED
    assert Cancel(reaction) in effects and reaction.cancelled_as is None


def test_a_question_of_a_player_goes_before_a_reaction_that_was_not_heard() -> None:
    evening, lead = led()
    reaction = evening.the_turn()
    evening.finish(lead, at_ms=4_000)
    effects = evening.says(BRAN, "Grimjaw, how is my blade?", at_ms=4_100)
    assert Cancel(reaction) in effects and reaction.cancelled_as is Outcome.SUPERSEDED
    assert evening.the_turn().npc == SMITH


def test_a_cough_takes_no_reaction_away() -> None:
    evening, lead = led()
    reaction = evening.the_turn()
    evening.finish(lead, at_ms=4_000)
    evening.hear(SpeechStarted(BRAN, 4_100), at_ms=4_300)
    assert evening.talk.tick(at_ms=4_350) == []
    effects = evening.talk.on_ear(NothingSaid(BRAN, 4_900), at_ms=4_900)
    assert Release(reaction) in effects


def test_no_reaction_outlasts_its_scene() -> None:
    evening, _ = led()
    reaction = evening.the_turn()
    assert Cancel(reaction) in evening.talk.move((SMITH, INNKEEPER))


def test_player_who_asks_again_waits_for_no_reaction() -> None:
    """The reaction belongs to the answer, not to the asker's question: it is not carried on."""
    evening, lead = led()
    reaction = evening.the_turn()
    evening.finish(lead, at_ms=4_000)
    evening.says(TAMSIN, "Mirelle, an ale!", at_ms=4_100)
    assert not any(isinstance(e, Cancel) and e.turn.cancelled_as is Outcome.MERGED for e in evening.done)
    evening.finish(reaction, at_ms=5_200, heard="")
    assert (evening.the_turn().npc, evening.the_turn().question.text) == (INNKEEPER, "Mirelle, an ale!")


def answered(evening: Evening, turn: Turn, said: str, *, at_ms: int) -> list[Effect]:
    """It is heard, to its end, and time passes until the next may be."""
    evening.is_heard(turn, said, at_ms=at_ms)
    effects = evening.finish(turn, at_ms=at_ms + 2_000)
    return [*effects, *evening.tick(at_ms=at_ms + 2_300)]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_an_npc_that_another_one_calls_answers_it_so_often_and_no_more(most: int) -> None:
    evening = Evening(npc_to_npc=most)
    evening.says(TAMSIN, "Grimjaw, who has ale?", at_ms=0)
    callers = itertools.cycle(["Mirelle, tell her.", "Grimjaw, tell her yourself."])
    n_answers = 0
    for said, at_ms in zip(callers, range(1_500, 60_000, 3_000), strict=False):
        n_begun = sum(isinstance(e, Begin) for e in evening.done)
        answered(evening, evening.the_turn(), said, at_ms=at_ms)
        if sum(isinstance(e, Begin) for e in evening.done) == n_begun:
            break
        n_answers += 1
    assert n_answers == most
    assert evening.talk.is_quiet


def test_npcs_do_not_talk_on_over_a_player() -> None:
    evening = Evening(npc_to_npc=5)
    evening.says(TAMSIN, "Grimjaw, who has ale?", at_ms=0)
    lead = evening.the_turn()
    evening.is_heard(lead, "Mirelle, tell her.", at_ms=1_500)
    evening.hear(SpeechStarted(BRAN, 3_400), at_ms=3_450)
    assert not any(isinstance(e, Begin) for e in evening.finish(lead, at_ms=3_500))


def test_a_player_s_question_is_answered_before_npcs_answer_each_other() -> None:
    evening = Evening(npc_to_npc=5)
    evening.says(TAMSIN, "Grimjaw, who has ale?", at_ms=0)
    lead = evening.the_turn()
    evening.is_heard(lead, "Mirelle, tell her.", at_ms=1_500)
    evening.says(BRAN, "Mirelle, a bed for the night!", at_ms=2_000)
    his = evening.the_turn()
    effects = evening.finish(lead, at_ms=4_000)
    assert not any(isinstance(e, Begin) for e in effects)
    assert Release(his) in evening.talk.tick(at_ms=4_300)


def test_a_muted_npc_neither_reacts_nor_answers_another() -> None:
    evening = Evening(npc_to_npc=5)
    evening.talk.questions.controls.muted.add(INNKEEPER)
    evening.says(TAMSIN, BOTH, at_ms=0)
    said = "Mirelle, tell her."
    n_begun = sum(isinstance(effect, Begin) for effect in evening.done)
    answered(evening, evening.the_turn(), said, at_ms=1_500)
    assert sum(isinstance(effect, Begin) for effect in evening.done) == n_begun
