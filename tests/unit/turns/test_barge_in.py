"""When a player's voice stops an NPC that speaks (rules of `glyphoxa.turns.barge_in`)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.turns.barge_in import BargeIn, BargeInAction, cuts_off
from tests.support.builders import BRAN, TAMSIN
from tests.support.proof import n_examples


@pytest.mark.parametrize("text", ["mhm", "Hahaha!", "hehehe", "[laughter]", "(coughs)", "*laughs* ha", "Ja, ja."])
def test_listening_laughing_and_coughing_cut_nobody_off(text: str) -> None:
    assert not cuts_off(text)


@pytest.mark.parametrize("text", ["Wait!", "mhm, but why?", "Haha, no.", "[laughter] Stop it.", "Hannah", "Nein."])
def test_words_cut_an_npc_off(text: str) -> None:
    assert cuts_off(text)


def held(after_ms: int = 250) -> BargeIn:
    """An NPC is held for Tamsin, who has spoken since 0."""
    barge_in = BargeIn(after_ms=after_ms)
    barge_in.started(TAMSIN, at_ms=0)
    assert barge_in.step(at_ms=after_ms) is BargeInAction.HOLD
    return barge_in


def test_a_voice_of_250_ms_holds_the_npc_and_a_shorter_one_does_not() -> None:
    barge_in = BargeIn()
    barge_in.started(TAMSIN, at_ms=1_000)
    assert barge_in.step(at_ms=1_249) is None
    assert barge_in.due_ms == 1_250
    assert barge_in.step(at_ms=1_250) is BargeInAction.HOLD
    assert barge_in.voice_ms == 1_250


def test_short_sounds_one_after_the_other_are_not_one_long_voice() -> None:
    barge_in = BargeIn()
    for at_ms in range(0, 2_000, 300):
        barge_in.started(TAMSIN, at_ms=at_ms)
        barge_in.paused(TAMSIN, at_ms=at_ms + 240)
        assert barge_in.step(at_ms=at_ms + 240) is None


def test_voice_from_before_an_npc_had_the_floor_is_ignored() -> None:
    barge_in = BargeIn()
    assert barge_in.step(at_ms=5_000) is None
    assert not barge_in.cuts_off(TAMSIN, "wait")


def test_npc_resumes_after_a_backchannel_ends() -> None:
    barge_in = held()
    assert not barge_in.cuts_off(TAMSIN, "mhm")
    assert barge_in.step(at_ms=400) is None  # they may still say more
    barge_in.paused(TAMSIN, at_ms=600)
    assert not barge_in.cuts_off(TAMSIN, "mhm")
    assert barge_in.step(at_ms=610) is BargeInAction.RESUME


def test_npc_resumes_without_words_and_late_words_cut_it_off() -> None:
    barge_in = held()
    barge_in.paused(TAMSIN, at_ms=600)
    assert barge_in.due_ms == 1_600
    assert barge_in.step(at_ms=1_600) is BargeInAction.RESUME
    assert barge_in.cuts_off(TAMSIN, "Wait!")


def test_a_long_voice_without_words_cuts_the_npc_off() -> None:
    barge_in = held()
    assert barge_in.due_ms == 2_000
    assert barge_in.step(at_ms=1_999) is None
    assert barge_in.step(at_ms=2_000) is BargeInAction.CUT


def test_long_laugh_does_not_cut_the_npc_off() -> None:
    barge_in = held()
    assert not barge_in.cuts_off(TAMSIN, "Hahaha")
    assert barge_in.due_ms is None
    assert barge_in.step(at_ms=6_000) is None
    barge_in.over(TAMSIN)
    assert barge_in.step(at_ms=6_100) is BargeInAction.RESUME


def test_an_npc_that_begins_over_a_long_voice_is_held_before_it_is_cut_off() -> None:
    barge_in = BargeIn()
    barge_in.started(TAMSIN, at_ms=0)
    assert barge_in.step(at_ms=5_000) is BargeInAction.HOLD
    assert barge_in.due_ms == 6_750


def test_only_words_cut_when_barge_in_by_voice_is_off() -> None:
    barge_in = BargeIn(after_ms=0)
    barge_in.started(TAMSIN, at_ms=0)
    assert barge_in.step(at_ms=10_000) is None
    assert barge_in.due_ms is None
    assert barge_in.cuts_off(TAMSIN, "wait")


DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["starts", "pauses", "ends", "mhm", "wait", "nothing"]),
        st.sampled_from([TAMSIN, BRAN]),
        st.integers(0, 900),
    ),
    max_size=40,
)


@given(DEEDS)
@settings(max_examples=n_examples(300), deadline=None)
def test_npc_is_never_held_forever_and_alternates_hold_and_resume(deeds: list[tuple[str, str, int]]) -> None:
    barge_in, now_ms, is_held, is_cut = BargeIn(), 0, False, False

    def look() -> None:
        nonlocal is_held, is_cut
        step = barge_in.step(at_ms=now_ms)
        if step is BargeInAction.CUT:
            assert is_held
            barge_in.npc_is_silent()
            is_held, is_cut = False, True
        elif step is not None:
            assert is_held is (step is BargeInAction.RESUME)
            is_held = step is BargeInAction.HOLD

    for what, player, later_ms in deeds:
        now_ms += later_ms
        match what:
            case "starts":
                barge_in.started(player, at_ms=now_ms)  # type: ignore[arg-type]
            case "pauses":
                barge_in.paused(player, at_ms=now_ms)  # type: ignore[arg-type]
            case "ends":
                barge_in.over(player)  # type: ignore[arg-type]
            case "mhm":
                barge_in.cuts_off(player, "mhm")  # type: ignore[arg-type]
            case "wait":
                if barge_in.cuts_off(player, "wait"):  # type: ignore[arg-type]
                    barge_in.npc_is_silent()
                    is_held = False
        look()
        due_ms = barge_in.due_ms
        assert is_cut or due_ms is None or due_ms > now_ms, "asked to look again at once, for ever"
        is_cut = False
    for player in (TAMSIN, BRAN):
        barge_in.paused(player, at_ms=now_ms)
    now_ms += barge_in.unknown_ms
    look()
    assert not is_held
