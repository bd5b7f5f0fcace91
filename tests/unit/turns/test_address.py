"""Which NPC a player means."""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.turns.address import AddresseeMention, Addressing, Said
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN

NAMES = {SMITH: "Grimjaw", INNKEEPER: "Mirelle"}
BOTH = (SMITH, INNKEEPER)


def called(npc: NpcId | None, position: int = 0) -> AddresseeMention:
    return AddresseeMention(npc, NAMES[npc] if npc else "Bran", position, is_vocative=True)


def named(npc: NpcId, position: int = 3) -> AddresseeMention:
    return AddresseeMention(npc, NAMES[npc], position, is_vocative=False)


def said(mentions: Sequence[AddresseeMention], *, by: PlayerId = TAMSIN) -> Said:
    return Said(by, "Good evening to you.", mentions)


def test_the_first_name_called_is_meant() -> None:
    decided = Addressing().decide(said([called(INNKEEPER, 5), called(SMITH, 1)]), present=BOTH, names=NAMES, at_ms=0)
    assert (decided.npc, decided.reason) == (SMITH, "Grimjaw was called")


def test_calling_another_player_means_no_npc() -> None:
    addressing = Addressing()
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    assert addressing.decide(said([called(None)]), present=BOTH, names=NAMES, at_ms=1).npc is None


def test_talking_about_another_npc_goes_on_with_the_one_talked_to() -> None:
    addressing = Addressing()
    addressing.remember(TAMSIN, INNKEEPER, at_ms=0)
    decided = addressing.decide(said([named(SMITH)]), present=BOTH, names=NAMES, at_ms=5_000)
    assert (decided.npc, decided.reason) == (INNKEEPER, "going on with Mirelle")


def test_who_talked_to_whom_is_each_players_own() -> None:
    addressing = Addressing()
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    assert addressing.decide(said([], by=BRAN), present=BOTH, names=NAMES, at_ms=1_000).npc is None


def test_going_on_ends_after_a_while_and_with_the_scene() -> None:
    addressing = Addressing(going_on_ms=30_000)
    addressing.remember(TAMSIN, SMITH, at_ms=0)
    assert addressing.decide(said([]), present=BOTH, names=NAMES, at_ms=30_000).npc == SMITH
    assert addressing.decide(said([]), present=BOTH, names=NAMES, at_ms=30_001).npc is None
    addressing.forget_all()
    assert addressing.decide(said([]), present=BOTH, names=NAMES, at_ms=1).npc is None


def test_an_npc_that_is_not_here_and_perhaps_called_is_never_meant() -> None:
    decided = Addressing().decide(said([called(SMITH)]), present=(INNKEEPER,), names=NAMES, at_ms=0)
    assert (decided.npc, decided.reason) == (INNKEEPER, "Mirelle is the only one here")


def test_nobody_is_meant_where_two_could_be_or_none_is() -> None:
    several = Addressing().decide(said([]), present=BOTH, names=NAMES, at_ms=0)
    assert (several.npc, several.unaddressed) == (None, Unaddressed.NO_NAME)
    none = Addressing().decide(said([]), present=(), names=NAMES, at_ms=0)
    assert (none.npc, none.unaddressed, none.reason) == (None, Unaddressed.NO_NPC, "no NPC is here")
