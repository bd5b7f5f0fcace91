"""Answers in a given shape, for work behind the talk: extraction, correction, summaries. Never in a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from glyphoxa.domain.errors import GlyphoxaError

JsonSchema = Mapping[str, Any]


class Unparseable(GlyphoxaError):
    """A model answered something else than what was asked for. Asking again may help; the answer is not kept."""


class StructuredLlm(Protocol):
    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        """The model's answer: an object of the schema's shape, as far as the provider enforces it.

        Args:
            schema: An object with a `title`.

        Raises:
            Unavailable: The model cannot be reached, refuses the key, is busy, or is later than `deadline_ms`.
            Unparseable: The answer is no JSON object, was cut off, or lacks a required key.
        """
        ...


def parsed(text: str | None, schema: JsonSchema) -> dict[str, Any]:
    """The object in a model's answer. Models like to put a code fence around it.

    Raises:
        Unparseable: See `StructuredLlm.complete`. The message says nothing of what was in the answer.
    """
    raw = (text or "").strip()
    if raw.startswith("```"):
        raw = raw.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        answer = json.loads(raw)
    except json.JSONDecodeError as error:
        raise Unparseable(f"the model's answer is not JSON (at character {error.pos} of {len(raw)})") from None
    except (RecursionError, ValueError):  # brackets without end, or digits
        raise Unparseable(f"the model's answer of {len(raw)} characters is no JSON that can be read") from None
    if not isinstance(answer, dict):
        raise Unparseable(f"the model's answer is a JSON {type(answer).__name__}, not an object")
    missing = [key for key in schema.get("required", ()) if key not in answer]
    if missing:
        raise Unparseable(f"the model's answer lacks {', '.join(missing)}")
    return answer
