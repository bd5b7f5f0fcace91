from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import asyncpg
import numpy as np
from loguru import logger

from glyphoxa.adapters.postgres.database import Database
from glyphoxa.adapters.postgres.paragraphs import load_paragraphs
from glyphoxa.adapters.postgres.transcript_log import at_ms
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.fusion import fuse_convex

Embed: TypeAlias = Callable[[list[str]], Awaitable["np.ndarray[Any, np.dtype[np.float32]] | None"]]
"""Embeds texts: float32, shape (len(texts), dimensions), rows of unit length. None: cannot now."""

_CANDIDATES = 50
_LEXICAL_WEIGHT = _DENSE_WEIGHT = 0.5
_EMBED_BATCH = 16
_REMEMBERED_QUESTIONS = 32
_EMBED_DEADLINE_MS = 30_000


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """
    Attributes:
        deadline_ms: For a recall. A caller in a hurry puts its own, shorter one around it.
        embed_deadline_ms: For the question's embedding; when it is late, words alone decide.
        min_cosine: Less similar than this is not about the question.
    """

    deadline_ms: int = 1000
    embed_deadline_ms: int = 40
    min_cosine: float = 0.25


class PostgresPastTalk:
    """A `PastTalk`: what one NPC witnessed, by words and by meaning, merged by convex fusion of scores (C-55).

    Args:
        embed: How questions and utterances are embedded; None for words alone.
    """

    def __init__(
        self, database: Database, *, embed: Embed | None = None, settings: RecallSettings | None = None
    ) -> None:
        self._database = database
        self._embed = embed
        self._settings = settings or RecallSettings()
        self._sql = load_paragraphs("past_talk")
        self._embedded: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
        self._embedding = asyncio.Lock()

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
    ) -> list[Recalled]:
        asked = question.strip().replace("\0", "")
        if not asked or limit <= 0:
            return []
        embedding = asyncio.ensure_future(self._embed_question(asked))
        try:
            async with self._database.use(campaign, deadline_ms=self._settings.deadline_ms) as connection:
                lexical = await connection.fetch(
                    self._sql["lexical"], campaign, npc, asked, name_words(asked), list(exclude), _CANDIDATES
                )
            vector = await embedding
            dense: list[asyncpg.Record] = []
            if vector is not None:
                async with self._database.use(campaign, deadline_ms=self._settings.deadline_ms) as connection:
                    dense = await connection.fetch(
                        self._sql["dense"],
                        *(campaign, npc, vector, list(exclude), _CANDIDATES, self._settings.min_cosine),
                    )
        finally:
            embedding.cancel()
        # The question itself may be in the log already, under an id the caller does not know.
        said_now = asked.casefold()
        return _fused(
            [row for row in lexical if row["text"].casefold() != said_now],
            [row for row in dense if row["text"].casefold() != said_now],
            npc,
            limit,
        )

    async def _embed_question(self, question: str) -> np.ndarray[Any, np.dtype[np.float32]] | None:
        if self._embed is None:
            return None
        if question in self._embedded:
            return self._embedded[question]
        try:
            async with asyncio.timeout(self._settings.embed_deadline_ms / 1000):
                vectors = await self._embed([question])
        except TimeoutError:
            logger.debug("the question's embedding was late: words alone decide")
            return None
        except Unavailable as error:
            logger.warning("no embedding, words alone decide: {}", error)
            return None
        if vectors is None:
            return None
        # Every NPC that hears a question asks with the same words.
        while len(self._embedded) >= _REMEMBERED_QUESTIONS:
            del self._embedded[next(iter(self._embedded))]
        self._embedded[question] = vectors[0]
        return self._embedded[question]

    async def embed_missing(self, campaign: CampaignId) -> int:
        """Embed what was said and has no embedding yet, oldest first. Returns how many; meant for the background.

        Raises:
            Unavailable: The database or the embedder is away; what was done so far is stored.
        """
        # Whoever comes meanwhile waits, and finds little left: nothing is embedded twice.
        async with self._embedding:
            return await self._embed_missing(campaign)

    async def _embed_missing(self, campaign: CampaignId) -> int:
        if self._embed is None:
            return 0
        done = 0
        while True:
            async with self._database.use(campaign, deadline_ms=_EMBED_DEADLINE_MS) as connection:
                rows = await connection.fetch(self._sql["missing"], campaign, _EMBED_BATCH)
            if not rows:
                return done
            vectors = await self._embed([row["content"] for row in rows])
            if vectors is None:
                return done
            chunks = [
                (campaign, r["utterance_id"], r["session_id"], r["content"], vector, r["speaker_id"], r["timestamp"])
                for r, vector in zip(rows, vectors, strict=True)
            ]
            async with self._database.use(campaign, deadline_ms=_EMBED_DEADLINE_MS) as connection, connection.transaction():
                await connection.executemany(self._sql["add_chunk"], chunks)
            done += len(rows)


def name_words(question: str) -> str:
    """The words that are written like names: capitalised inside a sentence ("Has Will come?" gives "Will")."""
    found = re.findall(r"(?<=[\w,;:] )[A-Z][\w'’-]+", question)
    return " ".join(word for word in found if word not in ("I'm", "I'd", "I'll", "I've"))


def _fused(
    lexical: Sequence[asyncpg.Record], dense: Sequence[asyncpg.Record], npc: NpcId, limit: int
) -> list[Recalled]:
    rows = {row["utterance_id"]: row for row in (*lexical, *dense)}
    similarity = {row["utterance_id"]: row["score"] for row in dense}
    ranking = fuse_convex(
        [
            (_LEXICAL_WEIGHT, {row["utterance_id"]: row["score"] for row in lexical}),
            (_DENSE_WEIGHT, {row["utterance_id"]: row["score"] for row in dense}),
        ]
    )
    return [
        Recalled(
            text=f"{'You' if rows[key]['speaker_id'] == npc else rows[key]['speaker_name']} said: {rows[key]['text']}",
            source="said",
            score=score,
            session_id=SessionId(rows[key]["session_id"]),
            utterance_id=UtteranceId(key),
            reason="witnessed",
            at_ms=at_ms(rows[key]["timestamp"]),
            speaker_id=SpeakerId(rows[key]["speaker_id"]),
            similarity=similarity.get(key),
        )
        for key, score in ranking[:limit]
    ]
