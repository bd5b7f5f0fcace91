"""Define the sections of the settings that name a provider, by what it is asked for; and how memory is searched."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from glyphoxa.chat.dialect import Habits, Reasoning, Roles
from glyphoxa.chat.models import is_a_path, wrong_gguf_name
from glyphoxa.config.located_yaml import Wrong
from glyphoxa.config.sections import NameOf, ProviderSettings, Section, from_folder
from glyphoxa.domain.errors import did_you_mean
from glyphoxa.domain.heard import LONGEST_CODE, UNSURE, PhoneticCode, Similarity
from glyphoxa.providers.registry import EMBEDDINGS, LLM, NONE, RECALL, STT, TTS, find, missing_settings, runs_here

MOST_FALLBACKS = 3
"""A chain of many costs a turn each one's patience."""


class SttSettings(ProviderSettings):
    """Speech to text. `whisper` is local; its default model is the first listed that knows the campaign's language."""

    name: Annotated[str, NameOf("stt")] = "whisper"


def _named(value: object) -> object:
    """`fallback: [qwen-1.5b]` names a provider with its usual model."""
    return [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value


class LlmServerSettings(ProviderSettings):
    """A language model for NPCs.

    Attributes:
        roles: For OpenAI-compatible servers. `alternate` merges consecutive messages of one role. `no_system` also
            makes the system message part of the first user message. `any` sends messages as they are. `auto` does so
            until the server refuses them.
        reasoning: For OpenAI-compatible servers. `auto` finds reasoning by its marks and never speaks it. `unopened` is
            for models whose answers begin with reasoning without an opening mark. `none` removes nothing.
    """

    roles: Roles = "auto"
    reasoning: Reasoning = "auto"

    @field_validator("model")
    @classmethod
    def _from_folder(cls, model: str | None, info: ValidationInfo) -> str | None:
        name = info.data.get("name", NONE)
        if model is None or not runs_here(LLM, name) or not is_a_path(model) or _wrong_model(name, model):
            return model
        return str(from_folder(Path(model), info)) if info.context else model

    @property
    def habits(self) -> Habits:
        return Habits(self.roles, self.reasoning)


class LlmFallback(LlmServerSettings):
    """A provider that answers when those before it fail. Its key and address are set here."""

    name: Annotated[str, NameOf("llm")]


class TtsFallback(ProviderSettings):
    """A provider that speaks when those before it fail.

    Attributes:
        voice: The provider's id of a voice. Voices of NPCs belong to the first provider and are not used here.
    """

    name: Annotated[str, NameOf("tts")]
    voice: str | None = None


class LlmSettings(LlmServerSettings):
    """The language model of the NPCs. `qwen-*` and `local` run on this machine. `local` is any chat model in a GGUF
    file: set `model` to a path (`./mine.gguf`, relative to this file) or to a file of the model hub
    (`OWNER/REPO/FILE.gguf`). `openai-compatible` needs a `base_url`.

    Attributes:
        context_tokens: Tokens of prompt and reply together, for a local model. It reserves memory for this many tokens
            for each NPC. Default: the model's profile.
        temperature: 0 is the most predictable. Default: what the model recommends.
        max_tokens: Most tokens of one reply, with its reasoning.
        fallback: Providers that answer when this one fails, in order: names, or blocks with `name`, `model`, `base_url`
            and `api_key_env`. A local model must be the last.
        fallback_after_ms: How long to wait for the first word, or for the next one, before the provider counts as
            failed. Used only with a fallback.
    """

    name: Annotated[str, NameOf("llm")] = "qwen-1.5b"
    context_tokens: Annotated[int, Field(ge=1024, le=131_072)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 120
    fallback: Annotated[tuple[LlmFallback, ...], BeforeValidator(_named), Field(max_length=MOST_FALLBACKS)] = ()
    fallback_after_ms: Annotated[int, Field(ge=500, le=60_000)] = 4_000


class TtsSettings(ProviderSettings):
    """Text to speech. `hibari` is local, with a preset for each NPC.

    Attributes:
        voice: The provider's id of a voice, for NPCs that have none of their own.
        fallback: Providers that speak when this one fails, as for `llm`, with a `voice`.
    """

    name: Annotated[str, NameOf("tts")] = "hibari"
    voice: str | None = None
    fallback: Annotated[tuple[TtsFallback, ...], BeforeValidator(_named), Field(max_length=MOST_FALLBACKS)] = ()


class EmbeddingsSettings(ProviderSettings):
    """The model that finds earlier utterances by meaning. `minilm` is local. With `none`, only words are compared.

    `openai-compatible` is any server that speaks OpenAI's protocol, such as Ollama. It needs a `base_url`, a `model`,
    and memory.embedding_dimensions.
    """

    name: Annotated[str, NameOf("embeddings", or_none=True)] = "minilm"

    @property
    def model_name(self) -> str:
        """The one that is meant; "" if none is named, and the provider has no usual one."""
        return self.model or ("" if self.name == NONE else find(EMBEDDINGS, self.name).model)


class S2sSettings(ProviderSettings):
    """The speech-to-speech service of NPCs that have `engine: s2s` in the campaign file.

    Attributes:
        rescue: If a session fails, `providers.llm` and `providers.tts` answer in that turn. After five failures in a
            row they answer for the rest of the session.
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
        llm, stt = self.llm, self.stt
        weights = find(STT, stt.name).weights
        if weights and stt.model is not None and stt.model not in weights:
            yield ("stt", "model"), f"providers.stt.model {stt.model!r}: {did_you_mean(stt.model, weights)}"
        yield from _chain_contradictions("llm", LLM, llm)
        yield from _chain_contradictions("tts", TTS, self.tts)
        for number, each in enumerate(llm.fallback):
            if wrong := _wrong_model(each.name, each.model):
                yield ("llm", "fallback", number, "model"), f"providers.llm.fallback model {wrong}"
        if wrong := _wrong_model(llm.name, llm.model):
            yield ("llm", "model"), f"providers.llm.model {wrong}"
        if not runs_here(LLM, llm.name) and llm.context_tokens is not None:
            text = f"providers.llm.context_tokens is only for local models, and {llm.name} is not one"
            yield ("llm", "context_tokens"), text


def _chain_contradictions(name: str, section: str, chosen: LlmSettings | TtsSettings) -> Wrong:
    here = [number for number, each in enumerate((chosen, *chosen.fallback)) if runs_here(section, each.name)]
    if here and here[0] < len(chosen.fallback):
        runs = (chosen, *chosen.fallback)[here[0]].name
        text = f"providers.{name}: {runs} is local, and nothing can follow a local model or voice"
        yield (name, "fallback", here[0]), text
    for number, each in enumerate(chosen.fallback):
        for missing in missing_settings(section, each):
            text = f"providers.{name}.fallback: {each.name} needs {missing.rpartition('.')[2]}"
            yield (name, "fallback", number), text


def _wrong_model(name: str, model: str | None) -> str:
    """Return why a provider that runs here has no such model; "" if it has, or runs elsewhere."""
    if model is None or not runs_here(LLM, name):
        return ""
    if "model" in find(LLM, name).needs:
        return wrong_gguf_name(model)
    return f"{model!r}: {name} has a fixed model; for your own GGUF file, use `name: local` with its `model`"


class SecondLookSettings(ProviderSettings):
    """A language model that reviews words of low confidence in the background. Off by default.

    `local` is the language model of the NPCs; it is used while the table is quiet. `openai-compatible` needs a
    `base_url`.
    """

    name: Annotated[str, NameOf("structured", or_none=True)] = "none"


class CorrectionSettings(Section):
    """How misheard names are corrected.

    Attributes:
        phonetic: Correct names by sound and spelling in every transcript.
        algorithm: `shipped` is the default. `documents` is the first published rule; it also changes ordinary speech
            and is kept for comparison.
        caution: How much more evidence than an even chance a correction needs, in log-odds. Higher values make fewer
            corrections: 1 prefers a misheard word to a wrong name, and -1 the opposite.
        phonetic_threshold: For `documents`, the least similarity of spellings that sound alike.
        fuzzy_threshold: For `documents`, the least similarity of spellings that do not sound alike.
        code: For `documents`, the phonetic code. A Soundex has at most four letters.
        code_length: For `documents`, the letters of a phonetic code that count. Long names need more than four.
        similarity: For `documents`, the similarity of spellings.
        low_confidence: Words below this confidence of the recogniser are reviewed by `llm`.
        llm: The language model that reviews them.
    """

    phonetic: bool = True
    algorithm: Literal["shipped", "documents"] = "shipped"
    caution: Annotated[float, Field(ge=-5.0, le=5.0)] = 0.0
    phonetic_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.70
    fuzzy_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.85
    code: PhoneticCode = "double_metaphone"
    code_length: Annotated[int, Field(ge=1, le=LONGEST_CODE)] = 4
    similarity: Similarity = "jaro_winkler"
    low_confidence: Annotated[float, Field(ge=0.0, le=1.0)] = UNSURE
    llm: SecondLookSettings = SecondLookSettings()


class CompletionSettings(ProviderSettings):
    """
    Attributes:
        temperature: How freely the model words its answer; 0 always takes the likeliest word.
        max_tokens: Longest answer. Default: that of the task.
    """

    name: Annotated[str, NameOf("structured")] = "local"
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=16, le=100_000)] | None = None


class RecallLlmSettings(CompletionSettings):
    """The language model that selects memories, for the methods `llm` and `hybrid_llm`.

    `local` is the language model of the NPCs, with its own prompt cache. On two cores it needs 7 to 12 s, and a tool
    has 3 s: use it for `glyphoxa recall`, and another model at a table. `openai-compatible` needs a `base_url`.
    """


class RerankSettings(ProviderSettings):
    """The model that reorders search results, for the method `hybrid_rerank`. `cohere-compatible` is a server that
    answers `POST /rerank` as Cohere does. It needs a `base_url` and a `model`.
    """

    name: Annotated[str, NameOf("reranker", or_none=True)] = "none"


RecallMethod = Literal["hybrid", "hybrid_llm", "llm", "hybrid_rerank"]
RecallStage = Literal[
    "vector_prefilter",
    "diffusion",
    "hybrid_score",
    "co_occurrence",
    "topics",
    "residual",
    "diversity",
    "per_type_cap",
]

HALF_LIVES_TURNS: Final[Mapping[str, float]] = MappingProxyType(
    {"event": 50.0, "character_sheet": 200.0, "location_state": 100.0, "rule_constraint": inf}
)

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class MemoryGraphSettings(Section):
    """All settings of the memory graph: the recall method, its stages, and the numbers of each stage.

    The defaults of the numbers are those of the memory graph document. Stages are off until one is measured to win.

    Attributes:
        method: `hybrid`: words, meaning and the structure of the transcript. `hybrid_llm`: a language model filters the
            results of `hybrid`. `llm`: a language model selects memories and may ask for their neighbours.
            `hybrid_rerank`: a reranker reorders the results of `hybrid`. Default: `llm` if `recall.llm` is not `local`,
            otherwise `hybrid_rerank` if `recall.rerank` is set, otherwise `hybrid`.
        stages: Stages of the memory graph to turn on. None is on by default, because no measurement shows a gain.
        semantic_edges: Diffusion follows edges between turns and the names in them.
        temporal_edges: Diffusion follows edges between consecutive turns.
        forgetting: Energy decreases with the turns since a node's entities were last mentioned.
        vector_top_k: How many nearest results pass the vector pre-filter, and how many seeds diffusion has.
        diffusion_steps: Steps of spreading activation.
        diffusion_decay: Share of the energy that an edge passes on.
        diffusion_top_k: How many nodes keep energy after each step.
        teleport_probability: Share of the energy that returns to the seeds in each step.
        refractory: Share of its energy that one of the 15 most energetic nodes of a step passes on in later steps. 1
            passes on all.
        half_lives_turns: Half-life in turns by type of node, for forgetting and recency. Default: event 50,
            character_sheet 200, location_state 100, others 50; rule_constraint never fades.
        pool_factor: The stages after scoring work on this many times the wanted number of results.
        diversity_relevance: Exponent of a candidate's score in the diverse set. 1 is the published value; higher values
            favour good candidates over dissimilar ones.
        cap_of_type: Most results of one type, with the stage `per_type_cap`.
        max_results: Least number of results that a reranker or a filtering language model receives.
        max_query_chars: Characters of the question, counted from its end, that a reranker or a language model receives.
        rerank_deadline_ms: Deadline for one answer of the reranker.
        visible_recent_messages: Recent messages that the language model receives.
        exclude_recent_rounds: Latest turns that are not recalled.
        include_world_info: Send the language model what is in every prompt of the NPC.
        llm_rounds: Rounds of one question with the method `llm`. Default for a local model: 2.
        llm_lines: Memories in one round. Default for a local model: 16.
        llm_deadline_ms: Deadline for one answer of the language model.
    """

    method: RecallMethod | None = None
    stages: tuple[RecallStage, ...] = ()
    semantic_edges: bool = True
    temporal_edges: bool = True
    forgetting: bool = True
    vector_top_k: Annotated[int, Field(ge=1, le=1_000)] = 20
    diffusion_steps: Annotated[int, Field(ge=1, le=10)] = 2
    diffusion_decay: _Share = 0.6
    diffusion_top_k: Annotated[int, Field(ge=1, le=10_000)] = 100
    teleport_probability: _Share = 0.0
    refractory: _Share = 0.15
    half_lives_turns: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    pool_factor: Annotated[int, Field(ge=1, le=20)] = 3
    diversity_relevance: Annotated[int, Field(ge=1, le=32)] = 1
    cap_of_type: Annotated[int, Field(ge=1, le=200)] = 3
    max_results: Annotated[int, Field(ge=1, le=200)] = 15
    max_query_chars: Annotated[int, Field(ge=1, le=10_000)] = 800
    rerank_deadline_ms: Annotated[int, Field(ge=1, le=60_000)] = 1_000
    visible_recent_messages: Annotated[int, Field(ge=0, le=100)] = 5
    exclude_recent_rounds: Annotated[int, Field(ge=0, le=1_000)] = 0
    include_world_info: bool = True
    llm_rounds: Annotated[int, Field(ge=1, le=10)] = 3
    llm_lines: Annotated[int, Field(ge=1, le=200)] = 40
    llm_deadline_ms: Annotated[int, Field(ge=1, le=600_000)] = 30_000

    @property
    def searches_by(self) -> RecallMethod:
        return self.method or "hybrid"

    @property
    def asks_a_model(self) -> bool:
        return self.searches_by in ("hybrid_llm", "llm")

    def half_life_turns(self, kind: str) -> float:
        """Return the half-life of nodes of this type."""
        return self.half_lives_turns.get(kind, HALF_LIVES_TURNS.get(kind, 50.0))


class DeepRecallSettings(MemoryGraphSettings):
    """How the tools of an NPC of budget tier DEEP search its memory. Recall within a turn, and NPCs of other tiers,
    always use `hybrid` without stages, because somebody waits for the answer.
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
            yield (
                ("method",),
                "recall.method hybrid_rerank needs recall.rerank, which is none; valid: cohere-compatible",
            )


def not_here(thinks_with: str) -> str:
    """Return why `local` cannot be the model of this name in providers.llm; "" if it can."""
    if runs_here(LLM, thinks_with):
        return ""
    return f"local means the model of providers.llm, and {thinks_with} is not local"


class ChronicleLlmSettings(CompletionSettings):
    """The language model that extracts facts besides the rules, with `memory.chronicle: llm`, and that judges
    utterances, with `memory.judge: llm`.

    `local` is the language model of the NPCs. `glyphoxa worker read` and `glyphoxa worker` load it themselves: run them
    when nobody plays. `openai-compatible` needs a `base_url`.
    """


class CuratorLlmSettings(CompletionSettings):
    """The language model that reads memory before it extracts facts and sums up the timeline, with `memory.curator`.

    It needs several calls for each part of the transcript. `local` is the language model of the NPCs. `glyphoxa worker
    read` and `glyphoxa worker` load it themselves. `openai-compatible` needs a `base_url`.
    """


class CuratorSettings(Section):
    llm: CuratorLlmSettings = CuratorLlmSettings()


class ChronicleSettings(Section):
    """How a language model extracts facts from the transcript.

    Attributes:
        calls_per_minute: Most calls to the model per minute and process; 0 for no limit. One call reads up to 40 lines,
            or judges one.
        retries: How often the model is asked again if its answer is of another form, within the time for one answer.
        max_rounds: Most rounds of the curator for a session in one process. Each is a call to its model.
        every: Replies of NPCs after which talk is read. Default: with a model, 40 lines or a minute of silence; at once
            with the rules alone.
        llm: The language model.
    """

    calls_per_minute: Annotated[int, Field(ge=0, le=600)] = 20
    retries: Annotated[int, Field(ge=0, le=10)] = 1
    max_rounds: Annotated[int, Field(ge=1, le=100_000)] = 900
    every: Annotated[int, Field(ge=1, le=1_000)] | None = None
    llm: ChronicleLlmSettings = ChronicleLlmSettings()
