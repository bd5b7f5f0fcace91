"""Every name of a provider that the settings take is one that can be built, and every row is a name that they take."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.deepgram import DeepgramServer
from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer
from glyphoxa.bootstrap.embedder import load_embedder
from glyphoxa.bootstrap.local_models import needed
from glyphoxa.bootstrap.structured_llm import open_structured_llm
from glyphoxa.cli.main import main
from glyphoxa.config.check import check
from glyphoxa.config.provider_settings import SttSettings
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.building import build, named
from glyphoxa.providers.registry import KINDS, NONE, RERANK, find, names
from glyphoxa.providers.rows import ROWS, Provider
from glyphoxa_pipelines.s2s import make_endpoint
from glyphoxa_processors.cloud_llm import make_llm
from glyphoxa_processors.cloud_stt import make_stt
from glyphoxa_processors.cloud_tts import make_tts

KEYS = {row.key_env: "a-key" for row in ROWS if row.key_env}
CHOOSABLE = [(section, name) for section, kind in KINDS.items() for name in names(kind)]
FAR_AWAY = [(section, name) for section, name in CHOOSABLE if not find(section, name).runs_here]
HERE = [(section, name) for section, name in CHOOSABLE if find(section, name).runs_here]


def choosing(section: str, name: str, **more: str) -> Settings:
    """Settings that name this provider there, and are asked for it."""
    document: dict[str, Any] = {"name": name, **more}
    for key in reversed(section.split(".")):
        document = {key: document}
    document.setdefault("recall", {})["method"] = {"recall.llm": "llm", RERANK: "hybrid_rerank"}.get(section)
    document.setdefault("memory", {})["chronicle"] = "llm" if section == "chronicle.llm" else "rules"
    return Settings.model_validate(document)


@asynccontextmanager
async def stand_in(name: str) -> AsyncIterator[str]:
    """The address of a local server that speaks the provider's protocol."""
    server = DeepgramServer() if "deepgram" in name else GeminiServer() if name == "google" else OpenAiServer()
    async with server as running:
        yield running.base_url if isinstance(running, OpenAiServer) else running.http_url


@pytest.mark.parametrize(("section", "name"), FAR_AWAY)
async def test_a_provider_that_can_be_chosen_is_built(section: str, name: str) -> None:
    async with stand_in(name) as address, AsyncExitStack() as stack:
        settings = choosing(section, name, base_url=address, model="m")
        choice: Any = settings.chosen(section)
        match find(section, name).kind:
            case "stt":
                built: Any = make_stt(choice, environ=KEYS)
            case "llm":
                built = make_llm(choice, environ=KEYS)
            case "tts":
                built = make_tts(choice, environ=KEYS)
            case "s2s":
                built = make_endpoint(choice, environ=KEYS)
                assert built.key == "a-key"
            case "embeddings":
                built = await load_embedder(settings, environ=KEYS)
                stack.push_async_callback(built.aclose)
            case "structured":
                built = open_structured_llm(choice, stack, kind=section, environ=KEYS)
            case "reranker":
                built = build(choice, section=section, environ=KEYS)
                stack.push_async_callback(built.close)
        assert built


@pytest.mark.parametrize(("section", "name"), CHOOSABLE)
def test_a_provider_that_can_be_chosen_is_known_to_the_check(section: str, name: str) -> None:
    subject = section.removeprefix("providers.")
    settings = choosing(section, name, base_url="http://127.0.0.1:9", model="m")
    found = {finding.subject: finding for finding in check(settings, has_weights=lambda _: True, environ=KEYS)}
    assert found[subject].text.startswith(name)
    assert found[subject].level != "error"
    assert callable(named(find(section, name).maker))


