"""Whom the DM has muted, directed or bound, and what the DM commands aloud."""

from __future__ import annotations

import pytest

from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.names.people import CERTAIN, AddresseeMention, Understood
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.questions import DmControls, Questions, spoken_command
from tests.support.builders import INNKEEPER, SMITH, TAMSIN, a_campaign

NAMES = {npc.id: npc.name for npc in a_campaign().npcs}
PRESENT = (SMITH, INNKEEPER)


def called(npc: NpcId, *, at: int = 0) -> AddresseeMention:
    return AddresseeMention(npc, NAMES[npc], at, CERTAIN)


def meant(controls: DmControls, text: str, *mentions: AddresseeMention) -> Addressed:
    said = Understood.of(text, mentions)
    return Questions(lambda _: said, NAMES, controls=controls, present=PRESENT).decide(TAMSIN, text, at_ms=0)


def test_a_muted_npc_is_found_and_nobody_answers_in_its_place() -> None:
    addressed = meant(DmControls(muted={SMITH}), "Grimjaw, is it done?", called(SMITH))
    assert (addressed.npc, addressed.unaddressed) == (None, Unaddressed.MUTED)
    assert addressed.reason == "Grimjaw was called; muted by the DM"


def test_unmuted_npc_of_two_called_answers() -> None:
    both = called(SMITH), called(INNKEEPER, at=1)
    assert meant(DmControls(muted={SMITH}), "Grimjaw, Mirelle, who was it?", *both).npc == INNKEEPER
    told_of = AddresseeMention(INNKEEPER, NAMES[INNKEEPER], 3)
    about = meant(DmControls(muted={SMITH}), "Grimjaw, where is Mirelle?", called(SMITH), told_of)
    assert about.unaddressed is Unaddressed.MUTED


def test_bound_player_addresses_their_npc_unless_another_is_called() -> None:
    controls = DmControls(puppets={TAMSIN: SMITH})
    assert meant(controls, "What a night.").npc == SMITH
    assert meant(controls, "Mirelle, an ale.", called(INNKEEPER)).npc == INNKEEPER
    assert meant(controls, "(ooc back in five)").unaddressed is Unaddressed.OUT_OF_CHARACTER
    assert meant(DmControls(), "What a night.").npc is None


def test_player_bound_to_a_muted_npc_gets_no_answer() -> None:
    controls = DmControls(puppets={TAMSIN: SMITH}, muted={SMITH})
    assert meant(controls, "What a night.").unaddressed is Unaddressed.MUTED


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("Grimjaw, be quiet.", {"do": "mute", "npc": SMITH}),
        ("Be quiet, Grimjaw!", {"do": "mute", "npc": SMITH}),
        ("Grimjaw be quiet please", {"do": "mute", "npc": SMITH}),
        ("Mute Grimjaw.", {"do": "mute", "npc": SMITH}),
        ("Grimjaw, sei still.", {"do": "mute", "npc": SMITH}),
        ("Schweig, Grimjaw!", {"do": "mute", "npc": SMITH}),
        ("Grimjaw, you may speak.", {"do": "unmute", "npc": SMITH}),
        ("Grimjaw, you can talk again.", {"do": "unmute", "npc": SMITH}),
        ("Grimjaw, du darfst wieder sprechen.", {"do": "unmute", "npc": SMITH}),
        ("Unmute Grimjaw", {"do": "unmute", "npc": SMITH}),
        ("Everyone, be quiet!", {"do": "mute"}),
        ("Alle, seid still.", {"do": "mute"}),
        ("Everybody, you may speak again.", {"do": "unmute"}),
        ("Everyone, continue.", {"do": "unmute"}),
        ("Ihr alle, ihr dürft wieder reden.", {"do": "unmute"}),
        ("Everyone, stop.", {"do": "stop"}),
        ("Alle, stopp!", {"do": "stop"}),
        ("Mute everyone.", {"do": "mute"}),
        ("Grimjaw, be quiet or he will hear us.", None),
        ("Grimjaw told them to be quiet.", None),
        ("Grimjaw, you may speak of the war.", None),
        ("Be quiet.", None),
        ("Tamsin, be quiet.", None),
        ("Grimjaw and Mirelle, be quiet.", None),
        ("Grimjaw, stop the wagon.", None),
        ("Everyone knows the mill.", None),
        ("Alle Wege führen zum Markt.", None),
    ],
)
def test_a_command_aloud_is_all_that_is_said_and_names_whom_it_is_for(
    said: str, command: dict[str, object] | None
) -> None:
    names = TableNames(a_campaign(), now_ms=lambda: 0)
    assert spoken_command(said, names.understand(said).mentions) == command
