"""Tool declarations, and parsing of the arguments that a model sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from inspect import signature
from math import isfinite
from typing import TypeVar, get_type_hints

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.judgement.safety import SafetyTopics


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

    def worded(self, texts: Mapping[str, str]) -> ToolSpec:
        """Return the tool with these descriptions: its own under "what", and one for each parameter."""
        parameters = {key: {**each, "description": texts[key]} for key, each in self.parameters.items()}
        return replace(self, description=texts["what"], parameters=parameters)

    def without(self, *parameters: str) -> ToolSpec:
        """Return the tool without these parameters."""
        return replace(self, parameters={key: each for key, each in self.parameters.items() if key not in parameters})


def noted(value: object) -> object:
    """Return an argument as it is recorded.

    Only text is kept. Other values are refused anyway, and a database may not accept them (NaN, deep nesting).
    """
    is_plain = isinstance(value, str | int) or value is None or (isinstance(value, float) and isfinite(value))
    return value if is_plain else f"({type(value).__name__})"


Found = dict[str, object]
"""The result of a tool: `found` (a list) and optionally `note`."""


def nothing(note: str) -> Found:
    return {"found": [], "note": note}


@dataclass(frozen=True, slots=True)
class CallableTool:
    """A tool that an NPC's model, or another program, may call.

    Attributes:
        ask: Answers a call; raises a `GlyphoxaError` on failure.
        safety: Topics that no answer contains.
    """

    spec: ToolSpec
    ask: Callable[[Mapping[str, object]], Awaitable[Found]]
    safety: SafetyTopics = field(default_factory=SafetyTopics)


T = TypeVar("T")
Run = Callable[..., Awaitable[T]]
Tools = dict[str, tuple[ToolSpec, Run[T]]]
"""Tools by name, each with its function."""


def text(description: str) -> Mapping[str, object]:
    """Return the JSON schema of a text argument."""
    return {"type": "string", "description": description}


def tool(tools: Tools[T], name: str, description: str = "", *, estimated_ms: int) -> Callable[[Run[T]], Run[T]]:
    """Declare a tool where its function is defined.

    Each keyword-only parameter of the function is an argument, annotated with its JSON schema; text without one.
    """

    def declare(run: Run[T]) -> Run[T]:
        schemas = get_type_hints(run, include_extras=True)
        arguments = [each for each in signature(run).parameters.values() if each.kind is each.KEYWORD_ONLY]
        parameters = {each.name: getattr(schemas[each.name], "__metadata__", [text("")])[0] for each in arguments}
        required = tuple(each.name for each in arguments if each.default is each.empty)
        tools[name] = ToolSpec(name, description, parameters, required, estimated_ms), run
        return run

    return declare


def given(spec: ToolSpec, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments of a tool whose arguments are all text. An optional one is empty if missing.

    Raises:
        InvalidInput: One is not text, or a required one is missing.
    """
    found: dict[str, str] = {}
    for key in spec.parameters:
        value = arguments.get(key)
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"argument {key!r} must be text, not {type(value).__name__}")
        found[key] = (value or "").strip()
        if key in spec.required and not found[key]:
            raise InvalidInput(f"argument {key!r} is missing")
    return found


def moment(key: str, text: str) -> int | None:
    """Return a time argument in milliseconds since the Unix epoch; None if empty. UTC without a time zone.

    Raises:
        InvalidInput: It is not an ISO 8601 time.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"argument {key!r} is not an ISO 8601 time: {text!r}") from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1_000)
