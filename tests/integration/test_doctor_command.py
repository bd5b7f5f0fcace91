"""`glyphoxa doctor` as a user types it: what is wrong is named with its remedy, and the rest is checked, too."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.database import condition_of
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from tests.support.command_line import CAMPAIGN_FILE, run
from tests.support.gguf import chat_model
from tests.support.patience import DEADLINE_S
from tests.support.postgres import TEST_SETTINGS

ELSEWHERE = """
providers:
  stt: {name: deepgram-nova}
  llm: {name: openai}
  tts: {name: openai}
  embeddings: {name: none}
"""
"""Providers for which this machine needs no model."""

Found = dict[str, list[tuple[str, str]]]


@pytest.fixture(autouse=True)
def with_keys_and_without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "dg-hunter2")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as before:
        return int(before.getsockname()[1])


def settings_with(place: Path, text: str) -> Path:
    path = place / "settings.yaml"
    path.write_text(f"campaign: {CAMPAIGN_FILE}\nmodels: {{dir: {place / 'models'}}}\n{text}", "utf-8")
    return path


async def doctor(capsys: pytest.CaptureFixture[str], *arguments: object, status: int) -> Found:
    """Return its findings: by subject, levels and texts."""
    assert await run("doctor", "--json", *arguments) == status
    shown = capsys.readouterr().out
    assert "hunter2" not in shown
    told: dict[str, Any] = json.loads(shown)
    assert told["ok"] is (status == 0)
    found: Found = {}
    for each in told["findings"]:
        found.setdefault(each["subject"], []).append((each["level"], each["text"]))
    return found


async def test_a_machine_that_is_well_exits_with_zero(
    dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    text = f"memory: {{postgres_dsn: '{dsn}'}}\nserver: {{port: {port}}}\ndata_dir: {tmp_path / 'data'}\n"
    settings = settings_with(tmp_path, text + ELSEWHERE)
    assert await run("doctor", "--config", settings) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "warning"}
    found = {line.split()[1]: line for line in lines}
    assert "migrated" in found["database"] and "pgvector 0." in found["database"]
    assert f"server.port: {port} on 127.0.0.1 is free" in found["port"]
    assert "no language model runs on this machine" in found["speed"]
    assert "key from OPENAI_API_KEY" in found["llm"]
    assert {"python", "packages", "clock", "campaign", "models", "disk", "memory", "microphone"} <= found.keys()
    assert not (tmp_path / "data").exists(), "nothing was made"


async def test_every_problem_is_a_line_with_its_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    closed = Path("/proc/glyphoxa")
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o555)
        closed = tmp_path / "closed" / "data"
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server(("127.0.0.1", 0)) as figures,
        socket.socket() as nothing,  # it is bound, and nobody listens
    ):
        nothing.bind(("127.0.0.1", 0))
        text = (
            f"data_dir: {closed}\n"
            f"memory: {{postgres_dsn: 'postgresql://gm:hunter2@127.0.0.1:{nothing.getsockname()[1]}/town'}}\n"
            f"server: {{port: {taken.getsockname()[1]}, public_url: 'http://table.example/'}}\n"
            f"observability: {{metrics_port: {figures.getsockname()[1]}}}\n"
            "providers: {tts: {name: cartesia, api_key_env: NO_SUCH_KEY}}\n"
        )
        found = await doctor(capsys, "--config", settings_with(tmp_path, text), status=1)
    assert [level for level, _ in found["port"]] == ["error", "error"]
    assert "is in use" in found["port"][0][1] and "observability.metrics_port" in found["port"][1][1]
    ((level, text),) = found["database"]
    assert level == "error"
    assert "127.0.0.1/town is away" in text and text.endswith("or set memory.postgres_dsn to another")
    assert found["disk"][0][0] == "error" and f"{closed} cannot be written to" in found["disk"][0][1]
    assert {level for level, _ in found["models"]} == {"error"}
    assert any("run `glyphoxa models fetch whisper-tiny.en`" in text for _, text in found["models"])
    assert found["tts"] == [("error", "cartesia: environment variable NO_SUCH_KEY is not set")]
    assert found["microphone"][0][0] == "warning"
    assert found["speed"][0][0] == "warning" and "not measured" in found["speed"][0][1]
    assert {level for level, _ in (*found["clock"], *found["python"])} == {"ok"}, "the others are checked all the same"


async def test_settings_with_mistakes_are_named_and_the_machine_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("server: {port: far}\nturnz: {}\n", "utf-8")
    found = await doctor(capsys, "--config", path, status=1)
    assert [level for level, _ in found["settings"]] == ["error", "error"]
    assert all(str(path) in text for _, text in found["settings"])
    assert found.keys() == {"settings", "python", "packages", "clock"}


async def test_an_embedded_database_is_started_unless_the_check_is_quick(
    reachable_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_with(tmp_path, f"data_dir: {reachable_dir}\nserver: {{port: 0}}\n{ELSEWHERE}")
    new = await doctor(capsys, "--config", settings, status=0)
    assert "will be created at its first use" in new["database"][0][1]
    assert os.listdir(reachable_dir) == [], "nothing was made"  # noqa: PTH208 - pathlib's is not for coroutines

    server = EmbeddedPostgres(reachable_dir / "postgres", settings=TEST_SETTINGS, timeout_s=DEADLINE_S)
    server.start()
    running = await doctor(capsys, "--quick", "--config", settings, status=0)
    assert "migrations will be applied at its next use" in running["database"][0][1]
    server.release()

    started = await doctor(capsys, "--config", settings, status=0)
    assert f"embedded PostgreSQL in {reachable_dir / 'postgres'}: version " in started["database"][0][1]


async def test_a_database_is_asked_and_nothing_is_written_to_it(empty_dsn: str, tmp_path: Path) -> None:
    def asked() -> int:
        return condition_of(empty_dsn, embedding_dimensions=384, deadline_s=DEADLINE_S).n_to_apply

    assert await asyncio.to_thread(asked) > 0
    connection = await asyncpg.connect(empty_dsn)
    try:
        assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    finally:
        await connection.close()


async def test_a_database_for_other_dimensions_or_read_only_is_told(
    dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"memory: {{postgres_dsn: '{dsn}', embedding_dimensions: 512}}\nserver: {{port: 0}}\ndata_dir: {tmp_path}\n"
    settings = settings_with(tmp_path, text + ELSEWHERE)
    other = await doctor(capsys, "--quick", "--config", settings, status=1)
    assert "this database is for 384" in other["database"][0][1]

    settings.write_text(settings.read_text("utf-8").replace(", embedding_dimensions: 512", ""), "utf-8")
    connection = await asyncpg.connect(dsn)
    try:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    finally:
        await connection.close()
    shut = await doctor(capsys, "--quick", "--config", settings, status=1)
    assert "rejects writes" in shut["database"][0][1]


async def test_the_model_of_the_settings_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat_model(tmp_path / "mine.gguf")
    own = ELSEWHERE.replace("{name: openai}", "{name: local, model: ./mine.gguf}", 1)
    text = f"memory: {{postgres_dsn: none}}\nserver: {{port: 0}}\ndata_dir: {tmp_path / 'data'}\n{own}"
    found = await doctor(capsys, "--config", settings_with(tmp_path, text), status=0)
    ((level, text),) = found["speed"]
    assert level in ("ok", "warning")
    assert "mine.gguf reads " in text and " tokens per second and generates " in text
    quick = await doctor(capsys, "--quick", "--config", tmp_path / "settings.yaml", status=0)
    assert "speed" not in quick
