"""Which questions ask how two hang together."""

from __future__ import annotations

import pytest

from glyphoxa.language.asking import asks_how_related


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "Who is Orla to Bram?"),
        ("en", "How is Orla related to the smith?"),
        ("en", "What has Bram to do with the Wardens?"),
        ("en", "Is there a connection between the two?"),
        ("en", "Do Orla and Bram know each other?"),
        ("de", "Wie ist Orla mit dem Schmied verwandt?"),
        ("de", "Was hat Bram mit den Wächtern zu tun?"),
        ("de", "Wie steht Orla zu Bram?"),
        ("de", "Wie hängen Orla und Bram zusammen?"),
        ("fr", "How is Orla related to Bram?"),
    ],
)
def test_who_asks_for_a_relation(language: str, question: str) -> None:
    assert asks_how_related(question, language=language)


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "Who is Orla?"),
        ("en", "Good morning, Orla."),
        ("en", "Give the sword to Bram."),
        ("en", "Where did Orla go last winter?"),
        ("de", "Wer ist Orla?"),
        ("de", "Guten Morgen, Orla."),
        ("de", "Gib Bram das Schwert."),
    ],
)
def test_who_asks_for_something_else(language: str, question: str) -> None:
    assert not asks_how_related(question, language=language)
