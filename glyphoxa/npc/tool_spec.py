"""Tool declarations, and parsing of the arguments that a model sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from glyphoxa.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as declared to a model.

    Attributes:
        name: Contains a dot, which providers do not allow: see `wire_name`.
        parameters: JSON schema of each argument.
        estimated_ms: Typical duration until measured; used for selection, not as a limit.
        lasts_ms: How long a result may be reused for the same call in the same turn. Kept short, because the DM may
            hide its content meanwhile.
    """

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...]
    estimated_ms: int
    lasts_ms: int = 2_000

    @property
    def wire_name(self) -> str:
        return self.name.replace(".", "_")


def noted(value: object) -> object:
    """Return an argument as it is recorded.

    Only text is kept. Other values are refused anyway, and a database may not accept them (NaN, deep nesting).
    """
    is_plain = isinstance(value, str | int) or value is None or (isinstance(value, float) and isfinite(value))
    return value if is_plain else f"({type(value).__name__})"


def optional(arguments: Mapping[str, object], key: str) -> str:
    """Return an optional text argument; empty if missing.

    Raises:
        InvalidInput: It is not text.
    """
    value = arguments.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"argument {key!r} must be text, not {type(value).__name__}")
    return value.strip()


def required(arguments: Mapping[str, object], key: str) -> str:
    """Return a required text argument.

    Raises:
        InvalidInput: It is missing or not text.
    """
    value = optional(arguments, key)
    if not value:
        raise InvalidInput(f"argument {key!r} is missing")
    return value


def moment(arguments: Mapping[str, object], key: str) -> int | None:
    """Return a time argument in milliseconds since the Unix epoch. UTC without a time zone.

    Raises:
        InvalidInput: It is not an ISO 8601 time.
    """
    text = optional(arguments, key)
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"argument {key!r} is not an ISO 8601 time: {text!r}") from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1_000)
