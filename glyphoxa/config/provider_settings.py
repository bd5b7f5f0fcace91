"""What is asked for recognition, language, voices and meaning: a provider for each, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from glyphoxa.config.sections import NameOf, ProviderSettings, Section, empty_section
from glyphoxa.providers.gguf_names import is_a_path, wrong_gguf_name
from glyphoxa.providers.registry import EMBEDDINGS, LLM, NONE, find, runs_here


class SttSettings(ProviderSettings):
    """Speech to text. `whisper` runs here."""

    name: Annotated[str, NameOf("stt")] = "whisper"


class LlmSettings(ProviderSettings):
    """What NPCs think with. `qwen-*` run here, and so does `local`: any chat model in a GGUF file, whose `model` is a
    path (`./mine.gguf`, from this file) or a file of the hub (`OWNER/REPO/FILE.gguf`). `openai-compatible` needs a
    `base_url`.

    Attributes:
        context_tokens: Of prompt and reply together. A model that runs here is loaded with so many for each NPC; left
            out, as its profile has it.
        temperature: 0 is the most predictable; left out, the model's own recipe.
        max_tokens: Of one reply.
    """

    name: Annotated[str, NameOf("llm")] = "qwen-1.5b"
    context_tokens: Annotated[int, Field(ge=1024, le=131_072)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 120


class TtsSettings(ProviderSettings):
    """Text to speech. `hibari` runs here, with a preset for each NPC.

    Attributes:
        voice: A provider's id of a voice, for NPCs without one of their own.
    """

    name: Annotated[str, NameOf("tts")] = "hibari"
    voice: str | None = None


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


def with_model_from(base: Path, providers: ProvidersSettings) -> ProvidersSettings:
    """A model file's path counts from the settings file.

    Args:
        base: The directory of that file.
    """
    llm = providers.llm
    if llm.model is None or not runs_here(LLM, llm.name) or not is_a_path(llm.model):
        return providers
    model = str(base / Path(llm.model).expanduser())
    return providers.model_copy(update={"llm": llm.model_copy(update={"model": model})})


def provider_contradictions(providers: ProvidersSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Values that are fine alone and wrong together: where, and what is wrong."""
    llm = providers.llm
    if not runs_here(LLM, llm.name):
        if llm.context_tokens is not None:
            text = f"providers.llm.context_tokens is of a model that runs here, which {llm.name} does not"
            yield ("providers", "llm", "context_tokens"), text
    elif llm.model is not None and (wrong := _wrong_model(llm.name, llm.model)):
        yield ("providers", "llm", "model"), f"providers.llm.model {wrong}"


def _wrong_model(provider: str, model: str) -> str:
    """Why that provider, which runs here, has no such model; "" if it does."""
    if "model" in find(LLM, provider).needs:
        return wrong_gguf_name(model)
    return f"{model!r}: {provider} is one model; a GGUF file of your own is `name: local` with its `model`"
