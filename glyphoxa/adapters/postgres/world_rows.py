"""Rows of the projections as domain values, and the other way around as JSON for `jsonb_to_recordset`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, FactId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import PUBLIC, Claim, EndedFact, Fact, Knower, Provenance, Validity, Visibility
from glyphoxa.memory.world.happenings import Cause
from glyphoxa.memory.world.state import WorldEntity

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_EVER: Final = Validity()


class Row(Protocol):
    """A row of a query, or columns by name."""

    def __getitem__(self, column: str, /) -> Any: ...


def timestamp(at_ms: int) -> datetime:
    """
    Args:
        at_ms: Milliseconds since the Unix epoch.

    Raises:
        InvalidInput: No calendar has that time.
    """
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        raise InvalidInput(f"{at_ms} ms since 1970 is not a time") from None


def at_ms(time: datetime) -> int:
    """Milliseconds since the Unix epoch."""
    return (time - _EPOCH) // _MS


# Rows to values


def fact_of_row(row: Row) -> Fact:
    """Of the view `facts`."""
    return _fact(row, row["status"])


def ended_of_row(row: Row) -> EndedFact:
    """Of `fact_history`."""
    by = row["superseded_by"]
    return EndedFact(_fact(row, row["status"]), row["ended_seq"], row["ended_as"], None if by is None else FactId(by))


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
    if row["scope"] == "public" and not row["known_how"]:
        return PUBLIC
    return Visibility(row["scope"], tuple(_knower(each) for each in row["known_how"]))


def provenance_of_row(row: Row) -> Provenance:
    """Of any row with `provenance` and `origin`."""
    fields = row["provenance"]
    session, utterance = fields["session_id"], fields["utterance_id"]
    return Provenance(
        confidence=fields["confidence"],
        source=fields["source"],
        dm_confirmed=fields["dm_confirmed"],
        origin=row["origin"],
        session_id=None if session is None else SessionId(session),
        utterance_id=None if utterance is None else UtteranceId(utterance),
        floor=fields["floor"],
        at_ms=fields["at_ms"],
        reason=fields["reason"],
        accept_at=fields["accept_at"],
    )


def cause_of_row(row: Row) -> Cause:
    """Of `world_events`."""
    session, utterance = row["session_id"], row["source_turn_id"]
    return Cause(
        row["by"],
        at_ms(row["at"]),
        None if session is None else SessionId(session),
        row["floor"],
        None if utterance is None else UtteranceId(utterance),
    )


def _fact(row: Row, status: Any) -> Fact:
    return Fact(
        id=FactId(row["fact_id"]),
        claim=_claim(row),
        seq=row["seq"],
        status=status,
        provenance=provenance_of_row(row),
        visibility=visibility_of_row(row),
        validity=_validity(row["valid_from"], row["valid_to"], row["story_from"], row["story_to"]),
        attributes=row["attributes"],
        # Nearly always none, and a snapshot has hundreds of facts.
        supports=tuple(row["supports"]) if row["supports"] else (),
        disputes=tuple(row["disputes"]) if row["disputes"] else (),
        mentions=row["mentions"],
        doubted=row["doubted"],
    )


def _validity(since: datetime | None, until: datetime | None, story_from: int | None, story_to: int | None) -> Validity:
    if since is None and until is None and story_from is None and story_to is None:
        return _EVER
    return Validity(
        None if since is None else at_ms(since), None if until is None else at_ms(until), story_from, story_to
    )


def _claim(row: Row) -> Claim:
    subject, predicate, entity = EntityId(row["subject_id"]), row["predicate"], row["object_id"]
    if entity is None:
        return Claim.attribute(subject, predicate, row["value"])
    return Claim.relation(subject, predicate, EntityId(entity))


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
        "floor": provenance.floor,
        "at_ms": provenance.at_ms,
        "reason": provenance.reason,
        "accept_at": provenance.accept_at,
    }


def _iso(time_ms: int | None) -> str | None:
    return None if time_ms is None else timestamp(time_ms).isoformat()
