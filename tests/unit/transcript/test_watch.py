"""Whether memory is there: looked at when somebody is disappointed, tried again for as long as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.transcript.delivery import MemoryWatch
from glyphoxa.world.graph import Passage
from tests.support.builders import CAMPAIGN, SMITH, a_campaign
from tests.support.memory import GraphTwin, LogTwin, WorldTwin
from tests.support.virtual_time import run_in_virtual_time

GRIMJAW = EntityId("e-grimjaw")


class Memory:
    """A memory over twins, watched, in a time of its own."""

    def __init__(self) -> None:
        self.graph, self.log = GraphTwin.of(a_campaign()), LogTwin()
        self.full = False
        self.looks_ms: list[int] = []
        self.states: list[str] = []
        self.watch = MemoryWatch(ping=self._ping, make_good=self._make_good, changed=self._changed, now_ms=self.now_ms)
        self.world = WorldTwin(self.graph)
        self.refresh = self.watch.guarded(self.world.refresh)

    def now_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000)

    def away(self, away: bool) -> None:
        self.graph.weather.away = self.log.weather.away = away

    async def ask(self) -> bool:
        try:
            return (await self.refresh()).known(SMITH, GRIMJAW) is not None
        except Unavailable:
            return False

    async def _ping(self) -> None:
        self.looks_ms.append(self.now_ms())
        await self.log.weather.pass_through()

    async def _make_good(self) -> None:
        if self.full:
            raise Unavailable("the database's disk is full")

    def _changed(self) -> None:
        self.states.append("ok" if self.watch.since_ms is None else self.watch.why)


def watched(test: Callable[[Memory], Awaitable[None]]) -> Callable[[], None]:
    """Give a test a memory that is watched, in virtual time."""

    async def run() -> None:
        memory = Memory()
        running = asyncio.create_task(memory.watch.run())
        await test(memory)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    return lambda: run_in_virtual_time(run())


@watched
async def test_a_memory_that_answers_is_never_polled(memory: Memory) -> None:
    for _ in range(100):
        assert await memory.ask()
        await asyncio.sleep(60)
    assert (memory.looks_ms, memory.states) == ([], [])


@watched
async def test_a_memory_that_is_away_for_an_hour_is_tried_to_the_end_and_then_there(memory: Memory) -> None:
    """1 s, doubling to 30 s; nobody gives up, and who asks meanwhile does not wait."""
    memory.away(True)
    assert not await memory.ask()
    await asyncio.sleep(3_600)
    began, *looks = memory.looks_ms
    pauses = [after - before for before, after in zip([began, *looks], looks, strict=False)]
    assert pauses[:6] == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000]
    assert set(pauses[5:]) == {30_000}
    assert len(looks) > 100
    n_asked, now = memory.world.n_reads, memory.now_ms()
    assert not await memory.ask()
    assert (memory.world.n_reads, memory.now_ms()) == (n_asked, now)
    memory.away(False)
    await asyncio.sleep(30)
    assert await memory.ask()
    assert memory.states == ["the database is away", "ok"]


@watched
async def test_who_gets_an_answer_again_has_it_looked_at_at_once(memory: Memory) -> None:
    memory.away(True)
    await memory.ask()
    await asyncio.sleep(600)
    memory.away(False)
    before = memory.now_ms()
    memory.watch.hope()
    await asyncio.sleep(0.001)
    assert memory.states[-1] == "ok"
    assert memory.now_ms() - before < 10


@watched
async def test_one_answer_that_came_too_late_is_no_outage(memory: Memory) -> None:
    memory.graph.weather.late = True
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await memory.ask()
    await asyncio.sleep(1)
    assert (len(memory.looks_ms), memory.states, memory.watch.is_away) == (1, [], False)


@watched
async def test_a_database_that_takes_nothing_is_read_all_the_same(memory: Memory) -> None:
    memory.full = True
    memory.watch.suspect()
    await asyncio.sleep(10)
    assert memory.states == ["the database's disk is full"]
    assert await memory.ask()
    memory.full = False
    await asyncio.sleep(30)
    assert memory.states[-1] == "ok"


@watched
async def test_a_bug_in_a_look_does_not_end_the_looking(memory: Memory) -> None:
    asked = memory._make_good

    async def broken() -> None:
        raise ZeroDivisionError

    memory.watch.make_good = broken
    memory.watch.suspect()
    await asyncio.sleep(10)
    assert memory.states == ["memory failed (ZeroDivisionError)"]
    memory.watch.make_good = asked
    await asyncio.sleep(30)
    assert memory.states[-1] == "ok"


@watched
async def test_talk_around_somebody_is_not_asked_for_while_memory_is_away(
    memory: Memory,
) -> None:
    around = memory.watch.guarded(TalkOfNobody(memory))
    assert await around(CAMPAIGN, SMITH, "Who?", around=GRIMJAW) == []
    memory.away(True)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await around(CAMPAIGN, SMITH, "Who?", around=GRIMJAW)
        await asyncio.sleep(0.1)
    assert memory.states == ["the database is away"]
    assert len(memory.looks_ms) == 1


class TalkOfNobody:
    """A `TalkAround` on the same weather."""

    def __init__(self, memory: Memory) -> None:
        self._weather = memory.log.weather

    async def __call__(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, limit: int = 5
    ) -> list[Passage]:
        await self._weather.pass_through()
        return []
