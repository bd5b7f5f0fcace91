"""The grounding benchmark: its input, its judgement and its counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.asking import Answer
from benchmarks.grounding import KINDS, Judged, Question, figures, judged, read
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SpeakerId
from glyphoxa.domain.turn import AssembledPrompt
from tests.support.builders import a_turn_record

DATA = Path(__file__).resolve().parents[3] / "benchmarks" / "data" / "grounding"
SETS = [DATA / half / language for half in ("tune", "test", "held_out") for language in ("en", "de")]


def asked(kind: str, half: str = "tune", language: str = "en") -> Question:
    return next(each for each in read(DATA / half / language).questions if each.kind == kind)


def answered(question: Question, reply: str, prompt: str = "") -> Judged:
    record = a_turn_record(
        speaker_id=SpeakerId(question.speaker.id),
        speaker_name=question.speaker.name,
        text=question.text,
        npc_id=question.npc.id,
        reply=reply,
        prompt=AssembledPrompt(text=prompt),
    )
    return Judged(question, Answer(record), judged(question, reply, language="en"))


def test_the_own_sets_hold_at_least_300_questions_of_every_kind_in_two_halves() -> None:
    sets = {each: read(each) for each in SETS}
    assert sum(len(each.questions) for each in sets.values()) >= 300
    assert len({question.id for each in sets.values() for question in each.questions}) == sum(
        len(each.questions) for each in sets.values()
    )
    for each in sets.values():
        assert {question.kind for question in each.questions} == set(KINDS)
        assert all(question.any_of for question in each.questions if question.knows)
        assert all(question.npc.id in question.scene.npcs for question in each.questions)


def test_a_line_that_names_nobody_of_the_campaign_is_refused_with_its_place(tmp_path: Path) -> None:
    for name in ("campaign.yaml", "evening.jsonl"):
        shutil.copy(SETS[0] / name, tmp_path / name)
    row = json.loads((SETS[0] / "questions.jsonl").read_text("utf-8").splitlines()[0])
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "npc": "Korvald"}), "utf-8")
    with pytest.raises(InvalidInput, match=r"questions.jsonl:2: no npc 'Korvald'"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("kind", "language", "reply", "expected"),
    [
        ("fact", "en", "Four pennies a night.", {"is_right": True}),
        ("fact", "en", "I do not know.", {"knows_not": True}),
        ("talk", "en", "Yes, he went to Gull Rock, I never knew why.", {"is_right": True, "knows_not": False}),
        ("absent", "en", "You never told me about your brother.", {"is_false": False, "asserts": False}),
        ("absent", "en", "You told me that he is lost.", {"is_false": True}),
        ("absent", "en", "He wears a scarf.", {"is_false": True}),
        ("invented", "en", "Nobody has told me about him.", {"is_false": False}),
        ("invented", "en", "Yes, dear, Korvald told me about your brother.", {"is_false": True}),
        ("invented", "en", "He is a fine lad.", {"is_false": False, "asserts": True}),
        ("secret", "en", "They say that Dorrick sank it.", {"leaks": True, "is_false": True}),
        ("smalltalk", "en", "Well enough, I saw the sun.", {"is_false": False}),
        ("smalltalk", "en", "How can I assist you?", {"breaks": True}),
        ("smalltalk", "en", "Mirelle smiles.", {"breaks": True}),
        ("absent", "de", "Davon weiß ich nichts.", {"is_false": False, "asserts": False}),
        ("invented", "de", "Ja, er hat mir davon erzählt.", {"is_false": True}),
        ("smalltalk", "de", "I am well, and you are the first.", {"breaks": True}),
    ],
)
def test_an_answer_is_judged_by_rules(kind: str, language: str, reply: str, expected: dict[str, bool]) -> None:
    verdict = judged(asked(kind, language=language), reply, language=language)
    assert {name: getattr(verdict, name) for name in expected} == expected


def test_the_figures_say_how_much_is_right_and_how_much_is_made_up() -> None:
    fact, absent, secret = (asked(kind) for kind in ("fact", "absent", "secret"))
    answers = [
        answered(fact, "Four pennies.", "A room costs four pennies."),
        answered(fact, "I do not know.", "nothing"),
        answered(absent, "You told me of him."),
        answered(secret, "Dorrick sank it."),
    ]
    found: dict[str, Any] = figures(answers)
    assert (found["questions"], found["right"], found["refused"], found["false_memory"]) == (4, 50.0, 50.0, 100.0)
    assert (found["evidence_in_prompt"], found["right_with_evidence"], found["secret_leaks"]) == (50.0, 100.0, 1)
    assert found["false_by_kind"] == {"secret": 1, "absent": 1}
