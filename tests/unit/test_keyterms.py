from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.speech.keyterms import MAX_TERMS, MAX_TOKENS, Keyterm, estimated_tokens, pack_keyterms


@given(st.lists(st.text("abc'é -", max_size=40)))
def test_a_packed_list_never_breaks_the_limits_of_the_recogniser(names: list[str]) -> None:
    """R-163, C-25: over the limit, the recogniser refuses the whole request."""
    packed = pack_keyterms(Keyterm(name) for name in names)
    assert len(packed) <= MAX_TERMS
    assert sum(map(estimated_tokens, packed)) <= MAX_TOKENS
    assert all(packed)


def test_a_hundred_names_of_two_words_fit() -> None:
    assert len(pack_keyterms(Keyterm(f"Thal Orn{n:03}") for n in range(500))) >= 90


def test_what_is_in_the_scene_comes_first_then_what_was_garbled_then_what_is_odd() -> None:
    """C-25."""
    packed = pack_keyterms(
        [
            Keyterm("The Old Mill"),
            Keyterm("Eldrinax"),
            Keyterm("Vaelith", garbled=3),
            Keyterm("Grimjaw", in_scene=True),
        ],
        ordinary_words={"the", "old", "mill"},
    )
    assert packed == ["Grimjaw", "Vaelith", "Eldrinax", "The Old Mill"]


def test_a_name_said_a_moment_ago_outranks_one_said_an_hour_ago() -> None:
    assert pack_keyterms([Keyterm("Skarn", said_ms_ago=3_600_000), Keyterm("Orsk", said_ms_ago=1_000)]) == [
        "Orsk",
        "Skarn",
    ]


def test_a_name_that_does_not_fit_is_skipped_and_a_shorter_one_still_goes_in() -> None:
    packed = pack_keyterms([Keyterm("Xanthorimandelar", in_scene=True), Keyterm("Bo")], max_tokens=3)
    assert packed == ["Bo"]


def test_the_same_name_in_another_case_is_sent_once() -> None:
    assert pack_keyterms([Keyterm("Grimjaw"), Keyterm("grimjaw"), Keyterm(" Grimjaw ")]) == ["Grimjaw"]
