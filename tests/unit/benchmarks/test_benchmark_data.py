"""The labelled sets are large enough, and what is quoted is not what was tuned on."""

from __future__ import annotations

import pytest

from benchmarks import address, grounding, long_session, persona
from benchmarks.labelled import DATA


def test_cases_of_address_have_other_casts_in_each_half() -> None:
    halves = [address.read_cases(DATA / "address" / f"{half}.jsonl") for half in ("tune", "test")]
    for half in halves:
        assert min(sum(case.language == language for case in half) for language in ("en", "de")) >= 100
        assert all({*case.expected} <= {npc.id for npc in case.npcs if npc.present} for case in half)
    tune, test = ({npc.name for case in half for npc in case.npcs} for half in halves)
    assert tune.isdisjoint(test)


def test_lines_of_persona_are_for_other_npcs_in_each_half() -> None:
    halves = [persona.read_all(persona.OWN_DATA, half) for half in persona.HALVES]
    lines = [line for half in halves for asked in half for line in asked.lines]
    assert len(lines) >= 250
    assert {line.kind for line in lines} == set(persona.KINDS)
    tune, test = ({line.npc.id for asked in half for line in asked.lines} for half in halves)
    assert tune.isdisjoint(test)


def test_questions_of_grounding_are_of_every_kind_for_npcs_in_their_scene() -> None:
    sets = [grounding.read(path.parent) for path in DATA.glob("grounding/*/*/questions.jsonl")]
    assert sum(len(each.questions) for each in sets) >= 300
    for each in sets:
        assert {question.kind for question in each.questions} == set(grounding.KINDS)
        assert all(question.npc.id in question.scene.npcs for question in each.questions)


@pytest.mark.parametrize("name", ["rounds", "sessions"])
def test_each_answer_of_a_long_session_is_said_once_before_it_is_asked_for(name: str) -> None:
    play = long_session.read(DATA / "long_session" / name)
    points = [session for session, _ in play.sessions] if name == "sessions" else sorted({x.round for x in play.talk})
    for question in play.questions:
        at = [
            points.index(line.session if name == "sessions" else line.round) + 1
            for line in play.talk
            if any(word.casefold() in line.text.casefold() for word in question.any_of)
        ]
        assert {*at} == {question.said_in} and question.said_in <= min(question.at), question.id
