"""Which providers receive what players say, or what is made of it: one entry for each setting that has one read it.

The consent text of players and `glyphoxa config check` follow this table and `Section.recipients`, which names all
others. `docs/privacy.md` names each setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from glyphoxa.config.settings import Settings
from glyphoxa.providers.building import CHRONICLE, CURATOR, EMBEDDINGS, LLM, RECALL, RERANK, S2S, SECOND_LOOK, STT, TTS

HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that are this machine."""

PROVIDERS: Final[Mapping[str, tuple[str, Callable[[Settings], bool]]]] = {
    STT: (STT, lambda _: True),
    LLM: (LLM, lambda _: True),
    TTS: (TTS, lambda _: True),
    S2S: (S2S, lambda _: True),
    EMBEDDINGS: (EMBEDDINGS, lambda settings: settings.has_memory),
    SECOND_LOOK: (SECOND_LOOK, lambda _: True),
    RECALL: (RECALL, lambda settings: settings.has_memory and settings.recall.asks_a_model),
    RERANK: (RERANK, lambda settings: settings.has_memory and settings.recall.searches_by == "hybrid_rerank"),
    "memory.chronicle": (CHRONICLE, lambda settings: settings.has_memory and settings.memory.chronicle == "llm"),
    "memory.curator": (CURATOR, lambda settings: settings.has_memory and settings.memory.curator),
    "memory.judge": (CHRONICLE, lambda settings: settings.has_memory and settings.memory.judge == "llm"),
    "memory.summaries": (CHRONICLE, lambda settings: settings.memory.summaries == "llm"),
}
"""Settings that have a provider read it: each with the section that names the provider, and whether it is on."""


def is_asked(section: str, settings: Settings) -> bool:
    """Return whether these settings use the provider of a section."""
    return any(is_on(settings) for named_in, is_on in PROVIDERS.values() if named_in == section)


def host_of(url: str | None) -> str:
    """Return the host of an address; "" without one, or if it cannot be read."""
    try:
        return (urlsplit(url).hostname or "") if url else ""
    except ValueError:
        return ""
