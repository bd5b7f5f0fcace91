"""Export campaigns to bundles, and import bundles: as new campaigns, or into the world of an existing one."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, KeysView, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import asyncpg
from pydantic import ValidationError

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import at_ms, load_queries
from glyphoxa.adapters.postgres.world.campaigns import Described, check_document, document_of, put_times
from glyphoxa.adapters.postgres.world.commits import COPIED, PostgresWorld, WorldWriting
from glyphoxa.adapters.postgres.world.imports import check_stored
from glyphoxa.adapters.postgres.world.transaction import WorldTransaction, world_transaction
from glyphoxa.dm.campaign_bundle import BundledCampaign, BundleReader, BundleWriter, Row, carried_over
from glyphoxa.dm.handouts import PublicPart
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.world.encoding import first_problem
from glyphoxa.world.event_log import Cause, WorldEvent, difference

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

EMBEDDED: Final = ("chunks", "entity_vectors")
"""Tables that only a bundle with embeddings has."""
_MADE_AGAIN: Final = (*EMBEDDED, "talk_to_embed", "session_states")
"""After an import, utterances and entities are embedded again, and a session that continues is summarised again."""
BUNDLED: Final = tuple(table for table in COPIED if table not in _MADE_AGAIN)
"""Tables in a bundle, referenced tables first."""
LATER: Final = ("turn_judgements", "state_atoms", "atom_edges", "import_sources", "import_documents", "form_counts")
"""Tables that a bundle of an earlier release lacks."""
EARLIER: Final = ("learned_name_events", "learned_names")
"""Tables of earlier releases only. Their rows become events."""

_TRANSCRIPT: Final = ("session_entries", "corrections", "turns", "chronicle_rereads", "state_atoms", "atom_edges")
"""Tables that contain what was said."""
_NUMBERED: Final = ("session_entries", "story_days")
"""Tables whose `id` comes from a database-wide sequence; a bundle counts from 1 instead."""
_OF_THIS_DATABASE: Final[Mapping[str, Row]] = {
    "session_entries": {"change_seq": None},
    "chronicle_rereads": {"change_seq": 0},
    "chronicle_progress": {"taken_by": None, "taken_until": None},
}
"""Columns without meaning in another database, with their replacement; None: the table's default."""

