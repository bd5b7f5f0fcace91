"""Each setting that sends what players say to somebody has an entry, a sentence in the consent text, and a document."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from glyphoxa.config.check import check
from glyphoxa.config.sections import ProviderSettings, Section
from glyphoxa.config.settings import PROVIDERS, settings_type
from glyphoxa.providers.registry import CHRONICLE, KINDS, Kind
from glyphoxa.web.access.records import CONSENT_LANGUAGES, consent_text

PRIVACY = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text("utf-8")
SENDS = {*PROVIDERS, *settings_type()().recipients(), "memory.postgres_dsn"}
SENDS_NOTHING = {
    "campaign": "a file of this machine",
    "data_dir": "a directory of this machine",
    "models.dir": "a directory of this machine",
    "server.host": "where the page is served to the table's own people",
    "server.public_url": "the address of the same page",
    "server.tls_cert": "a file of this machine",
    "server.tls_key": "a file of this machine",
    "server.trusted_proxies": "whose forwarded address is believed",
    "observability.metrics_host": "where counts are served, without words",
    "cluster.servers": "the consent at a table of theirs names the database as memory.postgres_dsn",
    "tiers.deep_words": "words that are compared",
    "tiers.standard_words": "words that are compared",
    "prices": "numbers",
    "recall.half_lives_turns": "numbers",
    "recall.method": "the model that it uses is that of recall.llm or recall.rerank",
}
"""Settings that take free text or name a model, and send nothing that players say; each with the reason."""
CLOUD = {"base_url": "https://models.example/v1", "model": "m", "name": "openai-compatible"}
ON: dict[str, dict[str, Any]] = {
    "providers.stt": {"providers": {"stt": {"name": "deepgram-nova"}}},
    "providers.llm": {"providers": {"llm": {"name": "qwen-0.5b"} | CLOUD}},
    "providers.tts": {"providers": {"tts": {"name": "openai"}}},
    "providers.s2s": {"providers": {"s2s": {"name": "openai-realtime"}}},
    "providers.embeddings": {"providers": {"embeddings": CLOUD}, "memory": {"embedding_dimensions": 8}},
    "correction.llm": {"correction": {"llm": CLOUD}},
    "recall.llm": {"recall": {"llm": CLOUD}},
    "recall.rerank": {"recall": {"rerank": CLOUD | {"name": "cohere-compatible"}}},
    "memory.chronicle": {"memory": {"chronicle": "llm"}, "chronicle": {"llm": CLOUD}},
    "memory.curator": {"memory": {"curator": True}, "curator": {"llm": CLOUD}},
    "memory.judge": {"memory": {"judge": "llm"}, "chronicle": {"llm": CLOUD}},
    "memory.summaries": {"memory": {"summaries": "llm"}, "chronicle": {"llm": CLOUD}},
    "logging.content": {"logging": {"content": True}},
    "engines": {"engines": {"loud": "./loud.py:build"}},
    "mcp.servers": {"mcp": {"servers": {"dice": {"url": "https://dice.example/mcp"}}}},
    "server.ice_servers": {"server": {"ice_servers": [{"urls": ["turn:turn.example"], "secret_env": "TURN"}]}},
    "discord": {"discord": {"guild": 1, "dm": [2]}},
    "observability.traces_endpoint": {"observability": {"traces_endpoint": "https://traces.example/v1/traces"}},
    "memory.postgres_dsn": {"memory": {"postgres_dsn": "postgresql://db.example/glyphoxa"}},
}
"""For each setting: settings that send what players say by it, and only by it."""


def parts_of(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation consists of."""
    if arguments := () if typing.get_origin(annotation) is Literal else typing.get_args(annotation):
        for each in arguments:
            yield from parts_of(each)
    else:
        yield annotation


