"""Deepgram's data for each word, in every shape that its messages have had."""

from __future__ import annotations

from typing import Any

import pytest
from pipecat.frames.frames import InterimTranscriptionFrame, TranscriptionFrame

from glyphoxa.domain.heard import HeardWord
from glyphoxa_processors.deepgram_nova import note_words
from glyphoxa_processors.recogniser import notes_of


def told(text: str, result: Any) -> TranscriptionFrame:
    frame = TranscriptionFrame(text, "alice", "now", result=result)
    note_words(frame)
    return frame


def test_flux_times_count_from_the_first_word_and_say_when_that_was() -> None:
    frame = told(
        "Hello, Grimjaw.",
        {
            "words": [
                {"word": "Hello,", "confidence": 0.96, "start": 61.2, "end": 61.38},
                {"word": "Grimjaw.", "confidence": 0.41, "start": 61.44, "end": 61.9},
            ]
        },
    )
    assert notes_of(frame).sound_ms == 61_200
    assert notes_of(frame).words == (HeardWord(0, 6, 0.96, 0, 180), HeardWord(7, 15, 0.41, 240, 700))


def test_a_flux_server_that_tells_no_times_still_tells_confidences() -> None:
    """Its words had none before July 2026."""
    frame = told("Hello,", {"words": [{"word": "Hello,", "confidence": 0.96}]})
    assert (notes_of(frame).words, notes_of(frame).sound_ms) == ((HeardWord(0, 6, 0.96),), None)


@pytest.mark.parametrize("result", [None, {}, {"words": None}, {"words": [{"confidence": 0.5}]}, object()])
def test_a_message_without_words_tells_nothing_and_loses_no_transcript(result: Any) -> None:
    frame = told("Hello.", result)
    assert (frame.text, notes_of(frame).words, notes_of(frame).sound_ms) == ("Hello.", (), None)


def test_partials_are_told_alike() -> None:
    frame = InterimTranscriptionFrame("Hel", "alice", "now", result={"words": [{"word": "Hel", "confidence": 0.3}]})
    note_words(frame)
    assert notes_of(frame).words == (HeardWord(0, 3, 0.3),)
