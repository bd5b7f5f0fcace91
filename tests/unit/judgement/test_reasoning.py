"""Reasoning and openers are found wherever a stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.judgement.reasoning import ReplyText, without_reasoning

WORDS = "Silver is soft. It will not hold an edge."
ANSWERS = [
    WORDS,
    f"<think>Soft [or not]?</think>{WORDS}",
    f"Soft, or not?</think> {WORDS}",
    f"[THINK]Soft?[/THINK]{WORDS}",
    f"<reasoning>Soft?</reasoning>\n{WORDS}",
    f"analysis Soft or hard? final {WORDS}",
    f"analysisSoft?assistantfinal{WORDS}",
    f"Analysis: soft.\n\nFinal answer: {WORDS}",
    f"<|channel|>analysis<|message|>Soft?<|end|><|start|>assistant<|channel|>final<|message|>{WORDS}<|return|>",
    f"<|start|>assistant<|channel|>final <|constrain|>text<|message|>{WORDS}",
    f"<|im_start|>assistant\n{WORDS}<|im_end|>",
    f"Okay, the user wants silver. Soft?</think>{WORDS}",
    f"model\n{WORDS}",
    f"Sure! Here's my answer:\n{WORDS}",
    f"Sure, here is Oda's reply: {WORDS}",
    f"Selbstverständlich! {WORDS}",
    f"**Assistant:** {WORDS}",
]


def heard(pieces: list[str], *, is_cut: bool = False, begins_inside: bool = False) -> str:
    reply = ReplyText(begins_inside=begins_inside)
    said = ""
    for words in (*map(reply.push, pieces), reply.end(is_cut=is_cut)):
        said = words.text if words.retracts else said + words.text
    return said.strip()


@pytest.mark.parametrize("answer", ANSWERS)
def test_whole_answer_is_cleaned(answer: str) -> None:
    assert without_reasoning(answer).strip() == WORDS


@given(st.sampled_from(ANSWERS), st.lists(st.integers(0, 200), max_size=40), st.booleans())
def test_answer_is_cleaned_wherever_it_is_cut(answer: str, cuts: list[int], begins_inside: bool) -> None:
    places = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    pieces = [answer[one:other] for one, other in pairwise(places)]
    assert heard(pieces, begins_inside=begins_inside) == WORDS


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        ("<think>Soft, but", ""),
        ("analysis Soft, but", ""),
        ("<|channel|>analysis<|message|>Soft", ""),
        ("Silver is soft. <think>And", "Silver is soft."),
    ],
)
def test_reasoning_that_was_cut_off_is_not_said(answer: str, rest: str) -> None:
    assert heard([*answer], is_cut=True) == rest
    assert heard(["They ask for silver, ", "so"], is_cut=True, begins_inside=True) == ""


@pytest.mark.parametrize("answer", ["Sure!", "Here.", "The", "a < b", "[sic]", "Analyses are dull.", "The user fee."])
def test_text_that_only_begins_like_a_mark_is_said(answer: str) -> None:
    assert heard([*answer]) == answer


@pytest.mark.parametrize("words", [WORDS, "Hmm, silver. Soft.", "Finally! Silver.", "Theodor is away.", "Anna knows."])
def test_ordinary_words_wait_for_three_tokens_at_most(words: str) -> None:
    reply, n_held, longest = ReplyText(), 0, 0
    for token in words.split(" "):
        n_held = 0 if reply.push(f"{token} ").text else n_held + 1
        longest = max(longest, n_held)
    assert longest <= 2


def test_reply_knows_that_the_opening_mark_was_missing() -> None:
    for answer, lacks in (("Soft?</think>Aye.", True), ("<think>Soft?</think>Aye.", False), ("Aye.", False)):
        for begins_inside in (False, True):
            reply = ReplyText(begins_inside=begins_inside)
            reply.push(answer)
            reply.end(is_cut=False)
            assert reply.lacks_opening is lacks
