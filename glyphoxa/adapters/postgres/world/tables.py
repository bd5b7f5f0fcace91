"""Convert rows of the projections to domain values, and back to JSON for `jsonb_to_recordset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

import asyncpg
from pydantic_core import from_json, to_json

from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.server.database import CampaignStatements
from glyphoxa.adapters.postgres.server.sql import at_ms, timestamp
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.ids import EntityId, FactId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import (
    ALWAYS,
    HIDDEN,
    PUBLIC,
    Claim,
    EndedFact,
    Fact,
    Knower,
    Origin,
    Provenance,
    ScopeName,
    Validity,
    Visibility,
)
from glyphoxa.world.encoding import batches
from glyphoxa.world.event_log import Cause
from glyphoxa.world.state import REFUSED, Changes, WorldEntity, WorldState

_STORED_PROVENANCE: Final = tuple(field.name for field in fields(Provenance) if field.name != "origin")
"""The origin has a column of its own."""
_SHARED: Final = 2_048
"""Cache size for shared parts: all facts of one load, or of one utterance, have the same provenance."""


class Row(Protocol):
    """A row of a query, or columns by name."""

    def __getitem__(self, column: str, /) -> Any: ...


# Rows to values


def fact_of_row(row: Row) -> Fact:
    """A fact from the view `facts`, or from columns with these names.

    For speed (an NPC's identity has hundreds in every turn), a query should return NULL for empty values, and
    `provenance` and `known_how` as text, which many facts share.
    """
    subject, predicate, entity = row["subject_id"], row["predicate"], row["object_id"]
    provenance, origin, supports, disputes = row["provenance"], row["origin"], row["supports"], row["disputes"]
    return Fact(
        row["fact_id"],
        Claim.attribute(subject, predicate, row["value"])
        if entity is None
        else Claim.relation(subject, predicate, entity),
        row["seq"],
        row["status"],
        _provenance_of_text(provenance, origin) if isinstance(provenance, str) else _provenance_of(provenance, origin),
        visibility_of_row(row),
        _validity(row["valid_from"], row["valid_to"], row["story_from"], row["story_to"]),
        row["attributes"] or {},
        tuple(supports) if supports else (),
        tuple(disputes) if disputes else (),
        row["mentions"],
        row["doubted"],
    )


def ended_of_row(row: Row) -> EndedFact:
    """An ended fact from `fact_history`."""
    by = row["superseded_by"]
    return EndedFact(fact_of_row(row), row["ended_seq"], row["ended_as"], None if by is None else FactId(by))


def entity_of_row(row: Row) -> WorldEntity:
    """An entity from `entities`."""
    return WorldEntity(
        EntityId(row["id"]),
        row["type"],
        row["name"],
        tuple(row["aliases"]),
        visibility_of_row(row),
        row["origin"],
    )


def visibility_of_row(row: Row) -> Visibility:
    """The visibility in any row with `scope` and `known_how`."""
    scope, known_how = row["scope"], row["known_how"]
    return _visibility_of_text(scope, known_how) if isinstance(known_how, str) else _visibility_of(scope, known_how)


def cause_of_row(row: Row) -> Cause:
    """The cause in a row of `world_events`."""
    session, utterance = row["session_id"], row["source_turn_id"]
    return Cause(
        row["by"],
        at_ms(row["at"]),
        None if session is None else SessionId(session),
        row["ordinal"],
        None if utterance is None else UtteranceId(utterance),
    )


def _visibility_of(scope: ScopeName, known_how: Sequence[Mapping[str, Any]] | None) -> Visibility:
    if scope == "public" and not known_how:
        return PUBLIC
    return Visibility(scope, tuple(Knower(**each) for each in known_how or ()))


@lru_cache(maxsize=_SHARED)
def _visibility_of_text(scope: ScopeName, known_how: str) -> Visibility:
    return _visibility_of(scope, from_json(known_how))


def _provenance_of(stored: Mapping[str, Any], origin: Origin) -> Provenance:
    return Provenance(origin=origin, **{name: stored[name] for name in _STORED_PROVENANCE})


@lru_cache(maxsize=_SHARED)
def _provenance_of_text(fields: str, origin: Origin) -> Provenance:
    return _provenance_of(from_json(fields), origin)


def _validity(since: datetime | None, until: datetime | None, story_from: int | None, story_to: int | None) -> Validity:
    if since is None and until is None and story_from is None and story_to is None:
        return ALWAYS
    return Validity(
        None if since is None else at_ms(since), None if until is None else at_ms(until), story_from, story_to
    )


# Values to rows


def row_of_fact(fact: Fact) -> dict[str, object]:
    """Columns of either kind of fact. `value` is JSON text, because JSON null would count as no value."""
    claim, validity, provenance = fact.claim, fact.validity, fact.provenance
    return {
        "fact_id": fact.id,
        "subject_id": claim.subject,
        "predicate": claim.predicate,
        "object_id": claim.object,
        "value": claim.value,
        "attributes": dict(fact.attributes),
        "provenance": _provenance(provenance),
        "origin": provenance.origin,
        "status": fact.status,
        **_visibility(fact.visibility),
        "valid_from": _iso(validity.from_ms),
        "valid_to": _iso(validity.to_ms),
        "story_from": validity.story_from,
        "story_to": validity.story_to,
        "supports": fact.supports,
        "disputes": fact.disputes,
        "mentions": fact.mentions,
        "doubted": fact.doubted,
        "seq": fact.seq,
    }


def row_of_ended(ended: EndedFact) -> dict[str, object]:
    return {
        **row_of_fact(ended.fact),
        "ended_seq": ended.ended_seq,
        "ended_as": ended.ended_as,
        "superseded_by": ended.superseded_by,
    }


def row_of_entity(entity: WorldEntity) -> dict[str, object]:
    return {
        "id": entity.id,
        "type": entity.type,
        "name": entity.name,
        "aliases": entity.aliases,
        "origin": entity.origin,
        **_visibility(entity.visibility),
    }


def _visibility(visibility: Visibility) -> dict[str, object]:
    return {
        "scope": visibility.scope,
        "knowers": [knower.npc for knower in visibility.knowers],
        "known_how": visibility.knowers,
    }


def _provenance(provenance: Provenance) -> dict[str, object]:
    stored = {name: getattr(provenance, name) for name in _STORED_PROVENANCE}
    return {**stored, "timestamp": _iso(provenance.at_ms)}


def _iso(time_ms: int | None) -> str | None:
    return None if time_ms is None else timestamp(time_ms).isoformat()


_T = TypeVar("_T")
_BLOCK: Final = 250
"""Rows to write at a time: one block delays a running table by a few milliseconds."""


class WorldTables(CampaignStatements):
    """The projections of one campaign's world, on a connection in a transaction."""

    file = "world/tables"

    async def read(self, *, with_ended: bool = False) -> WorldState:
        """The state in the tables.

        Args:
            with_ended: Read all ended facts, which may be many more than the current ones. Otherwise, the state knows
                only which of them the DM refused.
        """
        entities, merges, rules, facts = [
            await self._fetch_many(name) for name in ("all_entities", "all_merges", "all_rules", "all_facts")
        ]
        ended = await self._fetch_many("all_ended") if with_ended else []
        refused = [] if with_ended else await self._fetch("all_refused", sorted(REFUSED))

        def build() -> WorldState:
            state = WorldState((row["predicate"], row["rule"]) for row in rules)
            state.load(
                entities=map(entity_of_row, entities),
                merged=((EntityId(row["gone_id"]), EntityId(row["kept_id"])) for row in merges),
                facts=map(fact_of_row, facts),
                ended=map(ended_of_row, ended),
                refused=(FactId(row["fact_id"]) for row in refused),
            )
            return state

        return await offload(build, amount=len(facts) + len(ended))

    async def guarded(self) -> tuple[list[WorldEntity], list[str]]:
        """The entities that were merged into others, with the names that no other one has now, and texts of secrets."""
        rows, secrets = await self._fetch("merged_names"), await self._fetch("secrets")
        merged = [WorldEntity(row["id"], row["type"], row["names"][0], tuple(row["names"][1:]), HIDDEN) for row in rows]
        return merged, [row["text"] for row in secrets]

    async def write(self, changes: Changes) -> None:
        """Write changes. The events that stated these facts must be in the log already."""
        moved = [fact.id for fact in changes.facts_put]
        touched: dict[str, None] = {}
        for row in await self._fetch_columns("remove_facts", [*changes.facts_gone, *moved]):
            touched[row["entity_id"]] = None
        await self._put_rows("put_entities", changes.entities_put, row_of_entity)
        await self._put_rows("put_facts", changes.facts_put, row_of_fact, sorted(BIDIRECTIONAL_RELATIONS))
        await self._fetch_columns("remove_entities", changes.entities_gone)
        await self._fetch_columns("remove_ended", changes.ended_gone)
        await self._put_rows("put_ended", changes.ended_put, row_of_ended)
        await self._fetch_columns("remove_merges", changes.merged_gone)
        await self._fetch_columns("put_merges", changes.merged_put)
        await self._fetch_columns("remove_rules", changes.rules_gone)
        await self._fetch_columns("put_rules", changes.rules_put)
        touched.update((fact.claim.subject, None) for fact in changes.facts_put if fact.claim.object is None)
        await self._fetch_columns("put_attributes", sorted(touched))

    async def _fetch_columns(self, name: str, rows: Sequence[object]) -> list[asyncpg.Record]:
        """Run a query with arrays, one for each column of the rows."""
        found: list[asyncpg.Record] = []
        for block in batches(rows, _BLOCK):
            columns = zip(*(row if isinstance(row, tuple) else (row,) for row in block), strict=True)
            found += await self._fetch(name, *map(list, columns))
        return found

    async def _put_rows(
        self,
        name: str,
        values: Sequence[_T],
        row_of: Callable[[_T], Mapping[str, object]],
        *more: object,
    ) -> None:
        for block in batches(values, _BLOCK):
            await self._fetch(name, to_json([row_of(value) for value in block]).decode(), *more)
