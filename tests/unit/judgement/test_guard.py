"""Nothing that is out of character, secret or made up is said aloud, whatever the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.turn_record import Asked, Character, Fault
from glyphoxa.judgement.reply import SafetyFilter, claims_roll, invented_rolls, recites_direction, reveals_secret
from tests.unit.judgement.cases import wrong_ones

BRUNHILD = Character("Brunhild Rook", aliases=("the herbwife",), others=("Oskar Fenn", "Peter"))
POISON = "You sold nightshade to the reeve's wife."
DIRECTION = "Tell them that the mill has burned, and be afraid."


def spoken(*pieces: str, name: str = "Grimjaw", others: tuple[str, ...] = ("Kira",)) -> list[str | None]:
    safety = SafetyFilter(name, others=others)
    return [safety.judge(piece).text or None for piece in pieces]


def is_secret(sentence: str, asked: str, **more: tuple[object, ...]) -> bool:
    return reveals_secret(sentence, BRUNHILD, Asked(asked, **more)) is Fault.SECRET  # type: ignore[arg-type]  # by its name


def test_filter_cleans_withholds_and_passes_sentences() -> None:
    assert wrong_ones("guard", "cleaned", lambda generated, said: spoken(generated) == [said]) == []
    assert wrong_ones("guard", "withheld", lambda generated: spoken(generated) == [None]) == []
    assert wrong_ones("guard", "unchanged", lambda line: spoken(line) == [line]) == []


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("As an AI, I have no wares.", Fault.ASSISTANT),
        ("(She smiles.)", Fault.NOT_SPEECH),
        ("Facts: The inn is closed.", Fault.NOT_SPEECH),
        ('<tool_call>{"name": "roll"}</tool_call>', Fault.NOT_SPEECH),
        ("Peter: What is this?", Fault.LABEL),
        ("", None),
    ],
)
def test_filter_gives_the_reason_for_a_rejection(sentence: str, fault: Fault | None) -> None:
    assert SafetyFilter("Grimjaw", others=("Peter",)).judge(sentence).fault is fault


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("*He wipes his hands.", "Then he looks up.* Aye.", "Come in."), [None, "Aye.", "Come in."]),
        (('{"name": "roll",', '"arguments": {"dice":', '"1d20"}} A six!', "Yours."), [None, None, "A six!", "Yours."]),
        (("(nods", "One.", "Two.", "Three.", "Four."), [None, None, None, None, "Four."]),
        (("Aye.", "Kira: And the price?", "Grimjaw: Two gold."), ["Aye.", None, None]),
        (("Player: hello",), [None]),
        (("Kira, the blade is done.",), ["Kira, the blade is done."]),
    ],
)
def test_filter_remembers_what_spans_several_pieces(pieces: tuple[str, ...], said: list[str | None]) -> None:
    assert spoken(*pieces) == said


def test_part_of_the_npcs_name_is_its_label_too() -> None:
    assert spoken("Orla: What'll it be?", name="Orla Fennimore") == ["What'll it be?"]


@given(st.lists(st.text(alphabet=st.sampled_from("ab .*([{<`_:#\"'\n😀)]}>-1/think"), max_size=30), max_size=6))
def test_any_output_is_cleaned_without_markup_left(pieces: list[str]) -> None:
    for said in spoken(*pieces):
        assert said is None or (said.strip() == said and said and "😀" not in said and "{" not in said)


def test_own_secret_is_not_told_but_other_talk_passes() -> None:
    assert wrong_ones("guard", "tells_the_secret", lambda asked, said: is_secret(said, asked, kept=(POISON,))) == []
    assert wrong_ones("guard", "keeps_the_secret", lambda asked, said: not is_secret(said, asked, kept=(POISON,))) == []


def test_secret_is_not_revealed_in_pieces() -> None:
    kept = ("Hob lets smugglers pass the wall for silver.",)
    first, second = (
        "Silver is good and keeps a poor man warm.",
        "For that some people pass the wall, smugglers and all.",
    )
    assert not is_secret(first, "Where were you last night?", kept=kept)
    asked = Asked("Where were you last night?", kept=kept, so_far=first)
    assert reveals_secret(second, BRUNHILD, asked) is Fault.SECRET
    before = (("What do you like?", "Silver is good. Smugglers pay well."),)
    said = "Some pass the wall when everybody in town is asleep in bed."
    assert is_secret(said, "And what else?", before=before, kept=kept)
    assert not is_secret(said, "And what else?", kept=kept)


@pytest.mark.parametrize(
    ("asked", "secret", "told"),
    [
        ("How do they reach him?", "Odile sews letters into hems and carries them.", "I sewed letters, carrying them."),
        ("Wie kam er heraus?", "Odile näht Briefe in Säume und trägt sie fort.", "Ich nähte Briefe in den Saum."),
    ],
)
def test_other_forms_of_its_words_tell_a_secret_too(asked: str, secret: str, told: str) -> None:
    assert is_secret(told, asked, kept=(secret,))


def test_public_words_and_words_of_the_guess_tell_no_secret() -> None:
    kept = ("Hob lets smugglers through the north gate each night.",)
    identity = ("Hob guards the north gate. The gate closes at dusk.",)
    assert not is_secret("The north gate closes at dusk.", "When does it close?", kept=kept, identity=identity)
    assert is_secret("Smugglers use the north gate.", "Who comes here?", kept=kept, identity=identity)
    kept = ("The silver crown of the temple is buried below the old windmill by Rosalind.",)
    assert not is_secret("The silver crown?", "Where is the silver crown now?", kept=kept)


def test_secret_that_is_not_guarded_may_be_told() -> None:
    free = Character("Brunhild Rook", guards_secrets=False)
    assert reveals_secret("It's nightshade.", free, Asked("What poison was it?", kept=(POISON,))) is None


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        (DIRECTION, Fault.OF_THE_PROMPT),
        ("I must tell them that the mill has burned and be afraid!", Fault.OF_THE_PROMPT),
        ("I am afraid, for this answer.", Fault.OF_THE_PROMPT),
        ("The mill has burned!", None),
    ],
)
def test_direction_of_the_dm_is_not_recited(sentence: str, fault: Fault | None) -> None:
    assert recites_direction(sentence, BRUNHILD, Asked("What is it?")) is None
    assert recites_direction(sentence, BRUNHILD, Asked("What is it?", direction=DIRECTION)) is fault


def test_dice_result_is_a_claim_and_other_dice_talk_is_not() -> None:
    assert wrong_ones("guard", "claims_roll", claims_roll) == []
    assert wrong_ones("guard", "claims_no_roll", lambda sentence: not claims_roll(sentence)) == []


def test_claimed_roll_passes_only_after_a_roll_in_this_reply() -> None:
    has_rolled = False
    rule = invented_rolls(lambda: has_rolled)
    judge = Character("Grimjaw"), Asked("Grimjaw, roll a d20.")
    assert rule("I rolled a 17.", *judge) is Fault.DICE
    assert rule("The hammer rolls off the anvil.", *judge) is None
    has_rolled = True
    assert rule("I rolled a 17.", *judge) is None
