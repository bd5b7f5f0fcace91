"""Store campaigns as documents, with their calendar, and commit changes to the world."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from loguru import logger
from pydantic import TypeAdapter, ValidationError

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import load_queries, storable
from glyphoxa.adapters.postgres.transcript.log import update_text_search_config
from glyphoxa.adapters.postgres.world.commits import PostgresWorld, WorldWriting
from glyphoxa.dm.campaign_diff import CampaignChanges, Tables, changes, with_tables
from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar
from glyphoxa.domain.campaign import Campaign, Secret
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import Origin, Provenance
from glyphoxa.transcript.sessions import BETWEEN, DayTold, KeptTimes
from glyphoxa.world.event_log import Cause
from glyphoxa.world.state import WorldState

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


_calendar: Final = TypeAdapter(StoryCalendar)


class PostgresCampaignTimes(CampaignQueries):
    """Reads how campaigns count time, and stores the story days that the DM sets. All with a deadline of 1 s."""

    file = "world/campaign_times"

    async def times(self, campaign: CampaignId) -> CampaignTimes:
        return (await self.kept(campaign)).times()

    async def kept(self, campaign: CampaignId) -> KeptTimes:
        """
        Raises:
            Unavailable: The database cannot be reached in time.
        """
        async with self._use(campaign) as connection:
            return await self._read(connection, campaign)

    async def last_said(self, campaign: CampaignId) -> tuple[SessionId, int] | None:
        """The session with the latest utterance, and its time (ms since the Unix epoch).

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        row = await self._row("last_said", campaign)
        return None if row is None else (SessionId(row["session_id"]), row["at_ms"])

    async def begin(self, campaign: CampaignId, session: SessionId) -> None:
        """Record that a session is played from the current story day on. Idempotent.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        async with self._use(campaign) as connection, connection.transaction():
            kept = await self._read(connection, campaign)
            day = kept.day_now
            if kept.calendar is None or not day:
                return
            told = [one.day for one in kept.told if one.session == session]
            if not told or told[-1] != day:
                await self._tell(connection, campaign, session, day, kept.file_day)

    async def tell(self, campaign: CampaignId, session: str, day: str) -> None:
        """Set the current story day.

        Args:
            session: The session played on that day, or `BETWEEN`.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        async with self._use(campaign) as connection, connection.transaction():
            kept = await self._read(connection, campaign)
            await self._tell(connection, campaign, session, day, kept.file_day)

    async def set_days(self, campaign: CampaignId, session: SessionId, days: Sequence[str]) -> None:
        """Set the days on which a session was played, replacing earlier ones.

        The current story day changes too if the latest record is of this session.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        async with self._use(campaign) as connection, connection.transaction():
            kept = await self._read(connection, campaign)
            is_latest = bool(kept.told) and kept.told[-1].session == session
            now = kept.day_now
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
            told = tuple(DayTold(**one) for one in rows)
        return KeptTimes(row["time_zone"], calendar, row["story_day"], told)

    async def _tell(self, connection: Connection, campaign: CampaignId, session: str, day: str, file_day: str) -> None:
        await connection.execute(self._sql["tell"], campaign, storable(session), day, file_day)


async def put_times(connection: Connection, campaign: Campaign) -> None:
    """Store the times in a campaign file."""
    calendar = None if campaign.calendar is None else _calendar.dump_python(campaign.calendar, mode="json")
    sql = load_queries("world/campaign_times")["put_times"]
    await connection.execute(sql, campaign.id, campaign.time_zone, calendar, campaign.story_day)


_campaign: Final = TypeAdapter(Campaign)
_imports: Final = TypeAdapter(dict[str, Tables])
_UNREVIEWED: Final = "~tables"
"""The source of tables that earlier checkouts added without review. It is the last: imports since then win."""
_CHARACTERS: Final = 200
"""So much of a document takes as long to read as a row."""


@dataclass(frozen=True, slots=True)
class Described:
    """A campaign in its parts.

    Attributes:
        file: The content of its campaign file.
        imports: Additional content from tables and other tools, by their source.
        is_told: Whether it was committed to the world; False for data from before there were events.
    """

    file: Campaign
    is_told: bool = False
    imports: Mapping[str, Tables] = field(default_factory=dict)

    @property
    def whole(self) -> Campaign:
        campaign = self.file
        for source in sorted(self.imports):
            campaign = with_tables(campaign, self.imports[source])
        return campaign


class PostgresCampaigns(CampaignQueries):
    """Stored campaigns. Reading has a deadline of 1 s, loading that of its commit; late is `Unavailable`.

    A campaign and its changes to the world are stored in one transaction, or not at all.
    """

    file = "world/campaigns"

    def __init__(self, database: Database, world: PostgresWorld) -> None:
        super().__init__(database)
        self._world = world

    async def ids(self) -> list[CampaignId]:
        return list(await self.names())

    async def names(self) -> dict[CampaignId, str]:
        """Names of all campaigns, by id."""
        async with self._database.use(None, deadline_ms=self.deadline_ms) as connection:
            rows = await connection.fetch(self._sql["list_campaigns"])
        return {CampaignId(row["id"]): row["name"] for row in rows}

    async def get(self, campaign: CampaignId) -> Campaign:
        """A campaign as it was loaded, from its file and from imports.

        Secrets of imports are included once somebody knows them: there may be thousands that nobody can have told.

        Raises:
            NotFound: It was never loaded here.
        """
        async with self._use(campaign) as connection:
            described = await self._read(connection, campaign)
            rows = (
                await connection.fetch(self._sql["known_secrets"], campaign) if described and described.imports else ()
            )
        if described is None:
            raise NotFound(f"no campaign {campaign!r} here: " + did_you_mean(campaign, await self.ids()))
        known = [Secret(row["text"], frozenset(row["knowers"]), row["entity_id"]) for row in rows]
        return replace(described.whole, secrets=(*described.file.secrets, *known))

    async def loaded_at(self, campaign: CampaignId) -> datetime | None:
        """The time of the last change of the campaign's file or imports; None when it was never loaded here."""
        row = await self._row("loaded_at", campaign)
        return None if row is None else row["loaded_at"]

    async def described(self, campaign: CampaignId) -> Described | None:
        """None when it was never loaded here."""
        async with self._use(campaign) as connection:
            return await self._read(connection, campaign)

    async def changes(self, campaign: Campaign) -> CampaignChanges:
        """Preview what loading the campaign would change."""
        was = await self.described(campaign.id)
        new = _of_file(campaign, was)
        if was == new:
            return CampaignChanges()
        return await self._compare(was, new, await self._world.now(campaign.id), "campaign_file")

    async def load(self, campaign: Campaign, *, only_if: CampaignChanges | None = None) -> CampaignChanges:
        """Replace the stored campaign by the file's; imported content stays. Idempotent.

        Args:
            only_if: Fail unless the changes equal these, which the DM was shown.

        Raises:
            InvalidInput: The changes differ from `only_if`, or the database cannot hold them.
        """
        done = await self._load(campaign, only_if)
        try:
            await update_text_search_config(self._database, campaign.id)
        except Unavailable as error:
            logger.warning("earlier utterances are not indexed for the language {!r} yet: {}", campaign.language, error)
        return done

    async def changes_by_imports(
        self, campaign: CampaignId, let_in: Callable[[Described, WorldState], Mapping[str, Tables]]
    ) -> CampaignChanges:
        """Preview what `accept_imports` would change."""
        was = await self.described(campaign) or _undescribed(campaign)
        world = await self._world.now(campaign)
        new = replace(was, imports={**was.imports, **await asyncio.to_thread(let_in, was, world)})
        return await self._compare(was, new, world, "import")

    async def accept_imports(
        self,
        campaign: CampaignId,
        let_in: Callable[[Connection, Described, WorldState], Awaitable[Mapping[str, Tables]]],
        *,
        amount: int,
        first: Callable[[Connection], Awaitable[object]],
    ) -> CampaignChanges:
        """Replace the content from the sources that `let_in` returns, in one transaction with what it writes.

        Args:
            amount: Approximate number of events, for the deadline.
            first: Runs before the world is locked: an open table waits for no import.

        Raises:
            InvalidInput: The database cannot hold the changes.
        """
        async with self._world.writing(campaign, amount=amount, first=first) as world:
            was = await self._read(world.connection, campaign) or _undescribed(campaign)
            held = (await world.current()).state
            new = replace(was, imports={**was.imports, **await let_in(world.connection, was, held)})
            found = await self._compare(was, new, held, "import")
            await self._put(world, campaign, new, found, "import")
        return found

    async def _load(self, campaign: Campaign, only_if: CampaignChanges | None) -> CampaignChanges:
        was = await self.described(campaign.id)
        new = _of_file(campaign, was)
        if was == new:
            return CampaignChanges()

        async def put_campaign(connection: Connection) -> None:
            await connection.execute(self._sql["put_campaign"], campaign.id, campaign.name, campaign.language)

        async with self._world.writing(campaign.id, amount=_size(new), first=put_campaign) as world:
            was = await self._read(world.connection, campaign.id)  # locked against other writers from here on
            new = _of_file(campaign, was)
            found = await self._compare(was, new, (await world.current()).state, "campaign_file")
            if only_if is not None and _shown(only_if) != _shown(found):
                raise InvalidInput(
                    f"campaign {campaign.id!r} has changed in the meantime; nothing was loaded, try again"
                )
            await self._put(world, campaign.id, new, found, "campaign_file")
        return found

    async def _compare(
        self, was: Described | None, new: Described, world: WorldState, origin: Origin
    ) -> CampaignChanges:
        firm = Provenance(dm_confirmed=True, origin=origin, at_ms=now_ms(), accept_at=self._world.accept_at)
        told = was if was is not None and was.is_told else None
        return await offload(
            lambda: changes(None if told is None else told.whole, new.whole, world, firm), amount=_size(new)
        )

    async def _put(
        self, world: WorldWriting, campaign: CampaignId, new: Described, found: CampaignChanges, origin: Origin
    ) -> None:
        document = await offload(lambda: json.dumps(document_of(new)), amount=_size(new))
        events = await world.commit(found.events, Cause(origin, now_ms())) if found.events else []
        seq = events[-1].seq if events else None
        await world.connection.execute(self._sql["put_document"], campaign, document, seq)
        await put_times(world.connection, new.file)

    async def _read(self, connection: Connection, campaign: CampaignId) -> Described | None:
        row = await connection.fetchrow(self._sql["get_document"], campaign)
        if row is None:
            return None
        text, is_told = row["document"], row["seq"] is not None
        return await offload(lambda: _described(json.loads(text), is_told=is_told), amount=len(text) // _CHARACTERS)


def _of_file(campaign: Campaign, was: Described | None) -> Described:
    if was is None:
        return Described(campaign, is_told=True)
    new = replace(was, file=campaign, is_told=True)
    left = {e.id for e in was.whole.entities} - {e.id for e in new.whole.entities}

    listed = {e.id for e in campaign.entities}
    guarded = {e.id for e in was.file.entities if (e.hidden or e.known_by) and e.id not in listed}

    def kept(tables: Tables) -> Tables:
        """Drop relations to entities that were removed from the file; what the file hid until now stays hidden."""
        return replace(
            tables,
            entities=tuple(replace(e, hidden=True) if e.id in guarded else e for e in tables.entities),
            relationships=tuple(r for r in tables.relationships if not left & {r.source, r.target}),
        )

    return replace(new, imports={name: kept(one) for name, one in was.imports.items()})


def _undescribed(campaign: CampaignId) -> Described:
    return Described(Campaign(campaign, campaign, "en", (), (), (), (), ()), is_told=True)


def check_document(document: Mapping[str, object], campaign: CampaignId) -> Described:
    """
    Raises:
        InvalidInput: It does not describe a campaign, or another one.
    """
    try:
        described = _described(document, is_told=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f".{part}" for part in first["loc"])
        raise InvalidInput(f"document{place[:200]}: {first['msg']}: it must be as in a campaign file") from None
    if described.file.id != campaign:
        raise InvalidInput(f"document.id is {described.file.id!r}: it must be the campaign's id, {campaign!r}")
    return described


def _described(document: Mapping[str, object], *, is_told: bool) -> Described:
    file = {part: value for part, value in document.items() if part not in ("tables", "imports")}
    imports = _imports.validate_python(document.get("imports", {}))
    if "tables" in document:
        imports |= _imports.validate_python({_UNREVIEWED: document["tables"]})
    return Described(_campaign.validate_python(file), is_told, imports)


def document_of(described: Described) -> dict[str, object]:
    """Return a campaign as it is stored."""
    document: dict[str, object] = _campaign.dump_python(described.file, mode="json")
    for secret, dumped in zip(described.file.secrets, document["secrets"], strict=True):  # type: ignore[call-overload] # they are a list
        # A set has no order, but equal files must give equal documents.
        dumped["known_by"] = sorted(secret.known_by)
    if described.imports:
        document["imports"] = _imports.dump_python(dict(described.imports), mode="json")
    return document


def _shown(found: CampaignChanges) -> tuple[object, ...]:
    return found.added, found.changed, found.removed, len(found.events)


def _size(described: Described) -> int:
    """Approximate number of events of a first load."""
    parts: tuple[Campaign | Tables, ...] = (described.file, *described.imports.values())
    return sum(
        len(part.relationships) + len(part.secrets) + sum(1 + len(entity.attributes) for entity in part.entities)
        for part in parts
    )
