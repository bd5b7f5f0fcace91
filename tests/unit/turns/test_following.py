"""NPCs answer the words of other NPCs (rules of `glyphoxa.turns.turn_taking`)."""

from __future__ import annotations

import heapq
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.heard import NothingSaid, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import PlayerId, TurnId, UtteranceId
from glyphoxa.domain.turn import Outcome, Stage
from glyphoxa.turns.floor import OpenTurns
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn import Begin, Cancel, Commit, Effect, Release, Turn
from glyphoxa.turns.turn_taking import TurnTaking
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, a_draft, a_partial
from tests.support.proof import n_examples
from tests.support.room_table import NAMES, named

BOTH = "Grimjaw, Mirelle, what do you say?"
REPLY = "Iron is dear."


class Evening:
    """Two NPCs. Keeps what is to be done."""

    def __init__(self, *, npc_to_npc: int = 0) -> None:
        self.talk = TurnTaking(Questions(named, NAMES), turns=OpenTurns(), npc_to_npc=npc_to_npc)
        self.talk.move((SMITH, INNKEEPER))
        self.done: list[Effect] = []

    def take(self, effects: list[Effect]) -> list[Effect]:
        self.done += effects
        return effects

    def says(self, player: PlayerId, text: str, *, at_ms: int) -> list[Effect]:
        self.take(self.talk.on_ear(SpeechStarted(player, at_ms), at_ms=at_ms))
        ended = TurnEnded(a_draft(player, text, end_ms=at_ms + 500), at_ms + 1_000)
        return self.take(self.talk.on_ear(ended, at_ms=at_ms + 1_000))

    def is_heard(self, turn: Turn, reply: str = REPLY, *, at_ms: int) -> list[Effect]:
        """Its answer is known and its first sound is there."""
        self.talk.on_stage(turn, Stage.FIRST_AUDIO, at_ms=at_ms)
        turn.reply = reply
        return self.take(self.talk.on_reply_known(turn, at_ms=at_ms))

    def over(self, turn: Turn, *, at_ms: int, heard: str = REPLY) -> list[Effect]:
        turn.reply_id = UtteranceId(f"reply of {turn.id}")
        return self.take(self.talk.on_finished(turn.id, at_ms=at_ms, heard=heard))

    def last(self, kind: type[Effect]) -> Effect:
        return [effect for effect in self.done if isinstance(effect, kind)][-1]

    @property
    def begun(self) -> Turn:
        begun = self.last(Begin)
        assert isinstance(begun, Begin)
        return begun.turn


def led(**options: int) -> tuple[Evening, Turn]:
    """Grimjaw answers a question to both, and is heard."""
    evening = Evening(**options)
    evening.says(TAMSIN, BOTH, at_ms=0)
    lead = evening.begun
    assert lead.npc == SMITH
    evening.is_heard(lead, at_ms=1_500)
    return evening, lead


def test_second_called_npc_prepares_then_reacts_to_the_first() -> None:
    evening, lead = led()
    reaction = evening.begun
    assert (reaction.npc, reaction.player, reaction.question.text) == (INNKEEPER, PlayerId(SMITH), REPLY)
    assert reaction.reacts_to == lead.id
    assert not any(isinstance(effect, Commit) and effect.turn.npc == INNKEEPER for effect in evening.done)
    evening.over(lead, at_ms=4_000)
    commit = evening.last(Commit)
    assert isinstance(commit, Commit)
    assert commit.turn is reaction and reaction.draft.text == REPLY
    assert reaction.addressed is not None and reaction.addressed.reason == "called together with Grimjaw"
    assert evening.talk.tick(at_ms=4_299) == []
    assert Release(reaction) in evening.talk.tick(at_ms=4_300)


def test_reaction_gets_no_further_reaction() -> None:
    evening, lead = led()
    reaction = evening.begun
    evening.over(lead, at_ms=4_000)
    evening.take(evening.talk.tick(at_ms=4_300))
    n_done = len(evening.done)
    evening.is_heard(reaction, "Grimjaw, you are right.", at_ms=4_400)
    evening.over(reaction, at_ms=6_000, heard="Grimjaw, you are right.")
    assert not any(isinstance(effect, Begin) for effect in evening.done[n_done:])
    assert evening.talk.is_quiet


def test_a_reaction_answers_what_was_heard_and_not_what_was_meant() -> None:
    evening, lead = led()
    meant = evening.begun
    evening.over(lead, at_ms=4_000, heard="Iron is")
    assert Cancel(meant) in evening.done and meant.cancelled_as is None
    assert (evening.begun.npc, evening.begun.question.text) == (INNKEEPER, "Iron is")


