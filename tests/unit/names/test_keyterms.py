from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.language.vocabulary import vocabulary_of
from glyphoxa.names.hints import MAX_TERMS, MAX_TOKENS, estimated_tokens, oddness, pack, worth


@given(st.lists(st.text("abc'é -", max_size=40)))
def test_a_packed_list_never_breaks_the_limits_of_the_recogniser(names: list[str]) -> None:
    """Over the limit, the recogniser refuses the whole request."""
    packed = pack(names)
    assert len(packed) <= MAX_TERMS
    assert sum(map(estimated_tokens, packed)) <= MAX_TOKENS
    assert all(packed)


def test_a_hundred_names_of_two_words_fit() -> None:
    assert len(pack(f"Thal Orn{n:03}" for n in range(500))) >= 90


def test_a_name_that_does_not_fit_is_skipped_whole_and_a_shorter_one_still_goes_in() -> None:
    assert pack(["Tower of Whispers", "Bo"], max_tokens=3) == ("Bo",)


def test_the_same_name_in_another_case_is_sent_once() -> None:
    assert pack(["Grimjaw", "grimjaw", " Grimjaw "]) == ("Grimjaw",)


def test_nobody_looks_through_thousands_of_names_when_hardly_a_token_is_left() -> None:
    looked_at: list[str] = []

    def tokens(name: str) -> int:
        looked_at.append(name)
        return 5

    assert pack((f"Name{n}" for n in range(10_000)), max_tokens=8, count_tokens=tokens) == ("Name0",)
    assert len(looked_at) < 50


def test_a_name_of_the_scene_is_worth_more_than_a_garbled_one_and_that_more_than_an_odd_one() -> None:
    in_scene, garbled, odd, ordinary = (
        worth(odd=0, in_scene=True),
        worth(odd=0.6, garbled=4),
        worth(odd=1),
        worth(odd=0),
    )
    assert in_scene > garbled > odd > ordinary


def test_a_name_said_a_moment_ago_is_worth_more_than_one_said_an_hour_ago() -> None:
    assert worth(odd=1, said_ms_ago=1_000) > worth(odd=1, said_ms_ago=3_600_000) > worth(odd=1)


def test_a_name_of_ordinary_words_is_heard_right_without_help_however_often_it_is_said() -> None:
    assert worth(odd=0, said_ms_ago=0) < worth(odd=1)


def test_invented_words_are_odd_and_those_of_a_dictionary_are_not() -> None:
    english = vocabulary_of("en")
    assert oddness(("tower", "of", "whispers"), english) == 0
    assert oddness(("eldrinax",), english) == 1
    assert 0 < oddness(("thomas",), english) < 1
    assert 0 < oddness(("old", "grimjaw"), english) < 1
    assert oddness((), english) == 0


def test_marks_within_a_name_and_letters_beyond_ascii_cost_more() -> None:
    assert estimated_tokens("Vel'zeth") > estimated_tokens("Velzeth")
    assert estimated_tokens("אלדרינקס") > estimated_tokens("Eldrinax")
    assert estimated_tokens("Tower of Whispers") == sum(map(estimated_tokens, ("Tower", "of", "Whispers")))
    assert estimated_tokens("\ud800") >= 1
