from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rank_fusion import fuse_ranks

RANKINGS = st.lists(st.lists(st.integers(0, 20), max_size=10, unique=True), max_size=4)


def test_what_both_arms_found_comes_before_the_first_of_one() -> None:
    assert [key for key, _ in fuse_ranks([["a", "b", "c"], ["d", "b"]])] == ["b", "a", "d", "c"]


def test_each_arm_gives_by_its_rank_alone() -> None:
    assert dict(fuse_ranks([["a", "b"], ["b"]], k=60)) == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61})


def test_ranks_fuse_by_their_reciprocals() -> None:
    fused = fuse_ranks([["a", "b"], ["b", "c"]])
    assert [key for key, _ in fused] == ["b", "a", "c"]
    assert dict(fused)["b"] == pytest.approx(1 / 62 + 1 / 61)
    assert fuse_ranks([]) == []


def test_arms_that_found_nothing_have_no_say() -> None:
    assert fuse_ranks([[], []]) == []
    assert [key for key, _ in fuse_ranks([["a", "b"], []])] == ["a", "b"]


@given(RANKINGS)
def test_everything_that_was_found_is_there_once_best_first(rankings: list[list[int]]) -> None:
    fused = fuse_ranks(rankings)
    scores = [score for _, score in fused]
    assert {key for key, _ in fused} == {key for ranking in rankings for key in ranking}
    assert len(fused) == len({key for key, _ in fused})
    assert scores == sorted(scores, reverse=True)
