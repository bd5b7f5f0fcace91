"""Whom the DM has muted, directed or bound, and what the DM commands aloud."""

from __future__ import annotations

import pytest

from glyphoxa.domain.commands import Direct, Mute, Puppet, StopAll, TableCommand, Unmute
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.language.calls import CallKind
from glyphoxa.names.people import AddresseeMention, Understood
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.dm_controls import DmControls, spoken_command
from glyphoxa.turns.turn import Questions
from tests.support.builders import BRAN, INNKEEPER, SMITH, TAMSIN, a_campaign

NAMES = {npc.id: npc.name for npc in a_campaign().npcs}
PRESENT = (SMITH, INNKEEPER)


def called(npc: NpcId, *, at: int = 0) -> AddresseeMention:
    return AddresseeMention(npc, NAMES[npc], at, CallKind.CALLED)


def meant(controls: DmControls, text: str, *mentions: AddresseeMention) -> Addressed:
    said = Understood.of(text, mentions)
    return Questions(lambda _: said, NAMES, controls=controls, present=PRESENT).decide(TAMSIN, text, at_ms=0)


def with_commands(*commands: TableCommand) -> DmControls:
    controls = DmControls(NAMES, {BRAN})
    for command in commands:
        controls.take(command)
    return controls


def test_a_muted_npc_is_found_and_nobody_answers_in_its_place() -> None:
    addressed = meant(with_commands(Mute(SMITH)), "Grimjaw, is it done?", called(SMITH))
    assert (addressed.npc, addressed.unaddressed) == (None, Unaddressed.MUTED)
    assert addressed.reason == "Grimjaw was called; muted by the DM"


def test_unmuted_npc_of_two_called_answers() -> None:
    both = called(SMITH), called(INNKEEPER, at=1)
    assert meant(with_commands(Mute(SMITH)), "Grimjaw, Mirelle, who was it?", *both).npc == INNKEEPER
    told_of = AddresseeMention(INNKEEPER, NAMES[INNKEEPER], 3)
    about = meant(with_commands(Mute(SMITH)), "Grimjaw, where is Mirelle?", called(SMITH), told_of)
    assert about.unaddressed is Unaddressed.MUTED


def test_all_are_muted_and_may_speak_again() -> None:
    assert with_commands(Mute()).muted == set(NAMES)
    assert with_commands(Mute(), Unmute(SMITH)).muted == set(NAMES) - {SMITH}
    assert with_commands(Mute(), Unmute()).muted == set()


def test_a_direction_is_lifted_after_as_many_answers_as_it_was_given_for() -> None:
    controls = with_commands(Direct(SMITH, "Be short.", 2))
    standing = []
    for _ in range(3):
        standing.append(controls.direction(SMITH))
        controls.answered(SMITH)
    assert standing == ["Be short.", "Be short.", ""]
    assert not controls.answered(INNKEEPER)
    assert with_commands(Direct(SMITH, "Be short.", 2), Direct(SMITH, "")).directions == {}


def test_bound_player_addresses_their_npc_unless_another_is_called() -> None:
    controls = with_commands(Puppet(TAMSIN, SMITH))
    assert meant(controls, "What a night.").npc == SMITH
    assert meant(controls, "Mirelle, an ale.", called(INNKEEPER)).npc == INNKEEPER
    assert meant(controls, "(ooc back in five)").unaddressed is Unaddressed.OUT_OF_CHARACTER
    controls.take(Puppet(TAMSIN, None))
    assert meant(controls, "What a night.").npc is None


def test_player_bound_to_a_muted_npc_gets_no_answer() -> None:
    controls = with_commands(Puppet(TAMSIN, SMITH), Mute(SMITH))
    assert meant(controls, "What a night.").unaddressed is Unaddressed.MUTED


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("Grimjaw, be quiet.", Mute(SMITH)),
        ("Be quiet, Grimjaw!", Mute(SMITH)),
        ("Grimjaw be quiet please", Mute(SMITH)),
        ("Mute Grimjaw.", Mute(SMITH)),
        ("Grimjaw, sei still.", Mute(SMITH)),
        ("Schweig, Grimjaw!", Mute(SMITH)),
        ("Grimjaw, you may speak.", Unmute(SMITH)),
        ("Grimjaw, you can talk again.", Unmute(SMITH)),
        ("Grimjaw, du darfst wieder sprechen.", Unmute(SMITH)),
        ("Unmute Grimjaw", Unmute(SMITH)),
        ("Everyone, be quiet!", Mute()),
        ("Alle, seid still.", Mute()),
        ("Everybody, you may speak again.", Unmute()),
        ("Everyone, continue.", Unmute()),
        ("Ihr alle, ihr dürft wieder reden.", Unmute()),
        ("Everyone, stop.", StopAll()),
        ("Alle, stopp!", StopAll()),
        ("Mute everyone.", Mute()),
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
def test_a_command_aloud_is_all_that_is_said_and_names_whom_it_is_for(said: str, command: TableCommand | None) -> None:
    names = TableNames(a_campaign(), now_ms=lambda: 0)
    assert spoken_command(said, names.understand(said).mentions) == command


def test_dm_command_opens_no_turn_but_a_players_same_words_do() -> None:
    said = Understood.of("Grimjaw, be quiet.", [called(SMITH)])
    questions = Questions(lambda _: said, NAMES, controls=DmControls(NAMES, {BRAN}), present=PRESENT)
    assert questions.decide(BRAN, said.text, at_ms=0).command == Mute(SMITH)
    assert questions.decide(TAMSIN, said.text, at_ms=0).npc == SMITH
