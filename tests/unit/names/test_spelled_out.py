from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.heard import Correction, HeardWord, Utterance
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.names.wrong_forms import FormHeard, SpelledOut
from tests.support.builders import an_utterance

NAMES = Gazetteer.build(
    Entry(name, EntityId(name))
    for name in (
        "Eldrinax", "Eldrith", "Ironhold", "Grimjaw", "Tower of Whispers", "Phandalin", "Vukradin", "Marek", "Hope",
        "Dawnbringer", "Zhentarim",
    )
)  # fmt: skip
CLEAN = [
    line
    for line in (Path(__file__).parents[3] / "benchmarks/data/names/C.txt").read_text().splitlines()
    if line.strip()
]


def talk(*lines: str, apart_ms: int = 3_000) -> list[Utterance]:
    said = [an_utterance(line, id=f"u{number}") for number, line in enumerate(lines, start=1)]
    return [replace(each, at_ms=number * apart_ms) for number, each in enumerate(said)]


def proofs(said: Sequence[Utterance]) -> list[FormHeard]:
    listening = SpelledOut()
    return [proof for each in said for proof in listening.heard(each, NAMES)]


@pytest.mark.parametrize(
    ("first", "then", "heard", "name", "by"),
    [
        ("We asked alder knecks about it.", "E L D R I N A X", "alder knecks", "Eldrinax", "spelled"),
        ("We asked Aldrinacks about it.", "It is E-L-D-R-I-N...", "Aldrinacks", "Eldrinax", "spelled"),
        ("We asked Aldrinacks about it.", "E. L. D. R. I. N. A. X.", "Aldrinacks", "Eldrinax", "spelled"),
        ("We asked Aldrinacks about it.", "Eldrinax, with an X.", "Aldrinacks", "Eldrinax", "spelled"),
        ("We asked elder nacks about it.", "No, Eldrinax.", "elder nacks", "Eldrinax", "said"),
        ("Where is Crabin?", "Do you mean Vukradin?", "Crabin", "Vukradin", "said"),
        ("The sand terrim are near.", "I said Zhentarim.", "sand terrim", "Zhentarim", "said"),
        ("The iron hole lies there.", "It's called Ironhold.", "iron hole", "Ironhold", "said"),
        ("Go to the tower of wispers!", "No no, it's Tower of Whispers.", "tower of wispers", "Tower of Whispers",
         "said"),
    ],
)  # fmt: skip
def test_a_name_said_again_proves_what_it_was_heard_as(first: str, then: str, heard: str, name: str, by: str) -> None:
    [proof] = proofs(talk("Well met.", first, then))
    assert (proof.as_heard, proof.entity, proof.by, proof.utterance) == (heard, name, by, "u2")


def test_a_name_set_against_its_wrong_form_proves_it_in_one_breath() -> None:
    [proof] = proofs(talk("Eldrinax, not elder nacks, you fool!"))
    assert (proof.as_heard, proof.entity, proof.by, proof.utterance) == ("elder nacks", "Eldrinax", "spelled", "u1")


@pytest.mark.parametrize(
    "lines",
    [
        ("Leave the elder men alone.", "No, Eldrinax, come here."),
        ("The man at the market said so.", "No, Marek."),
        ("We asked Aldrinacks about it.", "E-L-D-R... or so."),  # Eldrith begins so, too
        ("We asked Aldrinacks about it.", "Eldrinax came back yesterday."),
        ("We asked Aldrinacks about it.", "A B C D"),
        ("I hope so.", "No, hope is all we have."),
        ("Eldrinax, not the wizard.",),
        ("No, Eldrinax.",),
        ("We met Eldrinax.", "No, Eldrinax."),
    ],
)
def test_other_talk_proves_nothing(lines: tuple[str, ...]) -> None:
    assert proofs(talk(*lines)) == []


def test_spelling_does_not_correct_old_lines() -> None:
    assert proofs(talk("We asked Aldrinacks.", *["Well."] * 4, "No, Eldrinax.")) == []
    assert proofs(talk("We asked Aldrinacks.", "No, Eldrinax.", apart_ms=61_000)) == []


def test_what_an_npc_says_was_never_misheard() -> None:
    first, then = talk("We asked Aldrinacks.", "No, Eldrinax.")
    assert proofs([replace(first, npc_id=NpcId("grimjaw")), then]) == []
    assert proofs([first, replace(then, npc_id=NpcId("grimjaw"))]) == []


def test_what_a_correction_has_explained_needs_no_proof() -> None:
    first, then = talk("We asked Aldrinacks.", "No, Eldrinax.")
    explained = Correction(9, 19, "Aldrinacks", "Eldrinax", 0.9, "phonetic", "sounds like it")
    assert proofs([replace(first, corrections=(explained,)), then]) == []


def test_a_name_that_only_a_correction_put_there_proves_nothing() -> None:
    first, then = talk("We asked Aldrinacks.", "No, Eldrinax.")
    assert proofs([first, replace(then, raw_text="No, elder axe.")]) == []


def test_ordinary_words_that_were_hardly_heard_may_be_a_name() -> None:
    first, then = talk("We went to mandolin.", "I mean Phandalin.")
    word = HeardWord(11, 20, confidence=0.9)
    assert proofs([replace(first, words=(word,)), then]) == []
    [proof] = proofs([replace(first, words=(replace(word, confidence=0.3),)), then])
    assert (proof.as_heard, proof.entity) == ("mandolin", "Phandalin")


@given(st.lists(st.sampled_from(CLEAN), max_size=5), st.sampled_from(CLEAN))
def test_clean_talk_proves_nothing(before: list[str], last: str) -> None:
    assert proofs(talk(*before, last)) == []
