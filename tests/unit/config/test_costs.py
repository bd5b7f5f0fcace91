"""The cost of an evening, from counted usage and dated prices. The sums are computed by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from glyphoxa.config.check import PRICES, PriceList, charged, check, costs_of, evening_cost, price_list
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import PROVIDERS, Settings, read_settings
from glyphoxa.providers.registry import KINDS, rows

LISTED = PriceList.model_validate(
    {
        "hours": 3,
        "players": 4,
        "answers": 120,
        "usage": {
            "providers.stt": {"minute": 720},
            "providers.llm": {"input": 120_000, "cached_input": 60_000, "output": 4_800},
            "providers.tts": {"characters": 16_800},
            "providers.s2s": {"input": 120_000, "cached_input": 60_000, "minute": 18},
            "providers.embeddings": {"input": 300_000},
            "memory.chronicle": {"input": 150_000, "output": 30_000},
        },
        "prices": {
            "flux-general-en": {"minute": 0.005, "as_of": "2026-08-01", "source": "a page"},
            "gpt-4.1-mini": {
                "input": 0.4,
                "cached_input": 0.1,
                "output": 1.6,
                "as_of": "2026-06-21",
                "source": "a page",
            },
            "eleven_flash_v2_5": {"characters": 0.05, "as_of": "2026-06-01", "source": "a page"},
            "gpt-realtime": {
                "input": 4,
                "cached_input": 0.4,
                "minute": 0.08,
                "as_of": "2026-05-24",
                "source": "a page",
            },
            "text-embedding-3-small": {"input": 0.02, "as_of": "2026-06-21", "source": "a page"},
        },
    }
)
CLOUD = {"stt": {"name": "deepgram-flux"}, "llm": {"name": "openai"}, "tts": {"name": "elevenlabs"}}
STT_USD = 3.60  # 720 minutes x 0.005
LLM_USD = 0.06168  # (120,000 x 0.4 + 60,000 x 0.1 + 4,800 x 1.6) / 1,000,000
TTS_USD = 0.84  # 16,800 characters x 0.05 / 1,000
S2S_USD = 1.944  # (120,000 x 4 + 60,000 x 0.4) / 1,000,000 + 18 minutes x 0.08


def settings_with(providers: dict[str, Any] | None = None, **more: Any) -> Settings:
    return Settings.model_validate({"providers": providers or {}, **more})


def line(providers: dict[str, Any], **more: Any) -> str:
    return evening_cost(settings_with(providers, **more), LISTED)


def test_evening_of_local_models_costs_nothing() -> None:
    assert line({}) == "nothing: all providers run on this machine"


def test_evening_of_cloud_models_is_the_sum_of_its_parts() -> None:
    found = costs_of(settings_with(CLOUD), LISTED)
    assert found.usd == pytest.approx({"providers.stt": STT_USD, "providers.llm": LLM_USD, "providers.tts": TTS_USD})
    assert line(CLOUD) == (
        "about $4.50 (stt $3.60, llm $0.06, tts $0.84) for 3 hours, 4 open microphones and 120 answers of NPCs; "
        "list prices of 2026-06 or later"
    )


def test_only_remote_models_of_mixed_settings_are_charged() -> None:
    assert line({"tts": {"name": "elevenlabs"}}) == (
        "about $0.84 (tts $0.84) for 3 hours, 4 open microphones and 120 answers of NPCs; "
        "list prices of 2026-06 or later"
    )


def test_model_without_a_price_is_named_and_the_rest_added_up() -> None:
    text = line({**CLOUD, "llm": {"name": "openai", "model": "gpt-9"}})
    assert text.startswith("at least $4.44 (stt $3.60, tts $0.84) for")
    assert text.endswith("; price of gpt-9 unknown: add it to `prices`")


def test_price_of_the_settings_is_used_before_the_listed_one() -> None:
    llm = {"name": "openai-compatible", "model": "mine", "base_url": "https://models.example/v1"}
    prices = {"mine": {"input": 1, "output": 2}, "flux-general-en": {"minute": 0}}
    found = costs_of(settings_with({**CLOUD, "llm": llm}, prices=prices), LISTED)
    # A cached token costs as much as another one: (180,000 x 1 + 4,800 x 2) / 1,000,000.
    assert found.usd == pytest.approx({"providers.stt": 0.0, "providers.llm": 0.1896, "providers.tts": TTS_USD})


def test_speech_to_speech_is_shown_beside_model_and_voice() -> None:
    text = line({**CLOUD, "s2s": {"name": "openai-realtime"}})
    assert text.startswith("about $4.50 (stt $3.60, llm $0.06, tts $0.84) for")
    assert f"; s2s for all NPCs instead of llm and tts: ${S2S_USD:.2f}; list prices of 2026-05 or later" in text


def test_background_model_is_charged_only_if_it_is_asked() -> None:
    chronicle = {"llm": {"name": "openai"}}
    assert line({}, chronicle=chronicle) == "nothing: all providers run on this machine"
    assert line({}, chronicle=chronicle, memory={"chronicle": "llm"}).startswith("about $0.11 (memory.chronicle $0.11)")


def test_embeddings_are_charged_only_with_a_database() -> None:
    embeddings = {"embeddings": {"name": "openai"}}
    assert costs_of(settings_with(embeddings), LISTED).usd == pytest.approx({"providers.embeddings": 0.006})
    assert costs_of(settings_with(embeddings, memory={"postgres_dsn": "none"}), LISTED).usd == {}


def test_setting_whose_usage_was_not_counted_is_named() -> None:
    text = line({}, correction={"llm": {"name": "openai"}})
    assert text.startswith("unknown for") and text.endswith("; correction.llm not counted")


def test_price_that_lacks_a_unit_is_named_with_the_unit() -> None:
    llm = {"name": "openai-compatible", "model": "mine", "base_url": "https://models.example/v1"}
    text = line({**CLOUD, "llm": llm}, prices={"mine": {"characters": 1}})
    assert text.endswith("; price of mine unknown: add input and output to `prices.mine`")


@pytest.mark.parametrize(
    "llm",
    [
        {"name": "ollama"},
        {"name": "openai", "base_url": "http://127.0.0.1:8000/v1"},
        {"name": "openai-compatible", "model": "m", "base_url": "http://localhost:8000/v1"},
    ],
)
def test_server_on_this_machine_costs_nothing(llm: dict[str, str]) -> None:
    assert line({"llm": llm}) == "nothing: all providers run on this machine"


@pytest.mark.parametrize(
    ("price", "wrong"),
    [
        ("{input: -1}", "prices.m.input must be at least 0.0, not -1"),
        ("{output: cheap}", "prices.m.output must be a number, not 'cheap'"),
        ("{minute: .nan}", "prices.m.minute must be a number, not '.nan'"),
        ("{ouput: 1}", "unknown key 'ouput', did you mean 'output'?"),
    ],
)
def test_wrong_price_is_an_error_at_its_line(price: str, wrong: str, tmp_path: Path) -> None:
    settings = tmp_path / "glyphoxa.yaml"
    settings.write_text(f"prices:\n  m: {price}\n", "utf-8")
    with pytest.raises(InvalidFile) as caught:
        read_settings(settings)
    assert str(caught.value).startswith(f"{settings}:2: {wrong}")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [("{minute: -0.1, ", "minute must be at least 0.0, not -0.1"), ("{minute: free, ", "minute must be a number")],
)
def test_wrong_price_in_the_shipped_list_is_an_error_at_its_line(wrong: str, told: str, tmp_path: Path) -> None:
    shipped = PRICES.read_text("utf-8")
    broken = tmp_path / "prices.yaml"
    broken.write_text(shipped.replace("{minute: 0.0048, ", wrong), "utf-8")
    number = next(n for n, each in enumerate(shipped.splitlines(), start=1) if "{minute: 0.0048, " in each)
    with pytest.raises(InvalidFile) as caught:
        price_list(broken)
    assert f"{broken}:{number}: prices.nova-3-general.{told}" in str(caught.value)


def test_every_remote_default_model_has_a_price_that_covers_its_usage() -> None:
    listed = price_list()
    unknown = set()
    for row in rows():
        section = next(section for section, kind in KINDS.items() if kind == row.kind)
        setting = next(setting for setting, (named, _) in PROVIDERS.items() if named == section)
        if row.runs_here or "model" in row.needs or row.kind in ("structured", "reranker") or not row.key_env:
            continue
        price = listed.prices.get(row.model or row.name)
        if price is None or charged(price, listed.usage[setting]) is None:
            unknown.add(row.model or row.name)
    assert unknown == {"gemini-3.8-live"}  # the price of its sound was not found


def test_usage_of_every_setting_is_counted_or_reported_as_missing() -> None:
    listed = price_list()
    assert PROVIDERS.keys() - listed.usage.keys() == {
        "correction.llm",
        "memory.curator",
        "recall.llm",
        "recall.rerank",
    }


def test_documented_cost_is_that_of_the_documented_settings() -> None:
    page = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text("utf-8")
    [written] = re.findall(r"^(providers:\n  stt: \{name: deepgram-nova\}\n(?:  .+\n)+)END", page, re.MULTILINE)
    [shown] = re.findall(r"^ok  cost  (.+)$", page, re.MULTILINE)
    assert evening_cost(Settings.model_validate(yaml.safe_load(written)), price_list()) == shown


def test_check_reports_the_cost_of_an_evening() -> None:
    found = check(settings_with(CLOUD), environ={}, has_module=lambda _: True)
    [cost] = [each for each in found if each.subject == "cost"]
    assert cost.level == "ok"
    assert cost.text.startswith("about $") and "(stt $" in cost.text and "; list prices of 20" in cost.text