_DEADLINE_MS: Final = 3_600_000
_AT_A_TIME: Final = 1_000
_REFUSED: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.UndefinedObjectError,
)
_KINDS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "text": (lambda it: type(it) is str, "a text"),
    "regconfig": (lambda it: type(it) is str, "the name of a text search configuration"),
    "timestamptz": (lambda it: type(it) is str, "a time, as 2026-01-31T20:15:00+00:00"),
    "bool": (lambda it: type(it) is bool, "true or false"),
    "int4": (lambda it: type(it) is int and -(2**31) <= it < 2**31, "a whole number below 2^31"),
    "int8": (lambda it: type(it) is int and -(2**63) <= it < 2**63, "a whole number below 2^63"),
    "float8": (lambda it: type(it) in (int, float), "a number"),
    "_text": (lambda it: type(it) is list and all(type(each) is str for each in it), "a list of texts"),
    "vector": (lambda it: type(it) is str, "a vector, as [0.1,0.2]"),
}
_JSON_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(
        ("accepted", "attributes", "controls", "document", "edit", "payload", "provenance", "stages"),
        (dict, "an object"),
    ),
    **dict.fromkeys(("known_how", "parts", "recalled", "unsaid"), (list, "a list")),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `type` is its PostgreSQL type, `size` the dimensions of a vector.

    Attributes:
        needed: It cannot be null.
        required: A row must contain it.
    """

    name: str
    type: str
    needed: bool
    required: bool
    size: int

    def fault_of(self, value: object) -> str | None:
        """A description of valid values if the value is invalid, otherwise None."""
        if value is None:
            can_be = not self.needed or (self.type == "jsonb" and self.name not in _JSON_KINDS)
            return None if can_be else "something: it cannot be null"
        if self.type not in _KINDS:  # JSON
            kind, told = _JSON_KINDS.get(self.name, (object, ""))
            return None if isinstance(value, kind) else told
        fits, told = _KINDS[self.type]
        return None if fits(value) else told


@dataclass(frozen=True, slots=True)
class Parts:
    """The optional parts of a bundle.

    Attributes:
        transcript: Without it, sessions keep their length, and everything counts as read.
        embeddings: Then they need not be computed again, if the other database has the same model.
        secrets: Without it, a campaign that has or had secrets is not exported.
    """

    transcript: bool = True
    embeddings: bool = False
    secrets: bool = False


async def export_campaign(database: Database, campaign: CampaignId, file: BinaryIO, parts: Parts) -> BundleWriter:
    """Write all stored data of a campaign, from one snapshot and in bounded memory.

    Raises:
        InvalidInput: It has or had secrets, and the bundle may have none. The file is incomplete.
        Unavailable: The database is away, or an hour was not enough. The file is incomplete.
    """
    async with _exporting(database, campaign, file, with_secrets=parts.secrets) as (world, writer, scratch):
        sources = dict.fromkeys((*BUNDLED, *(EMBEDDED if parts.embeddings else ())), campaign)
        if not parts.transcript:
            await _mark_read(world, scratch)
            sources |= {table: scratch for table in (*_TRANSCRIPT, "chunks", "chronicle_progress") if table in sources}
        await _copy(world.connection, sources, writer)
    return writer


async def export_for_players(
    database: Database, campaign: CampaignId, file: BinaryIO, *, transcript: bool = True
) -> BundleWriter:
    """Write what players may know: public entities and facts as they are now, and what all of them heard.

    The world is stated again in a scratch campaign, so that history and decisions stay out. Left out is also what names
    an entity that is not public, and a line that touches a secret. Raises: As `export_campaign`.
    """
    async with _exporting(database, campaign, file, with_secrets=False) as (world, writer, scratch):
        document = await world.connection.fetchval(load_queries("world/bundle")["document"], campaign)
        described = Campaign(campaign, writer.campaign.name, writer.campaign.language, (), (), (), (), ())
        if document is not None:
            described = check_document(document, campaign).file
        public = PublicPart(await world.tables.read(), described, *await world.tables.guarded())
        await _mark_read(world, scratch)
        await _fill(WorldWriting.of(world.connection, scratch), public)
        sources = dict.fromkeys(BUNDLED, scratch)
        sources |= dict.fromkeys(("sessions", "session_entries") if transcript else ("sessions",), campaign)
        await _copy(world.connection, sources, writer, public.rows)
    return writer


async def import_campaign(database: Database, file: BinaryIO, *, into: CampaignId | None = None) -> BundleReader:
    """Store a new campaign, all of it or nothing, in bounded memory; `into` is its id here, None for its own.

    Raises:
        InvalidInput: The file is no bundle; a campaign or transcript with this id exists; a row does not fit its table;
            or the projections do not match the events. The message names the place.
        Unavailable: The database is away, or an hour was not enough.
    """
    async with world_transaction(database, CampaignId(""), deadline_ms=_DEADLINE_MS) as world:
        reader, columns = await _stage(world.connection, file)
        await _store(world.connection, reader, columns, reader.campaign.id if into is None else into)
    return reader


@dataclass(frozen=True, slots=True)
class Place:
    """An utterance of a campaign; without `session` the newest."""

    campaign: CampaignId
    session: SessionId | None = None
    ordinal: int = 0


async def bind_campaign(
    database: Database, world: PostgresWorld, file: BinaryIO, place: Place, *, now_ms: int
) -> tuple[BundledCampaign, list[WorldEvent]]:
    """State the entities and facts of a bundle, as they are at its end, in the world of an existing campaign.

    They are attached to an utterance: rolling back past it, retracting or correcting it drops them. If nothing was said
    yet, they are attached to nothing. No transcript is copied. Raises: As `import_campaign`.

    Returns:
        The content of the bundle, and the events.
    """
    cause = await _cause_at(database, place, now_ms)
    async with (
        world_transaction(database, CampaignId(""), deadline_ms=_DEADLINE_MS) as transaction,
        _scratch(transaction.connection) as scratch,
    ):
        reader, columns = await _stage(transaction.connection, file, without=(*_TRANSCRIPT, *EMBEDDED))
        await _store(transaction.connection, reader, columns, scratch)
        state = await WorldTransaction.of(transaction.connection, scratch).tables.read()
    bundled = reader.campaign
    events = carried_over(state, await world.now(place.campaign), cause, reason=f"bundle of {bundled.name}")
    return bundled, await world.commit(place.campaign, events, cause)


async def _cause_at(database: Database, place: Place, now_ms: int) -> Cause:
    async with database.use(place.campaign) as connection:
        query = load_queries("world/bundle")["utterance"]
        row = await connection.fetchrow(query, place.campaign, place.session, place.ordinal)
    if row is not None:
        said = SessionId(row["session_id"]), row["ordinal"], UtteranceId(row["utterance_id"])
        return Cause("talk", at_ms(row["timestamp"]), *said)
    if place.session is not None:
        raise NotFound(
            f"no utterance {place.ordinal} in session {place.session!r} of campaign {place.campaign!r}: it is "
            "retracted, or was never said; `glyphoxa show transcript` shows the numbers"
        )
    return Cause("import", now_ms)


# Writing


@asynccontextmanager
async def _exporting(
    database: Database, campaign: CampaignId, file: BinaryIO, *, with_secrets: bool
) -> AsyncIterator[tuple[WorldTransaction, BundleWriter, CampaignId]]:
    """One snapshot of a campaign, what writes it, and the id of a scratch campaign."""
    sql = load_queries("world/bundle")
    async with (
        world_transaction(database, campaign, deadline_ms=_DEADLINE_MS, isolation="repeatable_read") as world,
        _scratch(world.connection) as scratch,
    ):
        await world.require_campaign()
        await world.connection.execute(sql["utc"])
        [about] = await world.connection.fetch(sql["campaign"], campaign)
        writer = BundleWriter(
            file, BundledCampaign(campaign, about["name"], about["language"]), with_secrets=with_secrets
        )
        yield world, writer, scratch
    writer.finish()


@asynccontextmanager
async def _scratch(connection: Connection) -> AsyncIterator[CampaignId]:
    """The id of a campaign that exists within this block only: what is written is rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield CampaignId(uuid.uuid4().hex)
    finally:
        await transaction.rollback()


