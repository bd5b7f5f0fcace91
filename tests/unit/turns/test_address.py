"""Which NPC a player means: what is certain without the models, and what they are told of the dialogue."""

from __future__ import annotations

from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.roles import Cast, CastMember
from glyphoxa.names.people import CERTAIN, AddresseeMention, Understood
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import THRESHOLDS, Addressed, Addressing
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, a_campaign

NAMES = {SMITH: "Grimjaw", INNKEEPER: "Mirelle"}
BOTH = (SMITH, INNKEEPER)
TABLE = TableNames(a_campaign(), now_ms=lambda: 0)


def decide(
    addressing: Addressing, text: str, *, here: tuple[NpcId, ...] = BOTH, player: str = "", at_ms: int = 5_000
) -> Addressed:
    return addressing.decide(BRAN if player else TAMSIN, TABLE.understand(text), present=here, names=NAMES, at_ms=at_ms)


def in_conversation() -> Addressing:
    addressing = Addressing()
    addressing.said(TAMSIN, SMITH, "Grimjaw, what does the sword cost?", at_ms=0)
    addressing.answered(SMITH, TAMSIN, "Twelve crowns.", at_ms=3_000)
    return addressing


def test_words_without_a_name_go_on_with_the_npc_that_this_player_was_talking_with() -> None:
    decided = decide(in_conversation(), "Would you take ten?")
    assert (decided.npc, decided.reason) == (SMITH, "continuing with Grimjaw")


def test_conversation_ends_with_the_scene() -> None:
    addressing = in_conversation()
    assert decide(addressing, "Ten crowns, then.").npc == SMITH
    addressing.forget_all()
    assert decide(addressing, "Ten crowns, then.").npc is None


def test_first_of_two_called_npcs_leads() -> None:
    decided = decide(Addressing(), "Mirelle, Grimjaw, what do you think?")
    assert (decided.npc, decided.second) == (INNKEEPER, SMITH)
    assert decide(Addressing(), "Grimjaw, where is Mirelle?").second is None


def test_an_npc_that_answers_only_when_called_must_be_named() -> None:
    addressing = Addressing(Cast({SMITH: CastMember(SMITH, "Grimjaw", "smith", address_only=True)}))
    addressing.answered(SMITH, TAMSIN, "Twelve crowns.", at_ms=3_000)
    assert decide(addressing, "Would you take ten?", here=(SMITH,)).npc is None
    assert decide(addressing, "Grimjaw, would you take ten?", here=(SMITH,)).npc == SMITH


def test_whispered_words_reach_only_the_one_they_are_for() -> None:
    aside = decide(in_conversation(), "(to Bran) don't trust him")
    assert (aside.npc, aside.unaddressed, aside.is_apart) == (None, Unaddressed.WHISPER, True)
    assert decide(Addressing(), "(to Grimjaw) Is it done?").npc == SMITH


def test_nobody_answers_for_one_who_is_not_here() -> None:
    decided = decide(Addressing(), "Grimjaw, are you there?", here=(INNKEEPER,))
    assert (decided.npc, decided.unaddressed) == (None, Unaddressed.ABSENT)
    assert decided.reason == "Grimjaw was called but is not here"
    talking = Addressing()
    talking.answered(INNKEEPER, TAMSIN, "What will you drink?", at_ms=3_000)
    for text in ("Grimjaw, is it done?", "Grimjaw, give me a beer.", "(to Grimjaw) come here"):
        assert decide(talking, text, here=(INNKEEPER,)).npc is None
    nobody = decide(Addressing(), "Is anybody here?", here=())
    assert (nobody.unaddressed, nobody.reason) == (Unaddressed.NO_NPC, "no NPC is here")


def test_words_of_the_players_world_are_apart() -> None:
    aside = decide(in_conversation(), "brb, pizza")
    assert aside.reason == "out of character: somebody leaves the table for a moment"
    assert aside.is_apart


def test_an_eager_table_answers_whatever_a_quiet_one_does() -> None:
    for text in ("Would you take ten?", "Ten.", "He's lying.", "What now?", "Grimjaw, look at this."):
        answers = [
            decide(Addressing(threshold=least), text, here=(SMITH,)).npc is not None
            for _, least in sorted(THRESHOLDS.items(), key=lambda each: each[1])
        ]
        assert answers == sorted(answers, reverse=True)


def test_the_same_words_again_correct_whom_they_were_for() -> None:
    addressing = in_conversation()
    addressing.said(TAMSIN, INNKEEPER, "Grimjaw, what does the sword cost?", at_ms=4_000)
    assert [(line.speaker, line.to) for line in addressing.lines] == [(TAMSIN, INNKEEPER), (SMITH, TAMSIN)]


def test_two_who_share_what_they_are_called_by_do_not_both_answer() -> None:
    both = [AddresseeMention(npc, "smith", 0, CERTAIN, end=5, is_role=True) for npc in BOTH]
    asked = Understood.of("Smith, what does it cost?", both)
    decided = Addressing().decide(TAMSIN, asked, present=BOTH, names=NAMES, at_ms=0)
    assert decided.second is None
