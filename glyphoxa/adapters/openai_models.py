"""Models behind OpenAI's API (OpenAI, Ollama, llama.cpp, vLLM): embeddings and reranking."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from openai import APIError, APIStatusError, AsyncOpenAI, AuthenticationError, PermissionDeniedError
from pydantic import BaseModel, ValidationError

from glyphoxa.adapters.hosted_embedding import HostedEmbeddings
from glyphoxa.chat.client import error_text, kept_open
from glyphoxa.chat.dialect import Connection, Dialect, Rejection
from glyphoxa.domain.errors import Unavailable, shown

MAX_TEXTS = 128
"""Texts per request. The limit is 2,048 texts or 300,000 tokens (platform.openai.com/docs/api-reference/embeddings).

128 chunks of a transcript have about 5,000 tokens, the most work a killed process must repeat."""
_RETRIES = 2

_WITHOUT_DIMENSIONS = ("text-embedding-ada-002",)
"""OpenAI's model from before vectors could be shortened; it rejects the parameter."""


def openai_itself(connection: Connection, *, dimensions: int) -> OpenAiEmbeddings:
    """Embeddings of OpenAI, or of a proxy for it."""
    asks = connection.model not in _WITHOUT_DIMENSIONS
    return OpenAiEmbeddings(connection, dimensions=dimensions, asks_for_dimensions=asks)


class OpenAiEmbeddings(HostedEmbeddings):
    """
    Args:
        asks_for_dimensions: Ask the model to shorten its vectors to `dimensions`. Few models besides OpenAI's own can;
            the length is checked in any case.
    """

    most_texts = MAX_TEXTS

    def __init__(self, connection: Connection, *, dimensions: int, asks_for_dimensions: bool = False) -> None:
        super().__init__(connection, dimensions=dimensions)
        self._asked: dict[str, Any] = {"dimensions": dimensions} if asks_for_dimensions else {}
        self._dialect = Dialect()
        self._client = AsyncOpenAI(
            api_key=connection.key, base_url=connection.base_url, max_retries=_RETRIES, http_client=kept_open()
        )

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, texts: list[str], *, are_questions: bool) -> list[list[float]]:
        try:
            return _vectors(await self._answer(texts))
        except APIStatusError as error:
            why = error_text(error.body) or error.message
            raise self._refused(error.status_code, why) from None
        except APIError as error:
            raise Unavailable(f"{self._name} fails: {error.message}") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise Unavailable(f"{self._name} returned an answer without vectors: {error}") from error

    async def _answer(self, texts: list[str]) -> object:
        """Return the body of the answer. Optional fields that the server refuses are not sent again."""
        request = {"model": self._model, "input": texts, "encoding_format": "base64", **self._asked}
        while True:
            fields = self._dialect.fitted(request)
            try:
                return await self._client.post("/embeddings", cast_to=object, body=fields)
            except APIStatusError as error:
                refusal = Rejection(error.status_code, error_text(error.body or error.message))
                refused = refusal.names & (fields.keys() - {"model", "input"})
                if error.status_code not in (400, 422) or not refused:
                    raise
                self._dialect = replace(self._dialect, omits=self._dialect.omits | refused)


def _vectors(answer: object) -> list[list[float]]:
    """Return the vectors of an answer, in the order of the texts.

    Raises:
        ValueError, TypeError, LookupError: It has none.
    """
    if not isinstance(answer, Mapping) or not isinstance(answer.get("data"), list):
        raise ValueError(shown(str(answer)))
    # Some servers number no row, or each as 0: then the order is that of the texts.
    rows = sorted(answer["data"], key=lambda row: int(row.get("index") or 0))
    return [_vector(row["embedding"]) for row in rows]


def _vector(embedding: Any) -> list[float]:
    if isinstance(embedding, str):
        return [*map(float, np.frombuffer(base64.b64decode(embedding), dtype="<f4"))]
    # llama.cpp writes null for a number that is not finite; some servers write it for the whole vector.
    return [math.nan if value is None else float(value) for value in embedding or ()]


class HttpReranker:
    """A reranker over HTTP. Create inside a running event loop; `close` it. The caller sets the time limit.

    Args:
        connection: Its address is the parent of `/rerank`: "https://api.cohere.com/v2", "http://127.0.0.1:8080/v1".
    """

    def __init__(self, connection: Connection) -> None:
        self._model = connection.model
        self._client = AsyncOpenAI(api_key=connection.key, base_url=connection.base_url, max_retries=1)

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers the question: any scale, higher is better, one for each text.

        Raises:
            Unavailable: It cannot be reached, refuses the key, or does not return one number per text.
        """
        name = f"the reranker {self._model!r}"
        body = {"model": self._model, "query": question, "documents": list(texts)}
        try:
            answer = await self._client.post("/rerank", cast_to=object, body=body)
        except (AuthenticationError, PermissionDeniedError) as error:
            # The provider's message may quote the key.
            raise Unavailable(f"{name} refuses the key (HTTP {error.status_code})") from None
        except APIError as error:
            raise Unavailable(f"{name} fails: {error.message}") from error
        try:
            scores = {each.index: each.relevance_score for each in _Scores.model_validate(answer).results}
        except ValidationError:
            scores = {}
        if sorted(scores) != list(range(len(texts))):
            raise Unavailable(f"{name} did not return a score for each of {len(texts)} texts")
        return [scores[at] for at in range(len(texts))]

    async def close(self) -> None:
        await self._client.close()


class _Score(BaseModel, strict=True):
    index: int
    relevance_score: float


class _Scores(BaseModel, strict=True):
    results: list[_Score]
