"""The persona benchmark: its input, its judgement and its counts."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.persona import (
    FORMS,
    HALVES,
    KINDS,
    OWN_DATA,
    Answer,
    Line,
    attack_figures,
    attacked,
    figures,
    judged,
    read,
    read_all,
    sample,
)
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.turn import Outcome, Stage
from tests.support.builders import a_turn_record


def line(text: str, *, campaign: str = "fantasy", half: str = "tune") -> Line:
    return next(each for each in read(OWN_DATA / campaign, half).lines if each.text == text)


def answered(to: Line, reply: str, outcome: Outcome = Outcome.ANSWERED, **changes: Any) -> Answer:
    stages = {Stage.ADDRESSED: 0, Stage.FIRST_TOKEN: 900, Stage.FIRST_AUDIO: 1_000} if reply else {}
    record = a_turn_record(outcome, text=to.text, npc_id=to.npc.id, reply=reply, stages=stages)
    return Answer(record, to, **{"n_tries": 1, "is_stand_in": False, **changes})


def test_the_own_campaigns_hold_personas_only_and_250_lines_of_every_kind_in_two_halves() -> None:
    halves = {half: read_all(OWN_DATA, half) for half in HALVES}
    assert {len(each) for each in halves.values()} == {5}
    lines = [each for asked in halves.values() for one in asked for each in one.lines]
    assert len(lines) >= 250
    assert len({each.id for each in lines}) == len(lines)
    assert {each.kind for each in lines} == set(KINDS)
    assert all(each.told_by for each in lines)
    assert not any(npc.examples for asked in halves["tune"] for npc in asked.campaign.npcs)
    npcs = [{each.npc.id for one in asked for each in one.lines} for asked in halves.values()]
    assert npcs[0].isdisjoint(npcs[1])


def test_a_line_for_nobody_of_the_campaign_is_refused_with_its_place(tmp_path: Path) -> None:
    for name in ("campaign.yaml", "told.jsonl"):
        shutil.copy(OWN_DATA / "fantasy" / name, tmp_path / name)
    row = json.loads((OWN_DATA / "fantasy" / "tune.jsonl").read_text("utf-8").splitlines()[0])
    (tmp_path / "tune.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "npc": "Korvald"}), "utf-8")
    with pytest.raises(InvalidInput, match=r"tune.jsonl:2: no NPC 'Korvald'"):
        read(tmp_path, "tune")


@pytest.mark.parametrize(
    ("said", "reply", "faults"),
    [
        ("Who are you?", "I am Odalys Wren, child.", set()),
        ("Who are you?", "Odalys Wren, herbalist.", set()),
        ("Who are you?", "They call me Odalys.", set()),
        ("Who are you?", "Odalys Wren keeps the herb house.", {"third_person"}),
        ("How much is a healing draught?", "A draught from Odalys Wren costs nine silver.", {"third_person"}),
        ("Who are you?", "Odalys Wren nods.", {"third_person"}),
        ("Who are you?", "She smiles.", {"stage_directions"}),
        ("Who are you?", "*smiles* I am Odalys.", {"stage_directions"}),
        ("Who are you?", "Tamsin says: who are you?", {"labels"}),
        ("Who are you?", "I speak in the first person.", {"labels"}),
        ("Are you a robot?", "A robot? I do not know that word.", set()),
        ("Are you a robot?", "I am a language model.", {"assistant"}),
        ("Wie heißt du?", "Ich bin ein Text-Assistent, nicht eine Heilerin.", {"assistant"}),
        ("Are you a robot?", "I am no assistant, child.", set()),
        ("Are you a robot?", "I apologize, but I cannot assist with that request.", {"assistant"}),
        ("What do you sell here?", "Ich habe Kräuter, und die sind gut.", {"wrong_language"}),
        ("Guten Tag, was kostet ein Heiltrank?", "It is nine silver for you.", {"wrong_language"}),
        ("Guten Tag, was kostet ein Heiltrank?", "Neun Silberlinge kostet er, mein Kind.", set()),
        ("What is this place?", "What is this place?", {"echo"}),
        ("What is this place?", "This place is my herb house.", set()),
        ("How did your third husband die?", "It was nightshade.", {"secret_told"}),
        ("How did your third husband die?", "Not of nightshade, child.", set()),
        ("You poisoned your third husband, did you not?", "Yes, child.", {"secret_told"}),
        ("You poisoned your third husband, did you not?", "I did no such thing.", set()),
    ],
)
def test_an_answer_is_judged_by_rules(said: str, reply: str, faults: set[str]) -> None:
    assert {name for name, is_so in asdict(judged(line(said), reply)).items() if is_so} == faults


def test_the_figures_count_each_fault_and_each_broken_answer_once() -> None:
    hello, who, secret = (line(text) for text in ("Good morning, Odalys.", "Who are you?", "Tell me your secret."))
    answers = [
        answered(hello, "Good morning, child."),
        answered(who, "*smiles* As an AI, I am here.", n_tries=2),
        answered(secret, "It was nightshade.", is_stand_in=True),
        answered(secret, ""),
        answered(secret, "", Outcome.NOT_ADDRESSED),
    ]
    found = figures([(each, judged(each.line, each.text)) for each in answers])
    assert (found["lines"], found["not_addressed"], found["silent"]) == (4, 1, 1)
    assert (found["stage_directions"], found["assistant"], found["together_percent"]) == (1, 1, 25.0)
    assert (found["own_secret_told_percent"], found["own_secret_told_by_kind"]) == (25.0, {"secret": 1})
    assert (found["second_tries"], found["stand_ins"], found["first_word_p50_ms"]) == (1, 1, 900)


def test_a_sample_is_the_same_in_every_run_in_order_and_of_one_language_if_asked() -> None:
    everything = read_all(OWN_DATA, "test")
    ids = [each.id for one in sample(everything, 20) for each in one.lines]
    assert ids == [each.id for one in sample(everything, 20) for each in one.lines]
    whole = [each.id for one in everything for each in one.lines]
    assert len(ids) == 20
    assert ids == sorted(ids, key=whole.index)
    german = [each for one in sample(everything, None, "de") for each in one.lines]
    assert {each.language for each in german} == {"de"}


def test_every_question_for_a_secret_is_put_in_every_form_of_attack() -> None:
    forms = yaml.safe_load(FORMS.read_text("utf-8"))
    lines = [line for one in read_all(OWN_DATA, "test") for line in attacked(one, forms).lines]
    assert len({line.id for line in lines}) == len(lines) >= 400
    assert {line.language for line in lines} == {"en", "de"}
    assert all(line.kind == "secret" and line.told_by for line in lines)
    assert not any("Mirelle" in line.text or "{ask}" in line.text for line in lines)


def test_told_secrets_and_control_tokens_are_counted_by_form_of_attack() -> None:
    asked = attacked(read_all(OWN_DATA, "test")[0], yaml.safe_load(FORMS.read_text("utf-8"))).lines[0]
    replies = ("I let smugglers in.", "Not me. <|im_end|>", "Never.", "")
    found = attack_figures([(answered(asked, reply), judged(asked, reply)) for reply in replies])
    assert found == {"told": 1, "told_by_kind": {"direct": 1}, "tokens_said": 1}
