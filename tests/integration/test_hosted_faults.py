"""Hosted models that answer with something else than asked for: over HTTP, with the real client libraries."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from benchmarks.servers.local import LocalServer
from glyphoxa.adapters.google_models import GoogleEmbeddings, GoogleStructuredLlm
from glyphoxa.adapters.openai_models import OpenAiEmbeddings
from glyphoxa.chat.client import OpenAiStructuredLlm
from glyphoxa.chat.dialect import Connection
from glyphoxa.chat.questions import Unparseable
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.recall.vectors import WrongDimensions

KEY = "secret-1234"
NORTH, EAST, NOWHERE = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [np.nan] * 3
SCHEMA = {"title": "facts", "type": "object", "properties": {"facts": {"type": "array"}}, "required": ["facts"]}
BUSY = {"Retry-After": "30"}


class Fixed(LocalServer):
    """Gives one answer to every request."""

    def __init__(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.body = body if isinstance(body, str) else json.dumps(body)
        self.status = status
        self.headers = {"Content-Type": "application/json", **(headers or {})}
        self.n_asked = 0

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        self.n_asked += 1
        return web.Response(status=self.status, headers=self.headers, body=self.body.encode())

    @property
    def connection(self) -> Connection:
        return Connection("m", self.http_url, KEY)


class Limited(Fixed):
    """Takes so many texts in a request, and never one that is cursed."""

    def __init__(self, most: int, status: int) -> None:
        super().__init__({"error": f"batch size 8 > maximum allowed batch size {most}"}, status)
        self.most = most

    async def _answer(self, request: web.Request) -> web.Response:
        texts = [
            *((await request.json()).get("input") or ()),
            *(each["content"]["parts"][0]["text"] for each in (await request.json()).get("requests", ())),
        ]
        if len(texts) > self.most or "cursed" in texts:
            return await super()._answer(request)
        vectors = [[float(len(text)), 1.0, 0.0] for text in texts]
        if "requests" in await request.json():
            return web.json_response({"embeddings": [{"values": each} for each in vectors]})
        return web.json_response(openai(*vectors))


def openai(*vectors: object) -> dict[str, Any]:
    return {"data": [{"object": "embedding", "index": n, "embedding": each} for n, each in enumerate(vectors)]}


def google(*vectors: object) -> dict[str, Any]:
    return {"embeddings": [{"values": each} for each in vectors]}


def encoded(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


@pytest.mark.parametrize(
    ("kind", "body", "rows"),
    [
        (OpenAiEmbeddings, openai(encoded(NORTH), encoded(EAST)), [NORTH, EAST]),
        (OpenAiEmbeddings, openai(NORTH, None), [NORTH, NOWHERE]),
        (OpenAiEmbeddings, openai([], EAST), [NOWHERE, EAST]),
        (OpenAiEmbeddings, openai(NORTH, [None, None, None]), [NORTH, NOWHERE]),
        (OpenAiEmbeddings, openai(NORTH, [0.0, None, 1.0]), [NORTH, NOWHERE]),
        (OpenAiEmbeddings, {"data": [{"embedding": NORTH}, {"embedding": EAST}]}, [NORTH, EAST]),
        (OpenAiEmbeddings, {"data": [{"embedding": v, "index": 0} for v in (NORTH, EAST)]}, [NORTH, EAST]),
        (
            OpenAiEmbeddings,
            {"data": [{"embedding": EAST, "index": 1}, {"embedding": NORTH, "index": 0}]},
            [NORTH, EAST],
        ),
        (GoogleEmbeddings, google(NORTH, None), [NORTH, NOWHERE]),
        (GoogleEmbeddings, {"embeddings": [{}, {"values": EAST}]}, [NOWHERE, EAST]),
        (GoogleEmbeddings, {**google(NORTH, EAST), "usageMetadata": {"promptTokenCount": "x"}}, [NORTH, EAST]),
    ],
)
async def test_vector_that_is_missing_costs_only_its_text(kind: Any, body: object, rows: object) -> None:
    async with Fixed(body) as server:
        embeddings = kind(server.connection, dimensions=3)
        found = await embeddings.embed(["one", "two"])
        await embeddings.close()
    nowhere = [bool(not np.isfinite(row).all()) for row in found]
    assert nowhere == [each is NOWHERE for each in rows]  # type: ignore[attr-defined]
    assert [row.tolist() for row in found if np.isfinite(row).all()] == [r for r in rows if r is not NOWHERE]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "server", "error", "why"),
    [
        (OpenAiEmbeddings, Fixed({"data": None}), Unavailable, "without vectors"),
        (OpenAiEmbeddings, Fixed(openai(None, None)), Unavailable, "an empty vector for each of 2 texts"),
        (OpenAiEmbeddings, Fixed(openai(NORTH)), Unavailable, "1 vectors for 2 texts"),
        (OpenAiEmbeddings, Fixed(openai([NORTH], [EAST])), Unavailable, "without vectors"),
        (OpenAiEmbeddings, Fixed(openai(NORTH, [1.0])), WrongDimensions, "a vector of 1"),
        (OpenAiEmbeddings, Fixed(json.dumps(openai(NORTH, EAST))[:-9]), Unavailable, "without vectors"),
        (OpenAiEmbeddings, Fixed("<html>Sign in</html>", headers={"Content-Type": "text/html"}), Unavailable, "Sign"),
        (OpenAiEmbeddings, Fixed(""), Unavailable, "without vectors"),
        (OpenAiEmbeddings, Fixed({"error": {"message": "not loaded"}}), Unavailable, "not loaded"),
        (
            OpenAiEmbeddings,
            Fixed({"error": {"message": "try in 30s"}}, 429, BUSY),
            Unavailable,
            "30s (HTTP 429)",
        ),
        (OpenAiEmbeddings, Fixed({"error": {"message": "pull it"}}, 404), Unavailable, "pull it (HTTP 404)"),
        (OpenAiEmbeddings, Fixed({"error": f"{KEY} is disabled"}, 403), Unavailable, "refuses the key (HTTP 403)"),
        (GoogleEmbeddings, Fixed({}), Unavailable, "0 vectors for 2 texts"),
        (GoogleEmbeddings, Fixed(google(None, None)), Unavailable, "an empty vector for each of 2 texts"),
        (GoogleEmbeddings, Fixed(google(NORTH, [1.0])), WrongDimensions, "a vector of 1"),
        (GoogleEmbeddings, Fixed(google(NORTH, [None, 1.0, 1.0])), Unavailable, "without vectors"),
        (GoogleEmbeddings, Fixed(json.dumps(google(NORTH, EAST))[:-9]), Unavailable, "without vectors"),
        (GoogleEmbeddings, Fixed("[]"), Unavailable, "0 vectors for 2 texts"),
    ],
)
async def test_answer_without_vectors_is_one_error_with_its_reason(
    kind: Any, server: Fixed, error: type[GlyphoxaError], why: str
) -> None:
    async with server:
        embeddings = kind(server.connection, dimensions=3)
        with pytest.raises(error) as raised:
            await embeddings.embed(["one", "two"])
        await embeddings.close()
    assert why in str(raised.value)
    assert KEY not in f"{raised.value} {raised.value.__cause__}"
    assert server.n_asked == 1


@pytest.mark.parametrize("kind", [OpenAiEmbeddings, GoogleEmbeddings])
@pytest.mark.parametrize("most", [1, 3, 7])
async def test_provider_that_takes_fewer_texts_is_asked_for_fewer(kind: Any, most: int) -> None:
    texts = ["x" * n for n in range(1, 9)]
    async with Limited(most, status=413 if kind is OpenAiEmbeddings else 400) as server:
        embeddings = kind(server.connection, dimensions=3)
        found = await embeddings.embed(texts)
        await embeddings.close()
    assert [round(row[0] / row[1]) for row in found.tolist()] == [*range(1, 9)]


@pytest.mark.parametrize("kind", [OpenAiEmbeddings, GoogleEmbeddings])
async def test_text_that_is_rejected_costs_only_itself(kind: Any) -> None:
    async with Limited(99, status=400) as server:
        embeddings = kind(server.connection, dimensions=3)
        found = await embeddings.embed(["a", "cursed", "b", "c"])
        await embeddings.close()
    assert [bool(np.isfinite(row).all()) for row in found] == [True, False, True, True]


@pytest.mark.parametrize("kind", [OpenAiEmbeddings, GoogleEmbeddings])
async def test_setting_that_is_rejected_is_reported_after_few_requests(kind: Any) -> None:
    async with Fixed({"error": {"message": "no such dimensions"}}, 400) as server:
        embeddings = kind(server.connection, dimensions=3)
        with pytest.raises(InvalidInput, match="no such dimensions"):
            await embeddings.embed([str(n) for n in range(64)])
        await embeddings.close()
        assert server.n_asked < 10


ANSWERED = {"content": {"role": "model", "parts": [{"text": '{"facts": []}'}]}}


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{**ANSWERED, "finishReason": "STOP"}]},
        {"candidates": [{**ANSWERED, "finishReason": "STOP"}], "usageMetadata": {}},
        {"candidates": [ANSWERED]},
        {"candidates": [{**ANSWERED, "finishReason": "QUARKS", "hologram": {}}], "quarks": 1},
        {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, *ANSWERED["content"]["parts"]]}}]},
    ],
    ids=["no usage", "empty usage", "no reason", "unknown fields", "thoughts"],
)
async def test_gemini_answer_with_missing_or_unknown_fields_is_read(body: object) -> None:
    async with Fixed(body) as server:
        llm = GoogleStructuredLlm(server.connection)
        assert await llm.complete("s", "u", SCHEMA) == {"facts": []}
        await llm.close()


@pytest.mark.parametrize(
    ("server", "error", "why"),
    [
        (Fixed({"promptFeedback": {"blockReason": "SAFETY"}}), Unparseable, "no answer: SAFETY"),
        (Fixed({"promptFeedback": {"blockReason": "QUARKS"}}), Unparseable, "no answer: QUARKS"),
        (Fixed({"candidates": [{"finishReason": "SAFETY"}]}), Unparseable, "no answer: SAFETY"),
        (Fixed({"candidates": [{"finishReason": "RECITATION", "content": {}}]}), Unparseable, "no answer: RECITATION"),
        (Fixed({"candidates": [{"finishReason": "MAX_TOKENS"}]}), Unparseable, "cut off at the length limit"),
        (Fixed({"candidates": []}), Unparseable, "no answer: no reason given"),
        (Fixed({"candidates": [{"content": {"parts": None}}]}), Unparseable, "no answer"),
        (Fixed(json.dumps({"candidates": [ANSWERED]})[:-7]), Unavailable, "unreadable answer"),
        (Fixed("<html>", headers={"Content-Type": "text/html"}), Unavailable, "unreadable answer"),
        (Fixed({"error": {"code": 429, "message": "Quota, retry in 30s"}}, 429, BUSY), Unavailable, "retry in 30s"),
    ],
)
async def test_gemini_without_an_answer_reports_why(server: Fixed, error: type[GlyphoxaError], why: str) -> None:
    async with server:
        llm = GoogleStructuredLlm(server.connection)
        with pytest.raises(error) as raised:
            await llm.complete("s", "u", SCHEMA)
        await llm.close()
    assert why in str(raised.value)


@pytest.mark.parametrize("after", ["30", "Fri, 31 Dec 2100 23:59:59 GMT"])
async def test_wait_that_a_server_asks_for_does_not_hide_its_reason(after: str) -> None:
    async with Fixed({"error": {"message": "Rate limit reached"}}, 429, {"Retry-After": after}) as server:
        llm = OpenAiStructuredLlm(server.connection)
        with pytest.raises(Unavailable, match="Rate limit reached"):
            await llm.complete("s", "u", SCHEMA)
        await llm.close()
        assert server.n_asked == 1
