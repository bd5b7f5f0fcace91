from __future__ import annotations

from math import log

import numpy as np
import pytest

from glyphoxa.adapters.local.whisper import Token, log_prob, utf8_of, within, words_of
from glyphoxa.domain.heard import HeardWord


def tokens(*pieces: tuple[str | bytes, float]) -> list[Token]:
    return [Token(p.encode() if isinstance(p, str) else p, log(sure)) for p, sure in pieces]


def told(text: str, said: list[Token]) -> list[tuple[str, float]]:
    return [(text[word.start : word.end], round(word.confidence or 0, 3)) for word in words_of(text, said)]


def test_a_word_is_as_sure_as_the_least_sure_of_its_tokens_and_punctuation_does_not_count() -> None:
    said = tokens((" Ask", 0.9), (" Gr", 0.8), ("im", 0.3), ("ja", 0.7), (",", 0.1), (" now", 0.95), (".", 0.2))
    assert told("Ask Grimja, now.", said) == [("Ask", 0.9), ("Grimja,", 0.3), ("now.", 0.95)]


def test_a_letter_of_several_bytes_may_be_spread_over_tokens() -> None:
    said = tokens((" Gr", 0.9), ("ü".encode()[:1], 0.8), ("ü".encode()[1:] + "ße".encode(), 0.4), (" \U0001f409", 0.6))
    assert told("Grüße \U0001f409", said) == [("Grüße", 0.4), ("\U0001f409", 0.6)]


def test_languages_without_spaces_are_told_letter_by_letter() -> None:
    said = tokens(("東", 0.9), ("京へ", 0.5), ("。", 0.1), ("行", 0.8))
    assert told("東京へ。行", said) == [("東", 0.9), ("京", 0.5), ("へ。", 0.5), ("行", 0.8)]


def test_broken_bytes_tell_nothing_rather_than_something_in_the_wrong_place() -> None:
    said = [Token(b" a\xe6", log(0.5)), Token(b" b", log(0.5))]
    assert words_of("a\ufffd b", said) == ()


def test_words_of_nothing_but_signs_have_a_confidence_too() -> None:
    assert told("... — oh", tokens((" ...", 0.4), (" —", 0.3), (" oh", 0.9))) == [("...", 0.4), ("—", 0.3), ("oh", 0.9)]


def test_words_of_a_cut_text_keep_their_places_in_it() -> None:
    words = (HeardWord(0, 3, 0.9), HeardWord(4, 8, 0.5), HeardWord(9, 12, 0.2))
    assert within(words, 0, 7) == (HeardWord(0, 3, 0.9), HeardWord(4, 7, 0.5))
    assert within(words, 4, 12) == (HeardWord(0, 4, 0.5), HeardWord(5, 8, 0.2))


def test_bytes_are_read_from_the_vocabularys_letters() -> None:
    assert utf8_of("ĠGr") + utf8_of("Ã¼") + utf8_of("Ċ") == " Grü\n".encode()


def test_the_probability_is_that_among_all_tokens_even_where_some_are_forbidden() -> None:
    logits = np.array([2.0, 2.0, -3.4028235e38], np.float32)
    assert log_prob(logits, 0) == pytest.approx(log(0.5))
