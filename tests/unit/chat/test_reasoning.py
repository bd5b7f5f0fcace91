"""Reasoning and openers are found wherever a stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.chat.marks import CALL_NOTATION, TABLE, ReplyText, without_reasoning

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
    f"Assistant\n{WORDS}",
    f"assistant<|end_header_id|>\n\n{WORDS}<|eot_id|>",
    f"<THINK> Soft? </THINK> {WORDS}",
    f"<think>\n\n</think>\n\n{WORDS}",
    "<think>Soft?</think>Silver is soft. <think>Hard?</think>It will not hold an edge.",
    f'<thinking effort="low">Soft?</thinking>{WORDS}',
    f"Soft?</reasoning>{WORDS}",
    f"<|start|>assistant<|channel|>analysis<|message|>Soft?<|end|><|start|>assistant<|channel|>commentary<|message|>Then."
    f"<|end|><|start|>assistant<|channel|>final<|message|>{WORDS}<|return|>",
    f"◁think▷Soft?◁/think▷{WORDS}",
    f"<seed:think>Soft?</seed:think>{WORDS}",
    f"<|START_THINKING|>Soft?<|END_THINKING|>{WORDS}",
    f"Here is my thought process: Soft? Here is my response: {WORDS}",
    f"Gerne! Hier ist meine Antwort: {WORDS}",
    f"<think>Soft?</think>\nassistant: {WORDS}",
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


RUNS_ON = [
    "<|im_end|>\n<|im_start|>user\nAnd gold?<|im_end|>\n<|im_start|>assistant\nGold, too.",
    "<|im_end|>\n<|im_start|>assistant\n<think>Gold?</think>Gold, too.",
    "<|im_end|>Gold?</think>Gold, too.",
    "<|endoftext|>Human: And gold?",
    " </s><s>[INST] And gold? [/INST] Gold, too.",
    "[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT]",
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd gold?",
    "<|header_start|>user<|header_end|>\n\nAnd gold?<|eot|>",
    "<end_of_turn>\n<start_of_turn>user\nAnd gold?",
    "<turn|>\n<|turn>user\nAnd gold?",
    "<|end|><|user|>And gold?<|end|><|assistant|>Gold, too.",
    "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>And gold?",
    "<｜end▁of▁sentence｜><｜User｜>And gold?<｜Assistant｜>Gold, too.",
    "<|observation|>\nGold.",
    "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>And gold?",
    "<|return|><|start|>user<|message|>And gold?<|end|><|start|>assistant<|channel|>final<|message|>Gold, too.",
    "<|channel|>final<|message|>Gold, too.",
    "[|endofturn|]\n[|user|]And gold?",
    "< | IM_END | >\nuser\nAnd gold?",
    "<End_Of_Turn >Gold, too.",
    "</|im_end|>Gold, too.",
    " [end of text]\n\nGold.",
    "<|im_e",
    "\n\n### Instruction:\nAnd gold?\n\n### Response:\nGold, too.",
    " ### Instruction: And gold?",
    "\n### Instruction\nAnd gold?",
    "\n### Frage:\nUnd Gold?",
    " USER: And gold? ASSISTANT: Gold, too.",
    " Assistent: Gold auch.",
    "\nASSISTANT: Gold, too.",
    "\nuser\nAnd gold?\nassistant\nGold, too.",
    "\r\nUser:\r\nAnd gold?",
    "\n\n**User**\nAnd gold?",
    "\n<user>\nAnd gold?",
    "\nBenutzer:\nUnd Gold?",
    "assistant\n\nGold, too.",
    " user\nAnd gold?",
    "\nmodel",
]
ORDINARY = [
    "The user of a sword is its friend. The system works, and the assistant sleeps.",
    "I am an assistant to the smith. Assistant is my trade.\nHuman folk are kind.",
    "Was bin ich? Assistent des Grafen. Mensch, das ist teuer! Nutzer gibt es viele.",
    "Well... user or not, a|b, <3, 5 < 6, and [sic] it is.",
    "Three things:\n- bread\n- tools\n- beer",
    "*nods* A tool? Tools cost two crowns. Input? Response enough, I think.",
    "Mind the ### on the door. It costs 3.5 crowns.\n## Wares",
]
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=60)


def pieces_of(answer: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    while at < len(answer):
        pieces.append(answer[at : at + sizes[len(pieces) % len(sizes)]])
        at += len(pieces[-1])
    return pieces


@given(st.sampled_from(["", "<think>Soft?</think>", "<|im_start|>assistant\n"]), st.sampled_from(RUNS_ON), CUTS)
def test_reply_ends_at_its_first_mark_wherever_it_is_cut(before: str, after: str, sizes: list[int]) -> None:
    assert heard(pieces_of(f"{before}{WORDS}{after}", sizes)) == WORDS


@given(st.sampled_from(sorted(TABLE.words("ends"))), st.booleans(), st.text(max_size=20), CUTS)
def test_nothing_after_a_mark_of_the_table_is_said(mark: str, is_upper: bool, after: str, sizes: list[int]) -> None:
    assert heard(pieces_of(f"{WORDS}{mark.upper() if is_upper else mark}{after}", sizes)) == WORDS


@given(st.sampled_from(ORDINARY), CUTS)
def test_ordinary_reply_is_said_as_it_is_wherever_it_is_cut(reply: str, sizes: list[int]) -> None:
    assert heard(pieces_of(reply, sizes)) == reply


@pytest.mark.parametrize("mark", ["[TOOL_CALLS]", "<|python_tag|>", "<｜tool▁calls▁begin｜>", "<|tool_call_start|>"])
def test_mark_of_a_tool_call_ends_the_reply_with_what_is_no_speech(mark: str) -> None:
    for said in ("", f"{WORDS} "):
        assert heard([*f'{said}{mark}roll{{"dice": "1d20"}} A six.']) == f"{said}{CALL_NOTATION}"


def test_mark_in_an_answer_that_is_data_does_not_cut_it() -> None:
    data = '{"said": "user\\nWell< |start|>"}'
    assert without_reasoning(f"{data}<|im_end|>") == '{"said": "user\\nWell"}'
