from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.heard import Correction
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import fold
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.names.wrong_forms import Uses, as_heard, is_ordinary, objection, proofs_of, warning
from tests.support.builders import an_utterance

DATA = Path(__file__).parents[3] / "benchmarks" / "data" / "names"
CLEAN = [line for line in (DATA / "C.txt").read_text().splitlines() if line.strip()]
ELDRINAX, BELL, PHANDALIN, HOPE = (EntityId(each) for each in ("eldrinax", "bell", "phandalin", "hope"))
ENTRIES = [
    Entry("Eldrinax", ELDRINAX, "npc", ("the old wizard", "Archmage Eldrinax")),
    Entry("Saltmere", EntityId("saltmere"), "location"),
    Entry("Bell of Saltmere", BELL, "item"),
    Entry("Phandalin", PHANDALIN, "location"),
    Entry("Hope", HOPE, "npc"),
]
NAMES = Gazetteer.build(ENTRIES)


@pytest.mark.parametrize(
    ("heard", "entity", "why"),
    [
        ("", ELDRINAX, "fewer than 3 letters"),
        ("El", ELDRINAX, "fewer than 3 letters"),
        ("12345", ELDRINAX, "fewer than 3 letters"),
        ("of the", ELDRINAX, "very common words"),
        ("you will", ELDRINAX, "very common words"),
        ("ELDRINAX", ELDRINAX, "this name, but for case"),
        ("el drinax's", ELDRINAX, "this name, but for case"),
        ("Eldrináxs", ELDRINAX, "this name, but for case"),
        ("the old wizard", PHANDALIN, "a name itself"),
        ("Salt mere", BELL, "a name itself"),
        ("hope", PHANDALIN, "a name itself"),
        ("Lord Eldrinax said", ELDRINAX, "contains the name Eldrinax"),
        ("Fandolin and Eldrinax", PHANDALIN, "contains the name Eldrinax"),
        ("one two three four five six seven eight nine", ELDRINAX, "more than 8 words"),
        ("El" * 60, ELDRINAX, "more than 100 letters"),
    ],
)
def test_what_would_damage_talk_is_never_learned(heard: str, entity: EntityId, why: str) -> None:
    told = objection(heard, entity, NAMES)
    assert told is not None and why in told


@pytest.mark.parametrize(
    ("heard", "entity"),
    [
        ("Mellow Dracks", ELDRINAX),
        ("Arch image Eldrin Acts", ELDRINAX),
        ("Finland", PHANDALIN),
        ("Bill of Saltmere", BELL),
        ("Hoop", HOPE),
    ],
)
def test_a_garble_may_be_learned(heard: str, entity: EntityId) -> None:
    assert objection(heard, entity, NAMES, uses=Uses(spoken=3)) is None


def test_ordinary_words_that_the_campaign_itself_uses_are_never_learned() -> None:
    told = objection("the old man", ELDRINAX, NAMES, uses=Uses(written=2))
    assert told == "occurs in the campaign's own text (2 times)"
    assert objection("Mellodracks", ELDRINAX, NAMES, uses=Uses(written=2)) is None


def test_the_dm_is_warned_of_what_a_form_of_ordinary_words_would_rewrite() -> None:
    told = warning("the old man", NAMES.vocabulary, Uses(spoken=12))
    assert told is not None and "12 earlier utterances" in told
    assert warning("the old man", NAMES.vocabulary, Uses()) is None
    assert warning("Mellodracks", NAMES.vocabulary, Uses(spoken=12)) is None


def test_without_a_word_list_every_form_may_be_ordinary() -> None:
    german = Gazetteer.build(ENTRIES, language="xx")
    assert is_ordinary("Mellodracks", german.vocabulary)
    assert not is_ordinary("Mellodracks", NAMES.vocabulary)
    assert is_ordinary("Finland", NAMES.vocabulary) and is_ordinary("don bringer", NAMES.vocabulary)


def a_correction(stage: str, score: float, *, before: str = "Mellodracks'", after: str = "Eldrinax's") -> Correction:
    return Correction(0, len(before), before, after, score, stage, "sounds like it")  # type: ignore[arg-type]


def test_corrections_of_the_llm_and_sure_ones_of_the_phonetic_stage_are_proofs() -> None:
    said = an_utterance("...", id="u7")
    for correction, by in ((a_correction("llm", 0.6), "llm"), (a_correction("phonetic", 0.95), "phonetic")):
        [proof] = proofs_of(replace(said, corrections=(correction,)), NAMES)
        assert (proof.as_heard, proof.entity, proof.by, proof.utterance) == ("Mellodracks", ELDRINAX, by, "u7")


@pytest.mark.parametrize(
    "correction",
    [
        a_correction("phonetic", 0.75),
        a_correction("learned", 1.0),
        a_correction("llm", 1.0, after="a wizard"),
        a_correction("llm", 1.0, before="eldri nax"),
    ],
)
def test_other_corrections_prove_nothing(correction: Correction) -> None:
    assert proofs_of(an_utterance("...", corrections=(correction,)), NAMES) == []


@given(st.text())
def test_a_form_is_kept_without_what_stands_around_its_words(text: str) -> None:
    kept = as_heard(text)
    assert as_heard(kept) == kept
    assert kept == " ".join(kept.split())


forms = st.lists(st.sampled_from([word for line in CLEAN for word in as_heard(line).split()]), min_size=1, max_size=3)


@given(forms.map(" ".join), st.sampled_from(CLEAN))
def test_learning_changes_no_sentence_that_does_not_hold_the_very_words(heard: str, sentence: str) -> None:
    if objection(heard, PHANDALIN, NAMES) is not None:
        return
    learned = [replace(each, learned=(heard,)) if each.entity_id == PHANDALIN else each for each in ENTRIES]
    before, after = Corrector(NAMES).correct(sentence), Corrector(Gazetteer.build(learned)).correct(sentence)
    if fold(heard) in fold(sentence):
        assert all(fold(c.before) == fold(heard) for c in after.corrections if c.stage == "learned")
    else:
        assert after == before
