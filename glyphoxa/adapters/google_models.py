"""Embeddings from Google Gemini."""

from __future__ import annotations

import aiohttp
from google import genai
from google.genai import errors, types
from httpx import HTTPError

from glyphoxa.actors.deadline import answered_within
from glyphoxa.adapters.hosted_embedding import HostedEmbeddings
from glyphoxa.chat.dialect import Connection
from glyphoxa.domain.errors import InvalidInput, Unavailable

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
        name = f"the embeddings model {self._model!r}"
        # From gemini-embedding-2 on, bare strings are parts of one text and give a single vector.
        contents: list[types.ContentUnion] = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        try:
            async with answered_within(self.deadline_ms, f"{name} did not answer"):
                answer = await self._client.aio.models.embed_content(
                    model=self._model, contents=contents, config=config
                )
            return [list(row.values or ()) for row in answer.embeddings or ()]
        except errors.APIError as error:
            raise _translated(name, error) from error
        except (aiohttp.ClientError, HTTPError, OSError) as error:
            raise Unavailable(f"{name} cannot be reached: {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise Unavailable(f"{name} returned an answer without vectors ({type(error).__name__})") from error


def _translated(name: str, error: errors.APIError) -> Unavailable | InvalidInput:
    # This provider reports a wrong key as a bad request.
    if error.code in (401, 403) or "api key" in str(error.message).lower():
        return Unavailable(f"{name} refuses the key (HTTP {error.code})")
    if error.code == 400:
        return InvalidInput(f"{name} rejects the request: {error.message}")
    return Unavailable(f"{name} fails: {error.message} (HTTP {error.code})")
