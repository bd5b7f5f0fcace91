"""A language model summarises a running session, over the providers' own protocols."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import pytest

from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.app.background import summariser_at_table, talk_readers_at_table
from glyphoxa.chronicle.summaries import LlmSummariser
from glyphoxa.config.settings import Settings
from glyphoxa.transcript.sessions import SummarySentence
from tests.support.builders import a_campaign, an_utterance

pytestmark = pytest.mark.usefixtures("keys")

TALK: Final = ("I promise to bring you the silver ring.", "We decided to burn the bridge.")
NOTES: Final = {
    "sentences": [
        {"text": "Tamsin decided to burn the bridge.", "lines": [2]},
        {"text": "Tamsin promised the silver ring.", "lines": [1]},
        {"text": "Tamsin promised eight crowns.", "lines": [1]},
    ]
}
SAID: Final = [an_utterance(text, id=f"u{n}") for n, text in enumerate(TALK, start=1)]
each_kind = pytest.mark.parametrize("name", ["openai", "openai-compatible", "google"])


def settings_for(llm: dict[str, Any]) -> Settings:
    return Settings.model_validate(
        {"memory": {"summaries": "llm", "judge": "llm"}, "chronicle": {"calls_per_minute": 0, "llm": llm}}
    )


@asynccontextmanager
async def summariser(name: str, reply: str) -> AsyncIterator[tuple[LlmSummariser, OpenAiServer | GeminiServer]]:
    async with AsyncExitStack() as stack:
        server = GeminiServer([Reply(reply)]) if name == "google" else OpenAiServer([Reply(reply)])
        await stack.enter_async_context(server)
        address = server.http_url if isinstance(server, GeminiServer) else server.base_url
        made = summariser_at_table(settings_for({"name": name, "base_url": address}), a_campaign(), stack)
        assert made is not None
        yield made, server


@each_kind
async def test_model_of_each_kind_of_provider_summarises(name: str) -> None:
    async with summariser(name, json.dumps(NOTES)) as (model, server):
        assert await model.summarise(SAID) == [
            SummarySentence("Tamsin promised the silver ring.", (SAID[0].id,)),
            SummarySentence("Tamsin decided to burn the bridge.", (SAID[1].id,)),
        ]
        requests = json.dumps(server.completions if isinstance(server, OpenAiServer) else server.requests)
    assert f"1 Tamsin: {TALK[0]}" in requests
    assert "maxLength" not in requests, "strict schemas of cloud models support no length of a text"


@pytest.mark.parametrize(
    "llm",
    [
        {"name": "google", "model": "gemini-3.6-flash"},
        {
            "name": "openai-compatible",
            "base_url": "https://api.anthropic.com/v1",
            "model": "claude-haiku-4-5",
            "api_key_env": "ANTHROPIC_API_KEY",
        },
    ],
    ids=lambda llm: llm.get("model", llm["name"]),
)
async def test_any_cloud_model_can_summarise_and_judge(llm: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        assert summariser_at_table(settings_for(llm), a_campaign(), stack) is not None
        assert talk_readers_at_table(settings_for(llm), stack).judging is not None


async def test_local_model_neither_summarises_nor_judges_at_a_table() -> None:
    async with AsyncExitStack() as stack:
        assert summariser_at_table(settings_for({"name": "local"}), a_campaign(), stack) is None
        assert talk_readers_at_table(settings_for({"name": "local"}), stack).judging is None
