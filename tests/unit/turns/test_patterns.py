"""Patterns that are made of lists of words."""

from __future__ import annotations

import pytest

from glyphoxa.turns.sentence_form import any_of, one_of, words


def test_words_stand_between_commas_and_may_be_patterns() -> None:
    assert words("oh, excuse me", "gute[nrs]?") == "oh|excuse me|gute[nrs]?"
    assert one_of("oh", "ach, na") == "(?:oh|ach|na)"


@pytest.mark.parametrize(("text", "found"), [("well, stop", "stop"), ("halt @0", "halt"), ("halts", None), ("", None)])
def test_what_one_of_several_patterns_finds_is_found(text: str, found: str | None) -> None:
    match = any_of(r"\b" + one_of("stop, wait") + r"\b", r"^halt\b").search(text)
    assert (match and match[0]) == found