def test_cutting_off_the_first_npc_cancels_the_reaction() -> None:
    evening, lead = led()
    reaction = evening.begun
    evening.take(evening.talk.on_ear(SpeechStarted(BRAN, 2_000), at_ms=2_200))
    effects = evening.take(evening.talk.on_ear(a_partial(BRAN, "wait"), at_ms=2_500))
    assert Cancel(lead) in effects and lead.cancelled_as is Outcome.INTERRUPTED
    assert Cancel(reaction) in effects and reaction.cancelled_as is None


def test_a_question_of_a_player_goes_before_a_reaction_that_was_not_heard() -> None:
    evening, lead = led()
    reaction = evening.begun
    evening.over(lead, at_ms=4_000)
    effects = evening.says(BRAN, "Grimjaw, how is my blade?", at_ms=4_100)
    assert Cancel(reaction) in effects and reaction.cancelled_as is Outcome.SUPERSEDED
    assert evening.begun.npc == SMITH


def test_a_cough_takes_no_reaction_away() -> None:
    evening, lead = led()
    reaction = evening.begun
    evening.over(lead, at_ms=4_000)
    evening.take(evening.talk.on_ear(SpeechStarted(BRAN, 4_100), at_ms=4_300))
    assert evening.talk.tick(at_ms=4_350) == []
    effects = evening.talk.on_ear(NothingSaid(BRAN, 4_900), at_ms=4_900)
    assert Release(reaction) in effects


def test_no_reaction_outlasts_its_scene() -> None:
    evening, _ = led()
    reaction = evening.begun
    assert Cancel(reaction) in evening.talk.move((SMITH, INNKEEPER))


def test_player_who_asks_again_waits_for_no_reaction() -> None:
    """The reaction belongs to the answer, not to the asker's question: it is not carried on."""
    evening, lead = led()
    reaction = evening.begun
    evening.over(lead, at_ms=4_000)
    evening.says(TAMSIN, "Mirelle, an ale!", at_ms=4_100)
    assert not any(isinstance(e, Cancel) and e.turn.cancelled_as is Outcome.MERGED for e in evening.done)
    evening.over(reaction, at_ms=5_200, heard="")
    assert (evening.begun.npc, evening.begun.question.text) == (INNKEEPER, "Mirelle, an ale!")


def answered(evening: Evening, turn: Turn, said: str, *, at_ms: int) -> list[Effect]:
    """It is heard, to its end, and time passes until the next may be."""
    evening.is_heard(turn, said, at_ms=at_ms)
    effects = evening.over(turn, at_ms=at_ms + 2_000, heard=said)
    return [*effects, *evening.take(evening.talk.tick(at_ms=at_ms + 2_300))]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_an_npc_that_another_one_calls_answers_it_so_often_and_no_more(most: int) -> None:
    evening = Evening(npc_to_npc=most)
    evening.says(TAMSIN, "Grimjaw, who has ale?", at_ms=0)
    callers = itertools.cycle(["Mirelle, tell her.", "Grimjaw, tell her yourself."])
    n_answers = 0
    for said, at_ms in zip(callers, range(1_500, 60_000, 3_000), strict=False):
        n_begun = sum(isinstance(e, Begin) for e in evening.done)
        answered(evening, evening.begun, said, at_ms=at_ms)
        if sum(isinstance(e, Begin) for e in evening.done) == n_begun:
            break
        n_answers += 1
    assert n_answers == most
    assert evening.talk.is_quiet


def test_npcs_do_not_talk_on_over_a_player() -> None:
    evening = Evening(npc_to_npc=5)
    evening.says(TAMSIN, "Grimjaw, who has ale?", at_ms=0)
    lead = evening.begun
    evening.is_heard(lead, "Mirelle, tell her.", at_ms=1_500)
    evening.take(evening.talk.on_ear(SpeechStarted(BRAN, 3_400), at_ms=3_450))
    assert not any(isinstance(e, Begin) for e in evening.over(lead, at_ms=3_500, heard="Mirelle, tell her."))


def test_a_player_s_question_is_answered_before_npcs_answer_each_other() -> None:
    evening = Evening(npc_to_npc=5)
    evening.says(TAMSIN, "Grimjaw, who has ale?", at_ms=0)
    lead = evening.begun
    evening.is_heard(lead, "Mirelle, tell her.", at_ms=1_500)
    evening.says(BRAN, "Mirelle, a bed for the night!", at_ms=2_000)
    his = evening.begun
    effects = evening.over(lead, at_ms=4_000, heard="Mirelle, tell her.")
    assert not any(isinstance(e, Begin) for e in effects)
    assert Release(his) in evening.talk.tick(at_ms=4_300)


