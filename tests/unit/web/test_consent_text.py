"""The text that a player agrees to is made from the settings, and says who hears them."""

from __future__ import annotations

import pytest

from glyphoxa.config.settings import Settings
from glyphoxa.web.access.records import consent_text, sends_sound

CLOUD = {
    "providers": {
        "stt": {"name": "deepgram-nova"},
        "llm": {"name": "openai-compatible", "base_url": "https://models.example/v1", "model": "m"},
        "embeddings": {"name": "openai-compatible", "base_url": "http://127.0.0.1:11434/v1", "model": "m"},
    },
    "memory": {"postgres_dsn": "postgresql://u:secret-word@db.example/glyphoxa"},
}


def text_of(settings: dict[str, object], language: str = "en") -> str:
    return consent_text(Settings.model_validate(settings), language=language).whole


def test_consent_with_local_models_says_that_data_stays() -> None:
    text = text_of({})
    assert "Speech recognition (your voice): stays on the machine that runs the table." in text
    assert "Language model (your words): stays on the machine that runs the table." in text
    assert "goes to" not in text


def test_providers_and_the_database_are_named_and_no_password_is() -> None:
    text = text_of(CLOUD)
    assert "Speech recognition (your voice): goes to deepgram-nova." in text
    assert "goes to openai-compatible (models.example)" in text
    assert "Search by meaning (your words): stays on the machine" in text
    assert "in the database at db.example" in text
    assert "secret-word" not in text


def test_consent_text_changes_only_with_the_settings() -> None:
    def digest(settings: dict[str, object]) -> str:
        return consent_text(Settings.model_validate(settings), language="en").digest

    assert digest({}) == digest({}) != digest(CLOUD)


@pytest.mark.parametrize(("language", "begins"), [("de-AT", "Bevor"), ("en", "Before"), ("fr", "Before")])
def test_consent_is_in_the_campaigns_language_or_english(language: str, begins: str) -> None:
    assert text_of(CLOUD, language).startswith(begins)


@pytest.mark.parametrize(
    ("directions", "sends"),
    [
        ("a=recvonly", False),
        ("a=inactive", False),
        ("a=sendrecv", True),
        ("a=sendonly", True),
        ("", True),
        ("a=recvonly\r\na=sendrecv:x", True),
        ("a=recvonly\r\nm=audio 9 X 96", True),
        ("a=recvonly\r\nm=application 9 X 96", False),
    ],
)
def test_offer_without_recvonly_counts_as_sending(directions: str, sends: bool) -> None:
    assert sends_sound(f"v=0\r\na=recvonly\r\nm=audio 9 X 96\r\n{directions}\r\n") is sends


def test_consent_to_a_shared_microphone_is_given_for_the_whole_room() -> None:
    for language, word in (("en", "agree for all of them"), ("de", "stimmst für alle zu")):
        text = consent_text(Settings(), language=language, tables=["the sofa"]).whole
        assert "“the sofa”" in text or "„the sofa“" in text
        assert word in text
        assert word not in text_of({}, language)


def test_consent_names_the_retention_period_if_set() -> None:
    assert "No time limit is set." in text_of({})
    text = text_of({"privacy": {"retain_days": 30}})
    assert "deletes it after 30 days" in text
    assert "No time limit is set." not in text
    assert "nach 30 Tagen" in text_of({"privacy": {"retain_days": 30}}, "de")
    nowhere = {"privacy": {"retain_days": 30}, "memory": {"postgres_dsn": "none"}}
    assert "No time limit is set." in text_of(nowhere)
