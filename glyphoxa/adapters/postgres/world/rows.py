"""Rows of the projections as domain values, and the other way around as JSON for `jsonb_to_recordset`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, Protocol

from pydantic_core import from_json

from glyphoxa.adapters.postgres.server.values import at_ms, timestamp
from glyphoxa.domain.ids import EntityId, FactId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import (
    ALWAYS,
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
from glyphoxa.world.api import Cause, WorldEntity

_SHARED: Final = 2_048
"""Of what facts have in common, so much is kept: all of one load have one provenance, all of one utterance too."""


class Row(Protocol):
    """A row of a query, or columns by name."""

    def __getitem__(self, column: str, /) -> Any: ...


# Rows to values


def fact_of_row(row: Row) -> Fact:
    """Of the view `facts`, or of columns of these names. An NPC's identity has hundreds of them in every turn: a query
    does better to give NULL for what is empty, and `provenance` and `known_how` as text, which many facts share.
    """
    (
        fact,
        subject,
        predicate,
        entity,
        value,
        attributes,
        provenance,
        origin,
        status,
        scope,
        known_how,
        since,
        until,
        story_from,
        story_to,
        supports,
        disputes,
        mentions,
        doubted,
        seq,
    ) = _fact_columns(row)
    return Fact(
        fact,
        Claim.attribute(subject, predicate, value) if entity is None else Claim.relation(subject, predicate, entity),
        seq,
        status,
        _provenance_of_text(provenance, origin) if isinstance(provenance, str) else _provenance_of(provenance, origin),
        _visibility_of(scope, known_how),
        _validity(since, until, story_from, story_to),
        attributes or {},
        tuple(supports) if supports else (),
        tuple(disputes) if disputes else (),
        mentions,
        doubted,
    )


_fact_columns: Final = itemgetter(
    "fact_id",
    "subject_id",
    "predicate",
    "object_id",
    "value",
    "attributes",
    "provenance",
    "origin",
    "status",
    "scope",
    "known_how",
    "valid_from",
    "valid_to",
    "story_from",
    "story_to",
    "supports",
    "disputes",
    "mentions",
    "doubted",
    "seq",
)


def ended_of_row(row: Row) -> EndedFact:
    """Of `fact_history`."""
    by = row["superseded_by"]
    return EndedFact(fact_of_row(row), row["ended_seq"], row["ended_as"], None if by is None else FactId(by))


def entity_of_row(row: Row) -> WorldEntity:
    """Of `entities`."""
    return WorldEntity(
        EntityId(row["id"]),
        row["type"],
        row["name"],
        tuple(row["aliases"]),
        visibility_of_row(row),
        row["origin"],
    )


def visibility_of_row(row: Row) -> Visibility:
    """Of any row with `scope` and `known_how`."""
    return _visibility_of(row["scope"], row["known_how"])


def cause_of_row(row: Row) -> Cause:
    """Of `world_events`."""
    session, utterance = row["session_id"], row["source_turn_id"]
    return Cause(
        row["by"],
        at_ms(row["at"]),
        None if session is None else SessionId(session),
        row["ordinal"],
        None if utterance is None else UtteranceId(utterance),
    )


def _visibility_of(scope: ScopeName, known_how: Sequence[Mapping[str, Any]] | str | None) -> Visibility:
    if isinstance(known_how, str):
        return _visibility_of_text(scope, known_how)
    if scope == "public" and not known_how:
        return PUBLIC
    return Visibility(scope, tuple(_knower(each) for each in known_how or ()))


@lru_cache(maxsize=_SHARED)
def _visibility_of_text(scope: ScopeName, known_how: str) -> Visibility:
    return _visibility_of(scope, from_json(known_how))


def _provenance_of(fields: Mapping[str, Any], origin: Origin) -> Provenance:
    session, utterance = fields["session_id"], fields["utterance_id"]
    return Provenance(
        confidence=fields["confidence"],
        source=fields["source"],
        dm_confirmed=fields["dm_confirmed"],
        origin=origin,
        session_id=None if session is None else SessionId(session),
        utterance_id=None if utterance is None else UtteranceId(utterance),
        ordinal=fields["ordinal"],
        at_ms=fields["at_ms"],
        reason=fields["reason"],
        accept_at=fields["accept_at"],
    )


@lru_cache(maxsize=_SHARED)
def _provenance_of_text(fields: str, origin: Origin) -> Provenance:
    return _provenance_of(from_json(fields), origin)


def _validity(since: datetime | None, until: datetime | None, story_from: int | None, story_to: int | None) -> Validity:
    if since is None and until is None and story_from is None and story_to is None:
        return ALWAYS
    return Validity(
        None if since is None else at_ms(since), None if until is None else at_ms(until), story_from, story_to
    )


def _knower(fields: Mapping[str, Any]) -> Knower:
    return Knower(fields["npc"], fields["how"], fields["by"], fields["at_ms"], fields["utterance_id"])


# Values to rows


def json_of(rows: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def row_of_fact(fact: Fact) -> dict[str, object]:
    """Columns of either kind of fact. `value` is JSON text: as JSON, null would be no value at all."""
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
        "known_how": [
            {"npc": k.npc, "how": k.how, "by": k.by, "at_ms": k.at_ms, "utterance_id": k.utterance_id}
            for k in visibility.knowers
        ],
    }


def _provenance(provenance: Provenance) -> dict[str, object]:
    return {
        "session_id": provenance.session_id,
        "timestamp": _iso(provenance.at_ms),
        "confidence": provenance.confidence,
        "source": provenance.source,
        "dm_confirmed": provenance.dm_confirmed,
        "utterance_id": provenance.utterance_id,
        "ordinal": provenance.ordinal,
        "at_ms": provenance.at_ms,
        "reason": provenance.reason,
        "accept_at": provenance.accept_at,
    }


def _iso(time_ms: int | None) -> str | None:
    return None if time_ms is None else timestamp(time_ms).isoformat()
