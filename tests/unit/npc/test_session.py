"""A session: who sits at the table, where it is, and when it ends by itself."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from glyphoxa.domain.campaign import Player, Scene
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import PlayerId
from glyphoxa.npc.session import LiveSeat, TableSeats, enter, wait_until_deserted
from glyphoxa.npc.table_state import TableState
from glyphoxa.prompt.conversation import Conversation
from tests.support.builders import FORGE, INNKEEPER, MARKET, SESSION, SMITH, TAMSIN, a_campaign
from tests.support.patience import DEADLINE_MS
from tests.support.virtual_time import run_in_virtual_time


class QuietEar:
    async def start(self) -> None: ...

    def hear(self, pcm: bytes) -> None: ...

    async def close(self) -> None: ...


class StubbornEar(QuietEar):
    def __init__(self, over: asyncio.Event) -> None:
        self._over = over

    async def close(self) -> None:
        while not self._over.is_set():
            with suppress(asyncio.CancelledError):
                await self._over.wait()


class DeafEar(QuietEar):
    async def start(self) -> None:
        raise Unavailable("its recogniser is away")


class Seats:
    """A table's seats, and who has left them."""

    def __init__(self) -> None:
        campaign = a_campaign()
        self.state = TableState(campaign, SESSION, campaign.scenes[0], {})
        self.ears: list[QuietEar] = []
        self.left: list[PlayerId] = []
        self.tamsin = campaign.player(TAMSIN)
        self.seats = TableSeats(self.state, open_ear=self._open_ear, on_left=self.left.append)

    async def _open_ear(self, player: Player) -> QuietEar:
        return self.ears.pop(0)


async def test_a_seat_is_for_one_and_free_again_when_it_was_left() -> None:
    seats = Seats()
    seats.ears = [QuietEar(), QuietEar()]
    seat = await seats.seats.seat(seats.tamsin)
    assert seats.state.is_seated(TAMSIN)
    with pytest.raises(InvalidInput, match="already sits at the table"):
        await seats.seats.seat(seats.tamsin)
    await seat.leave()
    assert (seats.state.is_seated(TAMSIN), seats.left) == (False, [TAMSIN])
    await seats.seats.seat(seats.tamsin)


async def test_a_seat_whose_ear_does_not_open_is_free() -> None:
    seats = Seats()
    seats.ears = [DeafEar(), QuietEar()]
    with pytest.raises(Unavailable):
        await seats.seats.seat(seats.tamsin)
    assert not seats.state.is_seated(TAMSIN)
    await seats.seats.seat(seats.tamsin)
    await seats.seats.leave_all(DEADLINE_MS)
    assert seats.left == [TAMSIN]


def test_seat_is_released_when_its_ear_ignores_cancellation() -> None:
    async def scene() -> None:
        over = asyncio.Event()
        left: list[Player] = []
        player = a_campaign().player(TAMSIN)
        seat = LiveSeat(player, StubbornEar(over), on_left=left.append)
        await seat.leave()
        over.set()
        assert left == [player]

    run_in_virtual_time(scene())


class AttentiveEar(QuietEar):
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.n_closed = 0

    def hear(self, pcm: bytes) -> None:
        self.heard.append(pcm)

    async def close(self) -> None:
        self.n_closed += 1


async def test_an_ear_hears_what_its_player_says_until_the_seat_is_left() -> None:
    seats, ear = Seats(), AttentiveEar()
    seats.ears = [ear]
    seat = await seats.seats.seat(seats.tamsin)
    seat.hear(b"before")
    await seat.leave()
    seat.hear(b"after")
    assert (ear.heard, ear.n_closed) == ([b"before"], 1)


async def test_a_seat_that_is_left_twice_is_left_once() -> None:
    seats, ear = Seats(), AttentiveEar()
    seats.ears = [ear]
    seat = await seats.seats.seat(seats.tamsin)
    await seat.leave()
    await seat.leave()
    assert (ear.n_closed, seats.left) == (1, [TAMSIN])


def test_closing_table_skips_a_hanging_ear() -> None:
    async def scene() -> None:
        over = asyncio.Event()
        seats, ear = Seats(), AttentiveEar()
        bram = replace(seats.tamsin, id=PlayerId("bram"))
        seats.ears = [StubbornEar(over), ear]
        for player in (seats.tamsin, bram):
            await seats.seats.seat(player)
        await seats.seats.leave_all(10)
        over.set()
        assert (ear.n_closed, set(seats.left)) == (1, {TAMSIN, bram.id})

    run_in_virtual_time(scene())


async def test_a_paused_table_s_ear_is_given_silence_of_the_same_length() -> None:
    ear, paused = AttentiveEar(), [False]
    seat = LiveSeat(a_campaign().player(TAMSIN), ear, on_left=lambda _: None, is_paused=lambda: paused[0])
    for paused[0] in (False, True, False):
        seat.hear(b"ab")
    assert ear.heard == [b"ab", b"\0\0", b"ab"]


# A session at which nobody sits for long enough ends, and no other.


MINUTE_S = 60


class Evening:
    """A table that ends after ten empty minutes."""

    def __init__(self) -> None:
        self.is_empty = True
        self.ended_s: list[float] = []

    def begin(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._end())

    async def _end(self) -> None:
        await wait_until_deserted(lambda: self.is_empty, for_ms=10 * MINUTE_S * 1_000)
        self.ended_s.append(asyncio.get_running_loop().time())


def test_table_closes_some_time_after_the_last_player_left() -> None:
    async def evening() -> None:
        table = Evening()
        idle = table.begin()
        await asyncio.sleep(9 * MINUTE_S)
        table.is_empty = False
        await asyncio.sleep(300 * MINUTE_S)
        table.is_empty = True
        await asyncio.sleep(9 * MINUTE_S)
        assert table.ended_s == []
        await asyncio.sleep(2 * MINUTE_S)
        [ended_s] = table.ended_s
        assert abs(ended_s - 319 * MINUTE_S) <= 10 and idle.done()  # it looks every ten seconds

    run_in_virtual_time(evening())


# A scene is entered as a whole, or not at all.


class Context:
    """Knows nothing of anybody; cannot be asked while it is away."""

    is_away = False

    async def enter(self, scene: Scene) -> None:
        if self.is_away:
            raise Unavailable("what the NPCs know cannot be read")

    def known(self, npc: object) -> None:
        return None


def a_table() -> TableState:
    campaign = a_campaign()
    conversations = {npc.id: Conversation(npc) for npc in campaign.npcs}
    return TableState(campaign, SESSION, campaign.scene(MARKET), conversations)


async def test_a_scene_that_cannot_be_entered_leaves_the_table_where_it_was() -> None:
    state, context = a_table(), Context()
    context.is_away = True
    forge: Any = state.campaign.scene(FORGE)
    with pytest.raises(Unavailable):
        await enter(forge, state, context)  # type: ignore[arg-type]
    assert state.scene.id == MARKET
    assert state.present() == (SMITH, INNKEEPER)


async def test_a_scene_that_was_entered_says_who_is_present() -> None:
    state = a_table()
    await enter(state.campaign.scene(FORGE), state, Context())  # type: ignore[arg-type]
    assert state.scene.id == FORGE
    assert state.present_names() == {SMITH: "Grimjaw"}
