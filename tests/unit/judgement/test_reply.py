"""The decision on each sentence of a reply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.turn_record import Asked, Character, Fault, Verdict
from glyphoxa.judgement.reply import ReplyCheck, fact_about
from glyphoxa.language.text import language_of
from glyphoxa.prompt.identity import default_examples
from tests.unit.judgement.cases import wrong_ones

BRUNHILD = Character("Brunhild Rook", aliases=("the herbwife",), others=("Oskar Fenn", "Peter"))
OSKAR = Character("Oskar Fenn", aliases=("the harbourmaster",), others=("Brunhild", "Peter"))
DEMO = read_campaign(Path(__file__).parents[3] / "demo" / "campaign.yaml").campaign


def decided(sentence: str, asked: str = "", npc: Character = BRUNHILD) -> Verdict:
    return ReplyCheck(npc, Asked(asked)).decide(sentence)


@pytest.mark.parametrize("repairs", [True, False])
def test_phrases_of_assistants_and_of_the_prompt_are_rejected(repairs: bool) -> None:
    def cleaned(line: str) -> str:
        return ReplyCheck(OSKAR, Asked(), repairs=repairs).clean(line).text

    assert wrong_ones("reply", "assistant", lambda phrase: not cleaned(phrase)) == []
    assert wrong_ones("reply", "ordinary", lambda line: cleaned(line) == line) == []


def test_rejection_has_a_reason() -> None:
    assert decided("I apologize, but I cannot assist with that request.").fault is Fault.ASSISTANT
    assert decided("Use two short sentences.").fault is Fault.OF_THE_PROMPT
    assert decided("(She smiles.)").fault is Fault.NOT_SPEECH
    assert decided("Brunhild nods.").fault is Fault.NARRATED


@pytest.mark.parametrize(
    ("sentence", "small", "large"),
    [
        ("Brunhild nods.", Verdict(fault=Fault.NARRATED), Verdict("Brunhild nods.")),
        ("A draught from Brunhild costs nine.", Verdict("A draught from me costs nine."), None),
        ("My name is Peter.", Verdict(fault=Fault.IDENTITY), None),
        ("I never sold any to Anneke.", Verdict(fault=Fault.SECRET), None),
        ("Ich weiß das nicht, mein Freund.", Verdict(fault=Fault.LANGUAGE), Verdict(fault=Fault.LANGUAGE)),
    ],
)
def test_slips_are_repaired_for_small_models_alone(sentence: str, small: Verdict, large: Verdict | None) -> None:
    asked = Asked("What do you have there?", kept=("Brunhild sold nightshade to Anneke.",))
    assert ReplyCheck(BRUNHILD, asked).decide(sentence) == small
    assert ReplyCheck(BRUNHILD, asked, repairs=False).decide(sentence) == (large or Verdict(sentence))


def test_answer_in_another_language_is_rejected() -> None:
    assert wrong_ones("reply", "other_language", lambda asked, said: decided(said, asked).fault is Fault.LANGUAGE) == []
    assert wrong_ones("reply", "any_language", lambda asked, said: decided(said, asked).text == said) == []
    assert [language_of(text) for text in ("Where is the mill?", "Wo ist die Mühle?", "Grimjaw!")] == ["en", "de", ""]


@pytest.mark.parametrize(
    ("asked", "sentence", "language", "fault"),
    [
        ("Was wurde mir am Samstag gestohlen?", "Could you please clarify what you are asking?", "en", Fault.LANGUAGE),
        ("Guten Morgen, Hauke.", "Good morning, Merle! How are you?", "de", Fault.LANGUAGE),
        ("Hauke?", "What do you want of me?", "de", Fault.LANGUAGE),
        ("Hauke?", "What do you want of me?", "en", None),
        ("Hauke?", "What do you want of me?", "fr", None),
        ("Hallo!", "Was kann ich für dich tun?", "en", None),
    ],
)
def test_question_that_shows_no_language_is_in_the_campaigns(
    asked: str, sentence: str, language: str, fault: Fault | None
) -> None:
    assert decided(sentence, asked, replace(BRUNHILD, language=language)).fault is fault


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("I am sorry,", "but I cannot assist with that request."), ["", ""]),
        (("I am sorry,", "but the boat has left."), ["", "I am sorry, but the boat has left."]),
        (("As a nun,", "I pray.", "For you too."), ["", "As a nun, I pray.", "For you too."]),
    ],
)
def test_beginning_of_a_refusal_waits_for_what_follows(pieces: tuple[str, ...], said: list[str]) -> None:
    check = ReplyCheck(OSKAR, Asked())
    assert [check.clean(piece).text for piece in pieces] == said


def test_vague_refusal_is_rejected_if_a_fact_answers_the_question() -> None:
    vague, known = "I can't answer that, friend.", ("Oskar keeps the harbour's great lamp.",)
    assert ReplyCheck(OSKAR, Asked("Who keeps the lamp?", facts=known)).decide(vague).fault is Fault.ASSISTANT
    assert ReplyCheck(OSKAR, Asked("Who baked this bread?", facts=known)).decide(vague).text == vague
    told = "I cannot tell you who keeps the lamp."
    assert ReplyCheck(OSKAR, Asked("Who keeps the lamp?", facts=known)).decide(told).text == told


def test_fact_about_a_question_is_not_ignorance() -> None:
    facts = ("Oskar keeps the lamp.", "Oskar knows nothing more about the lamp.")
    asked = Asked("Which ship saw the lamp?", facts=facts, not_known=facts[1:])
    assert fact_about(asked) == facts[0]
    assert fact_about(replace(asked, question="Good evening!")) == ""


def test_no_fact_is_told_against_a_direction_or_about_a_forbidden_topic() -> None:
    asked = Asked("Who keeps the lamp?", facts=("Oskar keeps the lamp.", "Deny it."), direction="Deny it.")
    assert fact_about(asked) == ""
    assert ReplyCheck(OSKAR, asked).decide("Mehr kann ich dazu nicht sagen.").fault is not Fault.ASSISTANT
    assert fact_about(replace(asked, direction="", flags=("fire",))) == ""


def test_rejected_sentence_counts_as_never_said() -> None:
    check = ReplyCheck(BRUNHILD, Asked("Who are you?"))
    assert check.decide("Brunhild nods.").fault is Fault.NARRATED
    assert check.decide("I am Brunhild.").text == "I am Brunhild."


@pytest.mark.parametrize("npc", DEMO.npcs, ids=lambda npc: npc.id)
def test_answers_of_its_examples_are_said_whole(npc: Npc) -> None:
    others = tuple(other.name for other in (*DEMO.npcs, *DEMO.players) if other.name != npc.name)
    for example in (*npc.examples, *default_examples(DEMO, npc, None)):
        kept = (example.kept,) if example.kept else ()
        check = ReplyCheck(Character(npc.name, npc.aliases, others), Asked(example.said, kept=kept))
        assert check.decide(example.reply).text == example.reply
