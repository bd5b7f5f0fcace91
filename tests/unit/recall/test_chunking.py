from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.language.words import words
from glyphoxa.recall.vectors import MOST_WORDS, OVERLAP_WORDS, chunk_id, pieces_of
from tests.support.proof import n_examples

PREFIX = "Tamsin: "


def contents(text: str, *, most_words: int = MOST_WORDS) -> list[str]:
    pieces = pieces_of(text, speaker="Tamsin", most_words=most_words)
    assert all(piece.content.startswith(PREFIX) for piece in pieces)
    return [piece.content.removeprefix(PREFIX) for piece in pieces]


def test_utterance_is_one_piece_with_its_speaker() -> None:
    [piece] = pieces_of(" My sister is a pirate. ", speaker="Tamsin")
    assert piece.content == "Tamsin: My sister is a pirate."


def test_what_says_nothing_has_no_piece() -> None:
    assert contents("") == contents(" \n") == []


def test_a_long_utterance_is_cut_at_the_ends_of_sentences_and_begins_again_with_the_last_one() -> None:
    assert contents("One two three. Four five! Six seven eight? Nine ten.", most_words=5) == [
        "One two three. Four five!",
        "Four five! Six seven eight?",
        "Six seven eight? Nine ten.",
    ]


def test_a_sentence_that_is_too_long_by_itself_is_cut_between_words_with_an_overlap() -> None:
    sentence = " ".join(f"w{n}" for n in range(300)) + "."
    first, second, third = contents(sentence)
    assert first.split()[0] == "w0"
    assert len(words(first)) == MOST_WORDS
    assert first.split()[-OVERLAP_WORDS:] == second.split()[:OVERLAP_WORDS]
    assert third.endswith("w299.")


def test_talk_without_spaces_is_cut_too() -> None:
    pieces = contents("竜は山に住む。" * 60)
    assert len(pieces) > 1
    assert all(len(words(piece)) <= MOST_WORDS for piece in pieces)


def test_other_words_or_another_speaker_have_another_hash() -> None:
    said = (("It rains.", "Tamsin"), ("It snows.", "Tamsin"), ("It rains.", "Orik"))
    hashes = {pieces_of(text, speaker=speaker)[0].content_hash for text, speaker in said}
    assert len(hashes) == 3
    assert pieces_of("It rains.", speaker="Tamsin") == pieces_of(" It rains. ", speaker="Tamsin")


def test_the_first_piece_has_the_id_of_the_utterance() -> None:
    assert [chunk_id("u1", nth) for nth in range(3)] == ["u1", "u1#2", "u1#3"]


@settings(derandomize=True, max_examples=n_examples(200))
@given(st.lists(st.sampled_from(["a", "bee", "sea.", "dee!", "e, f", "竜。", "-", "…", "G?\n"]), max_size=120))
def test_no_word_is_lost_and_no_piece_is_too_long(tokens: list[str]) -> None:
    text = " ".join(tokens)
    pieces = contents(text, most_words=40)
    assert all(len(words(piece)) <= 40 for piece in pieces)
    said = [word.text for word in words(text)]
    at = 0
    for piece in pieces:
        spoken = [word.text for word in words(piece)]
        # Each piece goes on where the one before ended, or says its end again.
        fits = [back for back in range(OVERLAP_WORDS + 1) if said[at - back : at - back + len(spoken)] == spoken]
        assert fits or not spoken
        at = max([at, *(at - back + len(spoken) for back in fits[:1])])
    assert at >= len(said)
