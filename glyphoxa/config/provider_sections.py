"""Define the sections of the settings that name a provider, by what it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field

from glyphoxa.config.located_yaml import Wrong
from glyphoxa.config.sections import NameOf, ProviderSettings, Section
from glyphoxa.domain.heard import UNSURE
from glyphoxa.memory_graph.settings import MemoryGraphSettings, RecallMethod
from glyphoxa.providers.building import EMBEDDINGS, LLM, NONE, RECALL, TTS, find, missing_settings, runs_here
from glyphoxa.providers.chat_models import is_a_path, wrong_gguf_name

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
    stt: SttSettings = SttSettings()
    llm: LlmSettings = LlmSettings()
    tts: TtsSettings = TtsSettings()
    embeddings: EmbeddingsSettings = EmbeddingsSettings()
    s2s: S2sSettings = S2sSettings()

    def contradictions(self) -> Wrong:
        llm = self.llm
        yield from _chain_contradictions("llm", LLM, llm)
        yield from _chain_contradictions("tts", TTS, self.tts)
        for number, each in enumerate(llm.fallback):
            if wrong := _wrong_model(each):
                yield ("llm", "fallback", number, "model"), f"providers.llm.fallback model {wrong}"
        if wrong := _wrong_model(llm):
            yield ("llm", "model"), f"providers.llm.model {wrong}"
        if not runs_here(LLM, llm.name) and llm.context_tokens is not None:
            text = f"providers.llm.context_tokens is of a model that runs here, which {llm.name} does not"
            yield ("llm", "context_tokens"), text


def in_turn(providers: ProvidersSettings) -> list[ProvidersSettings]:
    """Return the providers that are asked first, then those that replace them while they fail, without fallbacks.

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
    """Make a model file's path count from the settings file.

    Args:
        base: The directory of that file.
    """

    def found(choice: _Llm) -> _Llm:
        if choice.model is None or not runs_here(LLM, choice.name) or not is_a_path(choice.model):
            return choice
        return choice.model_copy(update={"model": str(base / Path(choice.model).expanduser())})

    llm = found(providers.llm).model_copy(update={"fallback": tuple(map(found, providers.llm.fallback))})
    return providers.model_copy(update={"llm": llm})


def _chain_contradictions(name: str, section: str, chosen: LlmSettings | TtsSettings) -> Wrong:
    here = [number for number, each in enumerate((chosen, *chosen.fallback)) if runs_here(section, each.name)]
    if here and here[0] < len(chosen.fallback):
        runs = (chosen, *chosen.fallback)[here[0]].name
        text = f"providers.{name}: {runs} runs on this machine, and no fallback can follow it"
        yield (name, "fallback", here[0]), text
    for number, each in enumerate(chosen.fallback):
        for missing in missing_settings(section, each):
            text = f"providers.{name}.fallback: {each.name} needs {missing.rpartition('.')[2]}"
            yield (name, "fallback", number), text


def _wrong_model(choice: ProviderSettings) -> str:
    """Return why a provider that runs here has no such model; "" if it has, or runs elsewhere."""
    if choice.model is None or not runs_here(LLM, choice.name):
        return ""
    if "model" in find(LLM, choice.name).needs:
        return wrong_gguf_name(choice.model)
    return f"{choice.model!r}: {choice.name} is one model; a GGUF file of your own is `name: local` with its `model`"


class SecondLookSettings(ProviderSettings):
    """A language model that looks again at words the recogniser was unsure of, behind the talk. Off by default.

    `local` is the NPCs' own model: it is asked while the table is quiet. `openai-compatible` needs a `base_url`.
    """

    name: Annotated[str, NameOf("structured", or_none=True)] = "none"


class CorrectionSettings(Section):
    """How misheard names are put right. Each stage can be left out.

    Attributes:
        phonetic: The stage by sound and spelling, on every transcript.
        algorithm: `documents` is the rule as it was first written down; it rewrites ordinary speech, and is there to
            be compared with.
        caution: Evidence, in log-odds, asked for beyond an even chance before words are replaced: 1 for a table that
            would rather see a garble than a wrong name, -1 for one that would not.
        phonetic_threshold: Of `documents`: least similarity of spellings that sound alike.
        fuzzy_threshold: Of `documents`: the same where nothing sounds alike.
        low_confidence: Words of which the recogniser is less sure are looked at again.
        llm: Who looks again.
    """

    phonetic: bool = True
    algorithm: Literal["shipped", "documents"] = "shipped"
    caution: Annotated[float, Field(ge=-5.0, le=5.0)] = 0.0
    phonetic_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.70
    fuzzy_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.85
    low_confidence: Annotated[float, Field(ge=0.0, le=1.0)] = UNSURE
    llm: SecondLookSettings = SecondLookSettings()


class RecallLlmSettings(ProviderSettings):
    """Who picks memories, where a search asks a language model.

    `local` is the NPCs' own model, in a place of its own in its prompt cache. Two cores take 7 to 12 s to read what it
    picks from, and a tool has 3: it serves `glyphoxa recall`, at a table another is needed. `openai-compatible` needs
    a `base_url`.
    """

    name: Annotated[str, NameOf("structured")] = "local"


class RerankSettings(ProviderSettings):
    """Who gives a second opinion on the order, where a search asks for one: `cohere-compatible` is a server that
    answers `POST /rerank` as Cohere does. It needs a `base_url` and a `model`.
    """

    name: Annotated[str, NameOf("reranker", or_none=True)] = "none"


class DeepRecallSettings(MemoryGraphSettings, Section):
    """How an NPC of budget tier DEEP searches its memory with its tools. What it recalls in a turn by itself,
    and what NPCs of other tiers find, is `hybrid` with no stage on, whatever is set here: somebody waits.
    """

    llm: RecallLlmSettings = RecallLlmSettings()
    rerank: RerankSettings = RerankSettings()

    @property
    def searches_by(self) -> RecallMethod:
        """Return the method. Where none is set, what is named is asked: a language model that runs elsewhere, else a
        reranker.
        """
        if self.method is not None:
            return self.method
        if not runs_here(RECALL, self.llm.name):
            return "llm"
        return "hybrid" if self.rerank.name == NONE else "hybrid_rerank"

    @property
    def is_plain(self) -> bool:
        """Return whether all NPCs search alike."""
        return self.searches_by == "hybrid" and not self.stages

    def contradictions(self) -> Wrong:
        if self.method == "hybrid_rerank" and self.rerank.name == NONE:
            yield ("method",), "recall.method hybrid_rerank asks recall.rerank, which is none; valid: cohere-compatible"


def not_here(thinks_with: str) -> str:
    """Return why `local` cannot be the model of this name in providers.llm; "" if it can."""
    if runs_here(LLM, thinks_with):
        return ""
    return f"local is the model of providers.llm, which is {thinks_with}: not one that runs here"


class ChronicleLlmSettings(ProviderSettings):
    """Who reads talk beside the rules, with `memory.chronicle: llm`.

    `local` is the NPCs' own model, which `glyphoxa worker read` and `glyphoxa worker` load for themselves: have it
    read when nobody plays. `openai-compatible` needs a `base_url`.
    """

    name: Annotated[str, NameOf("structured")] = "local"


class ChronicleSettings(Section):
    """How talk is read with a language model.

    Attributes:
        calls_per_minute: The model is asked no more often, by each process that reads: once for a stretch of up to 40
            lines.
        llm: Who is asked.
    """

    calls_per_minute: Annotated[int, Field(ge=1, le=600)] = 20
    llm: ChronicleLlmSettings = ChronicleLlmSettings()
