"""Read a campaign's transcript: pages of changes; search by words, speaker, session and time, and around an entity."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import asyncpg
import numpy as np
from numpy import float32
from numpy.typing import NDArray
from pydantic_core import from_json

from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import at_ms, lookup_key, storable, timestamps, viewer_parameter
from glyphoxa.adapters.postgres.transcript.log import utterance_of_row
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import RecalledUtterance, Viewer
from glyphoxa.language.text import Text
from glyphoxa.transcript.ports import Embedding, FeedUtterance, Found, TalkFilter, TalkHead, TalkPage
from glyphoxa.world.graph import Neighbourhood, Passage

_COLUMNS = ("change_seqs", "utterance_ids", "session_ids", "ordinals", "speaker_ids", "speaker_names", "texts", "at_ms")
"""The first fields of a `FeedUtterance`, in order."""
_HEADER_BYTES = 4
"""Header of a vector on the wire: dimensions and two unused bytes; big-endian single floats follow."""


class PostgresTalkFeed(CampaignQueries):
    """Implements `TalkFeed`, with a deadline of 5 s per page."""

    file = "transcript/feed"
    deadline_ms = 5_000

    async def changes(self, campaign: CampaignId, *, since: int, limit: int) -> TalkPage:
        row = await self._row("changes", campaign, since, limit)
        if row is None:
            return TalkPage([], TalkHead())
        model = None if row["model"] is None else (row["model"], row["dimensions"])
        head = TalkHead(row["language"], model, row["embedded"], row["times"])
        return TalkPage([] if row["change_seqs"] is None else _page(row), head)

    async def embeddings(
        self, campaign: CampaignId, utterances: Sequence[UtteranceId], model: str
    ) -> Sequence[Embedding]:
        row = await self._row("embeddings", campaign, list(utterances), model)
        if row is None or (owners := row["utterance_ids"]) is None:
            return []
        return await offload(lambda: _embeddings(owners, row["sent"]), amount=len(owners))


def _page(row: asyncpg.Record) -> list[FeedUtterance]:
    # All utterances of a scene have the same audience: it is read and stored once.
    audiences = {listed: frozenset(map(NpcId, from_json(listed))) for listed in set(row["audiences"])}
    witnesses = [audiences[listed] for listed in row["audiences"]]
    columns = (row[name] for name in _COLUMNS)
    return [FeedUtterance(*values) for values in zip(*columns, witnesses, row["retracted"], strict=True)]


def _embeddings(owners: Sequence[str], sent: bytes) -> list[Embedding]:
    """Parse vectors, which are of one model, and so of one length.

    Args:
        owners: The utterance of each vector; those of one utterance are adjacent.
    """
    rows = np.frombuffer(sent, np.uint8).reshape(len(owners), -1)[:, _HEADER_BYTES:]
    vectors = np.ascontiguousarray(rows).view(">f4").astype(float32)
    starts = [at for at, owner in enumerate(owners) if not at or owner != owners[at - 1]]
    spans = pairwise([*starts, len(owners)])
    return [Embedding(UtteranceId(owners[start]), vectors[start:end]) for start, end in spans]


_LONGEST_QUESTION = 2_000
"""Maximum characters of the search words; the rest is ignored."""


class PostgresTalkSearch(CampaignQueries):
    """Implements `TalkSearch`, with a deadline of 3 s: a word in half of all utterances is slow."""

    file = "transcript/search"
    deadline_ms = 3_000

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
        rows = await self._fetch(name, campaign, seen_by, *arguments)
        return [Found(utterance_of_row(row), row["ordinal"], row["score"]) for row in rows]


def names_in(words: str) -> list[str]:
    """The words written like names: capitalised inside a sentence, or all of them.

    >>> names_in("Have you seen Will?")
    ['Will']
    >>> names_in("Will Scarlet")
    ['Will', 'Scarlet']
    """
    text = Text.of(words)
    is_all = all(word.is_capital for word in text.words)
    return [word.text for word in text.words] if is_all else list(text.named)


class PostgresGraphRag(CampaignQueries):
    """Implements `GraphRag`. Each call is one statement with a deadline of 1 s; late is `Unavailable`.

    Args:
        model: The model of the query embeddings. Chunks of other models are ignored.
    """

    file = "transcript/graph_rag"

    def __init__(self, database: Database, *, model: str) -> None:
        super().__init__(database)
        self._model = model

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: Neighbourhood, limit: int = 10
    ) -> list[Passage]:
        seer, asked = viewer_parameter(viewer), lookup_key(question).strip()
        if not asked or limit <= 0:
            return []
        where = (seer, lookup_key(around.entity), around.depth)
        rows = await self._fetch("by_words", campaign, *where, asked, " ".join(Text.of(asked).named), limit)
        return [_passage(row, viewer, similarity=False) for row in rows]

    async def query_with_embedding(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        around: Neighbourhood,
        limit: int = 10,
    ) -> list[Passage]:
        """
        Raises:
            InvalidInput: The embedding has other dimensions than the database.
        """
        seer = viewer_parameter(viewer)
        if limit <= 0:
            return []
        # The index is over an expression that contains the dimensions.
        query = self._sql["by_meaning"].replace("{{dimensions}}", str(len(embedding)))
        middle, depth = lookup_key(around.entity), around.depth
        try:
            async with self._database.use(campaign, deadline_ms=self.deadline_ms, generic_plan=True) as connection:
                rows = await connection.fetch(query, campaign, seer, middle, depth, embedding, self._model, limit)
        except asyncpg.DataError as error:
            raise InvalidInput(f"cannot search with an embedding of {len(embedding)} dimensions: {error}") from None
        return [_passage(row, viewer, similarity=True) for row in rows]


def _passage(row: asyncpg.Record, viewer: Viewer, *, similarity: bool) -> Passage:
    return Passage(
        RecalledUtterance(
            UtteranceId(row["utterance_id"]),
            SessionId(row["session_id"]),
            SpeakerId(row["speaker_id"]),
            row["speaker_name"],
            row["text"],
            at_ms(row["timestamp"]),
            is_own=row["speaker_id"] == viewer,
            score=row["score"],
            reason=f"witnessed in session {row['session_id']}",
            similarity=row["score"] if similarity else None,
        ),
        score=row["score"],
        entity_ids=tuple(EntityId(each) for each in row["entity_ids"] or ()),
        depth=row["depth"],
    )
