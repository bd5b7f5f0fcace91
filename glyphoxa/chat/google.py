"""Structured answers from Google Gemini."""

from __future__ import annotations

from typing import Any

import aiohttp
from google import genai
from google.genai import errors, types
from httpx import HTTPError

from glyphoxa.actors.deadline import answered_within
from glyphoxa.chat.dialect import Connection
from glyphoxa.chat.marks import COMMON
from glyphoxa.chat.questions import JsonSchema, Unparseable, parsed
from glyphoxa.domain.errors import Unavailable


def _why_it_ended(response: types.GenerateContentResponse) -> str:
    """Return the reason as Google names it, such as SAFETY; empty if there is none."""
    feedback, candidates = response.prompt_feedback, response.candidates or []
    reason = candidates[0].finish_reason if candidates else feedback.block_reason if feedback is not None else None
    return reason.value if reason is not None else ""


class GoogleStructuredLlm:
    """See `StructuredLlm`.

    Args:
        max_tokens: A longer answer is cut off and therefore unparseable.
    """

    def __init__(self, connection: Connection, *, max_tokens: int = 2_000) -> None:
        self._model = connection.model
        self._max_tokens = max_tokens
        # The caller decides whether to retry.
        options = types.HttpOptions(base_url=connection.base_url, retry_options=types.HttpRetryOptions(attempts=1))
        self._client = genai.Client(api_key=connection.key, http_options=options)

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        config = types.GenerateContentConfig(
            system_instruction=COMMON.broken(system),
            temperature=temperature,
            max_output_tokens=self._max_tokens,
            response_mime_type="application/json",
            response_json_schema=dict(schema),
        )
        try:
            async with answered_within(deadline_ms, f"model {self._model!r} did not answer"):
                response = await self._client.aio.models.generate_content(
                    model=self._model, contents=COMMON.broken(user), config=config
                )
        except RecursionError:  # the client parses the JSON itself
            raise Unparseable("the model's answer is not readable JSON") from None
        except errors.APIError as error:
            raise Unavailable(f"model {self._model!r} fails: {error.message}") from error
        except (aiohttp.ClientError, HTTPError, OSError) as error:
            raise Unavailable(f"model {self._model!r} cannot be reached: {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"model {self._model!r} returned an unreadable answer ({type(error).__name__})"
            ) from error
        text, why = response.text, _why_it_ended(response)
        if why == types.FinishReason.MAX_TOKENS:
            raise Unparseable("the model's answer was cut off at the length limit")
        if not text:
            raise Unparseable(f"the model gave no answer: {why or 'no reason given'}")
        return parsed(text)

    async def close(self) -> None:
        await self._client.aio.aclose()
