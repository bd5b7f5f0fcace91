"""Every provider there is: one row each, and nothing anywhere else decides by a provider's name.

To add one: a row here, and the function that it names as its maker. The settings accept it, `glyphoxa config check`
checks it, and the table is opened with it. Nothing is imported for a row until its maker is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from glyphoxa.providers.chat_models import LARGE, SMALL, Profile
from glyphoxa.providers.extras import LOCAL

Kind = Literal["stt", "llm", "tts", "s2s", "embeddings", "structured", "reranker"]
"""`structured`: language models that give an answer in a form, behind the talk."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider is and needs.

    Attributes:
        maker: `module:function`. It takes a `Connection`, and by keyword what its kind takes: see
            `glyphoxa.providers.building`. One that runs here takes what `glyphoxa.adapters.local.loading` says.
        extra: The extra of this package that brings its modules.
        modules: Importable names that must be there.
        key_env: Environment variable with its key; empty when it needs none.
        model: The one that is meant when the settings do not say; empty when its maker knows, or none is usual.
        weights: Names of the local model weights it runs on (see `glyphoxa models list`). One that runs here and needs
            a `model` runs on the weights that the settings name.
        needs: Settings that have no default for it: `base_url`, `model`.
        dimensions: Of its usual embeddings model; None if there is none.
        language_check: `module:function`: takes the tag of a language, and says why it does not know that; "" if it
            does. Without one every language is taken.
        profile: Of its language models in a conversation; None where the model's name decides.
    """

    kind: Kind
    name: str
    maker: str
    extra: str
    modules: tuple[str, ...]
    key_env: str = ""
    model: str = ""
    weights: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    dimensions: int | None = None
    language_check: str = ""
    profile: Profile | None = None

    @property
    def runs_here(self) -> bool:
        return self.extra == LOCAL


_ADDRESS: Final = ("base_url",)
_ADDRESS_AND_MODEL: Final = ("base_url", "model")

ROWS: Final = (
    Provider(
        "stt",
        "whisper",
        "glyphoxa.adapters.local.loading:whisper",
        LOCAL,
        ("ctranslate2", "tokenizers"),
        weights=("whisper-tiny.en",),
    ),
    Provider(
        "stt",
        "deepgram-nova",
        "glyphoxa_processors.deepgram_stt:make_nova",
        "deepgram",
        ("pipecat", "deepgram"),
        "DEEPGRAM_API_KEY",
        "nova-3-general",
        language_check="glyphoxa_processors.cloud_stt:unknown_to_nova",
    ),
    Provider(
        "stt",
        "deepgram-flux",
        "glyphoxa_processors.deepgram_stt:make_flux",
        "deepgram",
        ("pipecat", "deepgram"),
        "DEEPGRAM_API_KEY",
        "flux-general-en",
    ),
    Provider(
        "llm",
        "qwen-1.5b",
        "glyphoxa.adapters.local.loading:llama",
        LOCAL,
        ("xllamacpp",),
        weights=("qwen2.5-coder-1.5b-instruct-q4_k_m",),
        profile=SMALL,
    ),
    Provider(
        "llm",
        "qwen-0.5b",
        "glyphoxa.adapters.local.loading:llama",
        LOCAL,
        ("xllamacpp",),
        weights=("qwen2.5-coder-0.5b-instruct-q4_k_m",),
        profile=SMALL,
    ),
    Provider(
        "llm",
        "local",
        "glyphoxa.adapters.local.loading:llama",
        LOCAL,
        ("xllamacpp",),
        needs=("model",),
        profile=SMALL,
    ),
    Provider(
        "llm",
        "openai",
        "glyphoxa_processors.cloud_llm:openai",
        "openai",
        ("openai",),
        "OPENAI_API_KEY",
        "gpt-4.1-mini",
        profile=LARGE,
    ),
    Provider(
        "llm",
        "openai-compatible",
        "glyphoxa_processors.cloud_llm:openai",
        "openai",
        ("openai",),
        needs=_ADDRESS_AND_MODEL,
    ),
    Provider("llm", "ollama", "glyphoxa_processors.cloud_llm:ollama", "openai", ("openai",), model="llama3.2"),
    Provider(
        "llm",
        "google",
        "glyphoxa_processors.cloud_llm:google",
        "google",
        ("google.genai",),
        "GOOGLE_API_KEY",
        "gemini-3.6-flash",
        profile=LARGE,
    ),
    Provider("tts", "hibari", "glyphoxa.adapters.local.loading:hibari", LOCAL, ("hibari",)),
    Provider(
        "tts",
        "openai",
        "glyphoxa_processors.cloud_tts:openai",
        "openai",
        ("openai",),
        "OPENAI_API_KEY",
        "gpt-4o-mini-tts",
    ),
    Provider(
        "tts",
        "deepgram",
        "glyphoxa_processors.cloud_tts:deepgram",
        "deepgram",
        ("pipecat", "deepgram"),
        "DEEPGRAM_API_KEY",
    ),
    Provider(
        "tts",
        "cartesia",
        "glyphoxa_processors.cloud_tts:cartesia",
        "voice",
        ("pipecat", "websockets"),
        "CARTESIA_API_KEY",
        "sonic-3",
    ),
    Provider(
        "tts",
        "elevenlabs",
        "glyphoxa_processors.cloud_tts:elevenlabs",
        "voice",
        ("pipecat", "websockets"),
        "ELEVENLABS_API_KEY",
        "eleven_flash_v2_5",
    ),
    Provider(
        "s2s",
        "openai-realtime",
        "glyphoxa_processors.openai_realtime:endpoint",
        "openai",
        ("pipecat", "openai"),
        "OPENAI_API_KEY",
        "gpt-realtime",
    ),
    Provider(
        "s2s",
        "gemini-live",
        "glyphoxa_processors.gemini_live:endpoint",
        "google",
        ("pipecat", "google.genai"),
        "GOOGLE_API_KEY",
        "gemini-3.8-live",
    ),
    Provider(
        "embeddings",
        "minilm",
        "glyphoxa.adapters.local.loading:minilm",
        LOCAL,
        ("onnxruntime", "tokenizers"),
        weights=("minilm-l6-v2-int8",),
        dimensions=384,
    ),
    Provider(
        "embeddings",
        "openai",
        "glyphoxa.adapters.openai_models:openai_itself",
        "openai",
        ("openai",),
        "OPENAI_API_KEY",
        "text-embedding-3-small",
        dimensions=1536,
    ),
    Provider(
        "embeddings",
        "openai-compatible",
        "glyphoxa.adapters.openai_models:compatible",
        "openai",
        ("openai",),
        needs=_ADDRESS_AND_MODEL,
    ),
    Provider(
        "embeddings",
        "google",
        "glyphoxa.adapters.google_models:GoogleEmbeddings",
        "google",
        ("google.genai",),
        "GOOGLE_API_KEY",
        "gemini-embedding-2",
        # Of its 3,072 dimensions the database's index takes no more than 2,000, and the provider recommends 1,536.
        dimensions=1536,
    ),
    Provider(
        "structured", "local", "glyphoxa.adapters.openai_models:LocalStructuredLlm", LOCAL, ("xllamacpp", "openai")
    ),
    Provider(
        "structured",
        "openai",
        "glyphoxa.adapters.openai_models:OpenAiStructuredLlm",
        "openai",
        ("openai",),
        "OPENAI_API_KEY",
        "gpt-4.1-mini",
    ),
    Provider(
        "structured",
        "openai-compatible",
        "glyphoxa.adapters.openai_models:OpenAiStructuredLlm",
        "openai",
        ("openai",),
        model="default",
        needs=_ADDRESS,
    ),
    Provider(
        "structured",
        "google",
        "glyphoxa.adapters.google_models:GoogleStructuredLlm",
        "google",
        ("google.genai",),
        "GOOGLE_API_KEY",
        "gemini-3.6-flash",
    ),
    Provider(
        "reranker",
        "cohere-compatible",
        "glyphoxa.adapters.openai_models:HttpReranker",
        "openai",
        ("openai",),
        needs=_ADDRESS_AND_MODEL,
    ),
)
