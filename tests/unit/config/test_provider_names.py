"""Every name of a provider that the settings take is one that can be built."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, get_args

import pytest

from glyphoxa.bootstrap.embedder import load_embedder
from glyphoxa.bootstrap.local_models import QWEN, needed
from glyphoxa.bootstrap.structured_llm import open_structured_llm
from glyphoxa.config.check import PROVIDERS
from glyphoxa.config.recall_settings import RecallLlmName
from glyphoxa.config.settings import (
    EmbeddingsName,
    EmbeddingsSettings,
    LlmName,
    LlmSettings,
    S2sName,
    S2sSettings,
    SecondLookName,
    SecondLookSettings,
    Settings,
    SttName,
    SttSettings,
    TtsName,
    TtsSettings,
    read_settings,
)
from glyphoxa.domain.errors import InvalidInput
from glyphoxa_pipelines.s2s import make_session
from glyphoxa_processors.cloud_llm import make_llm
from glyphoxa_processors.cloud_stt import make_stt
from glyphoxa_processors.cloud_tts import make_tts

KEYS = {needs.key_env: "a-key" for needs in PROVIDERS.values() if needs.key_env}
HERE = {"whisper", "hibari", *QWEN}
URL = "http://127.0.0.1:9/v1"


def names(kind: Any) -> list[str]:
    return [name for name in get_args(kind) if name not in {"none", "local", "minilm"} | HERE]


@pytest.mark.parametrize("name", names(SttName))
async def test_a_recogniser_is_built(name: Any) -> None:
    assert make_stt(SttSettings(name=name), environ=KEYS)


async def test_a_language_that_a_recogniser_does_not_know_is_named() -> None:
    with pytest.raises(InvalidInput, match="knows no language 'tlh'"):
        make_stt(SttSettings(name="deepgram-nova"), language="tlh", environ=KEYS)


@pytest.mark.parametrize("name", names(LlmName))
async def test_a_model_is_built(name: Any) -> None:
    assert make_llm(LlmSettings(name=name, model="m", base_url=URL), environ=KEYS)


@pytest.mark.parametrize("name", names(TtsName))
async def test_a_voice_is_built(name: Any) -> None:
    assert make_tts(TtsSettings(name=name), environ=KEYS)


@pytest.mark.parametrize("name", names(S2sName))
def test_a_speaking_model_is_built(name: Any) -> None:
    assert make_session(S2sSettings(name=name), environ=KEYS).key == "a-key"


@pytest.mark.parametrize("name", names(EmbeddingsName))
async def test_an_embedder_is_built(name: Any) -> None:
    settings = Settings.model_validate(
        {"providers": {"embeddings": EmbeddingsSettings(name=name, model="m", base_url=URL)}}
    )
    embedder = await load_embedder(settings, environ=KEYS)
    assert embedder.name
    await embedder.aclose()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("correction.llm", n) for n in names(SecondLookName)] + [("recall.llm", n) for n in names(RecallLlmName)],
)
async def test_a_model_behind_the_talk_is_built(kind: str, name: Any) -> None:
    async with AsyncExitStack() as stack:
        chosen = SecondLookSettings(name=name, base_url=URL)
        assert open_structured_llm(chosen, stack, kind=kind, llama=None, environ=KEYS)


def test_a_model_that_runs_here_has_weights() -> None:
    for name in set(get_args(LlmName)) & HERE:
        assert QWEN[name] in needed(Settings(providers={"llm": {"name": name}}))  # type: ignore[arg-type]


def test_a_name_that_cannot_be_built_is_refused_with_what_is_valid(tmp_path: Any) -> None:
    (tmp_path / "s.yaml").write_text("providers:\n  s2s: {name: gemini-live}\n")
    with pytest.raises(InvalidInput, match=r"s\.yaml:2: .*'gemini-live' is not valid, valid: none, openai-realtime"):
        read_settings(tmp_path / "s.yaml")
