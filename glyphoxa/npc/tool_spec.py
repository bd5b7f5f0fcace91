"""Tool declarations, and checks of the arguments that a model or a program sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from inspect import signature
from math import isfinite
from typing import Any, Final, TypeVar, get_type_hints

from glyphoxa.domain.errors import InvalidInput, did_you_mean
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
        writes: It changes something.
    """

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...]
    estimated_ms: int
    lasts_ms: int = 2_000
    writes: bool = False

    @property
    def wire_name(self) -> str:
        return self.name.replace(".", "_")

    @property
    def schema(self) -> dict[str, Any]:
        """The arguments as JSON schema."""
        properties = {name: dict(schema) for name, schema in self.parameters.items()}
        return {"type": "object", "properties": properties, "required": list(self.required)}

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
        ask: Answers a call with arguments that were checked; raises a `GlyphoxaError` on failure.
        safety: Topics that no answer contains.
    """

    spec: ToolSpec
    ask: Callable[[Mapping[str, object]], Awaitable[Found]]
    safety: SafetyTopics = field(default_factory=SafetyTopics)

    async def call(self, arguments: Mapping[str, object]) -> Found:
        """Answer a call with the arguments that a program or a model sent.

        Raises:
            InvalidInput: An argument is wrong or missing.
            GlyphoxaError: See `ask`.
        """
        return dict(self.safety.allowed_in(await self.ask(_checked(self.spec, arguments))))


T = TypeVar("T")
Run = Callable[..., Awaitable[T]]
Tools = dict[str, tuple[ToolSpec, Run[T]]]
"""Tools by name, each with its function."""


def text(description: str) -> Mapping[str, object]:
    """Return the JSON schema of a text argument."""
    return {"type": "string", "description": description}


def tool(
    tools: Tools[T], name: str, description: str = "", *, estimated_ms: int, writes: bool = False
) -> Callable[[Run[T]], Run[T]]:
    """Declare a tool where its function is defined.

    Each keyword-only parameter of the function is an argument, annotated with its JSON schema; text without one.
    """

    def declare(run: Run[T]) -> Run[T]:
        schemas = get_type_hints(run, include_extras=True)
        arguments = [each for each in signature(run).parameters.values() if each.kind is each.KEYWORD_ONLY]
        parameters = {each.name: getattr(schemas[each.name], "__metadata__", [text("")])[0] for each in arguments}
        required = tuple(each.name for each in arguments if each.default is each.empty)
        tools[name] = ToolSpec(name, description, parameters, required, estimated_ms, writes=writes), run
        return run

    return declare


KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "string": (str, "text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
}
"""The JSON types of arguments, each with its Python types and its name in messages."""
MAX_ASKED: Final = 2_000
"""Maximum characters of one argument."""


def _checked(spec: ToolSpec, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a tool has, text without spaces around it. Null and blank text count as left out.

    Other arguments are ignored: a model that invents one still gets its answer.

    Raises:
        InvalidInput: One is wrong, or a required one is missing.
    """
    given: dict[str, object] = {}
    for key, schema in spec.parameters.items():
        value = arguments.get(key)
        if value is None:
            continue
        if wrong := _wrong(value, schema):
            raise InvalidInput(f"argument {key!r} of {spec.wire_name} {wrong}")
        value = value.strip() if isinstance(value, str) else value
        if value != "":
            given[key] = value
    if missing := [key for key in spec.required if key not in given]:
        raise InvalidInput(f"{spec.wire_name} needs the argument {missing[0]!r}")
    return given


def _wrong(value: object, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with an argument; empty if nothing is."""
    kinds, name = KINDS[schema["type"]]
    is_kind = isinstance(value, kinds) and isinstance(value, bool) == (kinds is bool)
    if "minimum" in schema:
        least, most = schema["minimum"], schema["maximum"]
        return "" if is_kind and least <= value <= most else f"must be {name} from {least} to {most}"
    if not is_kind:
        return f"must be {name}, not {type(value).__name__}"
    if len(str(value)) > MAX_ASKED:
        return f"has {len(str(value)):,} characters; at most {MAX_ASKED:,}"
    valid = schema.get("enum")
    if valid is not None and value not in valid:
        return f"cannot be {str(value)[:80]!r}: {did_you_mean(str(value), valid)}"
    return ""


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
