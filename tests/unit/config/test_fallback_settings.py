"""Chains of providers in the settings: how they are written, what is wrong in them, and who is asked after whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.bootstrap.local_models import needed
from glyphoxa.config.check import check
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.web.access.consent import consent_text

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


def test_each_language_model_is_tried_with_a_voice_before_the_voice_is_changed(tmp_path: Path) -> None:
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


def test_what_runs_here_is_fetched_and_whoever_lacks_a_key_is_named(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, CHAIN)
    assert {"qwen2.5-coder-1.5b-instruct-q4_k_m"} <= {*needed(settings)}
    found = check(settings, has_weights=lambda _: True, environ={"OPENAI_API_KEY": "k"}, has_module=lambda _: True)
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
        ("llm: {fallback: [openai]}", r":2: .*qwen-1.5b runs on this machine"),
        ("llm: {name: openai, fallback: [qwen-1.5b, google]}", r":2: .*no fallback can follow it"),
        ("llm: {name: openai, fallback: [google, google, google, google]}", r":2: .*fallback"),
        ("llm: {name: openai, fallback: [{name: google, fallback: [openai]}]}", r":2: .*fallback"),
        ("tts: {name: openai, fallback: [hibari, deepgram]}", r":2: .*no fallback can follow it"),
    ],
)
def test_a_chain_that_cannot_work_is_refused_with_its_line(tmp_path: Path, wrong: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        settings_of(tmp_path, f"providers:\n  {wrong}\n")
