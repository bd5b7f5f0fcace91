"""What of a server outside gets near a model: short and plain names, descriptions and answers, of known kinds.

A server may send anything: a megabyte, markers of a chat template, arguments nested a thousand times.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from glyphoxa.adapters.local.control_tokens import ELSEWHERE, ControlTokens
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.tool_answers import Found, nothing
from glyphoxa.npc.tool_spec import ToolSpec

MOST_TOOLS: Final = 16
MOST_ANSWERED: Final = 2_000
_MOST_ARGUMENTS: Final = 10
_MOST_DESCRIBED: Final = 300
_MOST_ASKED: Final = 2_000
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_KINDS: Final = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
_MARKERS: Final = ControlTokens(ELSEWHERE)


def spec_of(server: str, tool: Mapping[str, Any], *, usual_ms: int) -> ToolSpec | None:
    """A tool as an NPC's model is shown it; None if it cannot be.

    Args:
        tool: `name`, `description` and `input_schema`, as the server has them.
    """
    if not _NAME.fullmatch(str(tool["name"])):
        return None
    schema = tool["input_schema"] if isinstance(tool["input_schema"], Mapping) else {}
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return None
    shown = {name: one for name, each in properties.items() if (one := _argument(name, each)) is not None}
    if len(shown) > _MOST_ARGUMENTS or any(name not in shown for name in required):
        return None
    description = plain(str(tool["description"] or tool["name"]), most=_MOST_DESCRIBED)
    return ToolSpec(f"{server}.{tool['name']}", description, shown, tuple(required), usual_ms)


def _argument(name: object, schema: object) -> Mapping[str, object] | None:
    """Its schema as a model is shown it; None for what is no plain value."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(schema, Mapping):
        return None
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    described = schema.get("description")
    shown: dict[str, object] = {
        "type": kind,
        "description": plain(described, most=_MOST_DESCRIBED) if isinstance(described, str) else name,
    }
    choices = schema.get("enum")
    if kind == "string" and isinstance(choices, list) and all(isinstance(each, str) for each in choices):
        shown["enum"] = [plain(each, most=80) for each in choices[:20]]
    return shown


def checked(spec: ToolSpec, arguments: Mapping[str, object]) -> dict[str, object]:
    """What a model gave, as far as the tool takes it.

    Raises:
        InvalidInput: Something is missing, or of another kind.
    """
    given: dict[str, object] = {}
    for key, value in arguments.items():
        if key not in spec.parameters or value is None:
            continue
        kind = str(spec.parameters[key]["type"])
        is_kind = isinstance(value, _KINDS[kind]) and (kind == "boolean") == isinstance(value, bool)  # type: ignore[arg-type]
        if not is_kind or len(str(value)) > _MOST_ASKED:
            raise InvalidInput(f"argument {key!r} must be a short {kind}")
        given[key] = value
    if missing := [key for key in spec.required if key not in given]:
        raise InvalidInput(f"argument {missing[0]!r} is missing")
    return given


def told(texts: Iterable[str], *, is_error: bool) -> Found:
    """What a model is answered."""
    text = plain(" ".join(texts), most=MOST_ANSWERED)
    if is_error:
        return nothing(f"it failed: {text}" if text else "it failed")
    return {"found": [text]} if text else nothing("it answered without words")


def plain(text: str, *, most: int) -> str:
    """Words in one line, without what a terminal, a database or a chat template takes for a command."""
    # What is far longer is cut first: cleaning a megabyte takes as long as a syllable.
    cut = text[: 2 * most]
    visible = "".join(" " if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co") else each for each in cut)
    words = " ".join(_MARKERS.broken(visible).split())
    return words if len(words) <= most and len(text) <= 2 * most else f"{words[:most].rstrip()} ..."
