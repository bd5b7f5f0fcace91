"""Neither a player who talks without end nor NPCs among themselves take others' answers away.

The rules are those of `glyphoxa.turns.turn_taking`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.heard import EagerTurn, NothingSaid, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import PlayerId, TurnId, UtteranceId
from glyphoxa.domain.turn_record import Outcome, Stage
from glyphoxa.names.people import Understood
from glyphoxa.turns.barge_in import cuts_off
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn import MAX_PARTS, AskAgain, Begin, Cancel, Commit, Keep, Release, SpokenQuestion, Turn
from glyphoxa.turns.turn_taking import TurnTaking
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, a_draft, a_partial
from tests.support.evening import Engine, Evening, JumpingTable
from tests.support.proof import IS_PROOF, n_examples
from tests.support.room_table import NAMES, named

QUIET, LOUD = TAMSIN, BRAN
LONG = "and another thing that I have been meaning to say for a very long time about the price of iron " * 6


@dataclass(frozen=True)
class Act:
    """An act of somebody, `pause_ms` after their last one."""

    pause_ms: int
    text: str
    is_typed: bool
    speaks_ms: int = 0


TEXTS = st.sampled_from(
    ["Grimjaw, listen.", "Mirelle, an ale!", "what a day it is", "mhm", LONG[:90], "Grimjaw, " + LONG[:90]]
)
ACTS = st.one_of(
    st.builds(Act, st.integers(50, 600), TEXTS, st.just(True)),
    st.builds(Act, st.integers(50, 600), TEXTS, st.just(False), st.integers(100, 3_000)),
)
ENGINES = st.lists(st.builds(Engine, st.integers(50, 6_000), st.integers(200, 12_000)), min_size=1, max_size=4)


def act(table: JumpingTable, player: PlayerId, acts: Sequence[Act], *, until_ms: int) -> None:
    """Have somebody do all this over and over."""
    now_ms = 0
    for each in itertools.cycle(acts):
        now_ms += each.pause_ms
        if now_ms > until_ms:
            return
        draft = replace(a_draft(player, each.text, end_ms=now_ms + each.speaks_ms), typed=each.is_typed)
        table.at(now_ms, SpeechStarted(player, now_ms))
        if not each.is_typed:
            table.at(now_ms + each.speaks_ms // 2, a_partial(player, each.text[:40], now_ms))
            table.at(now_ms + each.speaks_ms, EagerTurn(draft))
            now_ms += each.speaks_ms
        table.at(now_ms, TurnEnded(draft, now_ms))


@settings(max_examples=n_examples(30), deadline=None)
@given(st.lists(ACTS, min_size=1, max_size=8), ENGINES, st.booleans(), st.sampled_from(["Grimjaw", "Mirelle"]))
def test_quiet_players_turn_is_answered_or_cut_by_a_voice(
    acts: list[Act], engines: list[Engine], is_typed: bool, npc: str
) -> None:
    table = JumpingTable(engines)
    act(table, LOUD, acts, until_ms=40_000)
    table.at(1_003, "ask")
    asked: list[TurnId] = []
    heard_before = 0
    is_waiting = False
    while table.due:
        what = table.step()
        if what == "ask":
            draft = replace(a_draft(QUIET, f"{npc}, how much is it?", end_ms=table.now_ms), typed=is_typed)
            table.hear(SpeechStarted(QUIET, table.now_ms))
            table.hear(TurnEnded(draft, table.now_ms))
            asked.append(next(turn for turn, owner in reversed(table.owners.items()) if owner == QUIET))
            heard_before, is_waiting = len(table.heard), True
        elif asked and what == ("over", asked[-1]) and is_waiting:
            is_waiting = False
            assert list(table.heard).index(asked[-1]) - heard_before <= 3, "others were answered first"
            if len(asked) < 3:
                table.at(table.now_ms + 1_000, "ask")
    assert asked
    for turn in asked:
        assert turn in table.ended, "a turn never ended"
        outcome = table.ended[turn]
        if outcome is not None:
            cut = table.cut_by.get(turn)
            assert outcome is Outcome.INTERRUPTED and cut is not None and cuts_off(cut[1]), outcome
    assert table.most_open <= 6


SPEECHES = st.lists(
    st.tuples(
        st.integers(50, 4_000),
        st.sampled_from([TAMSIN, BRAN]),
        st.sampled_from(
            ["Grimjaw, Mirelle, what do you say?", "Grimjaw, hello.", "what a day it is", "mhm", "Mirelle, an ale!", ""]
        ),
    ),
    max_size=12,
)
REPLIES = st.sampled_from(["Iron is dear.", "Mirelle, tell her.", "Grimjaw, you do it.", ""])


@given(SPEECHES, st.lists(REPLIES, min_size=1, max_size=4), st.integers(0, 4))
@settings(max_examples=n_examples(300), deadline=None)
def test_npcs_never_talk_to_each_other_for_ever_and_every_turn_ends(
    speeches: list[tuple[int, PlayerId, str]], replies: list[str], most: int
) -> None:
    table = JumpingTable([Engine(300, 1_500)], replies=replies, npc_to_npc=most)
    now_ms = 0
    for wait_ms, player, text in speeches:
        now_ms += wait_ms
        end_ms = now_ms + 600
        table.at(now_ms, SpeechStarted(player, now_ms))
        ended = TurnEnded(a_draft(player, text, end_ms=end_ms), end_ms) if text else NothingSaid(player, end_ms)
        table.at(end_ms, ended)
    for _ in range(3_000):
        if table.due:
            table.step()
    assert not table.due, "they talk for ever"
    assert table.talk.is_quiet
    assert set(table.committed) <= set(table.ended)
    by_players = sum(player in (TAMSIN, BRAN) for player in table.committed.values())
    assert len(table.committed) - by_players <= by_players * (most + 1)


def typed(player: PlayerId, text: str) -> TurnEnded:
    return TurnEnded(replace(a_draft(player, text), typed=True), 0)


def an_answer_under_way() -> tuple[TurnTaking, Turn]:
    talk = Evening().talk
    talk.on_ear(SpeechStarted(QUIET, 0), at_ms=0)
    effects = talk.on_ear(typed(QUIET, "Grimjaw, tell me a story."), at_ms=0)
    (turn,) = [effect.turn for effect in effects if isinstance(effect, Release)]
    talk.on_stage(turn, Stage.FIRST_AUDIO, at_ms=0)
    return talk, turn


def test_other_players_cut_answers_by_voice_but_not_by_typing() -> None:
    talk, turn = an_answer_under_way()
    talk.on_ear(SpeechStarted(LOUD, 0), at_ms=1_000)
    assert not [e for e in talk.on_ear(typed(LOUD, "what is that?"), at_ms=1_000) if isinstance(e, Cancel)]
    talk.on_ear(SpeechStarted(LOUD, 0), at_ms=2_000)
    (cut,) = [e for e in talk.on_ear(a_partial(LOUD, "wait", 0), at_ms=2_100) if isinstance(e, Cancel)]
    assert (cut.turn, turn.cancelled_as) == (turn, Outcome.INTERRUPTED)


def test_player_who_types_cuts_their_own_answer_off() -> None:
    talk, turn = an_answer_under_way()
    talk.on_ear(SpeechStarted(QUIET, 0), at_ms=1_000)
    (cut,) = [e for e in talk.on_ear(typed(QUIET, "Enough."), at_ms=1_000) if isinstance(e, Cancel)]
    assert (cut.turn, turn.cancelled_as) == (turn, Outcome.INTERRUPTED)


def test_question_after_a_long_story_is_answered_in_time() -> None:
    talk, story = an_answer_under_way()
    talk.on_ear(SpeechStarted(LOUD, 0), at_ms=1_000)
    (commit,) = [e for e in talk.on_ear(typed(LOUD, "Mirelle, an ale."), at_ms=1_000) if isinstance(e, Commit)]
    assert talk.tick(at_ms=59_000) == []
    talk.on_finished(story.id, at_ms=60_000)
    assert Release(commit.turn) in talk.tick(at_ms=60_300)
    assert not [effect for effect in talk.tick(at_ms=60_400) if isinstance(effect, Cancel)]


def test_npc_that_ignores_a_cut_off_blocks_nobody_forever() -> None:
    talk, _ = an_answer_under_way()
    talk.on_ear(SpeechStarted(LOUD, 0), at_ms=1_000)
    effects = talk.on_ear(TurnEnded(a_draft(LOUD, "Grimjaw, wait."), 0), at_ms=1_000)
    (commit,) = [effect for effect in effects if isinstance(effect, Commit)]
    (again,) = [effect.at_ms for effect in talk.tick(at_ms=15_000) if isinstance(effect, AskAgain)]
    (late,) = [effect for effect in talk.tick(at_ms=again) if isinstance(effect, Cancel)]
    assert (late.turn, late.turn.cancelled_as) == (commit.turn, Outcome.SUPERSEDED)


def test_endless_question_is_asked_with_its_newest_parts() -> None:
    talk = Evening().talk
    asked: list[SpokenQuestion] = []
    n_kept = 0
    for number in range(500):
        talk.on_ear(SpeechStarted(LOUD, 0), at_ms=number)
        part = typed(LOUD, f"Grimjaw, {number} {LONG[:150]}")
        part = replace(part, draft=replace(part.draft, utterance=UtteranceId(str(number))))
        effects = talk.on_ear(part, at_ms=number)
        asked += [effect.turn.question for effect in effects if isinstance(effect, Begin)]
        n_kept += sum(isinstance(effect, Keep) for effect in effects)
        for turn in [turn.id for turn in talk.turns if turn.begun and turn.cancelled_as is not None]:
            effects = talk.on_finished(turn, at_ms=number)
            asked += [effect.turn.question for effect in effects if isinstance(effect, Begin)]
    assert n_kept == 500
    assert all(len(question.text) <= 1_200 for question in asked)
    assert asked[-1].text.count("Grimjaw") == len(asked[-1].utterances) == MAX_PARTS
    assert "Grimjaw, 499 " in asked[-1].text and "Grimjaw, 493 " not in asked[-1].text


def test_one_long_speech_is_asked_whole() -> None:
    talk = Evening().talk
    effects = talk.on_ear(TurnEnded(a_draft(LOUD, "Grimjaw, " + LONG * 5), 0), at_ms=0)
    (begin,) = [effect for effect in effects if isinstance(effect, Begin)]
    assert begin.turn.question.text == "Grimjaw, " + LONG * 5


def test_the_work_for_a_line_grows_with_the_line_alone() -> None:
    """However many lines came before: counted in the characters that are searched for names."""
    searched = 0

    def counting(text: str) -> Understood:
        nonlocal searched
        searched += len(text)
        return named(text)

    talk = TurnTaking(Questions(counting, NAMES))
    talk.move((SMITH, INNKEEPER))
    costs: list[int] = []
    seconds = 30 if IS_PROOF else 6
    for per_second in (20, 200):
        for number in range(per_second * seconds):
            at_ms = number * 1_000 // per_second
            before = searched
            talk.on_ear(SpeechStarted(LOUD, at_ms), at_ms=at_ms)
            talk.on_ear(typed(LOUD, "Grimjaw, " + LONG), at_ms=at_ms)
            costs.append(searched - before)
    assert max(costs) <= 4 * (len(LONG) + 1_200)
    assert len(talk.turns) <= 3 and len(talk.questions._carried) <= 1
