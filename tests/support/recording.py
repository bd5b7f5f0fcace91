"""A journal at work, and a log that can be shut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from loguru import logger

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.spool import Spool
from tests.support.builders import an_utterance


@dataclass
class ClosableLog:
    """The real log behind a door that a test can shut, as a network can."""

    inner: TranscriptLog
    is_open: bool = True
    batches: list[int] = field(default_factory=list)

    async def append(self, utterances: Sequence[Utterance]) -> None:
        if not self.is_open:
            raise Unavailable("the door is shut")
        await self.inner.append(utterances)
        self.batches.append(len(utterances))

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        return await self.inner.revise(utterance, was=was)

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None:
        await self.inner.record_turn(campaign, turn)

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        return await self.inner.recent(campaign, session, since_ms=since_ms, limit=limit)

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        return await self.inner.count(campaign, session)


@asynccontextmanager
async def a_journal(
    directory: Path, log: TranscriptLog | None, *, alarm: Callable[[str], None] = logger.warning, **options: object
) -> AsyncIterator[Journal]:
    journal = Journal(Spool(directory, alarm=alarm), log, **options)  # type: ignore[arg-type]
    running = asyncio.create_task(journal.delivery.run())
    try:
        yield journal
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await journal.close()


def lines(n: int, *, start: int = 0) -> list[Utterance]:
    return [replace(an_utterance(f"line {i}", id=f"u{i}"), at_ms=1_000 + i) for i in range(start, start + n)]
