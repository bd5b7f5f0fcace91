"""Words that recognisers write for sound without speech (`glyphoxa.language.table_talk`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.domain.heard import Draft, Heard, HeardWord
from glyphoxa.language.table_talk import is_noise, without_noise
from glyphoxa.language.words import leads_to
from tests.support.builders import TAMSIN


def heard(text: str, *, confidence: float | None = None) -> Heard:
    return Heard(text, text, (), 0, 0, (HeardWord(0, len(text), confidence),))


def a_turn(text: str, *, voice_ms: int = 900, confidence: float | None = None) -> Draft:
    return Draft(TAMSIN, without_noise(heard(text, confidence=confidence)), 0, voice_ms)


@pytest.mark.parametrize(
    "text",
    [
        "Thank you all for watching!",
        "thanks for watching",
        "Don't forget to like and subscribe.",
        "Subtitles by the Amara.org community",
        "Untertitelung des ZDF, 2020",
        "Untertitel der Amara.org-Community",
        "Copyright WDR 2021",
        "Vielen Dank fürs Zuschauen!",
        "[Music]",
        "(applause)",
        "♪ la la la ♪",
        "...",
        "Bye. Bye. Bye.",
        "bye bye bye bye",
        "Thank you. Thank you. Thank you.",
        "so so so so so so so so so so so so so so so so",
    ],
)
def test_subtitles_and_described_sounds_are_noise(text: str) -> None:
    assert is_noise(a_turn(text))


@pytest.mark.parametrize(
    "text",
    [
        "Thank you.",
        "you",
        "Bye.",
        "Danke.",
        "No, no, no!",
        "Thank you for watching over us.",
        "Thank you for watching my horse.",
        "Share the gold.",
        "Stop [laughter] it.",
        "See you next time.",
        "Danke, dass du wach geblieben bist.",
        "Who wrote this copy?",
    ],
)
def test_words_that_people_say_are_no_noise(text: str) -> None:
    assert not is_noise(a_turn(text))


def test_thanks_that_the_recogniser_doubts_are_noise() -> None:
    assert is_noise(a_turn("Thank you.", confidence=0.05))
    assert not is_noise(a_turn("Thank you.", confidence=0.3))


def test_you_without_a_voice_is_noise() -> None:
    assert is_noise(a_turn("you", voice_ms=0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Where is the blade? Thanks for watching!", "Where is the blade?"),
        ("[Music] Where is the blade?", "Where is the blade?"),
        ("Thanks for watching! Please subscribe. Who is there?", "Who is there?"),
        ("Wo ist er? Untertitel im Auftrag des ZDF, 2021. Vielen Dank fürs Zuschauen.", "Wo ist er?"),
    ],
)
def test_noise_beside_words_is_removed_and_stays_in_the_raw_text(text: str, said: str) -> None:
    cleaned = without_noise(heard(text))
    assert (cleaned.text, cleaned.raw_text) == (said, text)
    assert leads_to(cleaned.raw_text, cleaned.corrections, cleaned.text)


def test_words_without_noise_are_returned_unchanged() -> None:
    same = replace(heard("Where is the blade?"), text="Where is the blade?")
    assert without_noise(same) is same
