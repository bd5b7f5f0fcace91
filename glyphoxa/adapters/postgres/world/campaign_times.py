from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import storable
from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.transcript.story_days import BETWEEN, DayTold, day_now, times_of

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.connection import Connection

_DEADLINE_MS: Final = 1_000
_calendar: Final = TypeAdapter(StoryCalendar)


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """
    Attributes:
        file_day: Where the story stands, as the campaign file says; "" if it does not.
        told: What was said of it, in order.
    """

    time_zone: str = ""
    calendar: StoryCalendar | None = None
    file_day: str = ""
    told: Sequence[DayTold] = ()


class PostgresCampaignTimes:
    """`TimesOfCampaigns`, and where a DM's word on the story's days is kept. All with a deadline of 1 s."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries("world/campaign_times")

    async def times(self, campaign: CampaignId) -> CampaignTimes:
        kept = await self.kept(campaign)
        return times_of(kept.time_zone, kept.calendar, kept.file_day, kept.told)

    async def kept(self, campaign: CampaignId) -> KeptTimes:
        """What `times` follows from; that of a campaign which is not stored is empty.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            return await self._read(connection, campaign)

    async def last_said(self, campaign: CampaignId) -> tuple[SessionId, int] | None:
        """The session in which something was said last, and when (ms since the Unix epoch).

        Raises:
            Unavailable: As above.
        """
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            row = await connection.fetchrow(self._sql["last_said"], campaign)
        return None if row is None else (SessionId(row["session_id"]), row["at_ms"])

    async def begin(self, campaign: CampaignId, session: SessionId) -> None:
        """A session is played from now on, on the day where the story stands. Said again, it changes nothing.

        Raises:
            Unavailable: As above.
        """
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection, connection.transaction():
            kept = await self._read(connection, campaign)
            day = day_now(kept.file_day, kept.told)
            if kept.calendar is None or not day:
                return
            told = [one.day for one in kept.told if one.session == session]
            if not told or told[-1] != day:
                await self._tell(connection, campaign, session, day, kept.file_day)

    async def tell(self, campaign: CampaignId, session: str, day: str) -> None:
        """It is that day now.

        Args:
            session: That is played on it; or `BETWEEN`.

        Raises:
            Unavailable: As above.
        """
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection, connection.transaction():
            kept = await self._read(connection, campaign)
            await self._tell(connection, campaign, session, day, kept.file_day)

    async def set_days(self, campaign: CampaignId, session: SessionId, days: Sequence[str]) -> None:
        """A session was played on those days and on no others. Where the story stands follows if that was said last
        of this session.

        Raises:
            Unavailable: As above.
        """
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection, connection.transaction():
            kept = await self._read(connection, campaign)
            is_latest = bool(kept.told) and kept.told[-1].session == session
            now = day_now(kept.file_day, kept.told)
            told_ms = max((one.told_ms for one in kept.told if one.session == session), default=0)
            await connection.execute(self._sql["forget"], campaign, storable(session))
            for day in days:
                await connection.execute(
                    self._sql["put_right"], campaign, storable(session), day, kept.file_day, told_ms
                )
            if now and not is_latest:
                await self._tell(connection, campaign, BETWEEN, now, kept.file_day)

    async def _read(self, connection: Connection, campaign: CampaignId) -> KeptTimes:
        row = await connection.fetchrow(self._sql["times"], campaign)
        if row is None:
            return KeptTimes()
        calendar = None if row["calendar"] is None else _calendar.validate_python(row["calendar"])
        told: tuple[DayTold, ...] = ()
        if calendar is not None:
            rows = await connection.fetch(self._sql["told"], campaign)
            told = tuple(DayTold(one["session_id"], one["day"], one["file_day"], one["told_ms"]) for one in rows)
        return KeptTimes(row["time_zone"], calendar, row["story_day"], told)

    async def _tell(self, connection: Connection, campaign: CampaignId, session: str, day: str, file_day: str) -> None:
        await connection.execute(self._sql["tell"], campaign, storable(session), day, file_day)


async def put_times(connection: Connection, campaign: Campaign) -> None:
    """Keep what a campaign file says of times."""
    calendar = None if campaign.calendar is None else _calendar.dump_python(campaign.calendar, mode="json")
    sql = load_queries("world/campaign_times")["put_times"]
    await connection.execute(sql, campaign.id, campaign.time_zone, calendar, campaign.story_day)
