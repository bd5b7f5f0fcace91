"""How much one seat may send, and how fast."""

from __future__ import annotations

from collections.abc import Iterable

from glyphoxa.actors.limits import RateLimit
from glyphoxa.web.page_socket import MAX_TEXT_LENGTH, SHORTEST_LINE, SeatLimits


def test_a_burst_is_given_at_once_and_then_one_after_each_interval() -> None:
    limit = RateLimit(3, 1_000)
    assert [limit.take(at_ms=50_000) for _ in range(4)] == [0, 0, 0, 1_000]
    assert limit.take(at_ms=50_400) == 600
    assert limit.take(at_ms=51_000) == 0
    assert limit.take(at_ms=51_000) == 1_000


def test_refused_request_costs_nothing() -> None:
    limit = RateLimit(1, 1_000)
    assert limit.take(at_ms=0) == 0
    assert [limit.take(at_ms=500) for _ in range(50)] == [500] * 50
    assert limit.take(at_ms=1_000) == 0


def test_reserved_requests_wait_in_order() -> None:
    limit = RateLimit(1, 1_000)
    assert [limit.reserve(at_ms=at_ms) for at_ms in (0, 0, 400, 60_000)] == [0, 1_000, 1_600, 0]


def test_long_wait_restores_one_burst() -> None:
    limit = RateLimit(2, 1_000)
    limit.take(2, at_ms=0)
    assert [limit.take(at_ms=3_600_000) for _ in range(3)] == [0, 0, 1_000]


def test_an_hour_of_fast_typing_is_within_the_limits() -> None:
    """120 words a minute: 60 characters in six seconds."""
    assert set(typed(60, at_ms=range(0, 3_600_000, 6_000))) == {0}


def test_many_short_lines_and_much_pasted_text_are_both_slowed_down() -> None:
    assert typed(5, at_ms=range(0, 10_000, 5)).count(0) == (1_600 + 10_000 // 8) // SHORTEST_LINE
    assert typed(600, at_ms=range(0, 30_000, 1_000)).count(0) == (1_600 + 29_000 // 8) // 600


def test_the_longest_line_is_within_a_burst() -> None:
    assert typed(MAX_TEXT_LENGTH, at_ms=[0]) == [0]


def typed(n_characters: int, *, at_ms: Iterable[int]) -> list[int]:
    limits = SeatLimits()
    return [limits.lines.take(max(SHORTEST_LINE, n_characters), at_ms=at) for at in at_ms]
