"""Shared code of hosted embedders: preparing texts, and checking and scaling vectors."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.actors.deadline import answered_within
from glyphoxa.chat.dialect import Connection
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.recall.vectors import WrongDimensions

_MAX_BYTES = 8_000
"""Maximum bytes of one text: models read 8,192 tokens (Gemini's first one 2,048), and a token is at least one byte.

Transcript chunks have a few hundred bytes; this protects against anything else."""
_REJECTED = (400, 413, 422)
"""413: Text Embeddings Inference, for a batch that is too large."""


class HostedEmbeddings(ABC):
    """See `Embedder`. Create inside a running event loop; `close` it.

    Args:
        dimensions: Required length of the vectors.
    """

    most_texts: ClassVar[int]
    deadline_ms: ClassVar[int] = 10_000
    """For a request including retries."""

    def __init__(self, connection: Connection, *, dimensions: int) -> None:
        self._model = connection.model
        self._name = f"the embeddings model {connection.model!r}"
        self._dimensions = dimensions
        self._prefixes = prefixes_of(connection.model)

    async def embed(self, texts: Sequence[str]) -> NDArray[float32]:
        """Embed utterances; see `Embedder.embed`.

        Raises:
            Unavailable: The provider is away, late, refuses the key, or has no such model.
            InvalidInput: The provider rejects the request.
            WrongDimensions: Its vectors have another length.
        """
        return await self._embed(texts, self._prefixes.found, are_questions=False)

    async def embed_questions(self, texts: Sequence[str]) -> NDArray[float32]:
        """Embed questions, otherwise like `embed`."""
        return await self._embed(texts, self._prefixes.question, are_questions=True)

    @abstractmethod
    async def close(self) -> None: ...

    async def _embed(self, texts: Sequence[str], prefix: str, *, are_questions: bool) -> NDArray[float32]:
        """float32, shape (len(texts), dimensions), rows of unit length; a failed row is zero or not finite.

        A request that the provider rejects is sent again in halves, because it may contain too many texts or one that
        the model does not take. The row of a rejected text is not finite, and so is that of a text without a vector.

        Raises:
            Unavailable: The provider returned a different number of vectors than texts, or none.
            InvalidInput: It rejects every text.
            WrongDimensions: The vectors have a different length.
        """
        rows = np.full((len(texts), self._dimensions), np.nan, float32)
        parts = [(start, min(start + self.most_texts, len(texts))) for start in range(0, len(texts), self.most_texts)]
        n_answered = n_rejected = 0
        while parts:
            start, end = parts.pop(0)
            try:
                sent = [_sendable(prefix + text) for text in texts[start:end]]
                async with answered_within(self.deadline_ms, f"{self._name} did not answer"):
                    vectors = await self._ask(sent, are_questions=are_questions)
            except InvalidInput:
                n_rejected += end - start == 1
                # Two texts are rejected and none is taken: the reason is hardly one of the texts.
                if not n_answered and (n_rejected > 1 or len(texts) == 1):
                    raise
                if end - start > 1:
                    middle = (start + end) // 2
                    parts[:0] = [(start, middle), (middle, end)]
                continue
            n_answered += 1
            if len(vectors) != end - start:
                raise Unavailable(f"{self._model} returned {len(vectors)} vectors for {end - start} texts")
            for at, vector in enumerate(vectors, start):
                if len(vector) not in (0, self._dimensions):
                    raise WrongDimensions(model=self._model, wanted=self._dimensions, given=len(vector))
                if len(vector):
                    rows[at] = _unit(vector)
            if not any(len(vector) for vector in vectors):
                raise Unavailable(f"{self._model} returned an empty vector for each of {len(vectors)} texts")
        return rows

    @abstractmethod
    async def _ask(self, texts: list[str], *, are_questions: bool) -> list[list[float]]:
        """Send one request.

        Raises:
            Unavailable, InvalidInput: See `embed`.
        """

    def _refused(self, status: int, why: str, *, is_about_the_key: bool = False) -> Unavailable | InvalidInput:
        """Return the error for an answer of this HTTP status. One about the key may quote it, and is not shown."""
        if is_about_the_key or status in (401, 403):
            return Unavailable(f"{self._name} refuses the key (HTTP {status})")
        if status in _REJECTED:
            return InvalidInput(f"{self._name} rejects the request: {why}")
        return Unavailable(f"{self._name} fails: {why} (HTTP {status})")


def _sendable(text: str) -> str:
    """Remove lone surrogates, which cannot be sent, and truncate; never empty, which providers reject."""
    return text.encode("utf-8", "replace")[:_MAX_BYTES].decode("utf-8", "ignore") or " "


def _unit(vector: Sequence[float]) -> NDArray[float32]:
    """Scale to unit length: a vector truncated to fewer dimensions no longer has it."""
    whole = np.asarray(vector, np.float64)
    length = np.linalg.norm(whole)
    unit: NDArray[float32] = (whole / length if np.isfinite(length) and length > 0 else whole).astype(float32)
    return unit


class Prefixes(NamedTuple):
    """Prefixes by which a model distinguishes questions from documents."""

    found: str = ""
    question: str = ""


_GEMMA = Prefixes("title: none | text: ", "task: search result | query: ")
_KNOWN = (
    # ai.google.dev/gemini-api/docs/embeddings: takes no task type, but a text that names its task
    (re.compile(r"gemini-embedding-[2-9]"), _GEMMA),
    # and so does its smaller sibling: the model card of google/embeddinggemma-300m
    (re.compile(r"embedding-?gemma"), _GEMMA),
    # model card of nomic-ai/nomic-embed-text-v1.5; Ollama adds nothing by itself
    (re.compile(r"nomic-embed-text"), Prefixes("search_document: ", "search_query: ")),
    # model card of intfloat/multilingual-e5-base
    (re.compile(r"(^|[^a-z])e5-(small|base|large)(?!.*instruct)"), Prefixes("passage: ", "query: ")),
)


def prefixes_of(model: str) -> Prefixes:
    """Prefixes by the model's name; none for an unknown model.

    >>> prefixes_of("nomic-embed-text:latest").question
    'search_query: '
    """
    return next((prefixes for name, prefixes in _KNOWN if name.search(model.lower())), Prefixes())