async def _mark_read(world: WorldTransaction, scratch: CampaignId) -> None:
    """Let all utterances of the campaign's sessions count as read in the scratch campaign."""
    sql = load_queries("world/bundle")
    [sessions] = await world.connection.fetch(sql["sessions"], world.campaign)
    await world.connection.execute(sql["enter"], scratch)
    await world.connection.execute(sql["mark_read"], scratch, *sessions)


async def _fill(scratch: WorldWriting, public: PublicPart) -> None:
    sql, connection, campaign = load_queries("world/bundle"), scratch.connection, public.campaign
    await connection.execute(sql["enter"], scratch.campaign)
    await connection.execute(sql["new_campaign"], scratch.campaign, campaign.name, campaign.language)
    cause = Cause("import", at_ms(await connection.fetchval(sql["now"])))
    await scratch.commit(public.events(cause), cause)
    document = json.dumps(document_of(Described(campaign)))
    await connection.execute(load_queries("world/campaigns")["put_document"], scratch.campaign, document, None)
    await put_times(connection, replace(campaign, id=scratch.campaign))


async def _copy(
    connection: Connection,
    sources: Mapping[str, CampaignId],
    writer: BundleWriter,
    choose: Callable[[str, list[Row], int], list[Row]] = lambda _table, rows, _n_before: rows,
) -> None:
    """Write tables, each of one campaign.

    `choose` returns what to write of a block of rows, given its table and how many rows of it are written.
    """
    for table, source in sources.items():
        await asyncio.to_thread(writer.put, table, ())
        async for rows in _rows(connection, source, table):
            kept = await asyncio.to_thread(choose, table, rows, writer.n_rows[table])
            await asyncio.to_thread(writer.put, table, kept)


