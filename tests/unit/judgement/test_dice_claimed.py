"""No NPC makes up a result of dice."""

from __future__ import annotations

import pytest

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.sentence_check import claims_a_roll, made_up_rolls

CLAIMS = [
    "I roll a 17, so I see it.",
    "I rolled a natural 20!",
    "I rolled an eighteen for perception.",
    "Rolling a d20: 14.",
    "The die shows a four.",
    "The dice come up sixes.",
    "My roll is 12.",
    "That is a nat 20.",
    "Ich habe eine 17 gewürfelt.",
    "Ich würfle eine Zwölf.",
    "Der Würfel zeigt eine Vier.",
    "Mein Wurf ergibt 15.",
]
CLAIMS_NOTHING = [
    "Roll a d20 for me.",
    "Roll two dice, then.",
    "Shall I roll a 20?",
    "Years ago I rolled a six and won a mule.",
    "I rolled twelve barrels down to the quay.",
    "The barrels roll down to the quay.",
    "He owes me twenty silver.",
    "Dice have cost me my house.",
    "The die is cast.",
    "Let us dice for it.",
    "Sechs Würfel hat er dabei.",
    "Würfle mit mir.",
    "Vor zehn Jahren habe ich eine Sechs gewürfelt.",
    "Roll up the carpet, two of you.",
    "A roll of bread costs two copper.",
]


@pytest.mark.parametrize("sentence", CLAIMS)
def test_a_result_of_dice_is_a_claim(sentence: str) -> None:
    assert claims_a_roll(sentence)


@pytest.mark.parametrize("sentence", CLAIMS_NOTHING)
def test_other_talk_of_rolling_and_dice_claims_nothing(sentence: str) -> None:
    assert not claims_a_roll(sentence)


def test_a_claim_passes_only_behind_a_roll_in_this_reply() -> None:
    has_rolled = False
    rule = made_up_rolls(lambda: has_rolled)
    judge = Character("Grimjaw"), Asked("Grimjaw, roll a d20.")
    assert rule("I rolled a 17.", *judge) is Fault.DICE
    assert rule("The hammer rolls off the anvil.", *judge) is None
    has_rolled = True
    assert rule("I rolled a 17.", *judge) is None
