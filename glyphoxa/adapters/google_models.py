"""Embeddings from Google Gemini."""

from __future__ import annotations

import aiohttp
from google import genai
from google.genai import errors, types
from httpx import HTTPError

from glyphoxa.adapters.hosted_embedding import HostedEmbeddings
from glyphoxa.chat.dialect import Connection
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
