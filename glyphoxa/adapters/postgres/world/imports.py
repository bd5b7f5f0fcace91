"""Store what other tools' worlds bring, and the DM's decisions about it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import lookup_key, storable, storable_json
from glyphoxa.adapters.postgres.world.campaigns import Described, PostgresCampaigns
from glyphoxa.adapters.postgres.world.commits import commit_deadline_ms
from glyphoxa.adapters.postgres.world.transaction import world_transaction
from glyphoxa.dm.campaign_diff import CampaignChanges, Tables
from glyphoxa.dm.import_review import (
    Arrival,
    DocumentReference,
    Group,
    Proposal,
    Seen,
    StoredDocument,
    arrival_of,
    checked_edit,
    cleaned,
    digest_of,
    placed,
    proposal_of,
    tables_of,
    where_stated,
)
from glyphoxa.dm.source_world import EVERYTHING, Decision, DocumentEdit, DocumentSelection, SourceDocument, SourceWorld
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.names.naming import entities_by_name
from glyphoxa.world.state import WorldState

if TYPE_CHECKING:
    import asyncpg

    from glyphoxa.adapters.postgres.server.database import Connection

_EVENTS_A_DOCUMENT: Final = 10
_AT_A_TIME: Final = 1_000
_document: Final = TypeAdapter(SourceDocument)
_edit: Final = TypeAdapter(DocumentEdit)


class PostgresImports(CampaignQueries):
    """The DM's decisions about imports of one campaign, each a single transaction.

    Every call may raise `Unavailable`, and if no document matches, `NotFound`. Deadlines: that of a commit for
    `take_in` and `accept`, otherwise 10 s.
    """

    file = "world/imports"
    deadline_ms = 10_000

    def __init__(self, database: Database, campaigns: PostgresCampaigns, campaign: CampaignId) -> None:
        super().__init__(database)
        self._campaigns = campaigns
        self._campaign = campaign

    async def take_in(self, world: SourceWorld) -> Arrival:
        """Store what a source brought, for review.

        Raises:
            InvalidInput: The same source is being imported now.
        """
        source = storable(f"{world.kind}:{world.id}")
        world = await asyncio.to_thread(cleaned, world)
        async with world_transaction(
            self._database, self._campaign, deadline_ms=commit_deadline_ms(len(world.documents))
        ) as transaction:
            await transaction.require_campaign()
            connection = transaction.connection
            if not await connection.fetchval(self._sql["one_at_a_time"], self._campaign, source):
                raise InvalidInput(f"{world.name!r} ({source}) is being imported now; wait until that import has ended")
            await connection.execute(self._sql["lock"], self._campaign)
            remarks = [storable(remark) for remark in world.remarks]
            await connection.execute(self._sql["put_source"], self._campaign, source, storable(world.name), remarks)
            rows = await connection.fetch(self._sql["known"], self._campaign, source)
            seen = {
                row["key"]: Seen(row["name"], row["digest"], row["decision"], row["accepted_digest"]) for row in rows
            }
            digests: dict[str, str] = {}
            for first in range(0, len(world.documents), _AT_A_TIME):
                block = world.documents[first : first + _AT_A_TIME]
                texts, keys, found = await asyncio.to_thread(_encoded, block)
                digests |= zip(keys, found, strict=True)
                decisions = [
                    seen[key].decision_about(digest) if key in seen else "waiting"
                    for key, digest in zip(keys, found, strict=True)
                ]
                await connection.execute(self._sql["put_documents"], self._campaign, source, texts, found, decisions)
        return arrival_of(source, world, digests, seen)

    async def groups(self) -> Sequence[Group]:
        """Return all waiting documents in groups, the largest first."""
        return [Group(**row) for row in await self._fetch("groups", self._campaign)]

    async def waiting(
        self,
        selection: DocumentSelection = EVERYTHING,
        *,
        offset: int = 0,
        limit: int = 100,
        decision: Decision = "waiting",
    ) -> tuple[int, Sequence[Proposal]]:
        """Return how many documents wait, or were skipped, and some of them: by source, type and name."""
        async with self._use(self._campaign) as connection:
            chosen = _parameters(selection, decision)
            n = await connection.fetchval(self._sql["count"], self._campaign, *chosen)
            rows = await connection.fetch(self._sql["select"], self._campaign, *chosen, offset, limit)
            entities = await connection.fetch(self._sql["entities"], self._campaign)
            linked = await connection.fetch(self._sql["linked"], self._campaign, *_keys(rows))

        def proposals() -> list[Proposal]:
            known = entities_by_name(
                Entity(EntityId(row["id"]), row["type"], row["name"], tuple(row["aliases"])) for row in entities
            )
            names = {row["key"]: row["name"] for row in linked}
            return [proposal_of(each, known, names) for each in _stored(rows)]

        return n, await asyncio.to_thread(proposals)

    async def edit(self, selection: DocumentSelection, edit: DocumentEdit) -> int:
        """Change waiting documents; what `edit` leaves at None stays. Returns their number.

        Raises:
            InvalidInput: Several would get the same name or entity, or the type or name is invalid.
        """
        described = await self._campaigns.described(self._campaign)
        own = () if described is None else described.file.schema.entity_types
        async with self._deciding() as connection:
            rows = await self._need(connection, selection, "waiting")
            entities = await connection.fetch(self._sql["entities"], self._campaign)
            known = {EntityId(row["id"]): row["type"] for row in entities}
            edit = checked_edit(edit, await asyncio.to_thread(_stored, rows), known, own)
            changed = {part: value for part, value in asdict(edit).items() if value is not None}
            await connection.execute(self._sql["edit"], self._campaign, *_keys(rows), storable_json(changed))
        return len(rows)

    async def preview(self, selection: DocumentSelection) -> CampaignChanges:
        """Return what accepting these would change."""
        async with self._use(self._campaign) as connection:
            rows = await self._need(connection, selection, "waiting")
            before = await self._accepted(connection, rows)

        def let_in(was: Described, world: WorldState) -> Mapping[str, Tables]:
            return _let_in(_stored(rows), _stored(before), was, world)[1]

        return await self._campaigns.changes_by_imports(self._campaign, let_in)

    async def accept(self, selection: DocumentSelection) -> CampaignChanges:
        """Let waiting documents into the campaign, all or none.

        Raises:
            InvalidInput: They do not fit the campaign.
        """

        async def lock(connection: Connection) -> None:
            await connection.execute(self._sql["lock"], self._campaign)

        async def let_in(connection: Connection, was: Described, world: WorldState) -> Mapping[str, Tables]:
            rows = await self._need(connection, selection, "waiting")
            before = await self._accepted(connection, rows)
            columns, tables = await asyncio.to_thread(lambda: _let_in(_stored(rows), _stored(before), was, world))
            await connection.execute(self._sql["accept"], self._campaign, *columns)
            return tables

        [(n,)] = await self._fetch("total", self._campaign)
        return await self._campaigns.accept_imports(self._campaign, let_in, amount=_EVENTS_A_DOCUMENT * n, first=lock)

    async def skip(self, selection: DocumentSelection) -> int:
        """Leave waiting documents out, now and in later imports. Returns their number."""
        return await self._decide(selection, "waiting", "skipped")

    async def restore(self, selection: DocumentSelection) -> int:
        """Let skipped documents wait again. Returns their number."""
        return await self._decide(selection, "skipped", "waiting")

    async def documents_of(self, entity: EntityId, *, stating: Claim | None = None) -> Sequence[DocumentReference]:
        """Return the accepted documents that an entity comes from, or those that state a claim about it, by page."""
        rows = await self._fetch("documents_of", self._campaign, lookup_key(entity))
        found = [(row["source"], _document.validate_json(row["accepted"])) for row in rows]
        if stating is None:
            return [DocumentReference(*each) for each in found]
        return [one for each in found if (one := where_stated(*each, stating)) is not None]

    @asynccontextmanager
    async def _deciding(self) -> AsyncIterator[Connection]:
        async with world_transaction(self._database, self._campaign, deadline_ms=self.deadline_ms) as world:
            await world.connection.execute(self._sql["lock"], self._campaign)
            yield world.connection

    async def _decide(self, selection: DocumentSelection, before: Decision, after: Decision) -> int:
        async with self._deciding() as connection:
            rows = await self._need(connection, selection, before)
            await connection.execute(self._sql["decide"], self._campaign, *_keys(rows), after)
        return len(rows)

    async def _need(
        self, connection: Connection, selection: DocumentSelection, decision: Decision
    ) -> list[asyncpg.Record]:
        chosen = _parameters(selection, decision)
        rows = await connection.fetch(self._sql["select"], self._campaign, *chosen, 0, None)
        if not rows:
            what = "needs review" if decision == "waiting" else "was skipped"
            parts = {part: value for part, value in asdict(selection).items() if value}
            which = (f"{part} {one if isinstance(one, str) else ', '.join(one[:3])!r}" for part, one in parts.items())
            raise NotFound(f"no imported document {what}" + (f" with {', '.join(which)}" if parts else ""))
        return rows

    async def _accepted(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> list[asyncpg.Record]:
        sources = sorted({row["source"] for row in rows})
        return await connection.fetch(self._sql["accepted"], self._campaign, sources)


def _parameters(selection: DocumentSelection, decision: Decision) -> tuple[object, ...]:
    keys = [lookup_key(key) for key in selection.keys]
    parts = (selection.type, selection.kind, selection.folder)
    return (decision, lookup_key(selection.source), keys, *(lookup_key(part) for part in parts))


def _keys(rows: Sequence[asyncpg.Record]) -> tuple[list[str], list[str]]:
    return [row["source"] for row in rows], [row["key"] for row in rows]


def _encoded(documents: Sequence[SourceDocument]) -> tuple[list[str], list[str], list[str]]:
    dumped = [storable_json(_document.dump_python(each, mode="json")) for each in documents]
    clean = [_document.validate_python(each) for each in dumped]
    return [json.dumps(each) for each in dumped], [each.key for each in clean], [digest_of(each) for each in clean]


def check_stored(row: Mapping[str, object]) -> None:
    """Raises: ValidationError: It is no row of `import_documents` that can be read."""
    _document.validate_python(row.get("document"))
    _edit.validate_python(row.get("edit") or {})
    if row.get("accepted") is not None:
        _document.validate_python(row["accepted"])


def _stored(rows: Collection[asyncpg.Record]) -> list[StoredDocument]:
    return [
        StoredDocument(
            row["source"],
            _document.validate_json(row["document"]),
            _edit.validate_python(row["edit"]),
            None if row["accepted"] is None else _document.validate_json(row["accepted"]),
            row["entity"],
            row["is_own"],
        )
        for row in rows
    ]


def _let_in(
    documents: Sequence[StoredDocument], before: Sequence[StoredDocument], was: Described, world: WorldState
) -> tuple[tuple[list[str], list[str], list[str], list[str], list[bool]], dict[str, Tables]]:
    """Return the columns of accepted documents, and the content of their sources, given what was accepted `before`."""
    gone = {entity.id: entity for entity in was.whole.entities if entity.id not in world.entities}
    known = entities_by_name(Entity(each.id, each.type, each.name, each.aliases) for each in world.entities.values())
    made = placed(documents, known, lambda entity: entity in gone or entity in world.merged)
    for entity in gone.values():
        known.by_id.setdefault(entity.id, entity)
    now = {(each.source, each.document.key): each for each in (*before, *made)}
    tables = {
        source: tables_of((each for each in now.values() if each.source == source), known)
        for source in {each.source for each in made}
    }
    columns = (
        [each.source for each in made],
        [each.document.key for each in made],
        [_document.dump_json(each.accepted or each.edited).decode() for each in made],
        [str(each.entity) for each in made],
        [each.is_own for each in made],
    )
    return columns, tables
