"""All providers, one row each; no other code depends on a provider's name.

To add one, write a row here or in a plug-in, and the maker function that it names. The settings then accept it,
`glyphoxa config check` checks it, and tables open with it. A row imports nothing until its maker is used.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Final, Literal

from glyphoxa.chat.models import LARGE, SMALL, Profile
from glyphoxa.plugin import BrokenPlugin, parts
from glyphoxa.providers.extras import LOCAL

Kind = Literal["stt", "llm", "tts", "s2s", "embeddings", "structured", "reranker"]
"""`structured`: language models with structured output, used in the background."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider and its requirements.

    Attributes:
        maker: `module:function`. It takes a `Connection` and the keyword arguments of its kind: see
            `glyphoxa.providers.building`. Empty for a model of a table that runs here: see `glyphoxa.app.models`.
        extra: The extra of this package that provides its modules.
        modules: Importable names that must be installed.
        key_env: Environment variable with its key; empty when it needs none.
        model: Default model; empty if the maker decides or there is no usual one.
        weights: Names of the local model weights it can run on (see `glyphoxa models list`), the default first. A local
            provider that needs a `model` runs on the weights that the settings name.
        needs: Settings without a default that it requires: `base_url`, `model`.
        dimensions: Dimensions of its default embeddings model; None if there is none.
        profile: Profile of its language models in a conversation; None if the model's name decides.
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
    profile: Profile | None = None

    @property
    def runs_here(self) -> bool:
        return self.extra == LOCAL

    @property
    def languages(self) -> str:
        """Languages in `languages.toml`: tags separated by spaces; "" if they are not limited, or not known."""
        return _languages().get(self.kind, {}).get(self.name, "")


@cache
def _languages() -> dict[str, dict[str, str]]:
    return tomllib.loads(resources.files(__package__).joinpath("languages.toml").read_text("utf-8"))


_PROCESSORS: Final = "glyphoxa_processors"
_HOSTED: Final = "glyphoxa.adapters.openai_models"
_CHAT: Final = "glyphoxa.chat.client"
_ADDRESS_AND_MODEL: Final = ("base_url", "model")
_WHISPERS: Final = ("whisper-tiny.en", "whisper-base")

_llama = partial(Provider, "llm", maker="", extra=LOCAL, modules=("xllamacpp",), profile=SMALL)
from_openai = partial(Provider, extra="openai", modules=("openai",), key_env="OPENAI_API_KEY")
_like_openai = partial(Provider, extra="openai", modules=("openai",))
_google = partial(Provider, extra="google", modules=("google.genai",), key_env="GOOGLE_API_KEY")
over_sockets = partial(Provider, extra="voice", modules=("pipecat", "websockets"))

ROWS: Final = (
    Provider("stt", "whisper", "", LOCAL, ("ctranslate2", "tokenizers"), weights=_WHISPERS),
    _llama("qwen-1.5b", weights=("qwen2.5-coder-1.5b-instruct-q4_k_m",)),
    _llama("qwen-0.5b", weights=("qwen2.5-coder-0.5b-instruct-q4_k_m",)),
    _llama("local", needs=("model",)),
    from_openai("llm", "openai", f"{_PROCESSORS}.llm:openai", model="gpt-4.1-mini", profile=LARGE),
    _like_openai("llm", "openai-compatible", f"{_PROCESSORS}.llm:openai", needs=_ADDRESS_AND_MODEL),
    _like_openai("llm", "ollama", f"{_PROCESSORS}.llm:ollama", model="llama3.2"),
    _google("llm", "google", f"{_PROCESSORS}.google_llm:google", model="gemini-3.6-flash", profile=LARGE),
    Provider("tts", "hibari", "", LOCAL, ("hibari",)),
    Provider(
        "embeddings",
        "minilm",
        "",
        LOCAL,
        ("onnxruntime", "tokenizers"),
        weights=("minilm-l6-v2-int8",),
        dimensions=384,
    ),
    from_openai("embeddings", "openai", f"{_HOSTED}:openai_itself", model="text-embedding-3-small", dimensions=1536),
    _like_openai("embeddings", "openai-compatible", f"{_HOSTED}:OpenAiEmbeddings", needs=_ADDRESS_AND_MODEL),
    # The database's index is limited to 2,000 of its 3,072 dimensions; the provider recommends 1,536.
    _google(
        "embeddings",
        "google",
        "glyphoxa.adapters.google_models:GoogleEmbeddings",
        model="gemini-embedding-2",
        dimensions=1536,
    ),
    Provider("structured", "local", f"{_CHAT}:local_structured", LOCAL, ("xllamacpp", "openai")),
    from_openai("structured", "openai", f"{_CHAT}:OpenAiStructuredLlm", model="gpt-4.1-mini"),
    _like_openai(
        "structured", "openai-compatible", f"{_CHAT}:OpenAiStructuredLlm", model="default", needs=("base_url",)
    ),
    _google("structured", "google", "glyphoxa.adapters.google_models:GoogleStructuredLlm", model="gemini-3.6-flash"),
    _like_openai("reranker", "cohere-compatible", f"{_HOSTED}:HttpReranker", needs=_ADDRESS_AND_MODEL),
)


@cache
def rows() -> tuple[Provider, ...]:
    """Return all rows, those of plug-ins last.

    Raises:
        BrokenPlugin: Rows of a plug-in cannot be loaded, or two rows have the same kind and name.
    """
    found = (*ROWS, *(row for added in parts("providers") for row in added))
    names = Counter(f"{row.kind} {row.name}" for row in found)
    if twice := [name for name, n in names.items() if n > 1]:
        raise BrokenPlugin(f"a plug-in has a provider with the name of another one: {', '.join(twice)}")
    return found
