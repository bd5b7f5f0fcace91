"""Builds the client of the provider that the settings name.

Keyword arguments that a maker takes besides the `Connection`, by kind:

    stt         keyterms, language
    llm         temperature, max_tokens, stalled_after_ms, dialects
    tts         voice
    s2s         voice
    embeddings  dimensions
    structured, reranker   none
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any, Final, Protocol

from glyphoxa.chat.dialect import UNKNOWN, Connection
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.providers.extras import NotInstalled
from glyphoxa.providers.rows import Kind, Provider, rows

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

_ROWS: Final = {(row.kind, row.name): row for row in rows()}


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
    row = _ROWS.get((kind, name))
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
