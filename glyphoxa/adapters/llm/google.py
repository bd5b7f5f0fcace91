"""Structured answers from Google Gemini."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import ClientError
from google import genai
from google.genai import errors, types
from httpx import HTTPError

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.structured import JsonSchema, Unparseable, parsed
from glyphoxa.providers.building import Connection


class GoogleStructuredLlm:
    """See `StructuredLlm`.

    Args:
        max_tokens: A longer answer is cut off and therefore unparseable.
    """

    def __init__(self, connection: Connection, *, max_tokens: int = 2_000) -> None:
        self._model = connection.model
        self._max_tokens = max_tokens
        # Whoever asks knows whether it is worth asking again.
        options = types.HttpOptions(base_url=connection.base_url, retry_options=types.HttpRetryOptions(attempts=1))
        self._client = genai.Client(api_key=connection.key, http_options=options)

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        config = types.GenerateContentConfig(
            system_instruction=system,
            temperature=temperature,
            max_output_tokens=self._max_tokens,
            response_mime_type="application/json",
            response_json_schema=dict(schema),
        )
        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                response = await self._client.aio.models.generate_content(
                    model=self._model, contents=user, config=config
                )
        except TimeoutError:
            raise Unavailable(f"model {self._model!r} did not answer within {deadline_ms} ms") from None
        except RecursionError:  # the client reads it as JSON by itself
            raise Unparseable("the model's answer is no JSON that can be read") from None
        except errors.APIError as error:
            raise Unavailable(f"model {self._model!r} cannot be asked: {error.message}") from error
        except (ClientError, HTTPError, OSError) as error:
            raise Unavailable(f"model {self._model!r} cannot be reached: {error}") from error
        candidates = response.candidates or []
        if candidates and candidates[0].finish_reason is types.FinishReason.MAX_TOKENS:
            raise Unparseable("the model's answer was cut off at its longest")
        return parsed(response.text, schema)

    async def close(self) -> None:
        await self._client.aio.aclose()
