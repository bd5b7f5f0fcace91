"""A paused table hears the end of the current speech, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.heard import EagerTurn, NothingSaid, SpeechPaused, SpeechStarted, TurnEnded
from glyphoxa.turns.dm_controls import PausedHearing
from tests.support.builders import BRAN, TAMSIN, a_draft, a_partial

DRAFT = a_draft(TAMSIN, "Grimjaw?", end_ms=1)
TURN = (
    SpeechStarted(TAMSIN, 0),
    a_partial(TAMSIN, "Grim", 1),
    SpeechPaused(TAMSIN, 1),
    EagerTurn(DRAFT),
    TurnEnded(DRAFT, 9),
)


def test_a_table_that_is_played_hears_everything() -> None:
    hearing = PausedHearing()
    assert all(hearing.hears(event, is_paused=False) for event in (*TURN, NothingSaid(BRAN, 9), TurnEnded(DRAFT, 10)))


def test_speech_that_starts_in_a_pause_is_ignored_to_its_end() -> None:
    hearing = PausedHearing()
    assert not any(hearing.hears(event, is_paused=True) for event in (*TURN, NothingSaid(TAMSIN, 9)))


def test_speaker_at_a_pause_is_heard_to_the_end_of_the_turn() -> None:
    hearing = PausedHearing()
    assert hearing.hears(TURN[0], is_paused=False)
    assert [hearing.hears(event, is_paused=True) for event in TURN[1:]] == [True] * 4
    assert not any(hearing.hears(event, is_paused=True) for event in TURN)


def test_a_sound_without_words_ends_what_was_being_said_too() -> None:
    hearing = PausedHearing()
    hearing.hears(TURN[0], is_paused=False)
    assert hearing.hears(NothingSaid(TAMSIN, 1), is_paused=True)
    assert not hearing.hears(TURN[1], is_paused=True)


def test_player_who_rejoins_in_a_pause_is_not_heard() -> None:
    hearing = PausedHearing()
    hearing.hears(TURN[0], is_paused=False)
    hearing.left(TAMSIN)
    assert not any(hearing.hears(event, is_paused=True) for event in TURN)


def test_a_typed_line_is_taken() -> None:
    assert PausedHearing().hears(TurnEnded(replace(DRAFT, typed=True), 1), is_paused=True)
