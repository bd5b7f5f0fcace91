import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.judgement.guard import SafetyFilter


def spoken(*pieces: str, name: str = "Grimjaw", others: tuple[str, ...] = ("Kira",)) -> list[str | None]:
    safety = SafetyFilter(name, others=others)
    return [safety.clean(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("generated", "said"),
    [
        ("Grimjaw: Good evening.", "Good evening."),
        ("**Grimjaw:** Aye.", "Aye."),
        ('"Grimjaw": Aye.', "Aye."),
        ("Assistant: Aye.", "Aye."),
        ("Grimjaw says: Aye.", "Aye."),
        ("Grimjaw says to Kira: Aye.", "Aye."),
        ("Grimjaw sagt: Ja.", "Ja."),
        ("_whispers_ Come closer.", "Come closer."),
        ("Three times * two.", "Three times two."),
        ("[INST] Aye. [/INST]", "Aye."),
        ("*wipes his hands* Good evening.", "Good evening."),
        ("Aye. (He nods slowly.) It is done.", "Aye. It is done."),
        ("[sighs] Fine.", "Fine."),
        ("Hello *waves* friend.", "Hello friend."),
        ("I will *never* yield.", "I will never yield."),
        ("**Two** gold, and `no` less.", "Two gold, and no less."),
        ("## Wares", "Wares"),
        ("- Bread, two coppers", "Bread, two coppers"),
        ("1. First, the forge.", "First, the forge."),
        ("Well met! 😀🔥", "Well met!"),
        ("Fine :) then <3", "Fine then"),
        ("Ask at [the gate](http://example.com).", "Ask at the gate."),
        ("<think>He wants ale.</think>Ale it is.", "Ale it is."),
        ('Wait. <tool_call>{"name": "roll"}</tool_call> A six.', "Wait. A six."),
        ("<b>Hold</b> the line.", "Hold the line."),
        ("<|im_end|>Aye.", "Aye."),
    ],
)
def test_slips_of_the_model_are_not_spoken(generated: str, said: str) -> None:
    assert spoken(generated) == [said]


@pytest.mark.parametrize(
    "generated",
    [
        "Facts: Grimjaw owns a forge.",
        "Memory: Kira likes cider.",
        "Remembered: Kira said: I like cider.",
        '{"name": "roll", "arguments": {"dice": "1d20"}}',
        '[{"name": "search"}]',
        'search_sessions(query="blade")',
        "<tool_call>roll</tool_call>",
        "```json",
        "*He looks away.*",
        "As an AI language model, I cannot do that.",
        "I'm just an AI, traveller.",
        "I am a large language model made by Alibaba Cloud.",
        "Als KI-Sprachmodell kann ich das nicht.",
        "Sure! Here's a response in character:",
        "I cannot assist with that request.",
        "...",
        "😀",
        "",
    ],
)
def test_what_holds_nothing_to_say_is_withheld(generated: str) -> None:
    assert spoken(generated) == [None]


@pytest.mark.parametrize(
    "line",
    [
        "Good evening, traveller.",
        '"Never," my father said, "sell a blade unsharpened."',
        "One thing: never lie to me.",
        "It is half past 3:30, friend.",
        "As a large dragon flew over, I ran.",
        "The model ship in the window is not for sale.",
        "Name your price; I'll listen.",
        "12 gold, not 1 less.",
        "Schöne Grüße, Fräulein Öhler!",
    ],
)
def test_ordinary_lines_are_said_as_they_are(line: str) -> None:
    assert spoken(line) == [line]


def test_a_stage_direction_of_several_sentences_is_left_out_to_its_end() -> None:
    assert spoken("*He wipes his hands.", "Then he looks up.* Aye.", "Come in.") == [None, "Aye.", "Come in."]


def test_a_tool_call_cut_into_pieces_is_left_out_to_its_end() -> None:
    assert spoken('{"name": "roll",', '"arguments": {"dice":', '"1d20"}} A six!', "Yours.") == [
        None,
        None,
        "A six!",
        "Yours.",
    ]


def test_a_stage_direction_that_never_ends_does_not_silence_the_npc() -> None:
    assert spoken("(nods", "One.", "Two.", "Three.", "Four.")[-1] == "Four."


def test_lines_of_somebody_else_end_the_reply() -> None:
    assert spoken("Aye.", "Kira: And the price?", "Grimjaw: Two gold.") == ["Aye.", None, None]
    assert spoken("Player: hello") == [None]


def test_another_name_at_the_beginning_of_a_line_is_only_a_word() -> None:
    assert spoken("Kira, the blade is done.") == ["Kira, the blade is done."]


def test_a_part_of_the_npcs_name_is_its_label_too() -> None:
    assert spoken("Orla: What'll it be?", name="Orla Fennimore") == ["What'll it be?"]


@given(st.lists(st.text(alphabet=st.sampled_from("ab .*([{<`_:#\"'\n😀)]}>-1/think"), max_size=30), max_size=6))
def test_any_output_is_cleaned_without_markup_left(pieces: list[str]) -> None:
    for said in spoken(*pieces):
        assert said is None or (said.strip() == said and said and "😀" not in said and "{" not in said)