def test_a_muted_npc_neither_reacts_nor_answers_another() -> None:
    evening = Evening(npc_to_npc=5)
    evening.talk.questions.controls.muted.add(INNKEEPER)
    evening.says(TAMSIN, BOTH, at_ms=0)
    said = "Mirelle, tell her."
    n_begun = sum(isinstance(effect, Begin) for effect in evening.done)
    answered(evening, evening.begun, said, at_ms=1_500)
    assert sum(isinstance(effect, Begin) for effect in evening.done) == n_begun


ACTS = st.lists(
    st.tuples(
        st.integers(50, 4_000),
        st.sampled_from([TAMSIN, BRAN]),
        st.sampled_from([BOTH, "Grimjaw, hello.", "what a day it is", "mhm", "Mirelle, an ale!", ""]),
    ),
    max_size=12,
)
SAID = st.lists(st.sampled_from([REPLY, "Mirelle, tell her.", "Grimjaw, you do it.", ""]), min_size=1, max_size=4)


@given(ACTS, SAID, st.integers(0, 4))
@settings(max_examples=n_examples(300), deadline=None)
def test_npcs_never_talk_to_each_other_for_ever_and_every_turn_ends(
    acts: list[tuple[int, PlayerId, str]], said: list[str], most: int
) -> None:
    talk = TurnTaking(Questions(named, NAMES), turns=OpenTurns(), npc_to_npc=most)
    talk.move((SMITH, INNKEEPER))
    due: list[tuple[int, int, tuple[str, object, object]]] = []
    numbers, replies = itertools.count(), itertools.cycle(said)
    committed: dict[TurnId, PlayerId] = {}
    ended: list[TurnId] = []
    turns: dict[TurnId, Turn] = {}

    def at(at_ms: int, *what: object) -> None:
        heapq.heappush(due, (at_ms, next(numbers), (*what, None, None)[:3]))  # type: ignore[arg-type]

    def perform(effects: list[Effect], now_ms: int) -> None:
        for effect in effects:
            match effect:
                case Begin(turn):
                    busy = [turns[other].npc for other in turns if other not in ended and other != turn.id]
                    assert turn.npc not in busy, "an engine has one turn"
                    turns[turn.id] = turn
                case Commit(turn):
                    committed[turn.id] = turn.draft.player
                case Release(turn):
                    at(now_ms + 300, "audio", turn.id, next(replies))
                case Cancel(turn):
                    # What was only prepared is cut short by whatever its engine is asked next.
                    is_open = turn.begun and turn.cancelled_as is not None
                    at(now_ms + 10, "over", turn.id, "") if is_open else ended.append(turn.id)
                case _:
                    if (again_ms := getattr(effect, "at_ms", None)) and type(effect).__name__ == "AskAgain":
                        at(again_ms, "tick")

    now_ms = 0
    for wait_ms, player, text in acts:
        now_ms += wait_ms
        at(now_ms, "starts", player)
        at(now_ms + 600, "ends", player, text)
    for _ in range(3_000):
        if not due:
            break
        now_ms, _, (what, who, words) = heapq.heappop(due)
        match what:
            case "starts":
                perform(talk.on_ear(SpeechStarted(PlayerId(str(who)), now_ms), at_ms=now_ms), now_ms)
            case "ends" if words:
                draft = a_draft(PlayerId(str(who)), str(words), end_ms=now_ms)
                perform(talk.on_ear(TurnEnded(draft, now_ms), at_ms=now_ms), now_ms)
            case "ends":
                perform(talk.on_ear(NothingSaid(PlayerId(str(who)), now_ms), at_ms=now_ms), now_ms)
            case "audio" if who not in ended:
                turn = turns[TurnId(str(who))]
                talk.on_stage(turn, Stage.FIRST_AUDIO, at_ms=now_ms)
                turn.reply = str(words)
                perform(talk.on_reply_known(turn, at_ms=now_ms), now_ms)
                at(now_ms + 1_500, "over", who, words)
            case "over" if who not in ended:
                ended.append(TurnId(str(who)))
                perform(talk.on_finished(TurnId(str(who)), at_ms=now_ms, heard=str(words)), now_ms)
            case "tick":
                perform(talk.tick(at_ms=now_ms), now_ms)
    assert not due, "they talk for ever"
    assert talk.is_quiet
    assert set(committed) <= set(ended)
    by_players = sum(player in (TAMSIN, BRAN) for player in committed.values())
    assert len(committed) - by_players <= by_players * (most + 1)