async def _rows(connection: Connection, campaign: CampaignId, table: str) -> AsyncIterator[list[Row]]:
    sql = load_queries("world/bundle")
    await connection.execute(sql["enter"], campaign)
    key = ", ".join(row[0] for row in await connection.fetch(sql["key"], table))
    values = {name: f'to_jsonb(t."{name}")' for name in await columns_of(connection, table)}
    if table in _NUMBERED:
        values["id"] = f"row_number() OVER (ORDER BY {key})"
    built = ", ".join(f"'{name}', {value}" for name, value in values.items())
    order = f" ORDER BY {key}" if key else ""
    query = f"SELECT jsonb_build_object({built}) AS row FROM {table} t WHERE campaign_id = $1{order}"  # noqa: S608 - names of the catalogue
    cursor = await connection.cursor(query, campaign)
    while found := await cursor.fetch(_AT_A_TIME):
        yield [row["row"] for row in found]


async def columns_of(connection: Connection, table: str) -> dict[str, Column]:
    """The columns of a table's rows in a bundle."""
    found = await connection.fetch(load_queries("world/bundle")["columns"], table)
    columns = {row["name"]: Column(**dict(row)) for row in found}
    return {name: column for name, column in columns.items() if name not in _OF_THIS_DATABASE.get(table, {})}


# Reading: rows are checked, staged in a temporary table, and stored in the order in which tables refer to each other.


async def _stage(
    connection: Connection, file: BinaryIO, *, without: Collection[str] = ()
) -> tuple[BundleReader, Mapping[str, KeysView[str]]]:
    """Return the reader of a bundle whose rows are staged, and the columns of each table that is not empty."""
    sql = load_queries("world/bundle")
    await connection.execute(sql["utc"])
    await connection.execute(sql["stage"])
    tables = {table: await columns_of(connection, table) for table in (*BUNDLED, *EMBEDDED)}
    tables |= {table: {} for table in EARLIER}
    columns: dict[str, KeysView[str]] = {}
    reader = BundleReader(file, tables=tables)
    rows = _checked(reader, tables, columns)
    kept = ((table, at, text) for table, at, text in rows if table not in without)
    while block := await asyncio.to_thread(lambda: list(islice(kept, _AT_A_TIME))):
        await connection.copy_records_to_table("bundle_rows", records=block)
    for table in BUNDLED:
        if table not in reader.n_rows and table not in LATER:
            raise InvalidInput(f"tables has no {table!r}: it must have {', '.join(sorted({*BUNDLED} - {*LATER}))}")
    return reader, columns


def _checked(
    reader: BundleReader, tables: Mapping[str, Mapping[str, Column]], columns: dict[str, KeysView[str]]
) -> Iterator[tuple[str, int, str]]:
    """Yield table, place and JSON of each row that fits its table; collect the columns of each table.

    Vectors of other dimensions than those of this database are skipped: they are computed again.
    """
    for table, at, row in reader.rows():
        known = tables[table]
        if table in EARLIER:
            yield table, at, json.dumps(row)
            continue
        if at == 0:
            _check_columns(table, row, known)
            columns[table] = row.keys()
        elif row.keys() != columns[table]:
            odd = sorted(row.keys() ^ columns[table])[0]
            raise InvalidInput(
                f"tables.{table}[{at}]: rows of a table must have the same columns, and some lack {odd[:40]!r}"
            )
        for name, value in row.items():
            if (valid := known[name].fault_of(value)) is not None:
                raise InvalidInput(f"tables.{table}[{at}].{name} is {str(value)[:60]!r}: it must be {valid}")
        _check_numbers(table, at, row)
        _check_document(table, at, row)
        if table in EMBEDDED and str(row["embedding"]).count(",") + 1 != known["embedding"].size:
            continue
        yield table, at, json.dumps(row)


def _check_columns(table: str, row: Row, columns: Mapping[str, Column]) -> None:
    for name in row:
        if name not in columns:
            raise InvalidInput(f"tables.{table}[0] has {name[:40]!r}, not a column: {did_you_mean(name, columns)}")
    for column in columns.values():
        if column.required and column.name not in row:
            raise InvalidInput(f"tables.{table}[0] has no {column.name!r}: a row must have {', '.join(columns)}")


def _check_numbers(table: str, at: int, row: Row) -> None:
    number = "id" if table in _NUMBERED else "seq" if table == "world_events" else None
    if number is not None and row.get(number) != at + 1:
        raise InvalidInput(
            f"tables.{table}[{at}].{number} is {str(row.get(number))[:40]}: it must be {at + 1} (rows count from 1)"
        )


