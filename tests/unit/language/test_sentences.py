import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.language.sentences import MOST_READ, SentenceSplitter, parts_of, sentences


def pieces(text: str, *, chunk: int = 1) -> list[str]:
    splitter = SentenceSplitter()
    found: list[str] = []
    for at in range(0, len(text), chunk):
        found += splitter.push(text[at : at + chunk])
    return found + splitter.flush()


def test_a_sentence_is_released_with_the_character_after_its_end() -> None:
    splitter = SentenceSplitter()
    assert splitter.push("Well met.") == []
    assert splitter.push(" ") == ["Well met."]
    assert splitter.push("Sit") == []
    assert splitter.flush() == ["Sit"]


def test_a_mark_that_can_only_end_a_piece_releases_it_at_once() -> None:
    splitter = SentenceSplitter(marks_end=True)
    assert splitter.push("No, dear") == []
    assert splitter.push(",") == ["No, dear,"]
    assert splitter.push(" not before spring.") == ["not before spring."]
    assert splitter.push(" Ask Dr.") == []
    assert splitter.push(" Voss!") == ["Ask Dr. Voss!"]
    assert splitter.flush() == []


@pytest.mark.parametrize(
    "cut",
    [
        # The first piece may end at a clause of two words or more, so that the voice starts early.
        ["The blade is done,", "my friend, and sharp.", "It cost me sleep, sweat, and blood."],
        ["No, dear,", "not before spring."],
        ["Aye, that it is."],
        *(["I know that man" + mark, "he owes me."] for mark in (";", ":", " —")),
        ['"Stop!"', "He ran.", "“No more.”", "(Gone.)", "End"],
        ["What?!", "Never...", "Ever.", "So do I.", "Good!!"],
    ],
)
def test_text_is_cut_into_pieces(cut: list[str]) -> None:
    assert pieces(" ".join(cut)) == cut
    assert pieces("Bread\n\nAle\nCheese") == ["Bread", "Ale", "Cheese"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Ask Dr. Voss or Mrs. Pock at St. Agnes.",
        "Lt. Kane and Sgt. Holt and Prof. Crane vs. the dragon.",
        "J. R. Stone sold it.",
        "It weighs 3.5 pounds or 1,000 coins.",
        "Hm... perhaps not.",
        "Well… perhaps not.",
        "1. Take the road.",
        "Mr. Thorne Jr. lives at No. 4.",
    ],
)
def test_what_looks_like_an_end_and_is_none(sentence: str) -> None:
    assert sentences(sentence) == [sentence]


def test_flushed_splitter_starts_again() -> None:
    splitter = SentenceSplitter()
    splitter.push("One two three, four")
    splitter.flush()
    assert splitter.push("One two three, four") == ["One two three,"]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "?!", ",,, ,"])
def test_nothing_to_say_is_no_empty_piece(text: str) -> None:
    assert all(pieces(text))


TALK = st.lists(
    st.sampled_from(
        ["Dr.", "so", "I.", "wait...", "3.5", "no!", '"yes."', "then,", "A.", "—", "\n", "said:", "…", "End."]
    ),
    max_size=20,
).map(" ".join)


@given(TALK | st.text(max_size=80), st.integers(1, 9))
def test_pieces_do_not_depend_on_how_the_tokens_are_cut(text: str, chunk: int) -> None:
    assert pieces(text, chunk=chunk) == pieces(text)


OF_THE_GRAMMAR = st.lists(
    st.sampled_from(["Aye.", "The blade is done,", "Dr.", "so I;", "it is!", "Who?", "in No.", "I.", "forge"]),
    max_size=12,
).map(" ".join)
"""Texts that the local model can write: after a mark there is a space or nothing."""


@given(OF_THE_GRAMMAR, st.integers(1, 9))
def test_what_is_released_at_once_is_cut_as_what_is_waited_for(text: str, chunk: int) -> None:
    splitter = SentenceSplitter(marks_end=True)
    found = [piece for at in range(0, len(text), chunk) for piece in splitter.push(text[at : at + chunk])]
    assert [*found, *splitter.flush()] == pieces(text)


@given(TALK | st.text(max_size=80))
def test_no_word_is_lost(text: str) -> None:
    assert " ".join(pieces(text)).split() == text.split()


def test_a_long_first_sentence_is_begun_before_a_word_that_joins() -> None:
    splitter = SentenceSplitter()
    assert splitter.push("Velkoreth was a sorcerer who") == []
    assert splitter.push(" built") == ["Velkoreth was a sorcerer"]
    assert splitter.push(" it and died. ") == ["who built it and died."]


def test_a_short_beginning_is_not_torn_from_its_clause() -> None:
    assert SentenceSplitter().push("You and I will go. ") == ["You and I will go."]


@pytest.mark.parametrize("text", ["", "One. Two! ", "words without any mark ", "x", "\n", "One.\nTwo…\n"])
def test_parts_are_short_and_together_the_whole(text: str) -> None:
    parts = parts_of(text * MOST_READ)
    assert "".join(parts) == text * MOST_READ
    assert all(0 < len(part) <= MOST_READ for part in parts)
    assert parts_of(text) == [text] * bool(text)


def test_a_part_ends_after_a_sentence_or_else_a_word() -> None:
    assert parts_of("One. Two! " * MOST_READ)[0].endswith("Two! ")
    assert parts_of("a word " * MOST_READ)[0].endswith(" ")
