"""Reranking over the protocol that Cohere began: Cohere, Jina, llama.cpp, vLLM and others answer `POST /rerank`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openai import APIError, AsyncOpenAI, AuthenticationError, PermissionDeniedError

from glyphoxa.domain.errors import Unavailable
from glyphoxa.providers.building import Connection


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
