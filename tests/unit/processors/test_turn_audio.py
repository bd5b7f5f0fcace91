"""Which sound a transcript is made of. A sound of value 1 is one byte 0x01; a byte is a millisecond here."""

from __future__ import annotations

from glyphoxa_processors.whisper_stt import PartialPace, StretchAudio, TurnAudio


def audio(*, longest_ms: int = 10_000, settle_after_ms: int = 5_000) -> TurnAudio:
    return TurnAudio(bytes_per_ms=1, pre_roll_ms=100, longest_ms=longest_ms, settle_after_ms=settle_after_ms)


def sound(value: int, ms: int) -> bytes:
    return bytes([value]) * ms


def said(ear: TurnAudio, value: int, ms: int) -> StretchAudio:
    """Detected at once; quiet is 0."""
    ear.begin(0)
    assert ear.hear(sound(value, ms)) is None
    return ear.pause()


def values(recording: StretchAudio) -> dict[int, int]:
    """How many milliseconds of each value."""
    return {value: recording.pcm.count(value) for value in sorted(set(recording.pcm))}


def test_a_recording_begins_a_little_before_the_speech_was_detected() -> None:
    ear = audio()
    ear.hear(sound(9, 5_000))
    ear.begin(200)
    ear.hear(sound(1, 50))
    assert values(ear.pause()) == {1: 50, 9: 300}


def test_a_second_segment_is_transcribed_with_the_first_and_the_pause_between() -> None:
    ear = audio()
    first = said(ear, 1, 500)
    ear.hear(sound(0, 300))
    second = said(ear, 2, 700)
    assert second.pcm == sound(1, 500) + sound(0, 300) + sound(2, 700)
    assert first.stretch == second.stretch
    assert (first.segment, second.segment) == (1, 2)


def test_the_next_turn_begins_without_the_last_one() -> None:
    ear = audio()
    first = said(ear, 1, 500)
    ear.hear(sound(0, 30))
    ear.turn_over(1)
    second = said(ear, 2, 700)
    assert second.pcm == sound(0, 30) + sound(2, 700)
    assert second.stretch != first.stretch


def test_speech_that_began_before_the_end_of_the_turn_was_told_is_kept() -> None:
    ear = audio()
    first = said(ear, 1, 500)
    ear.hear(sound(0, 300))
    ear.begin(0)
    ear.hear(sound(2, 50))
    ear.turn_over(1)
    ear.hear(sound(2, 50))
    second = ear.pause()
    assert second.pcm == sound(0, 100) + sound(2, 100)
    assert second.stretch != first.stretch


def test_a_recording_made_before_the_end_of_the_turn_was_told_loses_the_old_turn() -> None:
    ear = audio()
    first = said(ear, 1, 500)
    ear.hear(sound(0, 300))
    second = said(ear, 2, 200)
    assert ear.without_finished_turns(second) is None
    ear.turn_over(1)
    assert ear.without_finished_turns(first) is None  # all of it is old: a late one, for the endpointing to judge
    rest = ear.without_finished_turns(second)
    assert rest is not None
    assert rest.pcm == sound(0, 100) + sound(2, 200)
    assert rest.end == second.end
    assert ear.without_finished_turns(rest) is None


def test_a_turn_that_is_told_to_be_over_twice_is_over_once() -> None:
    ear = audio()
    said(ear, 1, 500)
    ear.turn_over(1)
    second = said(ear, 2, 200)
    ear.turn_over(1)
    ear.turn_over(0)
    third = said(ear, 3, 200)
    assert values(third) == {2: 200, 3: 200}
    assert second.stretch == third.stretch


def test_a_long_turn_is_cut_at_a_pause() -> None:
    ear = audio(settle_after_ms=1_000)
    first, second = said(ear, 1, 900), said(ear, 2, 200)
    third = said(ear, 3, 200)
    assert values(second) == {1: 900, 2: 200}
    assert values(third) == {3: 200}
    assert first.stretch == second.stretch != third.stretch


def test_speech_without_end_is_cut_at_the_last_pause_in_it() -> None:
    ear = audio(longest_ms=2_000)
    said(ear, 1, 900)
    ear.begin(0)
    stretch = ear.stretch
    for _ in range(12):
        assert ear.hear(sound(2, 100)) is None
    assert ear.stretch != stretch
    assert values(ear.pause()) == {2: 1_200}


def test_speech_without_end_and_without_a_pause_is_cut_anywhere() -> None:
    ear = audio(longest_ms=2_000)
    ear.begin(0)
    assert ear.hear(sound(1, 1_999)) is None
    cut = ear.hear(sound(1, 1))
    assert cut is not None
    ear.hear(sound(2, 300))
    rest = ear.pause()
    assert values(cut) == {1: 2_000}
    assert values(rest) == {2: 300}
    assert cut.stretch != rest.stretch
    assert cut.segment == rest.segment == 1


def test_a_turn_whose_end_is_never_told_keeps_a_bounded_sound() -> None:
    ear = audio(longest_ms=2_000)
    said(ear, 1, 900)
    for _ in range(100):
        assert ear.hear(sound(0, 100)) is None
    assert values(said(ear, 2, 200)) == {0: 100, 2: 200}


def test_partials_come_twice_a_second_while_they_are_cheap() -> None:
    pace = PartialPace(every_ms=500)
    pace.speech_began(1_000)
    assert not pace.is_due(1_249)
    assert pace.is_due(1_250)
    pace.asked(1_250)
    pace.took(80)
    assert not pace.is_due(1_749)
    assert pace.is_due(1_750)


def test_after_a_slow_partial_the_model_rests_three_times_as_long() -> None:
    pace = PartialPace(every_ms=500)
    pace.asked(1_000)
    pace.took(400)
    pace.speech_began(1_500)
    assert not pace.is_due(2_199)
    assert pace.is_due(2_200)
    pace.turn_over()
    assert pace.is_due(1_600)
