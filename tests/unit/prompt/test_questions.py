"""Decisions on a question by its words: a table of questions, each with the right decision."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import RecalledFact
from glyphoxa.domain.turn_record import Fault
from glyphoxa.language.sentence_form import AskKind, looks_for_own_words, question_of
from glyphoxa.language.text import Text
from glyphoxa.prompt.select import OWN_WORDS, Candidates, OwnSecret, select, touched, without_call
from glyphoxa.prompt.wording import StandIns
from tests.support.builders import SMITH
from tests.support.recalled import heard, said_itself
from tests.unit.prompt.not_knowing import a_mind, repair, said, sentences

QUESTIONS: dict[str, list[Any]] = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))
SECRET = "Hob lets smugglers through the north gate each night."
STANDING = "Hob guards the north gate. The gate closes at dusk."


def told(question: str, line: str, by: str = "Rhea", *, asker: str = "Rhea", language: str = "en") -> tuple[str, ...]:
    mind = replace(a_mind(), remembered=[said(line, by=by)], asker=asker)
    return repair(question, mind, language=language).told()


def is_doubted(question: str, line: str, *, language: str) -> bool:
    found = repair(question, a_mind(remembered=[line]), language=language)
    return found.is_unsure or found.not_known().facts != ()


def is_touched(question: str, *, just_heard: str = "", standing: str = "") -> bool:
    secret = OwnSecret(RecalledFact(FactId("f"), SECRET), Text.of(SECRET).telling("en"))
    loose, asked = Text.of(f"Hob {standing}").telling("en"), without_call(question, "Hob")
    return touched([secret], asked, just_heard=just_heard, language="en", loose=loose) == [secret.told]


JUDGES: dict[str, Callable[..., bool]] = {
    "asks_what_it_said": lambda of, q: question_of(q, of).has(AskKind.OWN_WORDS),
    "asks_something_else": lambda of, q: not question_of(q, of).has(AskKind.OWN_WORDS),
    "looks_for_own_words": lambda of, q: looks_for_own_words(q, name="Korvald", language=of),
    "looks_for_something_else": lambda of, q: not looks_for_own_words(q, name="Korvald", language=of),
    "asks_how_related": lambda of, q: question_of(q, of).has(AskKind.HOW_RELATED),
    "asks_for_no_relation": lambda of, q: not question_of(q, of).has(AskKind.HOW_RELATED),
    "told_before": lambda of, q, line, says: told(q, line, language=of) == (says,),
    "not_told_before": lambda q, line, by, asker: told(q, line, by, asker=asker) == (),
    "heard_before": lambda of, q, line, by, says: told(q, line, by, language=of) == (says,),
    "not_heard_before": lambda of, q, line, by: told(q, line, by, language=of) == (),
    "not_known": lambda of, q, line: sentences(q, language=of) == (line,),
    "asks_for_no_memory": lambda of, q: sentences(q, language=of) == (),
    "remembers_something_else": lambda of, q, line: is_doubted(q, line, language=of),
    "remembers_it": lambda of, q, line: sentences(q, a_mind(remembered=[line]), language=of) == (),
    "goes_on": lambda q: is_touched(q, just_heard="Tamsin says: Do you let smugglers in?"),
    "does_not_go_on": lambda q: not is_touched(q, just_heard="Tamsin says: Do you let smugglers in?"),
}


@pytest.mark.parametrize("kind", JUDGES)
def test_questions_of_a_kind_are_decided_rightly(kind: str) -> None:
    cases = [case if isinstance(case, list) else [case] for case in QUESTIONS[kind]]
    assert [case for case in cases if not JUDGES[kind](*case)] == []


def test_every_table_of_questions_has_a_judge() -> None:
    assert set(QUESTIONS) == set(JUDGES)


@pytest.mark.parametrize(
    ("question", "touches"),
    [
        ("When does the gate close?", False),
        ("What lies beyond the north gate?", False),
        ("Who passes the gate at night?", True),
        ("Do you know any smugglers?", True),
    ],
)
def test_question_about_its_place_touches_no_secret(question: str, touches: bool) -> None:
    assert is_touched(question, standing=STANDING) is touches


@pytest.mark.parametrize(
    ("question", "language", "touches"),
    [
        ("What do you know about bread?", "en", False),
        ("Tell me, do you know who forged the tablet?", "en", True),
        ("Was weißt du über Brot?", "de", False),
        ("Weißt du, wer die Tafel gefälscht hat?", "de", True),
    ],
)
def test_secret_that_begins_with_you_know_is_touched_by_its_subject_alone(
    question: str, language: str, touches: bool
) -> None:
    secret = {"en": "You know that Pell forged the tablet.", "de": "Du weißt, dass Pell die Tafel gefälscht hat."}[
        language
    ]
    known = OwnSecret(RecalledFact(FactId("f"), secret), Text.of(secret).telling(language))
    assert bool(touched([known], question, just_heard="", language=language)) is touches


def test_secret_without_words_of_its_own_keeps_those_it_has() -> None:
    secret = OwnSecret(RecalledFact(FactId("f"), "The north gate."), Text.of("The north gate.").telling("en"))
    loose = Text.of(STANDING).telling("en")
    assert touched([secret], "When does the gate close?", just_heard="", language="en", loose=loose) == [secret.told]


def test_what_others_said_is_kept_and_own_words_are_not() -> None:
    line = "Liora stole the silver bell."
    own, hers = said_itself(line, npc=SMITH), heard(line, by="mirelle")
    found = select(Candidates("Who stole the silver bell?", "en", talk=[own, hers]), Budgets())
    assert (found.talk, [(one.recalled, one.why) for one in found.rejected]) == ((hers,), [(own, OWN_WORDS)])


def test_what_the_asker_told_stands_in_for_any_reply_but_a_secret() -> None:
    lines = StandIns("en")
    assert lines.line("Where did I see smoke?", Fault.FORGOTTEN, ("You told me so.",)) == "You told me so."
    assert lines.line("Where did I see smoke?", Fault.SECRET, ("You told me so.",)) != "You told me so."
