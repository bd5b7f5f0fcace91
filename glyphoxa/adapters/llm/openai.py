"""Structured answers over OpenAI's protocol: OpenAI, a compatible server, Ollama, the local model's own port."""

from __future__ import annotations

import asyncio
from typing import Any

from openai import APIError, AsyncOpenAI

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.structured import JsonSchema, Unparseable, parsed
from glyphoxa.providers.building import Connection


class OpenAiStructuredLlm:
    """See `StructuredLlm`.

    Args:
        max_tokens: A longer answer is cut off and therefore unparseable.
    """

    def __init__(self, connection: Connection, *, max_tokens: int = 2_000) -> None:
        self._model = connection.model
        limit = "max_completion_tokens" if connection.base_url is None else "max_tokens"
        self._limit: dict[str, Any] = {limit: max_tokens}
        self._client = AsyncOpenAI(api_key=connection.key, base_url=connection.base_url, max_retries=1)

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        named = {"name": str(schema.get("title", "answer")), "schema": dict(schema), "strict": True}
        # Untyped: the SDK's types do not take a schema that is only known at run time.
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": temperature,
            "response_format": {"type": "json_schema", "json_schema": named},
            **self._limit,
        }
        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                completion = await self._client.chat.completions.create(**request)
        except TimeoutError:
            raise Unavailable(f"model {self._model!r} did not answer within {deadline_ms} ms") from None
        except APIError as error:
            raise Unavailable(f"model {self._model!r} cannot be asked: {error.message}") from error
        choice = completion.choices[0]
        if choice.finish_reason == "length":
            raise Unparseable("the model's answer was cut off at its longest")
        return parsed(choice.message.content, schema)

    async def close(self) -> None:
        await self._client.close()
