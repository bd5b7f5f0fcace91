from __future__ import annotations

import pytest

from glyphoxa.language.sentences import sentence_spans
from glyphoxa.language.text import Text, content_of


def test_text_is_read_once_for_the_same_characters() -> None:
    assert Text.of("The mill burned.") is Text.of("The mill burned.")
    assert Text.of("The mill burned.").words is Text.of("The mill burned.").words


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Has Will come?", ("Will",)),
        ("I think I'm late, Orla.", ("Orla",)),
        ("Orla is late. Odo is not.", ()),
        ("We sailed to St. Brannoc.", ("St", "Brannoc")),
    ],
)
def test_words_with_a_capital_inside_a_sentence_are_written_like_names(text: str, named: tuple[str, ...]) -> None:
    assert Text(text).named == named


@pytest.mark.parametrize(
    ("language", "text", "same"),
    [
        ("en", "She stole the boats", "He steals a boat"),
        ("en", "Odo sold his mills", "Odo sells the mill"),
        ("de", "Sie kauften die Mühlen", "Er kauft eine Mühle"),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, text: str, same: str) -> None:
    assert Text(text).telling(language) == Text(same).telling(language)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("There is a war in the south.", {"war", "south"}),
        ("Who was the man with the hat?", {"man", "hat"}),
        ("Der Mann war in der Mühle und hat Mehl.", {"mann", "muhl", "mehl"}),
        ("War?", set()),
    ],
)
def test_a_common_word_of_one_language_can_be_the_topic_in_another(text: str, topic: set[str]) -> None:
    assert Text.of(text).topic == topic


def test_content_of_texts_is_that_of_each() -> None:
    assert content_of(["The mill burned.", "Odo ran."]) == Text("The mill burned.").content | Text("Odo ran.").content


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Ask Dr. Brandt. He knows!", ["Ask Dr. Brandt.", "He knows!"]),
        ("  Well... perhaps.\nOr not", ["Well... perhaps.", "Or not"]),
        ("竜は山に住む。「はい！」と言った。", ["竜は山に住む。", "「はい！」", "と言った。"]),
        (" \n ", []),
    ],
)
def test_spans_of_sentences_are_places_in_the_text(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences
