from __future__ import annotations

from glyphoxa.web.ration import Ration, SeatRations


def test_a_burst_is_given_at_once_and_then_one_after_each_interval() -> None:
    ration = Ration(3, 1_000)
    assert [ration.take(at_ms=50_000) for _ in range(4)] == [0, 0, 0, 1_000]
    assert ration.take(at_ms=50_400) == 600
    assert ration.take(at_ms=51_000) == 0
    assert ration.take(at_ms=51_000) == 1_000


def test_who_is_refused_has_lost_nothing_by_asking() -> None:
    ration = Ration(1, 1_000)
    assert ration.take(at_ms=0) == 0
    assert [ration.take(at_ms=500) for _ in range(50)] == [500] * 50
    assert ration.take(at_ms=1_000) == 0


def test_who_waited_long_has_the_burst_again_and_no_more() -> None:
    ration = Ration(2, 1_000)
    ration.take(2, at_ms=0)
    assert [ration.take(at_ms=3_600_000) for _ in range(3)] == [0, 0, 1_000]


def test_whoever_borrows_pauses_until_it_would_have_been_given() -> None:
    ration = Ration(2, 1_000)
    assert [ration.borrow(at_ms=0) for _ in range(4)] == [0, 0, 1_000, 2_000]
    assert ration.borrow(at_ms=60_000) == 0


def test_a_clock_that_is_set_back_gives_nothing_away_and_locks_nobody_out_for_long() -> None:
    ration = Ration(2, 1_000)
    ration.take(2, at_ms=10_000)
    assert ration.take(at_ms=9_000) == 2_000


def test_an_hour_of_fast_typing_is_within_the_rations() -> None:
    """120 words a minute: 60 characters in six seconds."""
    rations = SeatRations()
    assert {rations.take_line(60, at_ms=at_ms) for at_ms in range(0, 3_600_000, 6_000)} == {0}


def test_many_short_lines_and_much_pasted_text_are_both_slowed_down() -> None:
    rations = SeatRations()
    n_short = sum(not rations.take_line(5, at_ms=at_ms) for at_ms in range(0, 10_000, 5))
    assert n_short == 8 + 9
    rations = SeatRations()
    n_long = sum(not rations.take_line(600, at_ms=at_ms) for at_ms in range(0, 30_000, 1_000))
    assert n_long == 4 + 30 * 40 // 600 - 1


def test_the_longest_line_is_within_a_burst() -> None:
    assert SeatRations().take_line(600, at_ms=0) == 0
