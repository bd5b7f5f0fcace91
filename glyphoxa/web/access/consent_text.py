"""What a player is told before their microphone opens: what is stored, where, for how long, and who hears it.

A pure function of the settings: other settings make another text, and a consent to the text of before does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
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
    runs_here,
)

_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "title": "Before your microphone opens",
        "heard": "Your voice is made into words while you talk. Glyphoxa does not keep the sound.",
        "kept": "The words are stored with your character's name and the time, {where}. The game master can read them.",
        "long": "They stay there until whoever runs the table removes them. No end is set.",
        "days": "The table is set to erase them after {days} days. Whoever runs it can remove them before.",
        "logged": "The logs of the table hold what is said, too.",
        "without": "If you do not agree, you can still listen and type. What you type is stored and passed on, too.",
        "change": "You can withdraw your consent on this page at any time. Your sound then stops at once; words that "
        "were stored before stay.",
        "agree": "I agree",
        "decline": "Listen and type only",
        "database": "in the database at {host}, and in files on the machine that runs the table",
        "embedded": "in a database and in files on the machine that runs the table",
        "files": "in files on the machine that runs the table",
        "local": "stays on the machine that runs the table",
        "goes": "goes to {who}",
        "own": "Programs of the table's own that hear you or answer: {names}.",
        "tools": "Tools that an NPC may ask about what you said: {names}.",
        STT: "Speech recognition (your voice)",
        LLM: "Language model (your words)",
        TTS: "NPCs' voices (their answers)",
        EMBEDDINGS: "Search by meaning (your words)",
        S2S: "NPCs that hear and speak by themselves (your words)",
        SECOND_LOOK: "Correction of misheard names (your words)",
        RECALL: "Recall (your words)",
        RERANK: "Order of what is recalled (your words)",
        CHRONICLE: "Chronicle (your words)",
    },
    "de": {
        "title": "Bevor dein Mikrofon aufgeht",
        "heard": "Deine Stimme wird beim Sprechen in Wörter umgesetzt. Glyphoxa bewahrt den Ton nicht auf.",
        "kept": "Die Wörter werden mit dem Namen deiner Figur und der Zeit gespeichert, {where}. Die Spielleitung kann "
        "sie lesen.",
        "long": "Dort bleiben sie, bis jemand sie entfernt, der den Tisch betreibt. Eine Frist gibt es nicht.",
        "days": "Der Tisch ist so eingestellt, dass er sie nach {days} Tagen löscht. Wer ihn betreibt, kann sie vorher "
        "entfernen.",
        "logged": "Auch die Protokolle des Tisches enthalten, was gesagt wird.",
        "without": "Wenn du nicht zustimmst, kannst du trotzdem zuhören und tippen: Getipptes wird ebenso gespeichert "
        "und weitergegeben.",
        "change": "Du kannst deine Zustimmung jederzeit auf dieser Seite widerrufen. Dein Ton endet dann sofort; "
        "vorher gespeicherte Wörter bleiben.",
        "agree": "Ich stimme zu",
        "decline": "Nur zuhören und tippen",
        "database": "in der Datenbank bei {host} und in Dateien auf dem Rechner, der den Tisch betreibt",
        "embedded": "in einer Datenbank und in Dateien auf dem Rechner, der den Tisch betreibt",
        "files": "in Dateien auf dem Rechner, der den Tisch betreibt",
        "local": "bleibt auf dem Rechner, der den Tisch betreibt",
        "goes": "geht an {who}",
        "own": "Eigene Programme des Tisches, die dich hören oder antworten: {names}.",
        "tools": "Werkzeuge, die eine Figur zu dem befragen kann, was du sagst: {names}.",
        STT: "Spracherkennung (deine Stimme)",
        LLM: "Sprachmodell (deine Wörter)",
        TTS: "Stimmen der Figuren (ihre Antworten)",
        EMBEDDINGS: "Suche nach Bedeutung (deine Wörter)",
        S2S: "Figuren, die selbst hören und sprechen (deine Wörter)",
        SECOND_LOOK: "Korrektur verhörter Namen (deine Wörter)",
        RECALL: "Erinnerung (deine Wörter)",
        RERANK: "Ordnung des Erinnerten (deine Wörter)",
        CHRONICLE: "Chronik (deine Wörter)",
    },
}


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
    known = tag if tag in _WORDS else "en"
    words = _WORDS[known]
    lines = [words["heard"], words["kept"].format(where=_where(settings, words)), _how_long(settings, words)]
    if settings.logging.content:
        lines.append(words["logged"])
    lines += (f"{words[section]}: {_hearer(settings, section, words)}." for section in _asked(settings))
    if settings.engines:
        lines.append(words["own"].format(names=", ".join(sorted(settings.engines))))
    if settings.mcp.servers:
        lines.append(words["tools"].format(names=", ".join(sorted(settings.mcp.servers))))
    lines += [words["without"], words["change"]]
    return ConsentText(known, words["title"], tuple(lines), words["agree"], words["decline"])


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


def _hearer(settings: Settings, section: str, words: Mapping[str, str]) -> str:
    choice = settings.chosen(section)
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