def leaves(model: type[BaseModel], at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting below a section with its annotation. A section that names a provider is one setting."""
    for name, field in model.model_fields.items():
        path = f"{at}.{name}" if at else name
        sections = [
            each for each in parts_of(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)
        ]
        if not sections or issubclass(sections[0], ProviderSettings) or sections[0] is not field.annotation:
            yield path, field.annotation
        else:
            yield from leaves(sections[0], path)


SETTINGS = dict(leaves(settings_type()))


def names_a_provider(annotation: Any) -> bool:
    return any(isinstance(each, type) and issubclass(each, ProviderSettings) for each in parts_of(annotation))


def takes_free_text(annotation: Any) -> bool:
    return any(
        each in (str, Path) or (isinstance(each, type) and issubclass(each, BaseModel)) for each in parts_of(annotation)
    )


def options(annotation: Any) -> set[object]:
    return {one for each in parts_of(annotation) for one in typing.get_args(each)}


def test_each_section_with_a_provider_has_a_recipient() -> None:
    found = {path for path, annotation in SETTINGS.items() if names_a_provider(annotation)}
    assert found == set(KINDS)
    assert {section for section, _ in PROVIDERS.values()} == set(KINDS)


def test_each_kind_of_provider_is_in_a_section() -> None:
    assert set(KINDS.values()) == set(typing.get_args(Kind))


def test_each_setting_that_chooses_a_model_is_classified() -> None:
    asking = {path for path, annotation in SETTINGS.items() if {"llm", "hybrid_llm"} & options(annotation)}
    assert {"memory.chronicle", "memory.judge", "memory.summaries"} <= asking
    assert asking <= SENDS | SENDS_NOTHING.keys()


def test_each_setting_with_an_address_or_a_name_is_classified() -> None:
    free = {path for path, annotation in SETTINGS.items() if takes_free_text(annotation)}
    known = {*SENDS, *KINDS, *SENDS_NOTHING}
    assert {path for path in free if path not in known and path.partition(".")[0] not in known} == set()
    assert SENDS_NOTHING.keys() - free == {"recall.method"}


def test_each_entry_names_a_setting() -> None:
    assert SENDS - SETTINGS.keys() == {"discord"}
    assert ON.keys() == SENDS


def lines_of(settings: dict[str, Any], language: str = "en") -> list[str]:
    return list(consent_text(settings_type().model_validate(settings), language=language).lines)


@pytest.mark.parametrize("language", CONSENT_LANGUAGES)
@pytest.mark.parametrize("setting", sorted(SENDS))
def test_consent_text_has_one_sentence_more_for_a_setting_that_sends(setting: str, language: str) -> None:
    new = [line for line in lines_of(ON[setting], language) if line not in lines_of({}, language)]
    assert len(new) == 1
    assert not re.search(r"[{}]", new[0])
    recipients = ("example", "deepgram", "openai", "Discord", "loud", "dice", "logs", "Protokolle")
    assert any(each in new[0] for each in recipients), new


def test_order_of_the_consent_text_is_the_same_whoever_adds_a_section() -> None:
    settings = ("logging.content", "engines", "mcp.servers", "server.ice_servers", "discord")
    together = {key: value for setting in settings for key, value in ON[setting].items()}
    expected = [line for setting in settings for line in lines_of(ON[setting]) if line not in lines_of({})]
    assert [line for line in lines_of(together) if line not in lines_of({})] == expected


class Gong(Section):
    """A section of a plug-in that Glyphoxa does not know."""

    def recipients(self) -> Mapping[str, Collection[str]]:
        return {"gong.url": ["gong.example"]}


@pytest.mark.parametrize("language", CONSENT_LANGUAGES)
def test_consent_text_names_who_receives_talk_from_an_unknown_plugin(language: str) -> None:
    text = consent_text(settings_type()().model_copy(update={"gong": Gong()}), language=language)
    [line] = [line for line in text.lines if line not in lines_of({}, language)]
    assert "(gong.url)" in line and "gong.example" in line


@pytest.mark.parametrize("setting", ["memory.chronicle", "memory.curator", "memory.judge", "memory.summaries"])
def test_consent_text_says_that_a_local_model_keeps_talk_here(setting: str) -> None:
    local = {"memory": ON[setting]["memory"]}
    [line] = [line for line in lines_of(local) if line not in lines_of({})]
    assert "stays on the machine" in line


@pytest.mark.parametrize("setting", ["memory.chronicle", "memory.curator", "memory.judge", "recall.llm"])
def test_without_memory_its_models_receive_nothing(setting: str) -> None:
    forgetful = ON[setting] | {"memory": ON[setting].get("memory", {}) | {"postgres_dsn": "none"}}
    assert not [line for line in lines_of(forgetful) if "models.example" in line]


def test_summaries_by_a_provider_are_named_without_memory() -> None:
    forgetful = ON["memory.summaries"] | {"memory": {"summaries": "llm", "postgres_dsn": "none"}}
    assert [line for line in lines_of(forgetful) if "models.example" in line]
    found = check(settings_type().model_validate(forgetful), environ={}, has_module=lambda _: True)
    assert CHRONICLE in [each.subject for each in found]


def test_each_setting_that_sends_is_in_the_privacy_document() -> None:
    table = PRIVACY.partition("## What leaves the machine")[2].partition("##")[0]
    named = {
        each
        for row in table.splitlines()
        for each in re.findall(r"`([a-z0-9_.]+)", row.split("|")[1:2][0] if "|" in row else "")
    }
    assert SENDS - named == {"logging.content"}
    assert "`logging.content`" in PRIVACY
    assert {each for each in named if each in SETTINGS} - SENDS == set()
