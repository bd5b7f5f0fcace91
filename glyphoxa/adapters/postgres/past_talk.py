from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.chunk_index import PostgresChunkIndex
from glyphoxa.adapters.postgres.database import Database
from glyphoxa.adapters.postgres.paragraphs import load_paragraphs
from glyphoxa.adapters.postgres.transcript_log import at_ms
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.embedding import Embedder
from glyphoxa.memory.fusion import fuse_convex

_CANDIDATES = 50
_LEXICAL_WEIGHT = _DENSE_WEIGHT = 0.5
_REMEMBERED_QUESTIONS = 32


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
        chunks: Of the same database, opened with the same embedder.
        embedder: How questions are embedded; None for words alone.
    """

    def __init__(
        self,
        database: Database,
        chunks: PostgresChunkIndex,
        *,
        embedder: Embedder | None = None,
        settings: RecallSettings | None = None,
    ) -> None:
        self._database = database
        self._chunks = chunks
        self._embedder = embedder
        self._settings = settings or RecallSettings()
        self._sql = load_paragraphs("past_talk")
        self._embedded: dict[str, NDArray[float32]] = {}

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
            dense = [] if vector is None else await self._dense(campaign, npc, vector, exclude)
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

    async def _dense(
        self, campaign: CampaignId, npc: NpcId, vector: NDArray[float32], exclude: Sequence[UtteranceId]
    ) -> list[asyncpg.Record]:
        near = await self._chunks.nearest(
            campaign,
            npc,
            vector,
            limit=_CANDIDATES,
            exclude=exclude,
            max_distance=1 - self._settings.min_cosine,
            deadline_ms=self._settings.deadline_ms,
        )
        if not near:
            return []
        # The nearest of the pieces of a long utterance speaks for it.
        cosines: dict[str, float] = {}
        for row in near:
            cosines.setdefault(row["utterance_id"], 1 - row["distance"])
        async with self._database.use(campaign, deadline_ms=self._settings.deadline_ms) as connection:
            return await connection.fetch(self._sql["said"], campaign, npc, list(cosines), list(cosines.values()))

    async def _embed_question(self, question: str) -> NDArray[float32] | None:
        if self._embedder is None:
            return None
        if question in self._embedded:
            return self._embedded[question]
        try:
            async with asyncio.timeout(self._settings.embed_deadline_ms / 1000):
                vectors = await self._embedder.embed([question])
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
            reason=f"witnessed in session {rows[key]['session_id']}",
            at_ms=at_ms(rows[key]["timestamp"]),
            speaker_id=SpeakerId(rows[key]["speaker_id"]),
            similarity=similarity.get(key),
        )
        for key, score in ranking[:limit]
    ]
