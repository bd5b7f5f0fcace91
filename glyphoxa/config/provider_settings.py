"""What is asked for recognition, language, voices and meaning: a provider for each, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field

from glyphoxa.config.sections import NameOf, ProviderSettings, Section, empty_section
from glyphoxa.providers.chat_models import is_a_path, wrong_gguf_name
from glyphoxa.providers.registry import EMBEDDINGS, LLM, NONE, TTS, find, missing_settings, runs_here

_Llm = TypeVar("_Llm", bound=ProviderSettings)


MOST_FALLBACKS = 3
"""A chain of many costs a turn each one's patience."""


class SttSettings(ProviderSettings):
    """Speech to text. `whisper` runs here."""

    name: Annotated[str, NameOf("stt")] = "whisper"


def _named(value: object) -> object:
    """`fallback: [qwen-1.5b]` names a provider with its usual model."""
    return [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value


class LlmFallback(ProviderSettings):
    """A provider that answers when those before it fail; its key and address are its own."""

    name: Annotated[str, NameOf("llm")]


class TtsFallback(ProviderSettings):
    """A provider that speaks when those before it fail.

    Attributes:
        voice: A provider's id of a voice. An NPC's own is another provider's, and is not asked for here.
    """

    name: Annotated[str, NameOf("tts")]
    voice: str | None = None


class LlmSettings(ProviderSettings):
    """What NPCs think with. `qwen-*` run here, and so does `local`: any chat model in a GGUF file, whose `model` is a
    path (`./mine.gguf`, from this file) or a file of the hub (`OWNER/REPO/FILE.gguf`). `openai-compatible` needs a
    `base_url`.

    Attributes:
        context_tokens: Of prompt and reply together. A model that runs here is loaded with so many for each NPC; left
            out, as its profile has it.
        temperature: 0 is the most predictable; left out, the model's own recipe.
        max_tokens: Of one reply.
        fallback: Who answers when this provider fails, in this order: names, or blocks with `name`, `model`, `base_url`
            and `api_key_env`. A model that runs here can be the last.
        fallback_after_ms: Without a first word for so long, or with a pause of so long in the answer, it has failed,
            where there is a fallback.
    """

    name: Annotated[str, NameOf("llm")] = "qwen-1.5b"
    context_tokens: Annotated[int, Field(ge=1024, le=131_072)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 120
    fallback: Annotated[tuple[LlmFallback, ...], BeforeValidator(_named), Field(max_length=MOST_FALLBACKS)] = ()
    fallback_after_ms: Annotated[int, Field(ge=500, le=60_000)] = 4_000


class TtsSettings(ProviderSettings):
    """Text to speech. `hibari` runs here, with a preset for each NPC.

    Attributes:
        voice: A provider's id of a voice, for NPCs without one of their own.
        fallback: Who speaks when this provider fails, as of `llm`, with a `voice`.
    """

    name: Annotated[str, NameOf("tts")] = "hibari"
    voice: str | None = None
    fallback: Annotated[tuple[TtsFallback, ...], BeforeValidator(_named), Field(max_length=MOST_FALLBACKS)] = ()


class EmbeddingsSettings(ProviderSettings):
    """How past talk is found by meaning. `minilm` runs here; with `none` words alone decide.

    `openai-compatible` is any server that speaks OpenAI's protocol, such as Ollama. It needs a `base_url`, a `model`,
    and memory.embedding_dimensions.
    """

    name: Annotated[str, NameOf("embeddings", or_none=True)] = "minilm"

    @property
    def model_name(self) -> str:
        """The one that is meant; "" if none is named, and the provider has no usual one."""
        return self.model or ("" if self.name == NONE else find(EMBEDDINGS, self.name).model)


class S2sSettings(ProviderSettings):
    """The engine of NPCs that have `engine: s2s` in the campaign file.

    Attributes:
        rescue: Where a session fails, the NPC answers by `providers.llm` and `providers.tts`: in that turn, and after
            five failures in a row for the rest of the session.
    """

    name: Annotated[str, NameOf("s2s", or_none=True)] = "none"
    rescue: bool = True


class ProvidersSettings(Section):
    stt: Annotated[SttSettings, BeforeValidator(empty_section)] = SttSettings()
    llm: Annotated[LlmSettings, BeforeValidator(empty_section)] = LlmSettings()
    tts: Annotated[TtsSettings, BeforeValidator(empty_section)] = TtsSettings()
    embeddings: Annotated[EmbeddingsSettings, BeforeValidator(empty_section)] = EmbeddingsSettings()
    s2s: Annotated[S2sSettings, BeforeValidator(empty_section)] = S2sSettings()


def in_turn(providers: ProvidersSettings) -> list[ProvidersSettings]:
    """What is asked first, and what in its place as long as that fails: no entry has a fallback of its own.

    A voice is changed only after every language model was tried with it.
    """
    llm, tts = providers.llm, providers.tts
    thinkers = [llm.model_copy(update={"fallback": ()})]
    thinkers += [
        llm.model_copy(update={**each.model_dump(), "fallback": (), "context_tokens": None}) for each in llm.fallback
    ]
    speakers = [tts.model_copy(update={"fallback": ()})]
    speakers += [tts.model_copy(update={**each.model_dump(), "fallback": ()}) for each in tts.fallback]
    return [providers.model_copy(update={"llm": one, "tts": voice}) for voice in speakers for one in thinkers]


def with_model_from(base: Path, providers: ProvidersSettings) -> ProvidersSettings:
    """A model file's path counts from the settings file.

    Args:
        base: The directory of that file.
    """

    def found(choice: _Llm) -> _Llm:
        if choice.model is None or not runs_here(LLM, choice.name) or not is_a_path(choice.model):
            return choice
        return choice.model_copy(update={"model": str(base / Path(choice.model).expanduser())})

    llm = found(providers.llm).model_copy(update={"fallback": tuple(map(found, providers.llm.fallback))})
    return providers.model_copy(update={"llm": llm})


def provider_contradictions(providers: ProvidersSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Values that are fine alone and wrong together: where, and what is wrong."""
    yield from _chain_contradictions("llm", LLM, providers.llm)
    yield from _chain_contradictions("tts", TTS, providers.tts)
    for number, each in enumerate(providers.llm.fallback):
        if runs_here(LLM, each.name) and each.model is not None and (wrong := _wrong_model(each.name, each.model)):
            yield ("providers", "llm", "fallback", number, "model"), f"providers.llm.fallback model {wrong}"
    llm = providers.llm
    if not runs_here(LLM, llm.name):
        if llm.context_tokens is not None:
            text = f"providers.llm.context_tokens is of a model that runs here, which {llm.name} does not"
            yield ("providers", "llm", "context_tokens"), text
    elif llm.model is not None and (wrong := _wrong_model(llm.name, llm.model)):
        yield ("providers", "llm", "model"), f"providers.llm.model {wrong}"


def _chain_contradictions(
    name: str, section: str, chosen: LlmSettings | TtsSettings
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    here = [number for number, each in enumerate((chosen, *chosen.fallback)) if runs_here(section, each.name)]
    if here and here[0] < len(chosen.fallback):
        place = ("providers", name, "fallback", here[0])
        runs = (chosen, *chosen.fallback)[here[0]].name
        yield place, f"providers.{name}: {runs} runs on this machine, and no fallback can follow it"
    for number, each in enumerate(chosen.fallback):
        for missing in missing_settings(section, each):
            text = f"providers.{name}.fallback: {each.name} needs {missing.rpartition('.')[2]}"
            yield ("providers", name, "fallback", number), text


def _wrong_model(provider: str, model: str) -> str:
    """Why that provider, which runs here, has no such model; "" if it does."""
    if "model" in find(LLM, provider).needs:
        return wrong_gguf_name(model)
    return f"{model!r}: {provider} is one model; a GGUF file of your own is `name: local` with its `model`"
