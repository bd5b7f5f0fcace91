"""All providers, one row each, and the client of the one that the settings name.

No other code depends on a provider's name. To add one, write a row here or in a plug-in, and the maker function that it
names. The settings then accept it, `glyphoxa config check` checks it, and tables open with it. A row imports nothing
until its maker is used. Keyword arguments that a maker takes besides the `Connection`, by kind:

    stt         keyterms, language
    llm         temperature, max_tokens, stalled_after_ms, dialects
    tts         voice
    s2s         voice
    embeddings  dimensions
    structured, reranker   none
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pkgutil import resolve_name
from typing import Any, Final, Literal, Protocol

from glyphoxa.chat.dialect import UNKNOWN, Connection
from glyphoxa.chat.models import LARGE, SMALL, Profile
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.plugin import BrokenPlugin, parts
from glyphoxa.providers.extras import LOCAL, NotInstalled

Kind = Literal["stt", "llm", "tts", "s2s", "embeddings", "structured", "reranker"]
"""`structured`: language models with structured output, used in the background."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider and its requirements.

    Attributes:
        maker: `module:function`. It takes a `Connection` and the keyword arguments of its kind: see
            above. Empty for a model of a table that runs here: see `glyphoxa.app.models`.
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


# Providers by kind and name, and the sections of the settings that choose them.


NONE: Final = "none"
"""In the settings: no provider, for sections where one is optional."""

STT: Final = "providers.stt"
LLM: Final = "providers.llm"
TTS: Final = "providers.tts"
S2S: Final = "providers.s2s"
EMBEDDINGS: Final = "providers.embeddings"
SECOND_LOOK: Final = "correction.llm"
RECALL: Final = "recall.llm"
RERANK: Final = "recall.rerank"
CHRONICLE: Final = "chronicle.llm"
CURATOR: Final = "curator.llm"

KINDS: Final[Mapping[str, Kind]] = {
    STT: "stt",
    LLM: "llm",
    TTS: "tts",
    EMBEDDINGS: "embeddings",
    S2S: "s2s",
    SECOND_LOOK: "structured",
    RECALL: "structured",
    RERANK: "reranker",
    CHRONICLE: "structured",
    CURATOR: "structured",
}
"""The kind of provider for each section of the settings."""


class Choice(Protocol):
    """A provider as a section of the settings names it.

    `base_url` replaces the provider's own address (a proxy, a regional endpoint, your own server); `api_key_env` names
    the environment variable that holds the key.
    """

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def base_url(self) -> str | None: ...
    @property
    def api_key_env(self) -> str | None: ...


def names(kind: Kind) -> tuple[str, ...]:
    """Names of all providers of that kind, in the order of their rows."""
    return tuple(row.name for row in rows() if row.kind == kind)


def find(section: str, name: str) -> Provider:
    """The provider of that name.

    Args:
        section: A section of the settings, as in `KINDS`.

    Raises:
        InvalidInput: There is none.
    """
    kind = KINDS[section]
    row = next((row for row in rows() if (row.kind, row.name) == (kind, name)), None)
    if row is None:
        raise InvalidInput(f"{section} has no provider {name!r}: {did_you_mean(name, names(kind))}")
    return row


def runs_here(section: str, name: str) -> bool:
    """Whether that provider is a model on this machine; `none` is not."""
    return name != NONE and find(section, name).runs_here


def weights_of(section: str, choice: Choice) -> tuple[str, ...]:
    """Names of the model weights it runs on; none for a remote provider."""
    if choice.name == NONE:
        return ()
    row = find(section, choice.name)
    if choice.model and (choice.model in row.weights or (row.runs_here and "model" in row.needs)):
        return (choice.model,)
    return row.weights[:1]


def missing_settings(section: str, choice: Choice) -> list[str]:
    """Settings of this section that its provider requires and that have no value."""
    if choice.name == NONE:
        return []
    return [f"{section}.{need}" for need in find(section, choice.name).needs if not getattr(choice, need)]


NO_KEY = "none"
"""Placeholder key: client libraries reject an empty one, and servers without authentication ignore it."""


def build(choice: Choice, *, section: str, environ: Mapping[str, str] = os.environ, **options: Any) -> Any:
    """Build the client of the chosen provider, of the type its kind defines.

    Raises:
        InvalidInput: There is no such provider, it runs locally, its package is not installed, its key is not set, or a
            required setting has no value.
    """
    row = find(section, choice.name)
    if row.runs_here:
        raise InvalidInput(f"{section} {row.name!r} runs on this machine and has no server to connect to")
    missing = missing_settings(section, choice)
    if missing:
        raise InvalidInput(f"{section} {row.name!r} needs {' and '.join(missing)}")
    key = key_of(choice, section=section, environ=environ)
    connection = Connection(choice.model or row.model, choice.base_url, key, getattr(choice, "habits", UNKNOWN))
    return maker_of(row, section=section)(connection, **options)


def maker_of(row: Provider, *, section: str) -> Callable[..., Any]:
    """Import the maker. May take a second: do not call in the event loop of a live session.

    Raises:
        InvalidInput: Its package is not installed.
    """
    try:
        maker: Callable[..., Any] = resolve_name(row.maker)
    except ImportError as error:
        raise not_installed(row, section, error) from error
    return maker


def key_of(choice: Choice, *, section: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key of the chosen provider; `NO_KEY` if it needs none and no variable is named.

    Raises:
        InvalidInput: The variable is not set. The message names it and never a key.
    """
    variable = choice.api_key_env or find(section, choice.name).key_env
    if not variable:
        return NO_KEY
    key = environ.get(variable, "").strip()
    if not key:
        raise InvalidInput(
            f"{section} {choice.name!r} needs a key: environment variable {variable} is not set"
            f" (another variable can be named as {section}.api_key_env)"
        )
    return key


def not_installed(row: Provider, section: str, error: ImportError) -> NotInstalled:
    """The error for a provider whose packages cannot be imported."""
    return NotInstalled(f"{section} {row.name!r}", [error.name or str(error)], extra=row.extra)
