"""Which NPC a player means."""

from __future__ import annotations

from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.calls import CallKind
from glyphoxa.language.roles import Cast, CastMember
from glyphoxa.names.people import AddresseeMention, Understood
from glyphoxa.turns.address import Addressing
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN

NAMES = {SMITH: "Grimjaw", INNKEEPER: "Mirelle"}
BOTH = (SMITH, INNKEEPER)


def called(npc: NpcId | None, position: int = 0) -> AddresseeMention:
    return AddresseeMention(npc, NAMES[npc] if npc else "Bran", position, CallKind.CALLED)


def said(*mentions: AddresseeMention) -> Understood:
    return Understood.of("Good evening to you.", mentions)


def test_reply_to_another_player_addresses_no_npc() -> None:
    addressing = Addressing()
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    addressing.remember_players(BRAN, TAMSIN, at_ms=1_000)
    decided = addressing.decide(TAMSIN, Understood.of("No, I don't think so."), present=BOTH, names=NAMES, at_ms=5_000)
    assert (decided.npc, decided.unaddressed) == (None, Unaddressed.PLAYER)
    addressing.remember(TAMSIN, SMITH, at_ms=6_000)
    assert addressing.decide(TAMSIN, Understood.of("Ten crowns."), present=BOTH, names=NAMES, at_ms=7_000).npc == SMITH


def test_first_of_two_called_npcs_leads() -> None:
    decided = Addressing().decide(
        TAMSIN, said(called(INNKEEPER, 5), called(SMITH, 1)), present=BOTH, names=NAMES, at_ms=0
    )
    assert (decided.npc, decided.second) == (SMITH, INNKEEPER)


def test_an_address_only_npc_answers_nobody_who_does_not_call_it() -> None:
    addressing = Addressing(Cast({SMITH: CastMember(SMITH, "Grimjaw", "smith", address_only=True)}))
    asked = Understood.of("What does it cost?")
    assert addressing.decide(TAMSIN, asked, present=(SMITH,), names=NAMES, at_ms=0).npc is None
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    assert addressing.decide(TAMSIN, asked, present=(SMITH,), names=NAMES, at_ms=1).npc is None
    smith = AddresseeMention(SMITH, "Grimjaw", 0, CallKind.CALLED, start=0, end=5, is_role=True)
    by_role = Understood.of("Smith, what does it cost?", [smith])
    assert addressing.decide(TAMSIN, by_role, present=(SMITH,), names=NAMES, at_ms=1).npc == SMITH
    assert addressing.decide(TAMSIN, said(called(SMITH)), present=(SMITH,), names=NAMES, at_ms=1).npc == SMITH


def test_npc_with_the_exact_role_goes_before_one_with_a_similar_role() -> None:
    cast = Cast({SMITH: CastMember(SMITH, "Grimjaw", "smith"), INNKEEPER: CastMember(INNKEEPER, "Mirelle", "farrier")})
    called_by_role = [AddresseeMention(npc, "smith", 0, CallKind.CALLED, end=5, is_role=True) for npc in BOTH]
    asked = Understood.of("Smith, what does it cost?", called_by_role)
    assert Addressing(cast).decide(TAMSIN, asked, present=BOTH, names=NAMES, at_ms=0).npc == SMITH


def test_conversation_partner_is_tracked_per_player() -> None:
    addressing = Addressing()
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    assert addressing.decide(BRAN, said(), present=BOTH, names=NAMES, at_ms=1_000).npc is None


def test_conversation_ends_after_a_while_and_with_the_scene() -> None:
    addressing = Addressing(going_on_ms=30_000)
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    assert addressing.decide(TAMSIN, said(), present=BOTH, names=NAMES, at_ms=30_000).npc == SMITH
    assert addressing.decide(TAMSIN, said(), present=BOTH, names=NAMES, at_ms=30_001).npc is None
    addressing.forget_all()
    assert addressing.decide(TAMSIN, said(), present=BOTH, names=NAMES, at_ms=1).npc is None


def test_an_npc_that_is_not_here_and_perhaps_called_is_never_meant() -> None:
    decided = Addressing().decide(TAMSIN, said(called(SMITH)), present=(INNKEEPER,), names=NAMES, at_ms=0)
    assert (decided.npc, decided.reason) == (INNKEEPER, "Mirelle is the only NPC here")


def test_ambiguous_or_missing_addressee_means_no_npc() -> None:
    several = Addressing().decide(TAMSIN, said(), present=BOTH, names=NAMES, at_ms=0)
    assert (several.npc, several.unaddressed) == (None, Unaddressed.NO_NAME)
    none = Addressing().decide(TAMSIN, said(), present=(), names=NAMES, at_ms=0)
    assert (none.npc, none.unaddressed, none.reason) == (None, Unaddressed.NO_NPC, "no NPC is here")
