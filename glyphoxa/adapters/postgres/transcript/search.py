"""Finds what was said by its words, its speaker, its session and its time."""

from __future__ import annotations

import re
from collections.abc import Sequence

import asyncpg

from glyphoxa.adapters.postgres.server.database import Database
from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import storable, timestamps
from glyphoxa.adapters.postgres.server.viewers import viewer_parameter
from glyphoxa.adapters.postgres.transcript.utterance_rows import utterance_of_row
from glyphoxa.domain.ids import CampaignId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.transcript.ports import Found, TalkFilter

_DEADLINE_MS = 3000
_LONGEST_QUESTION = 2_000
"""Characters of the words that are looked for; what stands behind them is not."""


class PostgresTalkSearch:
    """A `TalkSearch`, with a deadline of 3 s: a word that half of all talk has takes its time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = load_queries("transcript/search")

    async def search(self, campaign: CampaignId, viewer: Viewer, wanted: TalkFilter) -> list[Found]:
        seen_by = viewer_parameter(viewer)
        session, speaker, limit = wanted.session, wanted.speaker, wanted.limit
        if limit <= 0:
            return []
        between = timestamps(wanted.between)
        asked = storable(wanted.words[:_LONGEST_QUESTION]).strip()
        arguments: tuple[object, ...]
        if asked:
            name = "search"
            arguments = (asked, names_in(asked), wanted.match == "any", session, speaker, *between, limit)
        elif session is not None:
            name, arguments = "latest_of_session", (session, speaker, *between, limit)
        elif speaker is not None:
            name, arguments = "latest_of_speaker", (speaker, *between, limit)
        else:
            name, arguments = "latest", (*between, limit)
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
