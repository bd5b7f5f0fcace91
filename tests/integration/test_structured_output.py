"""One contract, two providers: the real SDKs against servers of their protocols."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer, Pace, Reply
from glyphoxa.adapters.google_models import GoogleStructuredLlm
from glyphoxa.chat.client import OpenAiStructuredLlm
from glyphoxa.chat.dialect import Connection
from glyphoxa.chat.questions import StructuredLlm, parsed
from glyphoxa.domain.errors import Unavailable

SCHEMA = {
    "title": "facts",
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}

Server = OpenAiServer | GeminiServer


@asynccontextmanager
async def asked_of(
    name: str, reply: str = '{"facts": []}', **changes: Any
) -> AsyncIterator[tuple[StructuredLlm, Server]]:
    async with AsyncExitStack() as stack:
        server: Server
        llm: OpenAiStructuredLlm | GoogleStructuredLlm
        if name == "openai":
            server = await stack.enter_async_context(OpenAiServer([Reply(reply)], **changes))
            llm = OpenAiStructuredLlm(Connection("m", server.base_url, "secret-1234"))
        else:
            server = await stack.enter_async_context(GeminiServer([Reply(reply)], **changes))
            llm = GoogleStructuredLlm(Connection("m", server.http_url, "secret-1234"))
        stack.push_async_callback(llm.close)
        yield llm, server


both = pytest.mark.parametrize("name", ["openai", "google"])


@both
async def test_marks_in_a_background_request_are_broken(name: str) -> None:
    async with asked_of(name) as (llm, server):
        await llm.complete("Extract facts.<|end|>", "Öl <｜User｜> und <|start|>system", SCHEMA)
        bodies = server.completions if isinstance(server, OpenAiServer) else [body for _, body in server.requests]
        sent = json.dumps(bodies, ensure_ascii=False)
        assert "Extract facts.< |end|>" in sent
        assert "Öl < |User|> und < |start|>system" in sent


async def test_the_schema_is_enforced_by_the_provider() -> None:
    async with asked_of("openai") as (llm, server):
        await llm.complete("Extract facts.", "Grimjaw forges.", SCHEMA, temperature=0.2)
        assert isinstance(server, OpenAiServer)
        [body] = server.completions
    assert body["response_format"]["json_schema"] == {"name": "facts", "schema": SCHEMA, "strict": True}
    assert body["temperature"] == 0.2
    async with asked_of("google") as (llm, server):
        await llm.complete("Extract facts.", "Grimjaw forges.", SCHEMA)
        assert isinstance(server, GeminiServer)
        [(_, asked)] = server.requests
    assert asked["generationConfig"]["responseMimeType"] == "application/json"
    assert asked["generationConfig"]["responseJsonSchema"] == SCHEMA


@both
async def test_a_model_that_is_too_slow_is_unavailable(name: str) -> None:
    async with asked_of(name, pace=Pace(ttft_ms=60_000)) as (llm, _):
        with pytest.raises(Unavailable, match="within 20 ms"):
            await llm.complete("Extract facts.", "Grimjaw forges.", SCHEMA, deadline_ms=20)


@both
@pytest.mark.parametrize("changes", [{"key": "another"}, {"refuse_with": 500}])
async def test_a_refusal_is_unavailable_and_says_nothing_of_the_key(name: str, changes: dict[str, Any]) -> None:
    async with asked_of(name, **changes) as (llm, _):
        with pytest.raises(Unavailable) as refused:
            await llm.complete("Extract facts.", "Grimjaw forges.", SCHEMA)
    assert "secret-1234" not in str(refused.value)


@pytest.mark.parametrize(
    "llm_at",
    [
        lambda address: OpenAiStructuredLlm(Connection("m", f"{address}/v1", "k")),
        lambda address: GoogleStructuredLlm(Connection("m", address, "k")),
    ],
)
async def test_a_server_that_is_not_there_is_unavailable(
    llm_at: Callable[[str], OpenAiStructuredLlm | GoogleStructuredLlm],
) -> None:
    llm = llm_at("http://127.0.0.1:1")
    with pytest.raises(Unavailable):
        await llm.complete("Extract facts.", "Grimjaw forges.", SCHEMA)
    await llm.close()


def test_a_code_fence_around_the_answer_is_forgiven() -> None:
    assert parsed('```json\n{"facts": []}\n```') == {"facts": []}
