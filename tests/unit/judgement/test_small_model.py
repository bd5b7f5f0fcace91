"""Faults in a small model's replies as an NPC, and their repairs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphoxa.domain.turn_record import Asked, Character, Fault, Verdict
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.judgement.small_model import ReplyRepair, in_first_person, with_correct_owner
from glyphoxa.language.text import language_of
from tests.unit.judgement.cases import wrong_ones

BRUNHILD = Character("Brunhild Rook", aliases=("the herbwife",), others=("Oskar Fenn", "Peter"))
OSKAR = Character("Oskar Fenn", aliases=("the harbourmaster",), others=("Brunhild", "Peter"))
SERAFINA = Character("Serafina Vale", aliases=("the Grey Lady",), others=("Tamsin", "Oskar Fenn", "Peter Vale"))
MIRELLE = Character("Mirelle")


def decided(sentence: str, asked: str = "", npc: Character = BRUNHILD, **more: tuple[object, ...]) -> Verdict:
    return ReplyCheck(npc, Asked(question=asked, **more)).decide(sentence)  # type: ignore[arg-type]  # by its name


def spoken(*pieces: str, asked: str = "") -> list[str | None]:
    check = ReplyCheck(OSKAR, Asked(asked))
    return [check.clean(piece).text or None for piece in pieces]


def rejected(sentence: str, npc: Character, asked: Asked) -> Fault | None:
    return ReplyRepair(npc, asked).rejects(sentence, npc, asked)


def identity(sentence: str, *, so_far: str = "") -> Fault | None:
    return rejected(sentence, SERAFINA, Asked("What is your name?", "Ilvy", so_far=so_far))


def test_narration_is_not_spoken() -> None:
    assert wrong_ones("repairs", "narrated", lambda narrated: spoken(narrated) == [None]) == []
    assert spoken("Oskar nods,", "and looks at the sea.", "Two crowns.") == [None, None, "Two crowns."]


def test_sentence_about_the_npc_by_name_says_i() -> None:
    assert wrong_ones("repairs", "first_person", lambda wrong, right: spoken(wrong) == [right]) == []


def test_sentence_about_the_npc_that_cannot_say_i_is_rejected() -> None:
    assert decided("Brunhild brews potions.", "What do you do?").fault is Fault.THIRD_PERSON


def test_word_of_its_name_that_somebody_else_has_too_is_not_its_own() -> None:
    repair = ReplyRepair(Character("Oskar Fenn", others=("Greta Fenn",)), Asked())
    assert repair.repaired("Fenn nods at everybody.").text == "Fenn nods at everybody."


@pytest.mark.parametrize(
    ("of_the_prompt", "said"),
    [
        ("Nobody has told Brunhild anything about that.", "Nobody has told me anything about that."),
        ("Brunhild has never heard of Tarquin.", "I have never heard of Tarquin."),
        ("Brunhild never said that.", "I never said that."),
        ("Brunhild knows nothing more about it.", "I know nothing more about it."),
        ("Niemand hat Brunhild etwas davon erzählt.", "Niemand hat mir etwas davon erzählt."),
        ("Von Korbinian hat Brunhild nie gehört.", "Von Korbinian habe ich nie gehört."),
        ("Das hat Brunhild nie gesagt.", "Das habe ich nie gesagt."),
        ("Mehr weiß Brunhild darüber nicht.", "Mehr weiß ich darüber nicht."),
    ],
)
def test_line_of_the_prompt_about_missing_knowledge_says_i(of_the_prompt: str, said: str) -> None:
    npc = replace(BRUNHILD, language=language_of(said) or "en")
    assert decided(of_the_prompt, "Tarquin?", npc) == Verdict(said)


def test_question_that_is_given_back_is_not_spoken() -> None:
    asked = "Oskar, what do I pay for my boat?"
    assert spoken("What do I pay for my boat?", "Two crowns.", asked=asked) == [None, "Two crowns."]
    reeds = "Oskar, what happened in the Night of Reeds?"
    assert spoken("In the Night of Reeds,", "seven drowned.", asked=reeds) == [
        "In the Night of Reeds,",
        "seven drowned.",
    ]
    assert spoken("And you?", asked="I am well, and you?") == ["And you?"]


def test_thing_and_words_of_the_asker_stay_the_askers() -> None:
    def said(question: str, sentence: str) -> str:
        return with_correct_owner(sentence, Asked(question))

    assert wrong_ones("repairs", "owner_put_right", lambda asked, wrong, right: said(asked, wrong) == right) == []
    assert wrong_ones("repairs", "owner_right", lambda asked, right: said(asked, right) == right) == []


def test_npc_may_have_such_a_thing_of_its_own() -> None:
    asked = Asked(question="Is that my horse?", identity=("Marta has a grey horse.",))
    assert with_correct_owner("No, that is my horse.", asked) == "No, that is my horse."


def test_npc_has_its_own_name_and_greets_others() -> None:
    assert wrong_ones("repairs", "not_itself", lambda sentence: identity(sentence) is Fault.IDENTITY) == []
    assert wrong_ones("repairs", "itself", lambda sentence: identity(sentence) is None) == []


def test_greeting_that_was_said_as_a_first_clause_goes_on() -> None:
    assert identity("Serafina!", so_far="Hello,") is Fault.IDENTITY
    assert identity("Serafina is my name.", so_far="Hello,") is None
    assert identity("What will you have?", so_far="Hello, Serafina!") is None


def test_name_that_it_shares_is_its_own_as_well() -> None:
    assert identity("My name is Peter.") is Fault.IDENTITY
    assert identity("My name is Vale.") is None


def test_assistant_is_recognised_in_mid_conversation() -> None:
    before = (("Who is here?", "Only I."),)
    assert (
        wrong_ones("repairs", "offers_help", lambda q, s: decided(s, q, before=before).fault is Fault.ASSISTANT) == []
    )
    assert wrong_ones("repairs", "offers_no_help", lambda q, s: decided(s, q, before=before).text == s) == []


def test_reply_says_nothing_twice() -> None:
    check = ReplyCheck(BRUNHILD, Asked(question="Sing!"))
    assert [check.decide(piece).fault for piece in ("Arrr.", "Arrr.")] == [None, Fault.REPEATED]


@pytest.mark.parametrize(
    ("sentence", "question", "before", "fault"),
    [
        ("Good night, Peter.", "What does a draught cost?", [("Good night, Brunhild.", 1)], Fault.REPEATED),
        ("Good night, Peter.", "Good night then, Brunhild!", [("Good night, Brunhild.", 1)], None),
        ("Arrr.", "Who are you, sailor?", [("Where is the mill?", 1)], None),
        ("Nine silver pieces.", "A draught, what does it cost again?", [("What does a draught cost?", 2)], None),
        ("Nine silver pieces.", "What was that?", [("What does a draught cost?", 1)], None),
    ],
)
def test_answer_is_repeated_only_to_the_same_question(
    sentence: str, question: str, before: list[tuple[str, int]], fault: Fault | None
) -> None:
    talk = tuple((asked, f"{sentence} Sleep well.") for asked, times in before for _ in range(times))
    assert decided(sentence, question, before=talk).fault is fault


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("The smoke you mentioned is from the mill.", Fault.FORGOTTEN),
        ("I know nothing of that.", Fault.FORGOTTEN),
        ("You saw it by the old watchtower.", None),
        ("Smoke?", None),
        ("Ah, that.", None),
    ],
)
def test_answer_from_what_the_asker_told_is_not_left_out(sentence: str, fault: Fault | None) -> None:
    told = ("You told me you saw smoke above the old watchtower at noon.",)
    remembered = ("Rhea said: I saw smoke above the old watchtower at noon.",)
    assert decided(sentence, "Where did I see smoke?", told=told, remembered=remembered).fault is fault


def test_question_back_is_no_answer_from_what_the_asker_told() -> None:
    told = ("You told me your horse Juniper is lame.",)
    remembered = ("Rhea said: My horse Juniper is lame.",)
    asked = Asked(question="What did I tell you about my horse?", told=told, remembered=remembered)
    check = ReplyCheck(BRUNHILD, asked)
    pieces = ("Juniper?", "You told me about it.", "Juniper is lame.")
    assert [check.decide(piece).fault for piece in pieces] == [None, Fault.FORGOTTEN, None]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Pilar is the sister of Rusk.", "Pilar is my sister."),
        ("The foreman of Rusk is ill.", "The foreman of Rusk is ill."),
        ("Pilar is the sister of Rusk Bardo.", "Pilar is the sister of Rusk Bardo."),
    ],
)
def test_kin_of_the_npc_is_its_own(sentence: str, said: str) -> None:
    assert in_first_person(sentence, ("Rusk",)) == said
