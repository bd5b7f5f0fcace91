"""`glyphoxa config check --live` against servers of the providers' protocols, with the real clients."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.deepgram import DeepgramServer
from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer, Pace, Reply
from tests.support.chat_server import Answer, ChatServer, Rule, error, no_system, refuses, said, whole
from tests.support.command_line import run
from tests.support.gemini_live_server import GeminiLiveServer
from tests.support.realtime_server import RealtimeServer

KEY = "secret-key-5678"
NOWHERE = "http://127.0.0.1:9/v1"
QUIET = {"stt": {"name": "whisper"}, "tts": {"name": "hibari"}, "embeddings": {"name": "none"}}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "DEEPGRAM_API_KEY", "GOOGLE_API_KEY", "MY_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("COLUMNS", "300")


async def checked(
    folder: Path, capsys: pytest.CaptureFixture[str], providers: dict[str, Any], *options: str, **more: Any
) -> dict[str, tuple[str, str]]:
    """Return level and text by subject, and check that no key is shown."""
    file = folder / "glyphoxa.yaml"
    settings = {"memory": {"postgres_dsn": "none"}, "server": {"port": 0}, "providers": {**QUIET, **providers}, **more}
    file.write_text(json.dumps(settings), "utf-8")
    await run("config", "check", file, *options)
    out, err = capsys.readouterr()
    assert KEY not in out + err
    rows = re.findall(r"^\s*(ok|warning|error)\s{2,}(.+?)\s{2,}(.+?)\s*$", out, re.MULTILINE)
    return {subject: (level, text) for level, subject, text in rows}


def chat(server: ChatServer) -> dict[str, Any]:
    return {"llm": {"name": "openai-compatible", "model": "m", "base_url": server.base_url, "api_key_env": "MY_KEY"}}


@pytest.mark.parametrize(
    ("answer", "rules", "told"),
    [
        (
            said("Blue.", more={"usage": {"completion_tokens": 1}}),
            [],
            "has streaming, usage, tools, system role, repeated roles",
        ),
        (said("Blue."), [], "without usage"),
        (said("Blue."), [refuses("tools", status=400, say="{} are not supported")], "without usage, tools"),
        (said("Blue."), [no_system, refuses("stream_options")], "without usage, system role, repeated roles"),
        (said("<think>Sky?</think>Blue."), [], "reasons before it answers"),
    ],
)
async def test_language_model_reports_its_latency_and_what_it_can(
    answer: Answer, rules: Sequence[Rule], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ChatServer(answer, rules=rules, key=KEY) as server:
        found = await checked(tmp_path, capsys, chat(server), "--live")
    level, text = found["llm, live"]
    assert level == "ok"
    assert re.match(r"first words after \d+ ms; has ", text)
    assert told in text


@pytest.mark.parametrize(
    ("answer", "rules", "told"),
    [
        (said("Blue."), [lambda _: error(401, f"Incorrect API key provided: {KEY}")], "HTTP 401: Incorrect API key"),
        (said("Blue."), [lambda _: error(404, "model 'm' not found")], "HTTP 404: model 'm' not found"),
        (whole({"error": {"message": "model is loading"}}), [], "model is loading"),
    ],
)
async def test_language_model_that_fails_is_an_error_with_its_reason(
    answer: Answer, rules: Sequence[Rule], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ChatServer(answer, rules=rules) as server:
        found = await checked(tmp_path, capsys, chat(server), "--live")
    assert found["llm"][0] == "ok"
    assert found["llm, live"][0] == "error"
    assert told in found["llm, live"][1]


async def test_every_remote_provider_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with AsyncExitStack() as stack:
        openai = await stack.enter_async_context(OpenAiServer([Reply('{"colour": "blue"}')], key=KEY))
        deepgram = await stack.enter_async_context(DeepgramServer(on_finalize=(), key=KEY))
        realtime = await stack.enter_async_context(RealtimeServer(key=KEY))
        found = await checked(
            tmp_path,
            capsys,
            {
                "stt": {"name": "deepgram-nova", "base_url": deepgram.http_url},
                "llm": {"name": "openai", "base_url": openai.base_url, "fallback": ["qwen-0.5b"]},
                "tts": {"name": "openai", "base_url": openai.base_url},
                "embeddings": {"name": "openai", "base_url": openai.base_url},
                "s2s": {"name": "openai-realtime", "base_url": realtime.base_url},
            },
            "--live",
            correction={"llm": {"name": "openai", "base_url": openai.base_url}},
            memory={},  # without it nothing is embedded
        )
    live = {subject.removesuffix(", live"): each for subject, each in found.items() if subject.endswith(", live")}
    assert {subject: level for subject, (level, _) in live.items()} == dict.fromkeys(
        ["stt", "llm", "llm fallback 1", "tts", "embeddings", "s2s", "correction.llm"], "ok"
    )
    assert "1536 dimensions after" in live["embeddings"][1]
    assert "first sound" in live["s2s"][1]
    assert "spoke after" in live["tts"][1]
    assert "transcript after" in live["stt"][1]


async def test_google_is_asked_with_its_own_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with GeminiServer([Reply("Blue.")], key=KEY) as server, GeminiLiveServer(key=KEY) as live:
        providers = {
            "llm": {"name": "google", "base_url": server.http_url},
            "s2s": {"name": "gemini-live", "base_url": live.http_url},
        }
        found = await checked(tmp_path, capsys, providers, "--live")
    assert [found[f"{each}, live"][0] for each in ("llm", "s2s")] == ["ok", "ok"]


async def test_silent_provider_is_an_error_after_its_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glyphoxa.app.doctor.ANSWERED_WITHIN_S", 0.5)
    async with OpenAiServer(pace=Pace(ttft_ms=3_600_000)) as server:
        providers = {
            "llm": {"name": "openai", "base_url": server.base_url},
            "tts": {"name": "openai", "base_url": NOWHERE},
        }
        found = await checked(tmp_path, capsys, providers, "--live")
    assert found["llm, live"] == ("error", "no answer within 0.5 s")
    assert found["tts, live"][0] == "error"


async def test_nothing_is_asked_without_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with ChatServer() as server:
        found = await checked(tmp_path, capsys, chat(server))
    assert not [subject for subject in found if subject.endswith("live")]
    assert server.bodies == []
