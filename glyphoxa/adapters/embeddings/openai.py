"""Embeddings over OpenAI's protocol: OpenAI itself, or a server that speaks it (Ollama, llama.cpp, vLLM)."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import openai
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.embeddings.batches import embed_in_batches
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.providers.building import Connection

# What models want before a text to tell questions from what they shall find.


class Prefixes(NamedTuple):
    found: str = ""
    question: str = ""


_GEMMA = Prefixes("title: none | text: ", "task: search result | query: ")
_KNOWN = (
    # ai.google.dev/gemini-api/docs/embeddings: this one takes no task type, but a text that names its task
    (re.compile(r"gemini-embedding-[2-9]"), _GEMMA),
    # and so does its small sister: the model card of google/embeddinggemma-300m
    (re.compile(r"embedding-?gemma"), _GEMMA),
    # model card of nomic-ai/nomic-embed-text-v1.5; Ollama adds nothing by itself
    (re.compile(r"nomic-embed-text"), Prefixes("search_document: ", "search_query: ")),
    # model card of intfloat/multilingual-e5-base
    (re.compile(r"(^|[^a-z])e5-(small|base|large)(?!.*instruct)"), Prefixes("passage: ", "query: ")),
)


def prefixes_of(model: str) -> Prefixes:
    """By the model's name; none for a model that is not known to want any.

    >>> prefixes_of("nomic-embed-text:latest").question
    'search_query: '
    """
    return next((prefixes for name, prefixes in _KNOWN if name.search(model.lower())), Prefixes())


DEADLINE_MS = 10_000
MOST_TEXTS = 128
"""2,048 are taken at once, of 300,000 tokens together (platform.openai.com/docs/api-reference/embeddings). So many of
talk are some 5,000, and what a killed process has to do again."""
_RETRIES = 2
_IDLE_S = 300
"""How long an idle connection is kept. By default it is 5 s: a table is often quiet for longer, and the next question
would wait for a new one (two or three times the way there and back)."""


_WITHOUT_DIMENSIONS = ("text-embedding-ada-002",)
"""OpenAI's model from before its vectors could be cut; it refuses to be asked."""


def openai_itself(connection: Connection, *, dimensions: int) -> OpenAiEmbeddings:
    """Of OpenAI, or a proxy in front of it."""
    asks = connection.model not in _WITHOUT_DIMENSIONS
    return OpenAiEmbeddings(connection, dimensions=dimensions, asks_for_dimensions=asks)


def compatible(connection: Connection, *, dimensions: int) -> OpenAiEmbeddings:
    """Of another server. Few know how to cut their vectors; what they give is checked all the same."""
    return OpenAiEmbeddings(connection, dimensions=dimensions, asks_for_dimensions=False)


class OpenAiEmbeddings:
    """See `Embedder`. Made inside a running event loop; `close` it.

    Args:
        dimensions: What its vectors must have.
        asks_for_dimensions: Have the model cut its vectors to `dimensions`. Not every model does that.
        deadline_ms: For a request, with the tries after a refusal.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        dimensions: int,
        asks_for_dimensions: bool = True,
        deadline_ms: int = DEADLINE_MS,
    ) -> None:
        self._model = connection.model
        self._dimensions = dimensions
        self._prefixes = prefixes_of(connection.model)
        self._deadline_ms = deadline_ms
        self._asked: dict[str, Any] = {"dimensions": dimensions} if asks_for_dimensions else {}
        kind: Any = openai.DefaultAsyncHttpxClient
        # httpx, or what has taken its place: whichever this SDK is made of
        http = importlib.import_module(kind.__base__.__module__.partition(".")[0])
        client = kind(limits=http.Limits(keepalive_expiry=_IDLE_S))
        self._client = openai.AsyncOpenAI(
            api_key=connection.key, base_url=connection.base_url, max_retries=_RETRIES, http_client=client
        )

    most_texts = MOST_TEXTS

    async def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        """As `Embedder.embed`.

        Raises:
            Unavailable: The provider is away, late, refuses the key, or has no such model.
            InvalidInput: It does not take what it is given.
            WrongDimensions: Its vectors have others.
        """
        return await self._embed(texts, self._prefixes.found)

    async def embed_questions(self, texts: Sequence[str]) -> NDArray[float32]:
        """As `embed`."""
        return await self._embed(texts, self._prefixes.question)

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[float32]:
        return await embed_in_batches(
            [prefix + text for text in texts],
            self._ask,
            model=self._model,
            dimensions=self._dimensions,
            most_texts=MOST_TEXTS,
        )

    async def _ask(self, texts: list[str]) -> list[list[float]]:
        name = f"the embeddings model {self._model!r}"
        try:
            async with asyncio.timeout(self._deadline_ms / 1_000):
                answer = await self._client.embeddings.create(model=self._model, input=texts, **self._asked)
            return [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]
        except TimeoutError:
            raise Unavailable(f"{name} did not answer within {self._deadline_ms} ms") from None
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            # The provider's own words quote the key's beginning and end.
            raise Unavailable(f"{name} refuses the key (HTTP {error.status_code})") from None
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise InvalidInput(f"{name} does not take this: {error.message}") from error
        except openai.APIError as error:
            raise Unavailable(f"{name} cannot be asked: {error.message}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise Unavailable(f"{name} gave an answer that holds no vectors ({type(error).__name__})") from error
