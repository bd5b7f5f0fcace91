from __future__ import annotations

from glyphoxa_processors.cloud.deepgram_stt import KeytermLimit
from glyphoxa_processors.cloud.sound import SoundBuffer


def test_a_new_connection_is_given_what_no_transcript_covers() -> None:
    sound = SoundBuffer(bytes_per_s=2, longest_s=50)
    sound.heard(b"aabbcc")
    sound.confirmed(4)
    assert sound.reopened() == b"cc"


def test_positions_restart_with_each_connection() -> None:
    sound = SoundBuffer(bytes_per_s=2, longest_s=50)
    sound.heard(b"aabbcc")
    sound.confirmed(4)
    sound.reopened()
    sound.heard(b"dd")
    sound.confirmed(2)
    assert sound.reopened() == b"dd"


def test_a_transcript_of_more_than_was_sent_leaves_nothing_to_repeat() -> None:
    sound = SoundBuffer(bytes_per_s=2, longest_s=50)
    sound.heard(b"aa")
    sound.confirmed(1_000)
    sound.heard(b"bb")
    assert sound.reopened() == b"bb"


def test_only_the_latest_sound_is_kept() -> None:
    sound = SoundBuffer(bytes_per_s=2, longest_s=2)
    sound.heard(b"aabbcc")
    assert sound.reopened() == b"bbcc"
    sound.keep_last(2)
    assert sound.reopened() == b"cc"


def test_sound_is_cut_between_samples() -> None:
    sound = SoundBuffer(bytes_per_s=2, longest_s=50)
    sound.heard(b"aabb")
    sound.confirmed(3)
    assert sound.reopened() == b"bb"


def spoken_twice() -> SoundBuffer:
    """From 100 to 300 and from 500 to 700."""
    segments = SoundBuffer(bytes_per_s=100, longest_s=60)
    for _ in range(2):
        segments.heard(bytes(100))
        segments.began()
        segments.heard(bytes(200))
        segments.paused()
        segments.heard(bytes(100))
    return segments


def test_a_transcript_ends_in_the_last_segment_that_had_begun() -> None:
    segments = spoken_twice()
    assert segments.segment_at(80, 80, 250) == 1
    assert segments.segment_at(80, 80, 300) == 1
    assert segments.segment_at(480, 480, 700) == 2
    assert segments.segment_at(80, 80, 700) == 2


def test_one_that_comes_when_the_next_segment_has_begun_is_of_its_own() -> None:
    segments = spoken_twice()
    assert segments.segment_at(80, 80, 300) == 1
    assert segments.segment_at(80, 80, 500) == 1


def test_words_that_the_detector_did_not_hear_are_of_no_segment() -> None:
    """They are a turn of their own, however late."""
    segments = spoken_twice()
    assert segments.segment_at(0, 0, 90) is None
    assert segments.segment_at(320, 320, 400) is None
    assert segments.segment_at(710, 710, 800) is None


def test_a_new_connection_counts_from_what_it_is_given_first() -> None:
    segments = spoken_twice()
    segments.heard(bytes(50))  # all in all 850; the voice of the second segment is repeated
    segments.keep_last(370)
    segments.reopened()
    assert segments.segment_at(0, 0, 220) == 2
    segments.began()
    segments.heard(bytes(100))
    assert segments.segment_at(370, 370, 470) == 3


def test_segments_long_past_are_forgotten_and_the_count_goes_on() -> None:
    segments = SoundBuffer(bytes_per_s=100, longest_s=60)
    for _ in range(100):
        segments.began()
        segments.heard(bytes(10))
        segments.paused()
    assert segments.segment_at(990, 990, 1_000) == 100
    assert segments.segment_at(0, 0, 10) is None


def test_a_transcript_of_sound_that_had_its_final_one_is_of_no_known_segment_when_the_next_has_begun() -> None:
    """The server says of everything that it begins where the connection did."""
    segments = spoken_twice()
    segments.confirmed(300)
    assert segments.segment_at(0, 100, 300) is None
    assert segments.segment_at(0, 100, 700) == 2


def test_a_late_transcript_of_sound_that_had_no_final_one_is_known_by_its_segment() -> None:
    segments = spoken_twice()
    segments.confirmed(80)
    assert segments.segment_at(80, 100, 300) == 1
    assert segments.segment_at(78, 100, 300) == 1  # rounded
    segments.confirmed(300)
    assert segments.segment_at(300, 500, 700) == 2


def test_what_a_new_connection_hears_again_is_told_by_its_own_positions() -> None:
    segments = spoken_twice()
    segments.confirmed(300)
    segments.reopened()
    assert segments.segment_at(0, 200, 400) == 2
    segments.confirmed(400)
    segments.heard(bytes(100))
    segments.began()
    segments.heard(bytes(100))
    assert segments.segment_at(0, 200, 400) is None


def test_a_refused_list_is_halved_and_a_second_time_dropped() -> None:
    limit, names = KeytermLimit(), [f"Npc{n}" for n in range(9)]
    assert limit.fit(names) == names
    assert limit.refused(names)
    assert limit.fit(names) == names[:4]
    assert limit.refused(limit.fit(names))
    assert limit.fit(names) == []
    assert not limit.refused(limit.fit(names))
