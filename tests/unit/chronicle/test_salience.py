"""What is worth keeping, by rules."""

from __future__ import annotations

import pytest

from glyphoxa.chronicle.salience import SalienceJudge


@pytest.mark.parametrize(
    "text",
    [
        "I promise to bring you the six crowns and the silver ring before the feast.",
        '"The miller stole the letter from the chest, and he gave it to the captain of the guard."',
        "We found out that the symbol on the tunnel wall means the dragon is awake.",
        "I take the map and the wand out of the chest and put them into my bag.",
    ],
)
def test_what_matters_later_is_kept(text: str) -> None:
    judged = SalienceJudge("en").judge(text)
    assert judged.is_kept
    assert judged.why


@pytest.mark.parametrize(
    "text", ["17.", "Okay.", "Roll for damage.", "Hello!", "What?", "(laughs)", "I rolled a 12 plus 3."]
)
def test_what_matters_now_alone_is_not(text: str) -> None:
    assert not SalienceJudge("en").judge(text).is_kept


def test_what_was_said_a_moment_ago_is_worth_less_and_after_twenty_lines_as_much_as_before() -> None:
    line = "I take the map and the wand out of the chest and put them into my bag."
    judge = SalienceJudge("en")
    first, again = judge.judge(line).score, judge.judge(line).score
    assert again < first
    for n in range(20):
        judge.judge(f"Somebody hums number {n}.")
    assert judge.judge(line).score == first


@pytest.mark.parametrize(
    "text", ["Don't write that down: I promise you the map.", "Off the record, I stole the map.", "Merk dir das nicht."]
)
def test_what_is_not_to_be_remembered_never_is(text: str) -> None:
    judged = SalienceJudge("en", threshold=0.0).judge(text)
    assert judged.asks_to_forget
    assert not judged.is_kept


def test_a_promise_not_to_forget_is_no_wish_to_be_forgotten() -> None:
    assert not SalienceJudge("en").judge("Don't forget that I told you of the map.").asks_to_forget
