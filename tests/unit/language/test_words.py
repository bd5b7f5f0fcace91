import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.language.words import fold, words


def folded(text: str) -> list[str]:
    return [word.folded for word in words(text)]


@pytest.mark.parametrize(
    ("written", "letters"),
    [
        ("Éowyn", "eowyn"),
        ("E\u0301owyn", "eowyn"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("Øystein", "oystein"),
        ("Łukasz", "lukasz"),
        ("Æthelred", "aethelred"),
        ("Vex’ahlia", "vexahlia"),
        ("Vexʼahlia", "vexahlia"),
        ("İstanbul", "istanbul"),
        ("𝔊rim", "grim"),
        ("ﬁre", "fire"),
        ("שָׁלוֹם", "שלום"),
        ("🗡️", ""),
        ("", ""),
    ],
)
def test_accents_case_and_apostrophes_do_not_tell_names_apart(written: str, letters: str) -> None:
    assert fold(written) == letters


def test_marks_that_make_another_letter_of_it_are_no_accents() -> None:
    assert fold("ガ") != fold("カ")
    assert fold("が") == fold("か\u3099")
    assert fold("कि") != fold("का")


def test_vowel_points_and_signs_do_not_cut_a_word() -> None:
    assert len(words("हिन्दी")) == len(words("שָׁלוֹם")) == len(words("مُحَمَّد")) == 1


def test_chinese_and_japanese_are_cut_into_signs_and_runs_of_katakana_that_join() -> None:
    spoken = words("グリムジョーに聞く。張三說")
    assert [word.text for word in spoken] == ["グリムジョー", "に", "聞", "く", "張", "三", "說"]
    assert [word.joins for word in spoken] == [False, True, True, True, False, True, True]
    assert [word.opens for word in spoken] == [True, False, False, False, True, False, False]


def test_a_middle_dot_and_every_hyphen_join_the_parts_of_a_name() -> None:
    for text in ("キース・リチャーズ", "Iron-Hold", "Iron‑Hold", "Iron Hold", "Iron\u00a0Hold"):
        assert [word.joins for word in words(text)] == [False, True], text


@pytest.mark.parametrize("text", ["J. R. Thorne", "St. Cuthbert came", "Ask Dr. Holt"])
def test_the_stop_of_an_abbreviation_ends_no_sentence(text: str) -> None:
    assert all(word.joins and not word.opens for word in words(text)[1:])


@pytest.mark.parametrize("text", ["So did I. Holt went", "It is over. Holt went", "You mr. Holt went"])
def test_any_other_stop_does(text: str) -> None:
    assert next(word for word in words(text) if word.text == "Holt").opens


@pytest.mark.parametrize("apostrophe", ["'", "’", "‘", "ʼ"])
def test_a_possessive_ending_is_told_from_an_apostrophe_within_a_name(apostrophe: str) -> None:
    word = words(f"Vex{apostrophe}ahlia{apostrophe}s")[0]
    assert (word.folded, word.full) == ("vexahlia", "vexahlias")


@given(st.text(max_size=40))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=80))
def test_words_stand_where_they_say_in_order_and_apart(text: str) -> None:
    end = 0
    for word in words(text):
        assert end <= word.start < word.end <= len(text)
        assert text[word.start : word.end] == word.text + word.tail
        end = word.end
