"""Providers in the settings: their names, chains of them, and what a prompt may hold for a model."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.deepgram import DeepgramServer
from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer
from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.app.background import open_asker
from glyphoxa.app.engines import languages_of
from glyphoxa.app.models import load_embedder, needed
from glyphoxa.chat.models import LARGE, MIDDLE, PROFILES, SMALL, Profile, profile_by_name
from glyphoxa.cli.main import main
from glyphoxa.config.check import check
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.reference import reference
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.budgets import BUDGETS, STANDING_TOKENS, Budgets
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.registry import KINDS, NONE, RERANK, Provider, build, find, maker_of, names, rows
from glyphoxa.web.access.records import consent_text

KEYS = {row.key_env: "a-key" for row in rows() if row.key_env}
CHOOSABLE = [(section, name) for section, kind in KINDS.items() for name in names(kind)]
FAR_AWAY = [(section, name) for section, name in CHOOSABLE if not find(section, name).runs_here]
HERE = [(section, name) for section, name in CHOOSABLE if find(section, name).runs_here]


def choosing(section: str, name: str, **more: str) -> Settings:
    """Settings that name this provider there, and are asked for it."""
    document: dict[str, Any] = {"name": name, **more}
    for key in reversed(section.split(".")):
        document = {key: document}
    document.setdefault("recall", {})["method"] = {"recall.llm": "llm", RERANK: "hybrid_rerank"}.get(section)
    chronicle = "llm" if section == "chronicle.llm" else "rules"
    document["memory"] = {"chronicle": chronicle, "curator": section == "curator.llm"}
    return Settings.model_validate(document)


@asynccontextmanager
async def stand_in(name: str) -> AsyncIterator[str]:
    """The address of a local server that speaks the provider's protocol."""
    server = DeepgramServer() if "deepgram" in name else GeminiServer() if name == "google" else OpenAiServer()
    async with server as running:
        yield running.base_url if isinstance(running, OpenAiServer) else running.http_url


