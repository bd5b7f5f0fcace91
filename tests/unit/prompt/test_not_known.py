"""Sentences of a prompt where memory is silent. Most questions are in `questions.toml`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.answerable import LINES
from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.knowledge import RecalledUtterance
from glyphoxa.domain.turn_record import Rejected
from glyphoxa.judgement.small_model import PromptRepair, may_answer, notes_examples
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.prompt.prompt import Doubt, HotContext
from glyphoxa.prompt.select import Candidates, select
from tests.support.builders import SMITH, a_campaign
from tests.support.minds import Mind
from tests.support.recalled import heard, said_itself
from tests.unit.prompt.not_knowing import a_mind, repair, sentences

HESPER = a_mind("Captain Hesper carries wool.", known=["Captain Hesper"])


@pytest.mark.parametrize(
    ("question", "language", "mind"),
    [
        ("What did I tell you about my brother?", "en", a_mind(talk=["My brother is lost."])),
        ("Do you know Hesper?", "en", a_mind("Hesper carries wool.", known=["Hesper"])),
        ("Tell me about Hesper.", "en", a_mind("Hesper carries wool.", known=["Hesper"])),
        (
            "Is the Marigold hers, or whose?",
            "en",
            a_mind("Hesper owns the Marigold.", known=["Marigold"], path="Marigold, asks for OWNS"),
        ),
        ("You promised me a free room, remember?", "en", a_mind(talk=["The room is yours."])),
        ("What did I tell you about Hesper?", "en", replace(a_mind(), summaries=["A horse threw Hesper."])),
    ],
)
def test_nothing_is_said_to_be_unknown_where_something_bears_on_the_question(
    question: str, language: str, mind: PromptRepair
) -> None:
    assert sentences(question, mind, language=language) == ()
    assert sentences(question, language=language) != ()


@pytest.mark.parametrize(
    "question", ["Why did Captain Hesper murder the mayor?", "What did Captain Hesper say about me?"]
)
def test_somebody_known_may_be_asked_for_more_than_is_known(question: str) -> None:
    assert sentences(question, HESPER) == ("Mirelle knows nothing more about it.",)


@pytest.mark.parametrize(
    ("question", "language", "mind", "has_replies"),
    [
        ("Did Korvald tell you about my brother?", "en", a_mind(), True),
        ("Did Korvald tell you about my brother?", "en", a_mind(known=["Korvald"]), True),
        ("Hat dir Korvald von meinem Bruder erzählt?", "de", a_mind(), True),
        ("Hat dir Korbinian von meinem Bruder erzählt?", "en", a_mind(), False),
        ("I will keep your secret.", "en", HESPER, False),
        ("Is Captain Hesper kind?", "en", HESPER, False),
        ("I remember my first voyage.", "en", HESPER, False),
    ],
)
def test_model_is_asked_only_what_does_not_ask_of_the_past(
    question: str, language: str, mind: PromptRepair, has_replies: bool
) -> None:
    assert bool(repair(question, mind, language=language).not_known().replies) is has_replies


def test_reply_without_a_model_fits_what_is_missing() -> None:
    questions = ("Who is Tarquin?", "You promised me a free room, remember?")
    replies = {asked: repair(asked).not_known().replies for asked in questions}
    assert all("Tarquin" in reply for reply in replies["Who is Tarquin?"])
    assert "I never said that." in replies["You promised me a free room, remember?"]


def test_word_of_the_npcs_own_name_may_be_what_is_asked_for() -> None:
    mind = replace(a_mind(remembered=["Your father fell at the ford."]), name="Father Ulric")
    assert sentences("Where did my father fall?", mind) == ()
    assert sentences("Where did my sister drown, Ulric?", mind) == (
        "Nobody has told Father Ulric anything about that.",
    )


@pytest.mark.parametrize(
    "question",
    [
        "Is the GPS working?",
        "Do you have a TV?",
        "Do you speak French?",
        "Is it Christmas?",
        "Is the Internet down?",
        "Do you trust the Germans?",
    ],
)
def test_word_of_common_knowledge_is_not_called_an_unheard_name(question: str) -> None:
    assert sentences(question) == ()


def test_first_name_in_a_dictionary_is_an_unheard_name() -> None:
    told = [sentences(f"Do you know {name}?") for name in ("Godfrey", "Peter", "Matsuda")]
    assert [line[0].split()[-1] for line in told] == ["Godfrey.", "Peter.", "Matsuda."]


async def test_prompt_of_a_large_model_is_not_changed() -> None:
    minds = [Mind(a_campaign(), repairs=of_small) for of_small in (True, False)]
    asked = "What did I tell you about my brother?"
    small, large = [await mind.assembly.gather(SMITH, asked, asker="Tamsin") for mind in minds]
    assert small.not_known and small.shrugs
    assert (large.shrugs, large.not_known, large.told) == ((), (), ())


@pytest.mark.parametrize(("label", "least", "most"), [("free", 0, 3), ("unknown", 85, 100)])
def test_trade_requests_and_small_talk_are_not_refused(label: str, least: int, most: int) -> None:
    lines = [line.split("\t") for line in LINES.read_text("utf-8").splitlines()]
    refused = [bool(repair(text, language=language).not_known().replies) for language, of, text in lines if of == label]
    assert least <= 100 * sum(refused) / len(refused) <= most


# In doubt a model is asked.


def test_model_is_asked_if_wording_and_evidence_leave_it_open() -> None:
    asked = ("Good morning!", "Where did my sister drown?", "When does the market open?")
    assert [repair(text).is_unsure for text in asked] == [False, False, True]


@pytest.mark.parametrize(
    ("log_odds", "by_model", "expected"),
    [
        (0.0, None, True),
        (-1.1, None, False),
        (0.0, -1.0, True),
        (0.0, -2.0, False),
        (-1.5, 0.0, True),
        (2.0, -3.0, False),
    ],
)
def test_weight_of_a_model_is_greater_than_that_of_the_wording(
    log_odds: float, by_model: float | None, expected: bool
) -> None:
    assert may_answer(log_odds, by_model) is expected


@pytest.mark.parametrize("language", ["en", "de-AT"])
def test_notes_have_the_form_of_their_examples(language: str) -> None:
    (first, _), *examples = notes_examples(language)
    assert first == "system"
    assert [role for role, _ in examples] == ["user", "assistant"] * (len(examples) // 2)
    assert {text.partition(":")[0] for role, text in examples if role == "assistant"} == {"known", "unknown"}
    notes = repair("What does a room cost?", language=language).notes(["Wenna said: I am tired."])
    assert notes.splitlines()[-1].endswith(": What does a room cost?")
    lines = notes.splitlines()[0]
    # What she knows of herself and her place is there because it has words of the question.
    assert lines.endswith("four pennies. Wenna said: I am tired.")
    assert repair("Why are you sad?", replace(a_mind(), asker=""), language="en").notes([]).splitlines() == [
        "Notes of Mirelle: (nothing about it)",
        "Somebody asks: Why are you sad?",
    ]


def test_summary_about_the_question_leaves_the_answer_to_the_model() -> None:
    past = "Tobin found a cuff link. The Marigold sailed, and Wenna bought a mule."
    mind = replace(a_mind(), summaries=[past], beside=(*a_mind().beside, past))
    asked = repair("Who lost the cuff link?", mind)
    assert (asked.log_odds, asked.is_unsure, asked.not_known().facts) == (0.0, True, ())
    assert asked.notes([]).startswith("Notes of Mirelle: Tobin found a cuff link.\n")


MARJORIE = heard("I am engaged to a girl in Hull, her name is Marjorie.", similarity=0.42)


@pytest.mark.parametrize(
    ("talk", "tokens", "distant"),
    [
        ([MARJORIE], 90, MARJORIE),
        ([MARJORIE], 1_500, None),
        ([replace(MARJORIE, similarity=0.1)], 90, None),
        ([heard("Whom will you marry, Marjorie?", similarity=0.3), MARJORIE], 90, MARJORIE),
        ([said_itself("Marry Marjorie soon, then.", npc=SMITH, similarity=0.4), MARJORIE], 90, MARJORIE),
        ([heard("My brother weds a girl of Hull.", by="bran", similarity=0.4), MARJORIE], 90, MARJORIE),
        ([heard("Marjorie and I " + "sail on and on, " * 40, similarity=0.4)], 90, None),
    ],
)
def test_best_line_that_is_far_from_the_question_is_left_to_the_model(
    talk: list[RecalledUtterance], tokens: int, distant: RecalledUtterance | None
) -> None:
    candidates = Candidates("Who am I going to wed?", "en", "Tamsin", talk=talk)
    found = select(candidates, Budgets(facts_tokens=tokens))
    assert (found.distant, found.chosen) == (distant, ())


@pytest.mark.parametrize(
    ("guess", "by_model", "known", "has_distant"),
    [(1.0, 0.5, True, True), (-1.5, 0.5, True, True), (2.0, -1.5, True, False), (1.0, -4.0, False, False)],
)
def test_distant_line_enters_the_prompt_only_if_the_model_finds_the_answer(
    guess: float, by_model: float, known: bool, has_distant: bool
) -> None:
    line, untold, shrug = recalled_line(MARJORIE), ("Nobody has told Mirelle.",), ("I know nothing of that.",)
    unknown = () if guess > 0 else untold
    hot = HotContext(("A fact.", *unknown), unknown, distant=(line,), doubt=Doubt(guess, "notes", untold, shrug))
    hot = replace(hot, rejected=(Rejected(MARJORIE, "far"),))
    found = hot.resolved(by_model)
    assert (found.facts, found.not_known) == (("A fact.",), ()) if known else (("A fact.", *untold), untold)
    assert found.shrugs == (() if known else shrug)
    assert (found.remembered, found.recalled) == (((line,), (MARJORIE,)) if has_distant else ((), ()))
    assert bool(found.rejected) is not has_distant
    assert (found.doubt, found.distant) == (None, ())
    unasked = hot.resolved(None)
    assert (unasked.facts, unasked.not_known, unasked.remembered) == (hot.facts, unknown, ())
