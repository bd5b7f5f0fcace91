"""Speak OpenAI's HTTP protocol: chat completions (streamed or whole, with tool calls), speech, embeddings.

Any OpenAI-compatible service looks the same from outside, so this also stands for those.
"""

from __future__ import annotations

import asyncio
import base64
import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from benchmarks.servers.local import LocalServer, hang_up, tone, until, wait_ms
from benchmarks.servers.vectors import Vectors

SPEECH_RATE_HZ = 24_000


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    arguments: str
    """JSON as a model writes it: it may be invalid."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion.

    Attributes:
        text: Follows the tool calls; a reply with tool calls usually has none.
        dies_after: Drop the connection after this many pieces of the stream.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    dies_after: int | None = None


Chooser = Callable[[Mapping[str, Any]], Reply]
"""Selects the reply to a request's body."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a provider. 0 is as fast as possible.

    Attributes:
        ttft_ms: To the first token.
        tokens_per_s: After it.
        speech_ttfb_ms: To the first byte of speech; the rest follows at once.
        ms_per_character: Length of spoken text.
    """

    ttft_ms: float = 0
    tokens_per_s: float = 0
    speech_ttfb_ms: float = 0
    ms_per_character: int = 60


class OpenAiServer(LocalServer):
    """Answers with its replies in turn, repeating the last one.

    `completions` and `speeches` have the bodies of the requests, in order; `vectors` those for embeddings.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Chooser = (Reply("Well met."),),
        *,
        pace: Pace = Pace(),
        vectors: Vectors | None = None,
        key: str | None = None,
        refuse_with: int | None = None,
    ) -> None:
        super().__init__(key=key, refuse_with=refuse_with)
        self.pace = pace
        self.vectors = vectors or Vectors()
        self.completions: list[dict[str, Any]] = []
        self.speeches: list[dict[str, Any]] = []
        self._choose = replies if callable(replies) else _in_turn(list(replies))

    @property
    def base_url(self) -> str:
        return f"{self.http_url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/chat/completions", self._complete),
            web.post("/v1/audio/speech", self._speak),
            web.post("/v1/embeddings", self._embed),
            web.get("/v1/models", self._models),
        ]

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        await request.read()
        # By the clock, from the request's last byte on: the server's own work is part of its pace, and late waits do
        # not add up over a reply.
        due_s = asyncio.get_running_loop().time() + self.pace.ttft_ms / 1_000
        body = await request.json()
        self.completions.append(body)
        reply = self._choose(body)
        if not body.get("stream"):
            await until(due_s)
            return web.json_response(_whole(body["model"], reply))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        events = [_event(_chunk(body["model"], delta)) for delta in _deltas(reply)]
        await until(due_s)
        await response.prepare(request)
        for n, event in enumerate(events):
            if n == reply.dies_after:
                hang_up(request)
                return response
            await response.write(event)
            if self.pace.tokens_per_s:
                due_s += 1 / self.pace.tokens_per_s
                await until(due_s)
        await response.write(_event(_chunk(body["model"], {}, finish="tool_calls" if reply.tool_calls else "stop")))
        if (body.get("stream_options") or {}).get("include_usage"):
            await response.write(_event({**_chunk(body["model"], {}), "choices": [], "usage": _usage(reply)}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        await request.read()
        due_s = asyncio.get_running_loop().time() + self.pace.speech_ttfb_ms / 1_000
        body = await request.json()
        self.speeches.append(body)
        sound = tone(body["input"], rate_hz=SPEECH_RATE_HZ, ms_per_character=self.pace.ms_per_character)
        response = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
        await response.prepare(request)
        await until(due_s)
        await response.write(sound)
        await response.write_eof()
        return response

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if (status := self.vectors.take(body, texts)) is not None:
            return _refused(status, is_final=False)
        await wait_ms(self.vectors.delay_ms)
        given = self.vectors.answer(texts, body.get("dimensions"))
        as_base64 = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": n, "embedding": _written(vector, as_base64)}
            for n, vector in enumerate(given)
        ]
        data.reverse()  # the index has their order, and the list does not
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return web.json_response({"object": "list", "data": data, "model": body["model"], "usage": usage})

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if (status := self.refusal(request)) is not None:
            return _refused(status)
        return web.json_response({"object": "list", "data": [{"id": "local", "object": "model"}]})


def _in_turn(replies: list[Reply]) -> Chooser:
    left = iter(replies)

    def choose(_body: Mapping[str, Any]) -> Reply:
        return next(left, replies[-1])

    return choose


def _refused(status: int, *, is_final: bool = True) -> web.Response:
    message, code = {
        400: ("This cannot be embedded.", "invalid_value"),
        401: ("Incorrect API key provided.", "invalid_api_key"),
        429: ("Rate limit reached for requests.", "rate_limit_exceeded"),
    }.get(status, ("The server had an error while processing your request.", "server_error"))
    error = {"message": message, "type": code, "param": None, "code": code}
    headers = {"x-should-retry": "false"} if is_final else {"retry-after-ms": "1"}
    return web.json_response({"error": error}, status=status, headers=headers)


def _deltas(reply: Reply) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for index, call in enumerate(reply.tool_calls):
        head = {"index": index, "id": f"call_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
        half = len(call.arguments) // 2
        # Arguments come in pieces that are not JSON by themselves.
        pieces = (call.arguments[:half], call.arguments[half:])
        deltas.extend({"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces)
    return [*deltas, *({"content": token} for token in tokens(reply.text))]


def tokens(text: str) -> list[str]:
    """Return words with the space before them, as most models' tokens come."""
    return [word if n == 0 else f" {word}" for n, word in enumerate(text.split(" "))] if text else []


def _event(payload: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(payload)}\n\n".encode()


def _chunk(model: str, delta: Mapping[str, Any], *, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}


def _whole(model: str, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for n, call in enumerate(reply.tool_calls)
        ]
    finish = "tool_calls" if reply.tool_calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": _usage(reply),
    }


def _usage(reply: Reply) -> dict[str, int]:
    n = len(tokens(reply.text))
    return {"prompt_tokens": 1, "completion_tokens": n, "total_tokens": n + 1}


def _written(vector: Sequence[float], as_base64: bool) -> str | list[float]:
    single = array("f", vector)
    return base64.b64encode(single.tobytes()).decode() if as_base64 else list(single)
