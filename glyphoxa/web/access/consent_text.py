"""What a player is told before their microphone opens: what is stored, where, for how long, and who hears it.

A pure function of the settings: other settings make another text, and a consent to the text of before does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from glyphoxa.config.settings import Settings
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.registry import (
    CHRONICLE,
    EMBEDDINGS,
    LLM,
    NONE,
    RECALL,
    RERANK,
    S2S,
    SECOND_LOOK,
    STT,
    TTS,
    Choice,
    runs_here,
)

_CATALOGUES: Final = Path(__file__).parents[1] / "static" / "words"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})

CONSENT_LANGUAGES: Final = ("en", "de")


@dataclass(frozen=True, slots=True)
class ConsentText:
    """
    Attributes:
        language: Of the text: `en` or `de`.
        lines: A sentence or two each.
        agree: On the button that agrees.
        decline: On the one that does not.
    """

    language: str
    title: str
    lines: tuple[str, ...]
    agree: str
    decline: str

    @property
    def whole(self) -> str:
        """The very text that is agreed to."""
        return "\n".join((self.title, *self.lines))

    @property
    def digest(self) -> str:
        """What tells it from any other: 64 hexadecimal digits."""
        return sha256(self.whole.encode()).hexdigest()


def consent_text(settings: Settings, *, language: str) -> ConsentText:
    """
    Args:
        language: The campaign's, as a tag. English where there is no text in it.
    """
    tag = language.partition("-")[0].lower()
    known = tag if tag in CONSENT_LANGUAGES else "en"
    words = _words(known)
    lines = [words["heard"], words["kept"].format(where=_where(settings, words)), _how_long(settings, words)]
    if settings.logging.content:
        lines.append(words["logged"])
    lines += (f"{words[section]}: {_hearers(settings, section, words)}." for section in _asked(settings))
    if settings.engines:
        lines.append(words["own"].format(names=", ".join(sorted(settings.engines))))
    if settings.mcp.servers:
        lines.append(words["tools"].format(names=", ".join(sorted(settings.mcp.servers))))
    lines += [words["without"], words["change"]]
    return ConsentText(known, words["title"], tuple(lines), words["agree"], words["decline"])


@cache
def _words(language: str) -> Mapping[str, str]:
    """Of the page's catalogue, those about consent; of a section of the settings, what it hears."""
    catalogue = json.loads((_CATALOGUES / f"{language}.json").read_text("utf-8"))
    return {key.removeprefix("consent."): text for key, text in catalogue.items() if key.startswith("consent.")}


def _asked(settings: Settings) -> Iterator[str]:
    """The sections whose providers are given what a player says, or what is made of it."""
    recall = settings.recall
    asked = {
        SECOND_LOOK: True,
        RECALL: settings.has_memory and recall.asks_a_model,
        RERANK: settings.has_memory and recall.searches_by == "hybrid_rerank",
        EMBEDDINGS: settings.has_memory,
        CHRONICLE: settings.has_memory and settings.memory.chronicle == "llm",
    }
    for section in (STT, LLM, TTS, S2S, EMBEDDINGS, SECOND_LOOK, RECALL, RERANK, CHRONICLE):
        if asked.get(section, True) and settings.chosen(section).name != NONE:
            yield section


def _hearers(settings: Settings, section: str, words: Mapping[str, str]) -> str:
    """Each once: also who is asked only when another fails."""
    return "; ".join(dict.fromkeys(_hearer(section, choice, words) for choice in settings.chain(section)))


def _hearer(section: str, choice: Choice, words: Mapping[str, str]) -> str:
    if runs_here(section, choice.name):
        return words["local"]
    host = _host(choice.base_url)
    if host in _HERE:
        return words["local"]
    return words["goes"].format(who=f"{choice.name} ({host})" if host else choice.name)


def _host(url: str | None) -> str:
    try:
        return (urlsplit(url).hostname or "") if url else ""
    except ValueError:
        return ""


def _how_long(settings: Settings, words: Mapping[str, str]) -> str:
    days = settings.privacy.retain_days
    return words["long"] if days is None or not settings.has_memory else words["days"].format(days=days)


def _where(settings: Settings, words: Mapping[str, str]) -> str:
    dsn = settings.memory.postgres_dsn
    if not settings.has_memory:
        return words["files"]
    try:
        host = Dsn.read(dsn).host if dsn else ""
    except InvalidInput:
        host = "?"
    is_here = not host or host in _HERE or host.startswith("/")
    return words["embedded"] if is_here else words["database"].format(host=host)
