"""The arguments of a model's call: what it sent, read as what a tool takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from glyphoxa.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is declared to a model.

    Attributes:
        name: With a dot. Providers allow none: see `wire_name`.
        parameters: Each argument's JSON schema.
        estimated_ms: What it usually takes, as long as that was not measured; for choosing, not for enforcing.
        lasts_ms: How long an answer may be given again to the same call of the same turn. No longer than that: the DM
            may hide meanwhile what it tells.
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
    """An argument as it is recorded. What is no text is refused, and may be what no database holds: NaN, or a list
    nested a thousand times.
    """
    is_plain = isinstance(value, str | int) or value is None or (isinstance(value, float) and isfinite(value))
    return value if is_plain else f"({type(value).__name__})"


def optional(arguments: Mapping[str, object], key: str) -> str:
    """Empty where it was not given.

    Raises:
        InvalidInput: It is no text.
    """
    value = arguments.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"argument {key!r} must be text, not {type(value).__name__}")
    return value.strip()


def required(arguments: Mapping[str, object], key: str) -> str:
    """
    Raises:
        InvalidInput: It is missing, or no text.
    """
    value = optional(arguments, key)
    if not value:
        raise InvalidInput(f"argument {key!r} is missing")
    return value


def moment(arguments: Mapping[str, object], key: str) -> int | None:
    """Milliseconds since the Unix epoch; UTC where no zone is given.

    Raises:
        InvalidInput: It is no ISO 8601 time.
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
