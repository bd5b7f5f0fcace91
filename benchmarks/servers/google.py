"""Speak Google Gemini's HTTP protocol: `generateContent`, whole or as server-sent events, and embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from benchmarks.servers.local import LocalServer, hang_up, wait_ms
from benchmarks.servers.openai import Pace, Reply, tokens
from benchmarks.servers.vectors import Vectors

_MOST_EMBEDDED = 100


class GeminiServer(LocalServer):
    """Answers with its replies in turn, repeating the last one.

    `requests` has (model, body) in order; `vectors` the bodies of requests for embeddings.
    """

    def __init__(
        self,
        replies: Iterable[Reply] = (Reply("Well met."),),
        *,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        vectors: Vectors | None = None,
        key: str | None = None,
        refuse_with: int | None = None,
    ) -> None:
        super().__init__(key=key, refuse_with=refuse_with)
        self.pace = pace
        self.vectors = vectors or Vectors()
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._replies = list(replies)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1beta/models/{call}", self._generate)]

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        model, _, method = request.match_info["call"].partition(":")
        if method == "batchEmbedContents":
            return await self._embed(request)
        reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append((model, await request.json()))
        await wait_ms(self.pace.ttft_ms)
        parts: list[dict[str, Any]] = [
            {"functionCall": {"name": call.name, "args": json.loads(call.arguments)}} for call in reply.tool_calls
        ]
        parts += [{"text": token} for token in tokens(reply.text)]
        if method == "generateContent":
            whole = "".join(part["text"] for part in parts if "text" in part)
            calls = [part for part in parts if "functionCall" in part]
            return web.json_response(_answer(model, [*calls, {"text": whole}], finish="STOP"))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for n, part in enumerate(parts):
            if n == reply.dies_after:
                hang_up(request)
                return response
            finish = "STOP" if n == len(parts) - 1 else None
            await response.write(f"data: {json.dumps(_answer(model, [part], finish=finish))}\r\n\r\n".encode())
            if self.pace.tokens_per_s:
                await wait_ms(1_000 / self.pace.tokens_per_s)
        await response.write_eof()
        return response

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        asked = body["requests"]
        # One vector for each content, whatever its parts are.
        texts = [" ".join(part["text"] for part in each["content"]["parts"]) for each in asked]
        status = 400 if len(asked) > _MOST_EMBEDDED else self.vectors.take(body, texts)
        if status is not None:
            return _refused(status)
        await wait_ms(self.vectors.delay_ms)
        given = self.vectors.answer(texts, asked[0].get("outputDimensionality") if asked else None)
        # Python's JSON writes NaN, and reads it again.
        return web.json_response({"embeddings": [{"values": list(vector)} for vector in given]})


def _answer(model: str, parts: list[dict[str, Any]], *, finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 1, "candidatesTokenCount": len(parts), "totalTokenCount": len(parts) + 1}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "r1"}


def _refused(status: int) -> web.Response:
    # A wrong key is a bad request at this provider.
    code, name, message = {
        400: (400, "INVALID_ARGUMENT", "This cannot be embedded."),
        401: (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        429: (429, "RESOURCE_EXHAUSTED", "Quota exceeded."),
    }.get(status, (status, "INTERNAL", "An internal error has occurred."))
    return web.json_response({"error": {"code": code, "message": message, "status": name}}, status=code)
