"""Models over OpenAI's protocol (OpenAI, Ollama, llama.cpp, vLLM): embeddings, structured answers and reranking."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import openai
from numpy import float32
from numpy.typing import NDArray
from openai import APIError, AsyncOpenAI, AuthenticationError, PermissionDeniedError

from glyphoxa.adapters.hosted_embedding import embed_in_batches, prefixes_of
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.structured import JsonSchema, Unparseable, parsed
from glyphoxa.providers.building import Connection

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer

DEADLINE_MS = 10_000
MOST_TEXTS = 128
"""2,048 are taken at once, of 300,000 tokens together (platform.openai.com/docs/api-reference/embeddings). So many of
talk are some 5,000, and what a killed process has to do again."""
_RETRIES = 2
IDLE_S = 240.0
"""How long an idle connection is kept. By default it is 5 s: a table is often quiet for minutes, and a new connection
costs two or three ways there and back. Proxies drop an idle one after four minutes at the earliest (Azure; AWS: 350 s);
a server that closes it says so."""


def kept_open() -> Any:
    """An HTTP client for `AsyncOpenAI` that keeps idle connections for `IDLE_S`. Its user closes it."""
    kind: Any = openai.DefaultAsyncHttpxClient
    # httpx, or what has taken its place: whichever this SDK is made of.
    http = importlib.import_module(kind.__base__.__module__.partition(".")[0])
    return kind(limits=http.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=IDLE_S))


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
        self._client = AsyncOpenAI(
            api_key=connection.key, base_url=connection.base_url, max_retries=_RETRIES, http_client=kept_open()
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
        except (AuthenticationError, PermissionDeniedError) as error:
            # The provider's own words quote the key's beginning and end.
            raise Unavailable(f"{name} refuses the key (HTTP {error.status_code})") from None
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise InvalidInput(f"{name} does not take this: {error.message}") from error
        except APIError as error:
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
        request = {**_structured(schema), "messages": _messages(system, user), "temperature": temperature}
        try:
            async with asyncio.timeout(deadline_ms / 1_000):
                completion = await self._client.chat.completions.create(model=self._model, **self._limit, **request)
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
        request: dict[str, Any] = {
            **_structured(schema),
            "model": "local",
            "messages": self._as_read(_messages(system, user)),
            "temperature": temperature,
            "max_tokens": self._max_tokens,
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


def _structured(schema: JsonSchema) -> dict[str, Any]:
    """Asks for an answer of that form. Untyped: the SDK's types take no schema that is only known at run time."""
    named = {"name": str(schema.get("title", "answer")), "schema": dict(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _messages(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


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
