"""Embeddings and structured answers from Google Gemini."""

from __future__ import annotations

from typing import Any

import aiohttp
from google import genai
from google.genai import errors, types
from httpx import HTTPError

from glyphoxa.actors.deadline import answered_within
from glyphoxa.adapters.hosted_embedding import HostedEmbeddings
from glyphoxa.chat.dialect import Connection
from glyphoxa.chat.marks import COMMON
from glyphoxa.chat.questions import JsonSchema, Unparseable, parsed
from glyphoxa.domain.errors import Unavailable

MAX_TEXTS = 100
"""Provider limit: "BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch"."""
_TRIES = 3
_FIRST_PAUSE_S = 0.5
_JITTER_S = 0.5
_IDLE_S = 300
"""How long an idle connection is kept; the default of 15 s is too short for a table that is often quiet."""


class GoogleEmbeddings(HostedEmbeddings):
    most_texts = MAX_TEXTS

    def __init__(self, connection: Connection, *, dimensions: int) -> None:
        super().__init__(connection, dimensions=dimensions)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(keepalive_timeout=_IDLE_S), trust_env=True)
        tries = types.HttpRetryOptions(attempts=_TRIES, initial_delay=_FIRST_PAUSE_S, jitter=_JITTER_S)
        self._client = genai.Client(
            api_key=connection.key,
            http_options=types.HttpOptions(
                base_url=connection.base_url, retry_options=tries, aiohttp_client=self._session
            ),
        )

    async def close(self) -> None:
        await self._client.aio.aclose()
        await self._session.close()

    async def _ask(self, texts: list[str], *, are_questions: bool) -> list[list[float]]:
        # A model that expects the task as a prefix takes no task type.
        task = "RETRIEVAL_QUERY" if are_questions else "RETRIEVAL_DOCUMENT"
        has_prefix = bool(self._prefixes.question if are_questions else self._prefixes.found)
        config = types.EmbedContentConfig(
            task_type=None if has_prefix else task, output_dimensionality=self._dimensions
        )
        # From gemini-embedding-2 on, bare strings are parts of one text and give a single vector.
        contents: list[types.ContentUnion] = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        try:
            answer = await self._client.aio.models.embed_content(model=self._model, contents=contents, config=config)
            return [list(row.values or ()) for row in answer.embeddings or ()]
        except errors.APIError as error:
            # This provider reports a wrong key as a bad request.
            is_about_the_key = "api key" in str(error.message).lower()
            raise self._refused(error.code, str(error.message), is_about_the_key=is_about_the_key) from error
        except (aiohttp.ClientError, HTTPError, OSError) as error:
            raise Unavailable(f"{self._name} cannot be reached: {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise Unavailable(f"{self._name} returned an answer without vectors ({type(error).__name__})") from error


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
