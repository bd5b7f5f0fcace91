"""The log is compared with the disk while a table plays, and what it has lost is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, TurnId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.transcript.journal import Journal
from tests.support.builders import CAMPAIGN, SESSION, a_turn_record
from tests.support.memory import AtOnce, LogTwin, SpoolTwin
from tests.support.recording import lines
from tests.support.virtual_time import in_virtual_time

HOUR_S = 3_600


class ForgetfulLog(LogTwin):
    def lose(self, n: int) -> None:
        for key in list(self._logged)[:n]:
            del self._logged[key]


@in_virtual_time
async def test_lines_that_vanish_from_the_log_are_sent_again_while_playing() -> None:
    log = ForgetfulLog()
    journal = Journal(SpoolTwin(), log, thread=AtOnce())  # type: ignore[arg-type]
    running = asyncio.create_task(journal.delivery.run())
    for said in lines(700):
        await journal.keep(said)
    await asyncio.sleep(1)
    assert await log.count(CAMPAIGN, SESSION) == 700
    log.lose(3)
    await asyncio.sleep(HOUR_S)
    assert await log.count(CAMPAIGN, SESSION) == 700
    log.weather.away = True
    await asyncio.sleep(HOUR_S)
    log.weather.away = False
    log.lose(1)
    await asyncio.sleep(HOUR_S)
    assert await log.count(CAMPAIGN, SESSION) == 700
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@in_virtual_time
async def test_log_is_compared_with_the_disk_at_the_interval_that_is_set() -> None:
    log = ForgetfulLog()
    journal = Journal(SpoolTwin(), log, thread=AtOnce())  # type: ignore[arg-type]
    assert journal.delivery.check_minutes == 30
    journal.delivery.check_minutes = 5
    running = asyncio.create_task(journal.delivery.run())
    for said in lines(3):
        await journal.keep(said)
    await asyncio.sleep(1)
    log.lose(1)
    await asyncio.sleep(4 * 60)
    assert await log.count(CAMPAIGN, SESSION) == 2
    await asyncio.sleep(60)
    assert await log.count(CAMPAIGN, SESSION) == 3
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@in_virtual_time
async def test_correction_is_refused_until_the_log_has_its_line() -> None:
    log = LogTwin()
    log.weather.away = True
    journal = Journal(SpoolTwin(), log, thread=AtOnce())  # type: ignore[arg-type]
    running = asyncio.create_task(journal.delivery.run())
    (was,) = lines(1)
    better = replace(was, text="Better words.")
    await journal.keep(was)
    await asyncio.sleep(1)
    with pytest.raises(Unavailable, match="not in the log yet"):
        await journal.delivery.revise(better, was)
    log.weather.away = False
    await asyncio.sleep(HOUR_S)
    await journal.delivery.revise(better, was)
    assert [one.text for one in await log.recent(CAMPAIGN, SESSION, since_ms=0, limit=1)] == ["Better words."]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class WatchedLog(LogTwin):
    """Notes how many utterances it had when each turn came, and what else happens while the first is recorded."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.had: list[int] = []
        self._meanwhile = meanwhile

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        self.had.append(await self.count(CAMPAIGN, SESSION))
        await super().record_turn(campaign, turn)
        if len(self.turns) == 1:
            await self._meanwhile()


@in_virtual_time
async def test_turn_that_ends_while_another_is_recorded_follows_its_own_words() -> None:
    first, second = lines(2)

    async def meanwhile() -> None:
        await journal.keep(second)
        journal.delivery.record_turn(CAMPAIGN, a_turn_record(id=TurnId("t2"), utterance_id=second.id))

    log = WatchedLog(meanwhile)
    journal = Journal(SpoolTwin(), log, thread=AtOnce())  # type: ignore[arg-type]
    running = asyncio.create_task(journal.delivery.run())
    await journal.keep(first)
    journal.delivery.record_turn(CAMPAIGN, a_turn_record(id=TurnId("t1"), utterance_id=first.id))
    await asyncio.sleep(1)
    assert ([turn.id for turn in log.turns], log.had) == (["t1", "t2"], [1, 2])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