def _check_document(table: str, at: int, row: Row) -> None:
    """Check what an import left, whose JSON is read as documents."""
    if table == "import_documents":
        try:
            check_stored(row)
        except ValidationError as error:
            place, message = first_problem(error)
            raise InvalidInput(
                f"tables.{table}[{at}] has a document, accepted document or edit that cannot be read: {place[:60]}: "
                f"{message}"
            ) from None


async def _store(
    connection: Connection, reader: BundleReader, columns: Mapping[str, KeysView[str]], into: CampaignId
) -> None:
    sql, bundled = load_queries("world/bundle"), reader.campaign
    await connection.execute(sql["enter"], into)
    if await connection.fetchval(sql["new_campaign"], into, bundled.name, bundled.language) is None:
        raise InvalidInput(f"the campaign {into!r} already exists: choose another id with --as NEWID")
    for table in BUNDLED:
        query = f"SELECT EXISTS (SELECT FROM {table} WHERE campaign_id = $1)"  # noqa: S608 - ours, see COPIED
        if await connection.fetchval(query, into):
            raise InvalidInput(f"a transcript of {into!r} already exists: choose another id with --as NEWID")
    for table in (*BUNDLED, *EMBEDDED):
        if table in columns:
            await _put(connection, into, table, columns[table], reader.n_rows[table])
    if (error := await _refused(connection, sql["forms_as_events"], into)) is not None:
        raise InvalidInput(f"tables.learned_name_events cannot be stored: {error}")
    if (document := await connection.fetchval(sql["document"], into)) is not None:
        try:
            check_document(document, bundled.id)
        except InvalidInput as error:
            raise InvalidInput(f"tables.campaign_documents[0].{error}") from None
    if into != bundled.id:
        await connection.execute(sql["rename_document"], into)
    await _check_world(WorldTransaction.of(connection, into))


async def _put(connection: Connection, into: CampaignId, table: str, columns: Iterable[str], n_rows: int) -> None:
    """Store the rows of a table. Numbers of this database are assigned in the same order."""
    here = {name: value for name, value in _OF_THIS_DATABASE.get(table, {}).items() if value is not None}
    assigned = ("id",) if table in _NUMBERED else ()
    names = [name for name in (*columns, *here) if name not in assigned]
    listed, taken = (", ".join(f'{of}"{name}"' for name in names) for of in ("", "r."))
    query = (
        f"INSERT INTO {table} (campaign_id, {listed}) SELECT $1, {taken} "  # noqa: S608 - all are columns
        f"FROM bundle_rows b, jsonb_populate_record(NULL::{table}, b.row::jsonb || $4) r "
        "WHERE b.table_name = $5 AND b.at >= $2 AND b.at < $3 ORDER BY b.at"
    )
    for first in range(0, n_rows, _AT_A_TIME):
        if await _refused(connection, query, into, first, first + _AT_A_TIME, here, table) is None:
            continue
        for at in range(first, min(first + _AT_A_TIME, n_rows)):  # again, to find the invalid row
            if (error := await _refused(connection, query, into, at, at + 1, here, table)) is not None:
                raise InvalidInput(f"tables.{table}[{at}] cannot be stored: {error}")


async def _refused(connection: Connection, query: str, *arguments: object) -> str | None:
    try:
        async with connection.transaction():
            await connection.execute(query, *arguments)
    except _REFUSED as error:
        detail = getattr(error, "detail", None)
        return f"{error}" + (f" ({detail[:200]})" if detail else "")
    return None


async def _check_world(world: WorldTransaction) -> None:
    try:
        told = await world.log.state_at(await world.log.head())
        held = await world.tables.read(with_ended=True)
    except (Corrupt, KeyError, TypeError, ValueError, InvalidInput) as error:
        raise InvalidInput(f"tables.world_events contains an unreadable event: {error}") from None
    odd = difference(held, told)
    if not odd.is_empty:
        raise InvalidInput(
            "tables.world_events does not match tables.entities, relationships, attribute_facts and "
            "fact_history: do not edit a bundle written by `glyphoxa campaign export`"
        )
