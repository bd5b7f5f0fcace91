"""Who may speak (rules of `glyphoxa.turns.open_turns`)."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import TurnId
from glyphoxa.turns.open_turns import MAX_PASSED_OVER, Floor
from tests.support.proof import n_examples

FIRST, SECOND, THIRD = TurnId("t1"), TurnId("t2"), TurnId("t3")


def in_order(floor: Floor) -> list[TurnId]:
    """Everybody who waits, as they are given the floor."""
    spoke: list[TurnId] = []
    while (turn := floor.grant(at_ms=0)) is not None:
        spoke.append(turn)
        floor.give_up(turn, at_ms=0, was_heard=False)
    return spoke


def test_first_of_equal_priority_speaks_next() -> None:
    floor = Floor()
    for turn in (FIRST, SECOND, THIRD):
        floor.request(turn)
    assert in_order(floor) == [FIRST, SECOND, THIRD]


def test_higher_priority_goes_first_and_cuts_nobody_off() -> None:
    floor = Floor()
    floor.request(FIRST)
    assert floor.grant(at_ms=0) == FIRST
    floor.request(SECOND)
    floor.request(THIRD, priority=5)
    assert floor.holder == FIRST
    floor.give_up(FIRST, at_ms=0, was_heard=False)
    assert in_order(floor) == [THIRD, SECOND]


def test_low_priority_never_waits_forever() -> None:
    floor = Floor()
    floor.request(FIRST, priority=0)
    spoke = []
    for n in range(MAX_PASSED_OVER + 1):
        floor.request(TurnId(f"loud{n}"), priority=9)
        turn = floor.grant(at_ms=0)
        assert turn is not None
        floor.give_up(turn, at_ms=0, was_heard=False)
        spoke.append(turn)
    assert spoke.index(FIRST) == MAX_PASSED_OVER


def gap_ms(floor: Floor) -> int:
    floor.request(FIRST)
    floor.grant(at_ms=0)
    floor.give_up(FIRST, at_ms=1_000)
    floor.request(SECOND)
    again_ms = floor.ask_again_ms(at_ms=1_000)
    if again_ms is None:
        return 0
    assert floor.grant(at_ms=again_ms - 1) is None
    assert floor.grant(at_ms=again_ms) == SECOND
    return again_ms - 1_000


def test_gap_between_npcs_varies_by_at_most_a_sixth() -> None:
    random = Random(7)
    gaps = [gap_ms(Floor(gap_ms=300, jitter=lambda: random.uniform(-1, 1))) for _ in range(200)]
    assert 250 <= min(gaps) < 265
    assert 335 < max(gaps) <= 350
    assert len(set(gaps)) > 20


def test_gap_of_zero_stays_zero() -> None:
    assert gap_ms(Floor(gap_ms=0, jitter=lambda: 1.0)) == 0


@given(st.lists(st.integers(0, 10), min_size=1, max_size=12))
@settings(max_examples=n_examples(200), deadline=None)
def test_each_waiting_npc_speaks_once_within_a_few_turns(priorities: list[int]) -> None:
    floor = Floor()
    waiting = [TurnId(f"t{n}") for n in range(len(priorities))]
    for turn, priority in zip(waiting, priorities, strict=True):
        floor.request(turn, priority=priority)
    spoke = in_order(floor)
    assert sorted(spoke) == sorted(waiting)
    for n, turn in enumerate(waiting):
        before = spoke[: spoke.index(turn)]
        assert sum(waiting.index(other) > n for other in before) <= MAX_PASSED_OVER
    assert priorities[waiting.index(spoke[0])] == max(priorities)
