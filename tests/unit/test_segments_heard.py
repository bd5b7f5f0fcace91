from __future__ import annotations

from glyphoxa_processors.segments_heard import SegmentsHeard


def spoken_twice() -> SegmentsHeard:
    """From 100 to 300 and from 500 to 700."""
    segments = SegmentsHeard()
    for _ in range(2):
        segments.heard(100)
        segments.began()
        segments.heard(200)
        segments.paused()
        segments.heard(100)
    return segments


def test_a_transcript_ends_in_the_last_segment_that_had_begun() -> None:
    segments = spoken_twice()
    assert segments.at(80, 250) == 1
    assert segments.at(80, 300) == 1
    assert segments.at(480, 700) == 2
    assert segments.at(80, 700) == 2


def test_one_that_comes_when_the_next_segment_has_begun_is_of_its_own() -> None:
    segments = spoken_twice()
    assert segments.at(80, 300) == 1
    assert segments.at(80, 500) == 1


def test_words_that_the_detector_did_not_hear_are_of_no_segment() -> None:
    """They are a turn of their own, however late."""
    segments = spoken_twice()
    assert segments.at(0, 90) is None
    assert segments.at(320, 400) is None
    assert segments.at(710, 800) is None


def test_a_new_connection_counts_from_what_it_is_given_first() -> None:
    segments = spoken_twice()
    segments.heard(50)  # all in all 850; the voice of the second segment is repeated
    segments.reopened(370)
    assert segments.at(0, 220) == 2
    segments.began()
    segments.heard(100)
    assert segments.at(370, 470) == 3


def test_segments_long_past_are_forgotten_and_the_count_goes_on() -> None:
    segments = SegmentsHeard()
    for _ in range(100):
        segments.began()
        segments.heard(10)
        segments.paused()
    assert segments.at(990, 1_000) == 100
    assert segments.at(0, 10) is None
