import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from glyphoxa.language.words import fold
from glyphoxa.names.sound import sounder_for

sound = sounder_for("en")
german = sounder_for("de")


def likeness(one: str, other: str) -> float:
    return Levenshtein.normalized_similarity(sound(fold(one)), sound(fold(other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("phil", "fill"),
        ("knight", "night"),
        ("Eldrinax", "eldrinaks"),
        ("Thorne", "thorn"),
        ("Wizzard", "wizard"),
        ("Quillon", "kwillon"),
        ("ghost", "gost"),
    ],
)
def test_spellings_of_one_sound_are_the_same(one: str, other: str) -> None:
    assert sound(fold(one)) == sound(fold(other))


@pytest.mark.parametrize(
    ("name", "garble", "another"),
    [
        ("Vukradin", "Fukrudin", "Velkynvelve"),
        ("Vukradin", "McCraden", "Vladimir"),
        ("Zhentarim", "Zantarum", "Zanzibar"),
        ("Glabbagool", "Baba Gul", "Globetrotter"),
        ("Phandalin", "Mandolin", "Pharaoh"),
        ("Menzoberranzan", "Menzo Bronson", "Mensch"),
    ],
)
def test_what_a_recogniser_made_of_a_name_is_nearer_than_another_name(name: str, garble: str, another: str) -> None:
    assert likeness(name, garble) > 0.7 > likeness(name, another)


def test_a_voiced_consonant_is_nearer_than_one_of_another_place() -> None:
    assert likeness("Barrog", "Parrog") > likeness("Barrog", "Sarrog")


def test_another_vowel_costs_less_than_a_lost_consonant() -> None:
    assert likeness("Mirelda", "Marelda") > likeness("Mirelda", "Mielda")


def test_german_letters_sound_german() -> None:
    assert german("vogel") == german("fogel")
    assert german("wotan") != german("uotan")
    assert german("zwerg") == german("tswerk")


@given(st.text())
def test_any_text_has_a_sound_that_is_always_the_same(text: str) -> None:
    assert sound(text) == sound(text)


def test_another_script_is_compared_letter_by_letter() -> None:
    assert sound("кремль") == "кремль"
