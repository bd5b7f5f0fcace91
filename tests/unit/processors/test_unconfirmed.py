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


def test_a_refused_list_is_halved_and_a_second_time_dropped() -> None:
    limit, names = KeytermLimit(), [f"Npc{n}" for n in range(9)]
    assert limit.fit(names) == names
    assert limit.refused(names)
    assert limit.fit(names) == names[:4]
    assert limit.refused(limit.fit(names))
    assert limit.fit(names) == []
    assert not limit.refused(limit.fit(names))
