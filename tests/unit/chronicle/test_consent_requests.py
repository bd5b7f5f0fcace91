"""Requests to forget, and the utterances that they concern."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.chronicle.consent_requests import (
    WITHIN_MS,
    ConsentRequest,
    SpokenRequests,
    consent_change,
    consent_request,
)
from glyphoxa.chronicle.talk import NumberedUtterance
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.world.graph import ConsentChange
from tests.support.talk import numbered

PHRASES = tomllib.loads((Path(__file__).parents[2] / "data" / "consent" / "phrases.toml").read_text("utf-8"))
WANTED = {
    "withhold": {ConsentRequest.WITHHOLD, ConsentRequest.LINE},
    "line": {ConsentRequest.LINE},
    "give": {ConsentRequest.GIVE},
}


def line(n: int, text: str, **said: Any) -> NumberedUtterance:
    return numbered(n, text, **{"at_ms": 1_000 * n, **said})


def change_of(*lines: NumberedUtterance) -> ConsentChange | None:
    *before, said = (each.utterance for each in lines)
    return consent_change(said, before)


def withheld(*lines: NumberedUtterance) -> Sequence[UtteranceId]:
    change = change_of(*lines)
    assert change is not None
    assert change.state == "withheld"
    return change.utterances


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("kind", ["withhold", "line", "give"])
def test_nine_in_ten_requests_are_understood(language: str, kind: str) -> None:
    for phrases in (PHRASES[language][kind], PHRASES[language][f"kept_aside_{kind}"]):
        missed = [each for each in phrases if consent_request(each) not in WANTED[kind]]
        assert len(missed) <= len(phrases) / 10, missed


@pytest.mark.parametrize("text", PHRASES["en"]["neither"] + PHRASES["de"]["neither"])
def test_ordinary_talk_is_no_request(text: str) -> None:
    assert consent_request(text) is None


def test_request_concerns_the_speakers_own_line_before() -> None:
    before = [line(1, "I stole the ring."), line(2, "Did you?", npc="mira"), line(3, "Look out!", speaker="Bran")]
    assert withheld(*before, line(4, "Don't remember that.")) == ("u1", "u4")
    assert withheld(*before, line(4, "Don't remember that.", speaker="Bran")) == ("u3", "u4")


def test_request_in_the_same_line_concerns_that_line() -> None:
    before = line(1, "We go north."), line(2, "I stole the ring from the duke. Please don't remember that.")
    assert withheld(*before) == ("u2",)
    assert withheld(line(1, "We go north."), line(2, "Off the record: I stole the ring.")) == ("u2",)


def test_request_much_later_concerns_its_own_line_only() -> None:
    late = line(2, "Forget what I said.", at_ms=1_000 + WITHIN_MS + 1)
    assert withheld(line(1, "I stole the ring."), late) == ("u2",)


@pytest.mark.parametrize(
    "text",
    [
        'I nod. "Please forget what I just said."',
        '"Forget what I just said."',
        "Ich nicke. „Vergiss, was ich gesagt habe.“",
        'Six" nails are fine. Forget what I just said.',
    ],
)
def test_own_words_in_quotation_marks_are_a_request(text: str) -> None:
    assert consent_request(text) is ConsentRequest.WITHHOLD


def test_npc_and_quotation_decide_nothing() -> None:
    assert change_of(line(1, "I stole it."), line(2, "Forget what I said.", npc="mira")) is None
    assert change_of(line(1, 'The old man whispered: "Forget what I said."')) is None


def ids(said: Sequence[Utterance]) -> list[str]:
    return [str(each.id) for each in said]


def test_request_withholds_the_line_and_the_answers_to_it() -> None:
    requests = SpokenRequests()
    for each in (
        line(1, "The duke is ill.", speaker="Bran"),
        line(2, "I stole the ring."),
        line(3, "You stole the ring!", npc="mira"),
    ):
        assert requests.take(each.utterance) == []
    assert ids(requests.take(line(4, "Don't remember that.").utterance)) == ["u2", "u3", "u4"]
    assert ids(requests.take(line(5, "As you wish.", npc="mira").utterance)) == ["u5"]
    assert requests.take(line(6, "Who is ill?", speaker="Bran").utterance) == []
    assert requests.take(line(7, "The duke.", npc="mira").utterance) == []
    assert ids(requests.withheld()) == ["u2", "u3", "u4", "u5"]


def test_request_said_twice_concerns_no_earlier_line() -> None:
    requests = SpokenRequests()
    for each in (line(1, "We go north."), line(2, "I stole the ring."), line(3, "Forget what I said.")):
        requests.take(each.utterance)
    assert ids(requests.take(line(4, "Don't remember that.").utterance)) == ["u4"]
    assert ids(requests.withheld()) == ["u2", "u3", "u4"]


def test_consent_takes_back_the_speakers_last_request_only() -> None:
    requests = SpokenRequests()
    for each in (
        line(1, "Off the record: I stole the ring."),
        line(2, "Off the record: I sold it."),
        line(3, "Off the record: I bought it.", speaker="Bran"),
        line(4, "You can remember that again."),
    ):
        requests.take(each.utterance)
    assert ids(requests.withheld()) == ["u1", "u3"]
    assert requests.take(line(5, "You can remember that again.", speaker="Mira").utterance) == []
    assert ids(requests.withheld()) == ["u1", "u3"]
