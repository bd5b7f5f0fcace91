"""Export and import campaigns as bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.sql import load_queries
from glyphoxa.adapters.postgres.world.campaigns import check_document
from glyphoxa.adapters.postgres.world.transaction import WorldTransaction, world_transaction
from glyphoxa.adapters.postgres.world.world import COPIED
from glyphoxa.dm.campaign_bundle import CampaignBundle, Row
from glyphoxa.domain.errors import Corrupt, InvalidInput, did_you_mean
from glyphoxa.domain.ids import CampaignId
from glyphoxa.world.events import difference

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection

_MADE_AGAIN: Final = ("chunks", "talk_to_embed", "entity_vectors", "session_states")
"""After an import, utterances and entities are embedded again, and a session that continues is summarised again."""
BUNDLED: Final = tuple(table for table in COPIED if table not in _MADE_AGAIN)
"""Tables in a bundle, referenced tables first."""
_LATER: Final = ("turn_judgements", "state_atoms", "atom_edges", "import_sources", "import_documents")
"""Tables that a bundle of an earlier release lacks."""

_NUMBERED: Final = {"session_entries": "session_entries_id_seq", "story_days": None, "learned_name_events": None}
"""Tables whose `id` comes from a database-wide sequence; a bundle counts from 1 instead. None: an identity column."""
_OF_THIS_DATABASE: Final[Mapping[str, Row]] = {
    "session_entries": {"change_seq": None},
    "chronicle_rereads": {"change_seq": 0},
    "chronicle_progress": {"taken_by": None, "taken_until": None},
}
"""Columns without meaning in another database, with their replacement; None: the table's default."""

