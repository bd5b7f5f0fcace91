"""A server of OpenAI's chat protocol that can be told how it differs from OpenAI's.

It is a real HTTP server: the real client library asks it. A `Rule` refuses requests, and an answer is what it writes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from aiohttp import web

from benchmarks.servers.local import LocalServer, hang_up
from benchmarks.servers.openai import tokens

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """An HTTP status and the body that comes with it."""

    status: int
    body: Any


Rule = Callable[[Body], Refused | None]
"""Returns why a request is refused, or None."""


def error(status: int, message: str, param: str | None = None) -> Refused:
    """Return an error in OpenAI's form."""
    return Refused(status, {"error": {"message": message, "type": "invalid_request_error", "param": param}})


def refuses_null(body: Body) -> Refused | None:
    """llama.cpp and koboldcpp do."""
    null = [name for name, value in body.items() if value is None]
    return error(400, f"type must be number, but is null: {', '.join(null)}") if null else None


def refuses(*names: str, status: int = 422, say: str = "Extra inputs are not permitted: {}") -> Rule:
    """Refuses these fields. The message names the first one."""

    def rule(body: Body) -> Refused | None:
        there = [name for name in names if name in body]
        return error(status, say.format(*there)) if there else None

    return rule


def refuses_as_fastapi(name: str) -> Rule:
    def rule(body: Body) -> Refused | None:
        fault = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        return Refused(422, {"detail": [fault]}) if name in body else None

    return rule


def only(*names: str, say: str = "Bad Request") -> Rule:
    """Refuses every other field, and does not name it."""
    return lambda body: Refused(400, say) if body.keys() - {"model", "messages", *names} else None


def alternates(body: Body) -> Refused | None:
    """Refuse roles that do not alternate, like Mistral's chat template."""
    talk = [message["role"] for message in body["messages"] if message["role"] != "system"]
    others = [message["role"] for message in body["messages"][1:] if message["role"] == "system"]
    if others or talk[:1] != ["user"] or any(one == other for one, other in pairwise(talk)):
        return error(400, "Conversation roles must alternate user/assistant/user/assistant/...")
    return None


def no_system(body: Body) -> Refused | None:
    """Refuse a system role, like Gemma's chat template."""
    has_system = any(message["role"] == "system" for message in body["messages"])
    return error(400, "System role not supported") if has_system else None


@dataclass(frozen=True)
class Answer:
    """The response to an accepted request.

    Attributes:
        gate_after: Waits for the server's gate after so many pieces.
        hangs_up: Drops the connection at the end.
    """

    pieces: Sequence[bytes]
    kind: str = "text/event-stream"
    gate_after: int | None = None
    hangs_up: bool = False


def chunk(delta: Body, *, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice], **more})}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def said(text: str, *, finish: str = "stop", more: Body | None = None, last: Sequence[bytes] = (DONE,)) -> Answer:
    """A stream of the words of a text.

    Args:
        more: Further fields of each chunk.
        last: Pieces after the chunk with the reason to stop.
    """
    deltas = [chunk({"content": token}, **(more or {})) for token in tokens(text)]
    return Answer([*deltas, chunk({}, finish=finish, **(more or {})), *last])


def whole(document: Any, kind: str = "application/json") -> Answer:
    """One body, whatever was requested."""
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    return Answer([text.encode()], kind)


def completion(text: str, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    return {"object": "chat.completion", "choices": [choice]}


class ChatServer(LocalServer):
    """Answers in turn, repeating the last answer. `bodies` has all requests, `accepted` those that were answered.

    Args:
        answering: Chooses the answer to a request, in place of `answers`.
    """

    def __init__(
        self,
        *answers: Answer,
        rules: Sequence[Rule] = (),
        key: str | None = None,
        answering: Callable[[Body], Answer] | None = None,
    ) -> None:
        super().__init__(key=key)
        self.bodies: list[dict[str, Any]] = []
        self.accepted: list[dict[str, Any]] = []
        self.gate = asyncio.Event()
        self._answers = answers or (said("Well met."),)
        self._rules = rules
        self._answering = answering or self._in_turn

    @property
    def base_url(self) -> str:
        return f"{self.http_url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self._complete), web.post("/v1/embeddings", self._complete)]

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        for rule in self._rules:
            if (refused := rule(body)) is not None:
                text = refused.body if isinstance(refused.body, str) else json.dumps(refused.body)
                return web.Response(text=text, status=refused.status, content_type="application/json")
        answer = self._answering(body)
        self.accepted.append(body)
        self.noted()
        response = web.StreamResponse(headers={"Content-Type": answer.kind})
        await response.prepare(request)
        for n, piece in enumerate(answer.pieces):
            if n == answer.gate_after:
                await self.gate.wait()
            await response.write(piece)
        if answer.hangs_up:
            hang_up(request)
        return response

    def _in_turn(self, _body: Body) -> Answer:
        return self._answers[min(len(self.accepted), len(self._answers) - 1)]
