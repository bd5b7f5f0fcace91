"""Finds what was said by its words, its speaker, its session and its time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import storable, timestamp
from glyphoxa.adapters.postgres.server.viewers import viewer_parameter
from glyphoxa.adapters.postgres.transcript.utterance_rows import utterance_of_row
from glyphoxa.domain.ids import CampaignId, SessionId, SpeakerId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.transcript.ports import Found

_DEADLINE_MS = 3000
_LONGEST_QUESTION = 2_000
"""Characters of the words that are looked for; what stands behind them is not."""


class PostgresTalkSearch:
    """A `TalkSearch`, with a deadline of 3 s: a word that half of all talk has takes its time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries("transcript/search")

    async def search(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        words: str = "",
        *,
        match: Literal["any", "all"] = "any",
        session: SessionId | None = None,
        speaker: SpeakerId | None = None,
        after_ms: int | None = None,
        before_ms: int | None = None,
        limit: int = 20,
    ) -> list[Found]:
        seen_by = viewer_parameter(viewer)
        if limit <= 0:
            return []
        after = None if after_ms is None else timestamp(after_ms)
        before = None if before_ms is None else timestamp(before_ms)
        asked = storable(words[:_LONGEST_QUESTION]).strip()
        arguments: tuple[object, ...]
        if asked:
            name = "search"
            arguments = (asked, names_in(asked), match == "any", session, speaker, after, before, limit)
        elif session is not None:
            name, arguments = "latest_of_session", (session, speaker, after, before, limit)
        elif speaker is not None:
            name, arguments = "latest_of_speaker", (speaker, after, before, limit)
        else:
            name, arguments = "latest", (after, before, limit)
        async with self._database.use(campaign, deadline_ms=_DEADLINE_MS) as connection:
            return _found(await connection.fetch(self._sql[name], campaign, seen_by, *arguments))


def names_in(words: str) -> list[str]:
    """The words that are written like names: the capitalised ones, unless a sentence is what made the first one so.

    >>> names_in("Have you seen Will?")
    ['Will']
    >>> names_in("Will Scarlet")
    ['Will', 'Scarlet']
    """
    found = [(word[0], word[0][0].isupper()) for word in re.finditer(r"\w[\w'’-]*", words)]
    if any(not is_capital for _, is_capital in found):
        found = found[1:]
    return [word for word, is_capital in found if is_capital]


def name_words(question: str) -> str:
    """The words that are written like names: capitalised inside a sentence ("Has Will come?" gives "Will")."""
    found = re.findall(r"(?<=[\w,;:] )[A-Z][\w'’-]+", question)
    return " ".join(word for word in found if word not in ("I'm", "I'd", "I'll", "I've"))


def _found(rows: Sequence[asyncpg.Record]) -> list[Found]:
    return [Found(utterance_of_row(row), row["ordinal"], row["score"]) for row in rows]
