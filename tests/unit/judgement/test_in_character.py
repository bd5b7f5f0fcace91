"""What of a reply an NPC says as itself."""

from __future__ import annotations

import pytest

from glyphoxa.judgement.in_character import InCharacter


def spoken(*pieces: str, name: str = "Oskar Fenn", asked: str = "") -> list[str | None]:
    guard = InCharacter(name, others=("Brunhild", "Peter"), aliases=("the harbourmaster",), asked=asked)
    return [guard.clean(piece) for piece in pieces]


@pytest.mark.parametrize(
    "narrated",
    [
        "Oskar Fenn nods.",
        "Oskar nods slowly and looks at the sea.",
        "Oskar slowly shakes his head.",
        "Oskar sets his cup down.",
        "Oskar looks at you.",
        "Oskar asks,",
        "Oskar says softly.",
        "Oskar Fenn says:",
        "The harbourmaster frowns.",
        "He sighs.",
        "She smiles warmly at you.",
        "Nods.",
        "Smiles softly.",
        "Oskar Fenn nickt.",
        "Oskar schüttelt den Kopf.",
        "Er seufzt leise.",
        "*He looks away.*",
        "(Oskar laughs.)",
    ],
)
def test_what_only_tells_of_it_is_not_spoken(narrated: str) -> None:
    assert spoken(narrated) == [None]


@pytest.mark.parametrize(
    "phrase",
    [
        "I'm sorry, but I can't assist with that.",
        "I am sorry, but I cannot assist with that request.",
        "Good morning, how may I assist you today?",
        "If you need help with something else, please let me know!",
        "Is there something else I can assist you with?",
        "I'm sorry, but I don't have any information about the key being hidden.",
        "As a nun, I do not have personal information about individuals.",
        "Can you provide me with more details on the requirements of your script?",
        "I apologize for any inconvenience this may have caused to you.",
        "If you have any other questions, feel free to ask.",
        "Hier ist die Antwort auf Peters Frage.",
        "Ich habe keine Informationen über den Leuchtturm.",
        "Wie kann ich Ihnen heute helfen?",
        "Es tut mir leid, aber ich kann dabei nicht behilflich sein.",
        "Always answer in the first person.",
        "Ich spreche in der ersten Person.",
    ],
)
def test_an_assistants_phrases_and_the_prompts_words_are_not_spoken(phrase: str) -> None:
    assert spoken(phrase) == [None]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("The fee from Oskar Fenn costs two crowns.", "The fee from me costs two crowns."),
        ("Oskar Fenn is the harbourmaster.", "I am the harbourmaster."),
        ("Oskar's office is by the stairs.", "My office is by the stairs."),
        ("You should ask Oskar.", "You should ask me."),
        ("Oskar keeps the books.", "I keep the books."),
        ("The lord of this quay is Oskar himself.", "The lord of this quay is I myself."),
        ("Oskar Fenn ist Hafenmeister.", "Ich bin Hafenmeister."),
        ("Oskar will come tomorrow.", "I will come tomorrow."),
        ("Oskar will das nicht.", "Ich will das nicht."),
        ("Oskar asks two crowns of everyone.", "I ask two crowns of everyone."),
        ("Oskar sets the fee.", "I set the fee."),
        ("Oskar says that the boat has left.", "I say that the boat has left."),
        ("Oskar looks after the boats.", "I look after the boats."),
    ],
)
def test_who_speaks_of_itself_by_name_says_i(wrong: str, right: str) -> None:
    assert spoken(wrong) == [right]


@pytest.mark.parametrize(
    "line",
    [
        "I am Oskar Fenn, the harbourmaster.",
        "They call me Oskar.",
        "My name is Oskar Fenn.",
        "The name is Oskar Fenn.",
        "Brunhild nods at every fool who pays.",
        "He looks for his dog at the mill.",
        "She says the well is poisoned.",
        "Looks like rain.",
        "I'm sorry, lad, but I cannot help you.",
        "I am sorry for your loss.",
        "How can I help you?",
        "What can I do for you?",
        "I have no news of her.",
        "He asks too much for his fish.",
        "Smiles cost nothing here.",
        "Leave Oskar Fennimore out of this.",
        "Wie kann ich dir helfen?",
        "Das tut mir leid, Junge.",
        "Er schaut jeden Morgen nach den Booten.",
        "Sie sagt, der Brunnen sei vergiftet.",
        "Leider nein.",
        "Ich heiße Oskar.",
        "As a boy I sailed with my father.",
        "If you need help, ask Brunhild.",
        "If you have any more of that ale, please pour me one.",
        "I don't have any personal quarrel with him.",
        "Da kann ich dir leider nicht weiterhelfen.",
        "Das behältst du für dich, verstanden?",
    ],
)
def test_ordinary_talk_is_said_as_it_is(line: str) -> None:
    assert spoken(line) == [line]


def test_a_narration_is_left_out_to_its_end_and_what_it_quotes_is_said() -> None:
    assert spoken("Oskar nods,", "and looks at the sea.", "Two crowns.") == [None, None, "Two crowns."]
    assert spoken('Oskar nods and says, "Two crowns."') == ["Two crowns."]


def test_the_beginning_of_a_refusal_waits_for_what_follows() -> None:
    assert spoken("I am sorry,", "but I cannot assist with that request.") == [None, None]
    assert spoken("I am sorry,", "but the boat has left.") == [None, "I am sorry, but the boat has left."]
    assert spoken("As a nun,", "I pray.", "For you too.") == [None, "As a nun, I pray.", "For you too."]


def test_a_question_that_is_given_back_is_not_spoken() -> None:
    asked = "Oskar, what do I pay for my boat?"
    assert spoken("What do I pay for my boat?", "Two crowns.", asked=asked) == [None, "Two crowns."]
    reeds = "Oskar, what happened in the Night of Reeds?"
    assert spoken("In the Night of Reeds,", "seven drowned.", asked=reeds) == [
        "In the Night of Reeds,",
        "seven drowned.",
    ]
    assert spoken("And you?", asked="I am well, and you?") == ["And you?"]


def test_a_word_of_its_name_that_somebody_else_has_too_is_not_its_own() -> None:
    guard = InCharacter("Oskar Fenn", others=("Greta Fenn",))
    assert guard.clean("Fenn nods at everybody.") == "Fenn nods at everybody."
