"""What a prompt may hold follows from the model, unless it is set."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.local.llama import LlamaServer
from glyphoxa.config.check import check
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.reference import reference
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.context.budgets import BUDGETS, STANDING_TOKENS, Budgets
from glyphoxa.providers.profiles import LARGE, MIDDLE, PROFILES, SMALL, Profile, profile_by_name

HERE = "base_url: 'http://127.0.0.1:1/v1'"


def read(directory: Path, text: str) -> Settings:
    path = directory / "settings.yaml"
    path.write_text(text, "utf-8")
    return read_settings(path)


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
        (f"name: openai-compatible, model: unheard-of, {HERE}", MIDDLE),
        (f"name: openai-compatible, model: anthropic/claude-sonnet, {HERE}", LARGE),
    ],
)
def test_a_model_has_the_budgets_of_its_profile_without_any_setting(tmp_path: Path, llm: str, profile: Profile) -> None:
    settings = read(tmp_path, f"providers: {{llm: {{{llm}}}}}\n")
    assert settings.profile == profile
    assert [getattr(settings.budgets, name) for name in BUDGETS] == [getattr(profile, name) for name in BUDGETS]
    findings = check(settings, has_weights=lambda _: True, environ={"OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "k"})
    found = {finding.subject: finding for finding in findings}["llm"]
    assert found.text.endswith(f"; profile {profile.name}")


def test_the_models_that_run_here_have_the_budgets_of_a_prompt_that_says_none() -> None:
    assert Settings().budgets == Budgets()
    assert Budgets() == replace(
        Budgets(),
        identity_tokens=120,
        scene_tokens=60,
        bible_tokens=120,
        past_tokens=60,
        facts_tokens=90,
        history_tokens=500,
    )


def test_a_large_model_is_given_what_was_asked_for() -> None:
    assert 200 <= LARGE.identity_tokens <= 500
    assert 100 <= LARGE.scene_tokens <= 300
    assert LARGE.history_tokens // 2 >= 500  # what is left when the oldest half is cut
    assert LARGE.history_tokens <= 1_500


def test_every_budget_can_be_set(tmp_path: Path) -> None:
    for nth, name in enumerate(BUDGETS):
        settings = read(tmp_path, f"context: {{{name}: {30 + nth}}}\n")
        assert settings.budgets == replace(Budgets(), **{name: 30 + nth})


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_out_of_range_is_an_error_at_its_line(tmp_path: Path, name: str) -> None:
    for value in (-1, 1_000_000):
        with pytest.raises(InvalidFile) as caught:
            read(tmp_path, f"# mine\ncontext:\n  {name}: {value}\n")
        [line] = str(caught.value).splitlines()
        assert f"settings.yaml:3: context.{name}" in line


def test_more_than_a_model_that_runs_here_can_hold_is_an_error_at_the_largest_budget(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, "context:\n  scene_tokens: 100\n  facts_tokens: 1500\n")
    [line] = str(caught.value).splitlines()
    assert (
        "settings.yaml:3: context.facts_tokens: identity_tokens 120, scene_tokens 100, bible_tokens 120, past_tokens 60"
        in line
    )
    assert line.endswith("are 2,400 tokens together, and qwen-1.5b has room for 1,248")


def test_every_profile_has_room_for_its_own_budgets() -> None:
    for profile in PROFILES:
        assert sum(getattr(profile, name) for name in BUDGETS) <= profile.context_tokens - STANDING_TOKENS


def test_the_small_profile_has_the_context_that_the_local_model_is_loaded_with() -> None:
    assert inspect.signature(LlamaServer).parameters["ctx_per_slot"].default == SMALL.context_tokens


def test_the_reference_lists_every_profile() -> None:
    lines = reference().splitlines()
    for profile in PROFILES:
        assert sum(line.startswith(f"| {profile.name} | {profile.identity_tokens} ") for line in lines) == 1


def test_a_name_tells_a_size_only_where_it_has_one() -> None:
    for name in ("", "b", "model-1.5bit", "llama-70b", "a1b2", "gemma3:4b"):
        assert profile_by_name(name) == MIDDLE
    for name in ("gemma3:1b", "SmolLM2-1.7B-Instruct", "tinyllama-1.1b"):
        assert profile_by_name(name) == SMALL