@pytest.mark.parametrize(("section", "name"), FAR_AWAY)
async def test_a_provider_that_can_be_chosen_is_built(section: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stand_in(name) as address, AsyncExitStack() as stack:
        settings = choosing(section, name, base_url=address, model="m")
        choice: Any = settings.chosen(section)
        match find(section, name).kind:
            case "stt" | "llm" | "tts":
                built: Any = build(choice, section=section, environ=KEYS)
            case "s2s":
                built = build(choice, section=section, environ=KEYS)
                assert "a-key" in str(built.wire("", ()).headers)
            case "embeddings":
                built = await load_embedder(settings, environ=KEYS)
                stack.push_async_callback(built.aclose)
            case "structured":
                for variable, key in KEYS.items():
                    monkeypatch.setenv(variable, key)
                built = open_asker(settings, stack, kind=section)
            case "reranker":
                built = build(choice, section=section, environ=KEYS)
                stack.push_async_callback(built.close)
        assert built


@pytest.mark.parametrize(("section", "name"), CHOOSABLE)
def test_a_provider_that_can_be_chosen_is_known_to_the_check(section: str, name: str) -> None:
    subject = section.removeprefix("providers.")
    settings = choosing(section, name, base_url="http://127.0.0.1:9", model="m")
    found = {finding.subject: finding for finding in check(settings, environ=KEYS)}
    assert found[subject].text.startswith(name)
    assert found[subject].level != "error"
    row = find(section, name)
    assert callable(maker_of(row, section=section)) if row.maker else row.runs_here


@pytest.mark.parametrize(("section", "name"), HERE)
def test_local_provider_is_not_built_as_a_remote_one(section: str, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{section} '{name}' runs on this machine"):
        build(choosing(section, name).chosen(section), section=section)


@pytest.mark.parametrize(("section", "name"), HERE)
def test_the_weights_of_what_runs_here_are_needed(section: str, name: str) -> None:
    assert set(find(section, name).weights[:1]) <= set(needed(choosing(section, name)))


@pytest.mark.parametrize(("section", "kind"), KINDS.items())
def test_the_settings_take_the_names_of_the_rows_and_no_other(section: str, kind: Any) -> None:
    with pytest.raises(ValueError, match="Input should be") as refused:
        choosing(section, "somebody-else")
    for name in names(kind):
        assert f"'{name}'" in str(refused.value)
    needed = ("providers.stt", "providers.llm", "providers.tts", "recall.llm", "chronicle.llm", "curator.llm")
    may_be_none = section not in needed
    assert (f"'{NONE}'" in str(refused.value)) == may_be_none


@pytest.mark.parametrize("row", [row for row in rows() if row.key_env], ids=lambda row: f"{row.kind}-{row.name}")
def test_a_key_that_is_not_set_is_named_by_its_variable(row: Provider) -> None:
    section = next(section for section, kind in KINDS.items() if kind == row.kind)
    with pytest.raises(InvalidInput, match=f"{section} '{row.name}' needs a key: environment variable {row.key_env}"):
        build(choosing(section, row.name).chosen(section), section=section, environ={})


@pytest.mark.parametrize(
    "row", [row for row in rows() if row.needs and not row.runs_here], ids=lambda row: f"{row.kind}-{row.name}"
)
def test_required_provider_setting_is_named(row: Provider) -> None:
    section = next(section for section, kind in KINDS.items() if kind == row.kind)
    with pytest.raises(InvalidInput, match=" and ".join(f"{section}.{need}" for need in row.needs)):
        build(choosing(section, row.name).chosen(section), section=section, environ={})


def test_the_providers_are_known_without_their_packages() -> None:
    """Glyphoxa installs and runs without pipecat: a row imports nothing until its maker is asked for."""
    told = "import sys, glyphoxa.config.check, glyphoxa.providers.registry; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    packages = {module.partition(".")[0] for row in rows() for module in row.modules} - {"google", "websockets"}
    assert not packages & {module.partition(".")[0] for module in loaded}


def test_cloud_recogniser_modules_are_imported_before_play() -> None:
    """Its first import takes a second of the event loop that carries the sound of an open table."""
    opening = """
import asyncio, sys
from contextlib import AsyncExitStack
from glyphoxa.app.models import load_local_models
from glyphoxa.config.settings import Settings
far_away = {"stt": {"name": "deepgram-flux"}, "llm": {"name": "openai"}, "tts": {"name": "openai"}}
settings = Settings.model_validate({"memory": {"postgres_dsn": "none"}, "providers": far_away})
async def main():
    async with AsyncExitStack() as stack:
        await load_local_models(settings, stack, slots=1)
asyncio.run(main())
print(*sys.modules)
"""
    loaded = subprocess.run([sys.executable, "-c", opening], capture_output=True, text=True, check=True).stdout.split()
    assert "glyphoxa_processors.cloud.deepgram_stt" in loaded


def test_a_package_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "glyphoxa.adapters.google_models", None)
    with pytest.raises(InvalidInput, match=r"pip install 'glyphoxa\[google\]'"):
        build(choosing("recall.llm", "google").chosen("recall.llm"), section="recall.llm", environ=KEYS)


def test_check_and_serve_refuse_a_bad_name_with_the_same_line(
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


# Chains of providers: how they are written, what is wrong in them, and who is asked after whom

CHAIN = """\
providers:
  llm:
    name: openai
    temperature: 0.4
    fallback:
    - name: openai-compatible
      base_url: https://other.example/v1
      model: gpt-small
      api_key_env: OTHER_KEY
    - qwen-1.5b
  tts: {name: openai, voice: sage, fallback: [hibari]}
"""


def settings_of(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "settings.yaml"
    path.write_text(text, "utf-8")
    return read_settings(path)


def test_all_language_models_are_tried_before_the_voice_changes(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, CHAIN)
    asked = [(each.providers.llm.name, each.providers.tts.name) for each in settings.in_turn]
    assert asked == [
        *(("openai", "openai"), ("openai-compatible", "openai"), ("qwen-1.5b", "openai")),
        *(("openai", "hibari"), ("openai-compatible", "hibari"), ("qwen-1.5b", "hibari")),
    ]
    second = settings.in_turn[1].providers.llm
    assert (second.base_url, second.model, second.api_key_env) == ("https://other.example/v1", "gpt-small", "OTHER_KEY")
    assert (second.temperature, second.fallback) == (0.4, ())
    assert settings.in_turn[3].providers.tts.voice is None, "another provider's voice is not asked for"
    assert [each.profile.name for each in settings.in_turn[:3]] == ["large", "large", "small"]


def test_check_lists_local_models_and_missing_keys_of_a_chain(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, CHAIN)
    assert {"qwen2.5-coder-1.5b-instruct-q4_k_m"} <= {*needed(settings)}
    found = check(settings, environ={"OPENAI_API_KEY": "k"}, has_module=lambda _: True)
    told = {each.subject: (each.level, each.text) for each in found}
    assert told["llm"][0] == "ok"
    assert told["llm fallback 1"][0] == "error"
    assert "OTHER_KEY is not set" in told["llm fallback 1"][1]
    assert told["llm fallback 2"][0] == told["tts fallback 1"][0] == "ok"


def test_players_are_told_of_everybody_who_may_hear_them(tmp_path: Path) -> None:
    text = "\n".join(consent_text(settings_of(tmp_path, CHAIN), language="en").lines)
    assert "openai;" in text
    assert "openai-compatible (other.example)" in text


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("llm: {name: openai, fallback: [gpt]}", r":2: .*fallback"),
        ("llm: {name: openai, fallback: [openai-compatible]}", r":2: .*openai-compatible needs base_url"),
        ("llm: {fallback: [openai]}", r":2: .*qwen-1.5b is local"),
        ("llm: {name: openai, fallback: [qwen-1.5b, google]}", r":2: .*nothing can follow a local model"),
        ("llm: {name: openai, fallback: [google, google, google, google]}", r":2: .*fallback"),
        ("llm: {name: openai, fallback: [{name: google, fallback: [openai]}]}", r":2: .*fallback"),
        ("tts: {name: openai, fallback: [hibari, deepgram]}", r":2: .*nothing can follow a local model"),
    ],
)
def test_a_chain_that_cannot_work_is_refused_with_its_line(tmp_path: Path, wrong: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        settings_of(tmp_path, f"providers:\n  {wrong}\n")


# Profiles: what a prompt may hold follows from the model, unless it is set

SERVER = "base_url: 'http://127.0.0.1:1/v1'"


@pytest.mark.parametrize(
    ("llm", "profile"),
    [
        ("name: qwen-1.5b", SMALL),
        ("name: qwen-0.5b", SMALL),
        ("name: openai", LARGE),
        ("name: openai, model: gpt-4.1-nano", LARGE),
        ("name: google", LARGE),
        ("name: ollama", MIDDLE),
        ("name: ollama, model: 'llama3.2:1b'", SMALL),
        ("name: ollama, model: 'qwen2.5:7b-instruct'", MIDDLE),
        (f"name: openai-compatible, model: unheard-of, {SERVER}", MIDDLE),
        (f"name: openai-compatible, model: anthropic/claude-sonnet, {SERVER}", LARGE),
    ],
)
def test_a_model_has_the_budgets_of_its_profile_without_any_setting(tmp_path: Path, llm: str, profile: Profile) -> None:
    settings = settings_of(tmp_path, f"providers: {{llm: {{{llm}}}}}\n")
    assert settings.profile == profile
    assert [getattr(settings.budgets, name) for name in BUDGETS] == [getattr(profile, name) for name in BUDGETS]
    findings = check(settings, environ={"OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "k"})
    found = {finding.subject: finding for finding in findings}["llm"]
    assert found.text.endswith(f"; profile {profile.name}")


def test_every_budget_can_be_set(tmp_path: Path) -> None:
    for nth, name in enumerate(BUDGETS):
        settings = settings_of(tmp_path, f"context: {{{name}: {30 + nth}, summary_tokens: 125}}\n")
        default = Budgets()
        left = default.glossary_tokens + getattr(default, name) - (30 + nth)
        assert settings.budgets == replace(default, **{name: 30 + nth}, glossary_tokens=left)


def test_summary_takes_at_most_a_quarter_of_the_history(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "").budgets.summary_tokens == 125
    assert settings_of(tmp_path, "context: {history_tokens: 100}\n").budgets.summary_tokens == 25
    assert settings_of(tmp_path, "providers: {llm: {name: openai}}\n").budgets.summary_tokens == 200


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_out_of_range_is_an_error_at_its_line(tmp_path: Path, name: str) -> None:
    for value in (-1, 1_000_000):
        with pytest.raises(InvalidFile) as caught:
            settings_of(tmp_path, f"# mine\ncontext:\n  {name}: {value}\n")
        [line] = str(caught.value).splitlines()
        assert f"settings.yaml:3: context.{name}" in line


def test_budgets_beyond_a_local_model_are_an_error_at_the_largest(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        settings_of(tmp_path, "context:\n  scene_tokens: 100\n  facts_tokens: 1500\n")
    [line] = str(caught.value).splitlines()
    assert (
        "settings.yaml:3: context.facts_tokens: identity_tokens 120, scene_tokens 100, bible_tokens 120, past_tokens 60"
        in line
    )
    assert line.endswith("together 2,400 tokens, but qwen-1.5b has room for 1,248")


def test_every_profile_has_room_for_its_own_budgets() -> None:
    for profile in PROFILES:
        assert sum(getattr(profile, name) for name in BUDGETS) <= profile.context_tokens - STANDING_TOKENS


def test_small_profile_matches_the_local_models_context() -> None:
    assert inspect.signature(LlamaServer).parameters["ctx_per_slot"].default == SMALL.context_tokens


def test_the_reference_lists_every_profile() -> None:
    lines = reference(languages_of).splitlines()
    for profile in PROFILES:
        assert sum(line.startswith(f"| {profile.name} | {profile.identity_tokens} ") for line in lines) == 1


def test_a_name_tells_a_size_only_where_it_has_one() -> None:
    for name in ("", "b", "model-1.5bit", "llama-70b", "a1b2", "gemma3:4b"):
        assert profile_by_name(name) == MIDDLE
    for name in ("gemma3:1b", "SmolLM2-1.7B-Instruct", "tinyllama-1.1b"):
        assert profile_by_name(name) == SMALL