@pytest.mark.parametrize(("section", "name"), HERE)
def test_what_runs_here_is_not_asked_for_at_an_address(section: str, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{section} '{name}' runs on this machine"):
        build(choosing(section, name).chosen(section), section=section)


@pytest.mark.parametrize(("section", "name"), HERE)
def test_the_weights_of_what_runs_here_are_needed(section: str, name: str) -> None:
    assert set(find(section, name).weights) <= set(needed(choosing(section, name)))


@pytest.mark.parametrize(("section", "kind"), KINDS.items())
def test_the_settings_take_the_names_of_the_rows_and_no_other(section: str, kind: Any) -> None:
    with pytest.raises(ValueError, match="Input should be") as refused:
        choosing(section, "somebody-else")
    for name in names(kind):
        assert f"'{name}'" in str(refused.value)
    may_be_none = section not in ("providers.stt", "providers.llm", "providers.tts", "recall.llm", "chronicle.llm")
    assert (f"'{NONE}'" in str(refused.value)) == may_be_none


@pytest.mark.parametrize("row", [row for row in ROWS if row.key_env], ids=lambda row: f"{row.kind}-{row.name}")
def test_a_key_that_is_not_set_is_named_by_its_variable(row: Provider) -> None:
    section = next(section for section, kind in KINDS.items() if kind == row.kind)
    with pytest.raises(InvalidInput, match=f"{section} '{row.name}' needs a key: environment variable {row.key_env}"):
        build(choosing(section, row.name).chosen(section), section=section, environ={})


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.needs and not row.runs_here], ids=lambda row: f"{row.kind}-{row.name}"
)
def test_what_a_provider_cannot_do_without_is_named(row: Provider) -> None:
    section = next(section for section, kind in KINDS.items() if kind == row.kind)
    with pytest.raises(InvalidInput, match=" and ".join(f"{section}.{need}" for need in row.needs)):
        build(choosing(section, row.name).chosen(section), section=section, environ={})


async def test_a_language_that_a_recogniser_does_not_know_is_named() -> None:
    with pytest.raises(InvalidInput, match="knows no language 'tlh'"):
        make_stt(SttSettings(name="deepgram-nova"), language="tlh", environ=KEYS)


def test_the_providers_are_known_without_their_packages() -> None:
    """Glyphoxa installs and runs without pipecat: a row imports nothing until its maker is asked for."""
    told = "import sys, glyphoxa.config.check, glyphoxa.providers.building; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    packages = {module.partition(".")[0] for row in ROWS for module in row.modules} - {"google", "websockets"}
    assert not packages & {module.partition(".")[0] for module in loaded}


def test_what_asks_a_recogniser_far_away_is_imported_before_anybody_sits_down() -> None:
    """Its first import takes a second of the event loop that carries the sound of an open table."""
    opening = """
import asyncio, sys
from contextlib import AsyncExitStack
from glyphoxa.bootstrap.local_models import load
from glyphoxa.config.settings import Settings
far_away = {"stt": {"name": "deepgram-flux"}, "llm": {"name": "openai"}, "tts": {"name": "openai"}}
settings = Settings.model_validate({"memory": {"postgres_dsn": "none"}, "providers": far_away})
async def main():
    async with AsyncExitStack() as stack:
        await load(settings, stack, slots=1)
asyncio.run(main())
print(*sys.modules)
"""
    loaded = subprocess.run([sys.executable, "-c", opening], capture_output=True, text=True, check=True).stdout.split()
    assert "pipecat.services.deepgram.flux.stt" in loaded


def test_a_package_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "glyphoxa.adapters.llm.google", None)
    with pytest.raises(InvalidInput, match=r"pip install 'glyphoxa\[google\]'"):
        build(choosing("recall.llm", "google").chosen("recall.llm"), section="recall.llm", environ=KEYS)
    assert import_module("glyphoxa.adapters.llm")


def test_a_name_that_cannot_be_built_is_refused_by_check_and_serve_with_the_same_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("providers:\n  s2s: {name: somebody-else}\n")
    with pytest.raises(InvalidInput) as refused:
        read_settings(path)
    for verb in (["config", "check", str(path)], ["serve", "--config", str(path)]):
        assert main(verb) == 1
        assert capsys.readouterr().err == f"glyphoxa: {refused.value}\n"
    valid = "valid: gemini-live, none, openai-realtime"
    assert str(refused.value) == f"{path}:2: providers.s2s.name: 'somebody-else' is not valid, {valid}"
