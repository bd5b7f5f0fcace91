"""Who is answered by whom, and when (rules of `glyphoxa.turns.turn_taking`)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.heard import EagerTurn, EarEvent, NothingSaid, SpeechPaused, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import PlayerId, TurnId
from glyphoxa.domain.turn_record import AssembledPrompt, Outcome, PromptPart, Stage
from glyphoxa.turns.turn import (
    AskAgain,
    Begin,
    Cancel,
    Commit,
    Effect,
    Fill,
    Hold,
    Keep,
    Prime,
    Release,
    Resume,
    Turn,
)
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, a_draft, a_partial
from tests.support.evening import Evening
from tests.support.proof import n_examples


def test_answer_is_prepared_at_the_pause_and_played_at_turn_end() -> None:
    evening = Evening()
    effects = evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    assert [type(effect) for effect in evening.done] == [Begin, Keep, Commit, Release, AskAgain]
    assert [type(effect) for effect in effects][0] is Keep


def test_answer_that_failed_during_speech_is_retried_once() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0))
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, hello.")))
    failed = evening.the_turn()
    failed.has_failed = True
    evening.hear(a_partial(TAMSIN, "Grimjaw, hello"), at_ms=500)
    assert evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, hello.")), at_ms=700) == []  # each try costs tokens
    effects = evening.hear(TurnEnded(a_draft(TAMSIN, "Grimjaw, hello."), 1_500), at_ms=1_500)
    assert [type(effect) for effect in effects][:4] == [Keep, Cancel, Begin, Commit]
    assert Cancel(failed) in effects and failed.cancelled_as is None
    again = evening.the_turn()
    assert again != failed
    again.has_failed = True
    assert evening.talk.tick(at_ms=1_600) == []  # its excuse is heard


def test_answer_is_redone_when_final_words_differ() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0))
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, hello")))
    effects = evening.hear(TurnEnded(a_draft(TAMSIN, "Grimjaw, hello there"), 1_500), at_ms=1_500)
    assert [type(e) for e in effects][:4] == [Keep, Cancel, Begin, Commit]
    assert [turn.cancelled_as for turn in evening.cancelled()] == [None]


def test_partial_with_other_words_discards_the_prepared_answer() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0))
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, is it done?")))
    prepared = evening.the_turn()
    prepared.prompt = AssembledPrompt(parts=(PromptPart("persona", "", tokens=700),))
    assert Cancel(prepared) not in evening.hear(a_partial(TAMSIN, "Grimjaw, is it done"), at_ms=100)
    assert Cancel(prepared) in evening.hear(a_partial(TAMSIN, "Grimjaw, is it done for"), at_ms=300)
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, is it done for today?")))
    evening.hear(TurnEnded(a_draft(TAMSIN, "Grimjaw, is it done for today?"), 1_500), at_ms=1_500)
    assert len(evening.of(Begin)) == 2
    assert evening.the_turn().discarded_tokens == 700


def test_no_answer_is_prepared_after_too_many_discarded_tokens() -> None:
    evening = Evening()
    evening.talk.max_discarded_tokens = 1_000
    evening.hear(SpeechStarted(TAMSIN, 0))
    for words in ("Grimjaw, is it?", "Grimjaw, is it done?", "Grimjaw, is it done now?"):
        evening.hear(EagerTurn(a_draft(TAMSIN, words)))
        evening.the_turn().prompt = AssembledPrompt(parts=(PromptPart("persona", "", tokens=700),))
    effects = evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, is it done now or not?")))
    assert not [effect for effect in effects if isinstance(effect, Begin)]
    assert len(evening.of(Begin)) == 2


def test_case_and_punctuation_do_not_make_words_different() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0))
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw hello")))
    evening.hear(TurnEnded(a_draft(TAMSIN, "Grimjaw, hello."), 1_500), at_ms=1_500)
    assert len(evening.of(Begin)) == 1


def test_player_who_continues_gets_one_answer_to_both_parts() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, good evening.", at_ms=0)
    (called_off,) = evening.hear(SpeechStarted(TAMSIN, 1_200), at_ms=1_200)
    assert isinstance(called_off, Cancel)
    assert called_off.turn.cancelled_as is Outcome.MERGED
    evening.finish(called_off.turn, at_ms=1_210)
    evening.hear(TurnEnded(a_draft(TAMSIN, "How is my blade?", end_ms=2_000), 2_500), at_ms=2_500)
    begun = evening.the_turn()
    assert begun.question.text == "Grimjaw, good evening. How is my blade?"
    assert len(evening.of(Keep)) == 2


def test_a_cough_before_the_answer_does_not_lose_the_question() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, how is my blade?", at_ms=0)
    first = evening.the_turn()
    evening.hear(SpeechStarted(TAMSIN, 1_200), at_ms=1_200)
    evening.finish(first, at_ms=1_210)
    evening.hear(NothingSaid(TAMSIN, 1_700), at_ms=1_700)
    begun = evening.the_turn()
    assert begun is not first
    assert begun.question.text == "Grimjaw, how is my blade?"
    assert isinstance(evening.of(Release)[-1], Release)


def test_a_question_asked_again_is_not_answered_before_the_npc_was_asked() -> None:
    evening = Evening()
    evening.says(BRAN, "Mirelle, an ale.", at_ms=0)
    other = evening.the_turn()
    evening.says(TAMSIN, "Grimjaw, how is my blade?", at_ms=2_000)
    first = evening.the_turn()
    evening.hear(SpeechStarted(TAMSIN, 3_100), at_ms=3_100)
    evening.finish(other, at_ms=3_200)
    asked_again = evening.hear(NothingSaid(TAMSIN, 3_700), at_ms=3_700)  # before the engine has released the first
    assert not [effect for effect in asked_again if isinstance(effect, Begin | Release)]
    effects = evening.finish(first, at_ms=3_710)
    assert [type(effect) for effect in effects][:2] == [Begin, Release]
    assert evening.the_turn() != first


@pytest.mark.parametrize("is_typed", [False, True])
@pytest.mark.parametrize("player", [TAMSIN, BRAN])
@pytest.mark.parametrize(
    "text",
    ["I see.", "Makes sense.", "Thank you!", "Oh no.", "Sure, keep going.", "Ach so.", "Oh nein!", "Echt?", "you"],
)
def test_listeners_words_are_kept_and_ask_nobody(text: str, player: PlayerId, is_typed: bool) -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, tell me a story.", at_ms=0)
    evening.is_heard(evening.the_turn())
    evening.hear(SpeechStarted(player, 3_000), at_ms=3_000)
    if not is_typed:
        evening.hear(a_partial(player, text.partition(" ")[0], 3_200), at_ms=3_200)
        evening.hear(SpeechPaused(player, 3_600), at_ms=3_600)
        evening.hear(EagerTurn(a_draft(player, text, end_ms=3_400)), at_ms=3_700)
    draft = replace(a_draft(player, text, end_ms=3_400), typed=is_typed)
    effects = evening.hear(TurnEnded(draft, 3_900), at_ms=3_900)
    assert evening.of(Cancel) == []
    assert len(evening.of(Begin)) == 1
    (keep,) = [effect for effect in effects if isinstance(effect, Keep)]
    assert keep.addressed.npc is None


@pytest.mark.parametrize(
    "text",
    ["Hold on.", "Wait, wait.", "Which horses?", "That's not true.", "We need a boat.", "Grimjaw, thank you.", "Halt!"],
)
def test_words_that_take_the_floor_interrupt_and_are_answered(text: str) -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, tell me a story.", at_ms=0)
    first = evening.the_turn()
    evening.is_heard(first)
    evening.hear(SpeechStarted(TAMSIN, 3_000), at_ms=3_000)
    evening.hear(TurnEnded(a_draft(TAMSIN, text, end_ms=3_400), 3_900), at_ms=3_900)
    assert [turn.cancelled_as for turn in evening.cancelled()] == [Outcome.INTERRUPTED]
    evening.finish(first, at_ms=3_920)
    assert len(evening.of(Begin)) == 2


def test_yes_before_the_end_of_an_npcs_question_answers_it() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, do you sell swords?", at_ms=0)
    turn = evening.the_turn()
    evening.is_heard(turn)
    turn.reply = "I do. Will you take one?"
    evening.says(TAMSIN, "Yes, sure.", at_ms=3_000)
    assert evening.of(Cancel) == []
    evening.finish(turn, at_ms=4_500)
    assert len(evening.of(Begin)) == 2


def test_answer_to_words_that_were_noise_is_dropped() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0))
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, how is my blade?")))
    evening.hear(NothingSaid(TAMSIN, 400))
    assert len(evening.of(Cancel)) == 1
    evening.talk.on_finished(evening.of(Begin)[0].turn.id, at_ms=500)
    assert evening.talk.is_quiet


def test_thanks_after_the_answer_are_addressed_to_the_npc() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, tell me a story.", at_ms=0)
    evening.is_heard(evening.the_turn())
    evening.finish(evening.the_turn(), at_ms=4_000)
    evening.says(TAMSIN, "Thank you.", at_ms=5_000)
    assert len(evening.of(Begin)) == 2


def test_an_npc_does_not_begin_while_a_player_speaks() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(BRAN, 0))
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=100)
    assert evening.of(Release) == []
    evening.hear(TurnEnded(a_draft(BRAN, "Nice weather."), 3_000), at_ms=3_000)
    assert len(evening.of(Release)) == 1


def test_two_npcs_answer_one_after_the_other() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    first = evening.the_turn()
    evening.hear(SpeechStarted(BRAN, 100), at_ms=100)
    evening.is_heard(first)
    evening.hear(EagerTurn(a_draft(BRAN, "Mirelle, an ale.")), at_ms=1_100)
    evening.hear(TurnEnded(a_draft(BRAN, "Mirelle, an ale."), 1_200), at_ms=1_200)
    second = evening.the_turn()
    assert second != first
    effects = evening.finish(first, at_ms=2_000)
    assert effects == [AskAgain(2_300)]
    released = [e for e in evening.talk.tick(at_ms=2_300) if isinstance(e, Release)]
    assert [e.turn for e in released] == [second]


def test_a_second_question_to_a_busy_npc_waits_for_its_answer_to_the_first() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(BRAN, 0))
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    first = evening.the_turn()
    evening.hear(TurnEnded(a_draft(BRAN, "Grimjaw, what is that?"), 1_500), at_ms=1_500)
    assert (len(evening.of(Begin)), evening.talk.n_waiting) == (1, 1)
    evening.finish(first, at_ms=4_000)
    begun = evening.the_turn()
    assert (begun.question.text, evening.talk.n_waiting) == ("Grimjaw, what is that?", 0)


def test_no_filler_when_the_first_clause_is_about_to_come() -> None:
    evening = Evening(filler_after_ms=700)
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    turn = evening.the_turn()
    evening.talk.on_stage(turn, Stage.FIRST_TOKEN, at_ms=1_600)
    assert evening.talk.tick(at_ms=1_700) == [AskAgain(2_600)]
    evening.is_heard(turn)
    assert evening.talk.tick(at_ms=2_600) == []


def test_a_filler_after_all_when_the_first_words_do_not_become_a_clause() -> None:
    evening = Evening(filler_after_ms=700)
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    turn = evening.the_turn()
    evening.talk.on_stage(turn, Stage.FIRST_TOKEN, at_ms=1_600)
    assert Fill(turn) in evening.talk.tick(at_ms=2_600)


def test_filler_comes_three_seconds_after_the_words_at_the_latest() -> None:
    evening = Evening(filler_after_ms=700)
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)  # they end at 500
    turn = evening.the_turn()
    evening.talk.on_stage(turn, Stage.FIRST_TOKEN, at_ms=3_000)
    assert Fill(turn) not in evening.talk.tick(at_ms=3_400)
    assert Fill(turn) in evening.talk.tick(at_ms=3_500)


def test_no_filler_comes_just_before_a_sentence_that_is_ready() -> None:
    evening = Evening(filler_after_ms=700)
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    turn = evening.the_turn()
    evening.talk.on_stage(turn, Stage.FIRST_TOKEN, at_ms=2_900)
    evening.talk.on_stage(turn, Stage.FIRST_SENTENCE, at_ms=3_300)
    assert Fill(turn) not in evening.talk.tick(at_ms=3_500)
    assert Fill(turn) in evening.talk.tick(at_ms=3_800)  # the voice is slow


def test_an_answer_that_waits_for_a_tool_is_led_in_by_a_filler_once() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, hello.", at_ms=0)
    turn = evening.the_turn()
    assert evening.talk.lookup_is_slow(INNKEEPER, at_ms=1_700) == []
    assert evening.talk.lookup_is_slow(SMITH, at_ms=1_800) == [AskAgain(1_000)]  # at once
    assert Fill(turn) in evening.talk.tick(at_ms=1_800)
    assert Fill(turn) not in [*evening.talk.lookup_is_slow(SMITH, at_ms=2_500), *evening.talk.tick(at_ms=2_600)]


def test_a_filler_for_a_slow_tool_waits_until_the_npc_may_be_heard() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0), at_ms=0)
    evening.hear(EagerTurn(a_draft(TAMSIN, "Grimjaw, hello.", end_ms=500)), at_ms=800)
    assert not [one for one in evening.talk.lookup_is_slow(SMITH, at_ms=900) if isinstance(one, Fill)]
    evening.hear(TurnEnded(a_draft(TAMSIN, "Grimjaw, hello.", end_ms=500), 1_000), at_ms=1_000)
    assert Fill(evening.the_turn()) in evening.talk.tick(at_ms=1_400)


def test_partials_prime_the_npc_that_is_probably_meant() -> None:
    evening = Evening()
    evening.hear(SpeechStarted(TAMSIN, 0))
    assert evening.hear(a_partial(TAMSIN, "Grimjaw, how", 500)) == [Prime(SMITH, TAMSIN, "Grimjaw, how")]


def test_npcs_outside_the_new_scene_fall_silent() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Mirelle, hello.", at_ms=0)
    turn = evening.the_turn()
    assert evening.talk.move((SMITH,)) == [Cancel(turn)] and turn.cancelled_as is Outcome.SUPERSEDED


def _events(player: PlayerId) -> st.SearchStrategy[EarEvent]:
    texts = st.sampled_from(["Grimjaw, hello.", "Mirelle, an ale.", "What a day.", "yes", "and then?"])
    return st.one_of(
        st.builds(SpeechStarted, st.just(player), st.just(0)),
        st.builds(a_partial, st.just(player), texts, st.just(0)),
        st.builds(lambda text: EagerTurn(a_draft(player, text)), texts),
        st.builds(lambda text: TurnEnded(a_draft(player, text), 0), texts),
        st.builds(NothingSaid, st.just(player), st.just(0)),
    )


Step = tuple[str, EarEvent | int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ear"), st.one_of(_events(TAMSIN), _events(BRAN))),
        st.tuples(st.sampled_from(["audio", "finish"]), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.integers(0, 30_000)),
    ),
    max_size=60,
)


@settings(max_examples=n_examples(400))
@given(STEPS)
def test_every_turn_ends_once_and_every_word_is_kept(steps: list[Step]) -> None:
    """Engines answer every begun turn with one end; then nothing is left open, and only one NPC speaks at a time."""
    talk = Evening().talk
    begun: list[Turn] = []
    committed: set[TurnId] = set()
    ended: list[TurnId] = []
    kept = said = now_ms = 0
    speaking: set[Turn] = set()

    def perform(effects: list[Effect]) -> None:
        nonlocal kept
        for effect in effects:
            match effect:
                case Begin(turn):
                    begun.append(turn)
                case Commit(turn):
                    committed.add(turn.id)
                case Keep():
                    kept += 1
                case Release(turn):
                    assert not speaking, "two NPCs have the floor"
                    assert turn in begun
                    speaking.add(turn)
                case Cancel(turn):
                    if not turn.begun and turn.cancelled_as is not None:
                        ended.append(turn.id)
                case _:
                    pass

    def end(turn: Turn) -> None:
        begun.remove(turn)
        speaking.discard(turn)
        ended.append(turn.id)
        perform(talk.on_finished(turn.id, at_ms=now_ms))

    for kind, what in steps:
        if kind == "ear":
            assert not isinstance(what, int)
            said += isinstance(what, TurnEnded)
            perform(talk.on_ear(what, at_ms=now_ms))
        elif kind == "wait":
            assert isinstance(what, int)
            now_ms += what
            perform(talk.tick(at_ms=now_ms))
        elif kind == "audio" and speaking:
            talk.on_stage(next(iter(speaking)), Stage.FIRST_AUDIO, at_ms=now_ms)
        elif kind == "finish" and begun:
            assert isinstance(what, int)
            end(begun[what % len(begun)])

    for player in (TAMSIN, BRAN):
        perform(talk.on_ear(NothingSaid(player, now_ms), at_ms=now_ms))
    for _ in range(200):
        now_ms += 1_000
        perform(talk.tick(at_ms=now_ms))
        if not begun:
            break
        end(begun[0])
    assert kept == said
    assert committed <= set(ended)
    assert len(ended) == len(set(ended))


def heard_answer(evening: Evening) -> Turn:
    """Grimjaw answers Tamsin, and is heard."""
    evening.says(TAMSIN, "Grimjaw, tell me everything.", at_ms=0)
    evening.is_heard(evening.the_turn())
    return evening.the_turn()


def test_an_npc_goes_on_after_a_noise_and_after_a_laugh() -> None:
    evening = Evening()
    answer = heard_answer(evening)
    evening.hear(SpeechStarted(BRAN, 2_000), at_ms=2_200)
    evening.talk.tick(at_ms=2_250)
    evening.hear(SpeechPaused(BRAN, 2_700), at_ms=2_700)
    assert evening.hear(NothingSaid(BRAN, 2_900), at_ms=2_900) == [Resume(answer)]
    evening.hear(SpeechStarted(BRAN, 4_000), at_ms=4_200)
    evening.talk.tick(at_ms=4_250)
    evening.hear(SpeechPaused(BRAN, 4_900), at_ms=4_900)
    effects = evening.hear(EagerTurn(a_draft(BRAN, "Hahaha", end_ms=4_700)), at_ms=5_000)
    assert Resume(answer) in effects
    assert answer not in evening.cancelled()


def test_an_npc_that_nobody_hears_yet_is_not_held() -> None:
    evening = Evening()
    evening.says(TAMSIN, "Grimjaw, tell me everything.", at_ms=0)
    evening.hear(SpeechStarted(BRAN, 1_100), at_ms=1_300)
    evening.talk.tick(at_ms=1_400)
    assert not evening.of(Hold)
    evening.is_heard(evening.the_turn())
    assert isinstance(evening.talk.tick(at_ms=1_500)[0], Hold)


def test_cutting_an_npc_off_takes_nobody_else_s_question_away() -> None:
    evening = Evening()
    answer = heard_answer(evening)
    evening.says(TAMSIN, "Mirelle, an ale!", at_ms=2_000)
    waiting = evening.the_turn()
    evening.hear(SpeechStarted(BRAN, 4_000), at_ms=4_200)
    evening.talk.tick(at_ms=4_250)
    evening.hear(a_partial(BRAN, "what a day"), at_ms=4_600)
    assert evening.cancelled() == [answer]
    evening.finish(answer, at_ms=4_620)
    evening.hear(TurnEnded(a_draft(BRAN, "what a day it is", end_ms=5_000), 5_500), at_ms=5_500)
    assert Release(waiting) in evening.done
