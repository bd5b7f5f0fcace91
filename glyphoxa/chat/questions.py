"""Structured model output for background work: extraction, correction, summaries. Never used in a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.config import JsonDict
from pydantic_core import CoreSchema, core_schema

from glyphoxa.domain.errors import GlyphoxaError

JsonSchema = Mapping[str, Any]


def _for_model(schema: JsonDict) -> None:
    """Drop what only explains the code: a model would read it as part of its task."""
    schema.pop("description", None)
    schema["additionalProperties"] = False
    for part in cast(dict[str, JsonDict], schema["properties"]).values():
        part.pop("title", None)


class ModelAnswer(BaseModel):
    """An answer of a model. Its fields are the schema; others are ignored, and limits of a list are only requested."""

    model_config = ConfigDict(strict=True, frozen=True, json_schema_extra=_for_model)


Answer = TypeVar("Answer", bound=ModelAnswer)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Restricts a text of an answer to these values, as in `Annotated[str, OneOf(("low", "high"))]`."""

    values: Sequence[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema([*self.values])


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
            Unparseable: The answer is not a JSON object, or was cut off.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelQuestion(Generic[Answer]):
    """A request to a model. `glyphoxa.chat.asker` sends it.

    Attributes:
        answer: The form of the answer.
        limits: Additions to the schema in this question, by place: "facts.*.about" is a field of each fact.
    """

    answer: type[Answer]
    system: str
    user: str
    limits: Mapping[str, JsonSchema] = field(default_factory=dict)

    @property
    def schema(self) -> JsonSchema:
        schema = self.answer.model_json_schema()
        for place, more in self.limits.items():
            part = schema
            for step in place.split("."):
                part = part["items"] if step == "*" else part["properties"][step]
            part |= more
        return schema


def validated(answer: type[Answer], fields: object, *, what: str = "the model's answer") -> Answer:
    """Check the form of an answer, or of a part of one.

    Args:
        what: Its name in the error.

    Raises:
        Unparseable: It has another form. The message names fields of the form, and shows nothing of the answer.
    """
    try:
        return answer.model_validate(fields)
    except ValidationError as error:
        places = {place for each in error.errors(include_input=False) for place in each["loc"][:1]}
        wrong = ", ".join(name for name in answer.model_fields if name in places)
        raise Unparseable(f"{what} is of another form{wrong and ': '}{wrong}") from None


def take_each(
    parts: Sequence[object], form: type[Answer], take: Callable[[Answer], object], *, what: str, most: int
) -> list[str]:
    """Give each part of an answer to `take`, so that a bad one costs no other.

    Args:
        take: Raises `Unparseable` for a part that it refuses.
        what: The name of the parts in reasons.
        most: Further parts are refused.

    Returns:
        Why parts were refused. No reason quotes the answer or the transcript.
    """
    refused = []
    for number, part in enumerate(parts[:most], start=1):
        try:
            take(validated(form, part, what="it"))
        except Unparseable as why:
            refused.append(f"{what}, number {number}: {why}")
    if len(parts) > most:
        refused.append(f"{what}: {len(parts) - most} more than requested")
    return refused


def json_object(text: str | bytes | bytearray) -> dict[str, Any] | None:
    """Parse a JSON object; None if the text is something else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def parsed(text: str | None) -> dict[str, Any]:
    """Parse the object in a model's answer. Strips the code fence that models like to add.

    Raises:
        Unparseable: There is none. The message shows nothing of the answer.
    """
    raw = (text or "").strip()
    if raw.startswith("```"):
        raw = raw.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if (answer := json_object(raw)) is None:
        raise Unparseable(f"the model's answer of {len(raw)} characters is no JSON object")
    return answer
