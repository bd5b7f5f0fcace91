"""JSON encoding of events and states. Stored events must stay readable: names of events and fields never change, and a
new field has a default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.domain.errors import Corrupt, InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Claim, EndedFact, Fact
from glyphoxa.world.event_log import Cause, Event, WorldEvent
from glyphoxa.world.state import PAIRS, WorldEntity, WorldState

PROJECTION_VERSION: Final = 4
"""Increase when the projection rules change: states stored under another version are ignored."""

_T = TypeVar("_T")
_PART = 500
"""Rows per part of a stored state; reading or writing one blocks the event loop for a few milliseconds."""
_FIRST_MS = -62_135_596_800_000  # the beginning of the year 1
_LAST_MS = 253_402_300_799_999  # the end of the year 9999
_LAST_NUMBER = 2**63 - 1


class Encoded(NamedTuple):
    """An event as it is stored.

    Attributes:
        event: The event as a replay will read it; apply this one.
    """

    event_type: str
    payload: str
    event: Event


def event_type(event: Event) -> str:
    """The stored type name: `FactStated` is "fact_stated"."""
    return _snake_case(type(event).__name__)


def encode(event: Event) -> Encoded:
    """
    Raises:
        InvalidInput: It holds something that cannot be stored: not JSON, a time beyond the year 9999, text with NUL.
    """
    kind = event_type(event)
    fields = _ADAPTERS[kind].dump_python(event, warnings=False)
    _check_numbers(fields, kind)
    if (claim := fields.get("claim")) is not None:
        _check_value(claim["value"], kind)
    try:
        payload = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        payload.encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{kind}: cannot be stored as JSON ({error}): {event}") from None
    if _NUL.search(payload):
        raise InvalidInput(f"{kind}: text cannot hold NUL characters: {event}")
    try:
        return Encoded(kind, payload, _ADAPTERS[kind].validate_json(payload, strict=True))
    except ValidationError as error:
        place, message = first_problem(error)
        raise InvalidInput(f"{kind}: {place}: {message}: {event}") from None


def decode(campaign: CampaignId, seq: int, cause: Cause, kind: str, payload: str) -> WorldEvent:
    """Decode a stored event.

    Args:
        kind: A result of `event_type`.

    Raises:
        Corrupt: The type is unknown to this version, or the payload does not match it.
    """
    adapter = _ADAPTERS.get(kind)
    where = f"event {seq} of campaign {campaign!r}"
    if adapter is None:
        raise Corrupt(f"{where} is of type {kind!r}, which this version does not know; was it written by a newer one?")
    try:
        return WorldEvent(seq, cause, adapter.validate_json(payload, strict=True))
    except ValidationError as error:
        place, message = first_problem(error)
        raise Corrupt(f"{where} ({kind}) cannot be read: {place}: {message}") from None
    except InvalidInput as error:
        raise Corrupt(f"{where} ({kind}) cannot be read: {error}") from None


def state_parts(state: WorldState) -> Iterator[str]:
    """Encode a complete state as JSON texts of bounded size."""
    for table, adapter in _ROWS.items():
        rows = getattr(state, table)
        for part in batches(rows.items() if table in PAIRS else rows.values(), _PART):
            yield f'["{table}",{adapter.dump_json(part).decode()}]'


def state_of_parts(parts: Iterable[str]) -> WorldState:
    """
    Raises:
        Corrupt: A part was not written by `state_parts`.
    """
    state = WorldState()
    for part in parts:
        try:
            name, _, text = part.strip().removeprefix("[").removesuffix("]").partition(",")
            table = json.loads(name)
            if not isinstance(table, str) or table not in _ROWS:
                raise Corrupt(f"a stored state contains {table!r}, which is not a table of a state")
            rows = _ROWS[table].validate_json(text)
            if table == "rules":
                state.rules.update(rows)
            else:
                state.load(**{table: rows})
        except (ValueError, InvalidInput) as error:
            raise Corrupt(f"a stored state cannot be read: {error}") from None
    return state


def batches(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield values in lists of this size; the last may be shorter."""
    waiting = iter(values)
    while batch := list(islice(waiting, size)):
        yield batch


def _check_numbers(fields: Mapping[str, object], place: str) -> None:
    for name, value in fields.items():
        match value:
            case int() if (bounds := _BOUNDS.get(name)) is not None and not bounds[0] <= value <= bounds[1]:
                raise InvalidInput(f"{place}: {name} must be from {bounds[0]} to {bounds[1]}, not {value}")
            case dict() if name != "attributes":
                _check_numbers(value, place)
            case tuple() if name == "knowers":
                for knower in value:
                    _check_numbers(knower, place)
            case _:
                pass


def _check_value(value: str | None, place: str) -> None:
    if value is None:
        return
    try:
        canonical = Claim.attribute(EntityId(""), "value", json.loads(value)).value
    except (ValueError, InvalidInput):
        canonical = None
    if canonical != value:
        raise InvalidInput(f"{place}: a value must be created with Claim.attribute, not {value!r}")


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return the place of the first problem, and what it is."""
    problem = error.errors(include_url=False)[0]
    return ".".join(str(part) for part in problem["loc"]) or "payload", problem["msg"]


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("at_ms", "from_ms", "to_ms"), (_FIRST_MS, _LAST_MS)),
    **dict.fromkeys(("story", "story_from", "story_to", "ordinal"), (-_LAST_NUMBER, _LAST_NUMBER)),
}
_ADAPTERS: Final[Mapping[str, TypeAdapter[Any]]] = {
    _snake_case(kind.__name__): TypeAdapter(kind) for kind in get_args(Event)
}
_ROWS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "entities": TypeAdapter(list[WorldEntity]),
    "merged": TypeAdapter(list[tuple[EntityId, EntityId]]),
    "facts": TypeAdapter(list[Fact]),
    "ended": TypeAdapter(list[EndedFact]),
    "rules": TypeAdapter(list[tuple[str, SlotRule]]),
}
"""The tables of a state, in the order in which they are stored."""
