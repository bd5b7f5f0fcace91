from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.memory.fusion import fuse_convex

SCORES = st.dictionaries(st.integers(0, 20), st.floats(-1e6, 1e6), max_size=10)


def test_the_sum_of_both_arms_decides() -> None:
    lexical, dense = {"a": 3.0, "b": 2.0, "c": 1.0}, {"b": 0.9, "d": 0.5}
    assert [key for key, _ in fuse_convex([(0.5, lexical), (0.5, dense)])] == ["b", "a", "c", "d"]


def test_an_arm_that_found_nothing_has_no_say() -> None:
    assert fuse_convex([(0.5, {"a": 2.0, "b": 1.0}), (0.5, {})])[0] == ("a", 1.0)
    assert fuse_convex([(0.5, {}), (0.5, {})]) == []


@given(SCORES, SCORES)
def test_every_candidate_gets_a_score_between_0_and_1_best_first(a: dict[int, float], b: dict[int, float]) -> None:
    fused = fuse_convex([(0.5, a), (0.5, b)])
    scores = [score for _, score in fused]
    assert {key for key, _ in fused} == {*a, *b}
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 + 1e-9 for score in scores)
