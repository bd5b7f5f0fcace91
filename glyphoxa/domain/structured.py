"""Structured model output for background work: extraction, correction, summaries. Never used in a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from glyphoxa.domain.errors import GlyphoxaError

JsonSchema = Mapping[str, Any]


class Unparseable(GlyphoxaError):
    """A model's answer does not have the requested shape. Another attempt may help; the answer is discarded."""


class StructuredLlm(Protocol):
    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        """Ask the model for an object of the schema's shape, as far as the provider enforces it.

        Args:
            schema: An object with a `title`.

        Raises:
            Unavailable: The model cannot be reached, refuses the key, is busy, or exceeds `deadline_ms`.
            Unparseable: The answer is not a JSON object, was cut off, or lacks a required key.
        """
        ...


def parsed(text: str | None, schema: JsonSchema) -> dict[str, Any]:
    """Parse the object in a model's answer. Strips the code fence that models like to add.

    Raises:
        Unparseable: See `StructuredLlm.complete`. The message shows nothing of the answer.
    """
    raw = (text or "").strip()
    if raw.startswith("```"):
        raw = raw.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        answer = json.loads(raw)
    except json.JSONDecodeError as error:
        raise Unparseable(f"the model's answer is not JSON (at character {error.pos} of {len(raw)})") from None
    except (RecursionError, ValueError):  # deep nesting, or too many digits
        raise Unparseable(f"the model's answer of {len(raw)} characters is not readable JSON") from None
    if not isinstance(answer, dict):
        raise Unparseable(f"the model's answer is a JSON {type(answer).__name__}, not an object")
    missing = [key for key in schema.get("required", ()) if key not in answer]
    if missing:
        raise Unparseable(f"the model's answer lacks {', '.join(missing)}")
    return answer
