"""Who may use the bot, at any ids and times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.ids import PlayerId
from glyphoxa.plugins.discord.access import Caller, DiscordSettings, Door, Refused

HERE, DM, TAMSIN = 42, 1, 2
SETTINGS = DiscordSettings(guild=HERE, dm=(DM,), players={TAMSIN: "tamsin"})
IDS = st.one_of(st.sampled_from([0, DM, TAMSIN, HERE, -1]), st.integers(0, 1 << 64))


@given(user=IDS, guild=st.one_of(st.none(), IDS))
def test_only_named_users_are_admitted_and_only_in_the_server(user: int, guild: int | None) -> None:
    try:
        caller = Door(SETTINGS).admit(user, guild, asked="command", at_ms=0)
    except Refused:
        assert guild != HERE or user not in (DM, TAMSIN)
    else:
        assert guild == HERE
        assert caller in (Caller(DM, None), Caller(TAMSIN, PlayerId("tamsin")))
        assert caller.user == user


def test_settings_without_a_server_admit_nobody() -> None:
    door = Door(DiscordSettings(dm=(DM,)))
    for guild in (None, 0, HERE):
        with pytest.raises(Refused):
            door.admit(DM, guild, asked="command", at_ms=0)


def test_user_who_is_also_a_player_is_the_game_master() -> None:
    door = Door(DiscordSettings(guild=HERE, dm=(DM,), players={DM: "tamsin"}))
    assert door.admit(DM, HERE, asked="command", at_ms=0).is_dm


@given(st.lists(st.tuples(IDS, st.integers(0, 2_000)), max_size=60))
def test_strangers_get_few_answers_and_cost_members_nothing(asked: list[tuple[int, int]]) -> None:
    door, now_ms, answered = Door(SETTINGS), 0, 0
    for user, later_ms in asked:
        now_ms += later_ms
        with pytest.raises(Refused) as refused:
            door.admit(user + 10, HERE, asked="command", at_ms=now_ms)
        answered += bool(str(refused.value))
    assert answered <= 10 + now_ms // 2_000
    assert len(door._limits) <= 1
    assert door.admit(DM, HERE, asked="command", at_ms=now_ms).is_dm


def test_suggestions_do_not_count_as_commands() -> None:
    door = Door(SETTINGS)
    for _ in range(40):
        door.admit(TAMSIN, HERE, asked="suggestion", at_ms=0)
    door.admit(TAMSIN, HERE, asked="command", at_ms=0)
    with pytest.raises(Refused, match="That was too fast; try again in 1 s"):
        door.admit(TAMSIN, HERE, asked="suggestion", at_ms=0)
    door.admit(TAMSIN, HERE, asked="suggestion", at_ms=250)
