"""Structured answers from the local model, in a slot of its own, so that the NPCs' prompts stay warm in theirs."""

from __future__ import annotations

import asyncio
from typing import Any

from openai import APIError, AsyncOpenAI

from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.structured import JsonSchema, Unparseable, parsed


class LocalStructuredLlm:
    """See `StructuredLlm`. A question that is dropped frees the model within a batch of its prompt, not seconds later.

    Args:
        server: Started; its own grammar holds the answer to the schema.
        slot: One that no NPC uses.
        max_tokens: A longer answer is cut off and therefore unparseable.
    """

    def __init__(self, server: LlamaServer, *, slot: int, max_tokens: int = 400) -> None:
        self._client = AsyncOpenAI(api_key=server.api_key, base_url=server.base_url, max_retries=2)
        self._as_read = server.as_read
        self._max_tokens = max_tokens
        # With `return_progress` the server writes while it reads, and so notices at once that nobody listens.
        self._extras = {"cache_prompt": True, "id_slot": slot, "return_progress": True}

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        named = {"name": str(schema.get("title", "answer")), "schema": dict(schema), "strict": True}
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        # Untyped: the SDK's types do not take a schema that is only known at run time.
        request: dict[str, Any] = {
            "model": "local",
            "messages": self._as_read(messages),
            "temperature": temperature,
            "max_tokens": self._max_tokens,
            "response_format": {"type": "json_schema", "json_schema": named},
            "extra_body": self._extras,
            "stream": True,
        }
        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                return parsed(await self._streamed(request), schema)
        except TimeoutError:
            raise Unavailable(f"the local model did not answer within {deadline_ms} ms") from None
        except APIError as error:
            raise Unavailable(f"the local model cannot be asked: {error.__cause__ or error.message}") from error

    async def _streamed(self, request: dict[str, Any]) -> str:
        pieces: list[str] = []
        async with await self._client.chat.completions.create(**request) as stream:
            async for chunk in stream:
                for choice in chunk.choices:
                    pieces.append(choice.delta.content or "")
                    if choice.finish_reason == "length":
                        raise Unparseable("the model's answer was cut off at its longest")
        return "".join(pieces)

    async def close(self) -> None:
        await self._client.close()
