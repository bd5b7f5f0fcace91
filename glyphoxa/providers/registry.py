"""Providers by kind and name, and where the settings choose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.providers.profiles import Profile, profile_by_name
from glyphoxa.providers.rows import ROWS, Kind, Provider

NONE: Final = "none"
"""In the settings: no provider, where one may be missing."""

STT: Final = "providers.stt"
LLM: Final = "providers.llm"
TTS: Final = "providers.tts"
S2S: Final = "providers.s2s"
EMBEDDINGS: Final = "providers.embeddings"
SECOND_LOOK: Final = "correction.llm"
RECALL: Final = "recall.llm"
RERANK: Final = "recall.rerank"
CHRONICLE: Final = "chronicle.llm"

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
}
"""What kind of provider each section of the settings names."""

_ROWS: Final = {(row.kind, row.name): row for row in ROWS}


class Choice(Protocol):
    """A provider as a section of the settings names it.

    `base_url` replaces the provider's own address (a proxy, a regional endpoint, a server of one's own);
    `api_key_env` names the environment variable that holds the key.
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
    """Of all providers of that kind, in the order of their rows."""
    return tuple(row.name for row in ROWS if row.kind == kind)


def find(section: str, name: str) -> Provider:
    """The provider of that name.

    Args:
        section: Of the settings, as in `KINDS`.

    Raises:
        InvalidInput: There is none.
    """
    kind = KINDS[section]
    row = _ROWS.get((kind, name))
    if row is None:
        raise InvalidInput(f"{section} knows no {name!r}: {did_you_mean(name, names(kind))}")
    return row


def runs_here(section: str, name: str) -> bool:
    """Whether that provider is a model on this machine; `none` is not."""
    return name != NONE and find(section, name).runs_here


def weights_of(section: str, choice: Choice) -> tuple[str, ...]:
    """Names of the model weights that it runs on: none for a provider far away."""
    if choice.name == NONE:
        return ()
    row = find(section, choice.name)
    chosen = (choice.model,) if row.runs_here and "model" in row.needs and choice.model else ()
    return row.weights or chosen


def profile_of(choice: Choice) -> Profile:
    """What a prompt may hold for the language model of a conversation."""
    row = find(LLM, choice.name)
    return row.profile or profile_by_name(choice.model or row.model)


def missing_settings(section: str, choice: Choice) -> list[str]:
    """Settings of this section that its provider cannot do without, and that have no value."""
    if choice.name == NONE:
        return []
    return [f"{section}.{need}" for need in find(section, choice.name).needs if not getattr(choice, need)]
