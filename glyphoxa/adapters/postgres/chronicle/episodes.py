from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.world.rows import fact_of_row
from glyphoxa.adapters.postgres.world.world import PostgresWorld
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import Fact
from glyphoxa.transcript.episodes import episode_of
from glyphoxa.world.api import Cause, Event, FactStated

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.connection import Connection

_DEADLINE_MS: Final = 5_000


class PostgresEpisodes:
    """`Episodes`. Reading has a deadline of 5 s, writing that of a commit."""

    def __init__(self, database: Database, world: PostgresWorld) -> None:
        self._database = database
        self._world = world
        self._sql = load_queries("chronicle/episodes")

    async def summaries(self, campaign: CampaignId, session: SessionId) -> Sequence[Fact]:
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            rows = await connection.fetch(self._sql["summaries"], campaign, episode_of(session))
        return [fact_of_row(row) for row in rows]

    async def replace(self, campaign: CampaignId, session: SessionId, events: Sequence[Event], cause: Cause) -> None:
        async with self._world.writing(campaign, amount=len(events), first=_nothing) as world:
            rows = await world.connection.fetch(self._sql["written"], campaign, session)
            await world.undo([row["seq"] for row in rows], Cause("talk", cause.at_ms))
            rests_on = list(_evidence(events))
            # What was erased while a summary was made of it is not written again: the next one is made without it.
            if events and not await world.connection.fetchval(self._sql["rests_on_erased"], campaign, rests_on):
                await world.commit(events, cause)


def _evidence(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        evidence = event.attributes.get("evidence") if isinstance(event, FactStated) else None
        if isinstance(evidence, list):
            yield from evidence


async def _nothing(_connection: Connection) -> None:
    """The campaign is there."""
