"""Deepgram's data for each word, in every shape that its messages have had."""

from __future__ import annotations

from typing import Any

import pytest

from glyphoxa.domain.heard import HeardWord
from glyphoxa_processors.cloud.deepgram_stt import flux_said, nova_said


def test_flux_times_count_from_the_first_word_and_say_when_that_was() -> None:
    said = flux_said(
        {
            "transcript": "Hello, Grimjaw.",
            "words": [
                {"word": "Hello,", "confidence": 0.96, "start": 61.2, "end": 61.38},
                {"word": "Grimjaw.", "confidence": 0.41, "start": 61.44, "end": 61.9},
            ],
        }
    )
    assert said.heard_words() == ((HeardWord(0, 6, 0.96, 0, 180), HeardWord(7, 15, 0.41, 240, 700)), 61_200)


def test_a_flux_server_that_tells_no_times_still_tells_confidences() -> None:
    """Its words had none before July 2026."""
    said = flux_said({"transcript": "Hello,", "words": [{"word": "Hello,", "confidence": 0.96}]})
    assert said.heard_words() == ((HeardWord(0, 6, 0.96),), None)


@pytest.mark.parametrize("words", [{}, {"words": None}, {"words": []}, {"words": [{"confidence": 0.5}]}])
def test_a_message_without_words_tells_nothing_and_loses_no_transcript(words: dict[str, Any]) -> None:
    for said in (
        flux_said({"transcript": "Hello.", **words}),
        nova_said({"channel": {"alternatives": [{"transcript": "Hello.", **words}]}}),
    ):
        assert (said.text, said.heard_words()) == ("Hello.", ((), None))


@pytest.mark.parametrize(
    "channel", [{}, {"channel": None}, {"channel": {}}, {"channel": {"alternatives": []}}, {"channel": {"other": 1}}]
)
def test_an_answer_without_a_transcript_still_closes_its_pause(channel: dict[str, Any]) -> None:
    said = nova_said({"is_final": True, "from_finalize": True, **channel})
    assert (said.text, said.is_final, said.closes) == ("", True, True)