_DEADLINE_MS: Final = 3_600_000
_AT_A_TIME: Final = 500
_REFUSED: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.UndefinedObjectError,
)
_WHOLE: Final = {"int4": 31, "int8": 63}
_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "text": ((str,), "a text"),
    "regconfig": ((str,), "the name of a text search configuration"),
    "timestamptz": ((str,), "a time, as 2026-01-31T20:15:00+00:00"),
    "bool": ((bool,), "true or false"),
    "int4": ((int,), "a whole number below 2^31"),
    "int8": ((int,), "a whole number below 2^63"),
    "float8": ((int, float), "a number"),
    "_text": ((list,), "a list of texts"),
}
_JSON_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(
        ("accepted", "attributes", "controls", "document", "edit", "payload", "provenance", "stages"),
        (dict, "an object"),
    ),
    **dict.fromkeys(("known_how", "parts", "recalled", "unsaid"), (list, "a list")),
}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table; `type` is its PostgreSQL type.

    Attributes:
        needed: It cannot be null.
        required: A row must contain it.
    """

    name: str
    type: str
    needed: bool
    required: bool

    def fault_of(self, value: object) -> str | None:
        """A description of valid values if the value is invalid, otherwise None."""
        if value is None:
            can_be = not self.needed or (self.type == "jsonb" and self.name not in _JSON_KINDS)
            return None if can_be else "something: it cannot be null"
        if self.type not in _KINDS:  # JSON
            kind, told = _JSON_KINDS.get(self.name, (object, ""))
            return None if isinstance(value, kind) else told
        kinds, told = _KINDS[self.type]
        fits = isinstance(value, kinds) and (self.type == "bool" or not isinstance(value, bool))
        if fits and self.type in _WHOLE:
            fits = isinstance(value, int) and -(2 ** _WHOLE[self.type]) <= value < 2 ** _WHOLE[self.type]
        if fits and self.type == "_text":
            fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return None if fits else told


async def export_campaign(database: Database, campaign: CampaignId) -> CampaignBundle:
    """Export all stored data of a campaign, from one snapshot.

    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is away, or an hour was not enough.
    """
    sql = load_queries("world/bundle")
    async with world_transaction(database, campaign, deadline_ms=_DEADLINE_MS, isolation="repeatable_read") as world:
        await world.require_campaign()
        connection = world.connection
        await connection.execute(sql["utc"])
        [about] = await connection.fetch(sql["campaign"], campaign)
        tables = {table: await _rows(connection, campaign, table) for table in BUNDLED}
    _number_from_one(tables)
    return CampaignBundle(campaign, about["name"], about["language"], tables)


async def import_campaign(database: Database, bundle: CampaignBundle, *, into: CampaignId) -> None:
    """Store a new campaign, all of it or nothing.

    Raises:
        InvalidInput: A campaign or transcript with the id `into` exists, a row does not fit its table, or the
            projections
            do not match the events. The message names the place.
        Unavailable: The database is away, or an hour was not enough; nothing was written.
    """
    sql = load_queries("world/bundle")
    async with world_transaction(database, into, deadline_ms=_DEADLINE_MS) as world:
        connection = world.connection
        await connection.execute(sql["utc"])
        if await connection.fetchval(sql["new_campaign"], into, bundle.name, bundle.language) is None:
            raise InvalidInput(f"the campaign {into!r} already exists: choose another id with --as NEWID")
        for table in BUNDLED:
            query = f"SELECT EXISTS (SELECT FROM {table} WHERE campaign_id = $1)"  # noqa: S608 - ours, see COPIED
            if await connection.fetchval(query, into):
                raise InvalidInput(f"a transcript of {into!r} already exists: choose another id with --as NEWID")
        for name in bundle.tables:
            if name not in BUNDLED:
                raise InvalidInput(f"tables.{name[:60]} is not a table of a bundle: {did_you_mean(name, BUNDLED)}")
        for table in BUNDLED:
            if table not in bundle.tables and table not in _LATER:
                raise InvalidInput(f"tables has no {table!r}: it must have {', '.join(sorted(BUNDLED))}")
            await _put(connection, into, table, bundle.tables.get(table, []))
        for at, row in enumerate(bundle.tables["campaign_documents"]):
            try:
                check_document(cast("Row", row["document"]), bundle.id)
            except InvalidInput as error:
                raise InvalidInput(f"tables.campaign_documents[{at}].{error}") from None
        if into != bundle.id:
            await connection.execute(sql["rename_document"], into)
        await _check_world(world, [row.get("seq") for row in bundle.tables["world_events"]])


async def _rows(connection: Connection, campaign: CampaignId, table: str) -> list[Row]:
    sql = load_queries("world/bundle")
    key = ", ".join(row[0] for row in await connection.fetch(sql["key"], table))
    columns = [each for each in await _columns(connection, table) if each not in _OF_THIS_DATABASE.get(table, {})]
    built = ", ".join(f"'{name}', to_jsonb(t.\"{name}\")" for name in columns)
    order = f" ORDER BY {key}" if key else ""
    query = f"SELECT jsonb_build_object({built}) AS row FROM {table} t WHERE campaign_id = $1{order}"  # noqa: S608 - names of the catalogue
    found = await connection.fetch(query, campaign)
    return [row["row"] for row in found]


async def _columns(connection: Connection, table: str) -> dict[str, _Column]:
    found = await connection.fetch(load_queries("world/bundle")["columns"], table)
    return {row["name"]: _Column(row["name"], row["type"], row["needed"], row["required"]) for row in found}


def _number_from_one(tables: Mapping[str, list[Row]]) -> None:
    for table in _NUMBERED:
        rows = tables[table]
        numbers = {row["id"]: n for n, row in enumerate(rows, start=1)}
        for row in rows:
            row["id"] = numbers[row["id"]]
            if row.get("undoes") is not None:
                row["undoes"] = numbers.get(row["undoes"])


async def _put(connection: Connection, into: CampaignId, table: str, rows: list[Row]) -> None:
    if not rows:
        return
    columns = await _columns(connection, table)
    here = _OF_THIS_DATABASE.get(table, {})
    _check_columns(table, rows, {name: each for name, each in columns.items() if name not in here})
    if table in _NUMBERED:
        rows = await _numbered_here(connection, table, rows)
    put_here = {name: value for name, value in here.items() if value is not None}
    names = ", ".join(f'"{name}"' for name in (*rows[0], *put_here))
    rows_of = f"SELECT $1, {names} FROM jsonb_populate_recordset(NULL::{table}, $2)"  # noqa: S608 - all are columns
    query = f"INSERT INTO {table} (campaign_id, {names}) OVERRIDING SYSTEM VALUE {rows_of}"
    whole = [{**row, **put_here} for row in rows]
    for first in range(0, len(whole), _AT_A_TIME):
        block = whole[first : first + _AT_A_TIME]
        if await _refused(connection, query, into, block) is None:
            continue
        for at, row in enumerate(block, start=first):  # again, to find the invalid row
            if (error := await _refused(connection, query, into, [row])) is not None:
                raise InvalidInput(f"tables.{table}[{at}] cannot be stored: {error}")


async def _refused(connection: Connection, query: str, into: CampaignId, rows: Sequence[Row]) -> str | None:
    try:
        async with connection.transaction():
            await connection.execute(query, into, list(rows))
    except _REFUSED as error:
        detail = getattr(error, "detail", None)
        return f"{error}" + (f" ({detail[:200]})" if detail else "")
    return None


def _check_columns(table: str, rows: list[Row], columns: Mapping[str, _Column]) -> None:
    for name in rows[0]:
        if name not in columns:
            raise InvalidInput(f"tables.{table}[0] has {name[:40]!r}, not a column: {did_you_mean(name, columns)}")
    for column in columns.values():
        if column.required and column.name not in rows[0]:
            raise InvalidInput(f"tables.{table}[0] has no {column.name!r}: a row must have {', '.join(columns)}")
    for at, row in enumerate(rows):
        for name, value in row.items():
            if (valid := columns[name].fault_of(value)) is not None:
                raise InvalidInput(f"tables.{table}[{at}].{name} is {str(value)[:60]!r}: it must be {valid}")


async def _numbered_here(connection: Connection, table: str, rows: list[Row]) -> list[Row]:
    """Renumber rows with new numbers of this database, in the same order."""
    for at, row in enumerate(rows):
        if row.get("id") != at + 1:
            raise InvalidInput(f"tables.{table}[{at}].id is {str(row.get('id'))[:40]}: it must be {at + 1} (from 1)")
        undoes = row.get("undoes")
        if undoes is not None and not 1 <= int(str(undoes)) <= at:
            raise InvalidInput(f"tables.{table}[{at}].undoes is {undoes}: it must be the id of an earlier row")
    sql = load_queries("world/bundle")
    sequence = _NUMBERED[table] or await connection.fetchval(sql["identity"], table)
    numbers = await connection.fetchval(sql["next_numbers"], sequence, len(rows))
    given: list[Row] = []
    for at, row in enumerate(rows):
        undone = row.get("undoes")
        given.append({**row, "id": numbers[at]} | ({} if undone is None else {"undoes": numbers[int(str(undone)) - 1]}))
    return given


async def _check_world(world: WorldTransaction, seqs: Sequence[object]) -> None:
    """Check that the projections follow from the events."""
    for at, seq in enumerate(seqs):
        if seq != at + 1:
            raise InvalidInput(f"tables.world_events[{at}].seq is {seq}: it must be {at + 1} (events count from 1)")
    try:
        told = await world.log.state_at(len(seqs))
        held = await world.tables.read()
    except (Corrupt, KeyError, TypeError, ValueError, InvalidInput) as error:
        raise InvalidInput(f"tables.world_events contains an unreadable event: {error}") from None
    odd = difference(held, told)
    if not odd.is_empty:
        raise InvalidInput(
            "tables.world_events does not match tables.entities, relationships, attribute_facts and "
            "fact_history: do not edit a bundle written by `glyphoxa campaign export`"
        )
