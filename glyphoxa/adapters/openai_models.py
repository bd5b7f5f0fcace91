"""Models over OpenAI's protocol (OpenAI, Ollama, llama.cpp, vLLM): embeddings, structured answers and reranking."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import openai
from numpy import float32
from numpy.typing import NDArray
from openai import APIError, AsyncOpenAI, AuthenticationError, PermissionDeniedError

from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.structured import JsonSchema, Unparseable, parsed
from glyphoxa.providers.building import Connection
from glyphoxa.recall.vectors import WrongDimensions

_MOST_BYTES = 8_000
"""Of one text: models read 8,192 tokens (Gemini's first 2,048, and leaves the rest), and no token is less than a byte.
Talk comes in pieces of a few hundred bytes; this is for what is no talk."""

Ask = Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]]


async def embed_in_batches(
    texts: Sequence[str], ask: Ask, *, model: str, dimensions: int, most_texts: int
) -> NDArray[float32]:
    """float32, shape (len(texts), dimensions), rows of unit length; a row that the provider could not give is not
    finite or zero.

    Args:
        ask: One request.
        model: For messages.
        most_texts: Of one request.

    Raises:
        Unavailable: The provider gave another number of vectors than there are texts.
        WrongDimensions: They have other dimensions.
    """
    rows = np.empty((len(texts), dimensions), float32)
    at = 0
    for batch in _batches([_sendable(text) for text in texts], most_texts):
        vectors = await ask(batch)
        if len(vectors) != len(batch):
            raise Unavailable(f"{model} gave {len(vectors)} vectors for {len(batch)} texts")
        for vector in vectors:
            if len(vector) != dimensions:
                raise WrongDimensions(model=model, wanted=dimensions, given=len(vector))
            rows[at] = _unit(vector)
            at += 1
    return rows


def _batches(texts: Sequence[str], most_texts: int) -> Iterator[list[str]]:
    for at in range(0, len(texts), most_texts):
        yield list(texts[at : at + most_texts])


def _sendable(text: str) -> str:
    """Without half characters, which cannot be sent, and not too long; never empty, which is refused."""
    return text.encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore") or " "


def _unit(vector: Sequence[float]) -> NDArray[float32]:
    """A vector that was cut off to fewer dimensions is no longer of unit length."""
    whole = np.asarray(vector, np.float64)
    length = np.linalg.norm(whole)
    unit: NDArray[float32] = (whole / length if np.isfinite(length) and length > 0 else whole).astype(float32)
    return unit


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


class HttpReranker:
    """See `glyphoxa.memory_graph.methods.Reranker`. Made inside a running event loop; `close` it. Whoever asks
    says how long it may take.

    Args:
        connection: Its address is the one above `/rerank`: "https://api.cohere.com/v2", "http://127.0.0.1:8080/v1".
    """

    def __init__(self, connection: Connection) -> None:
        self._model = connection.model
        self._client = AsyncOpenAI(api_key=connection.key, base_url=connection.base_url, max_retries=1)

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker.rerank`.

        Raises:
            Unavailable: It cannot be reached, refuses the key, or gives something else than a number for each text.
        """
        name = f"the reranker {self._model!r}"
        body = {"model": self._model, "query": question, "documents": list(texts)}
        try:
            answer = await self._client.post("/rerank", cast_to=object, body=body)
        except (AuthenticationError, PermissionDeniedError) as error:
            # The provider's own words may quote the key.
            raise Unavailable(f"{name} refuses the key (HTTP {error.status_code})") from None
        except APIError as error:
            raise Unavailable(f"{name} cannot be asked: {error.message}") from error
        scores = _scores(answer)
        if sorted(scores) != list(range(len(texts))):
            raise Unavailable(f"{name} gave no number to each of {len(texts)} texts")
        return [scores[at] for at in range(len(texts))]

    async def close(self) -> None:
        await self._client.close()


def _scores(answer: object) -> dict[int, float]:
    """By the place of the text; without what is no score."""
    results = answer.get("results") if isinstance(answer, Mapping) else None
    scores: dict[int, float] = {}
    for result in results if isinstance(results, list) else ():
        index, score = (
            (result.get("index"), result.get("relevance_score")) if isinstance(result, Mapping) else (None, None)
        )
        if type(index) is int and isinstance(score, int | float):
            scores[index] = float(score)
    return scores
