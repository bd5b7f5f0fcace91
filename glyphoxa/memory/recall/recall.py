"""Recall of talk: what an NPC witnessed that bears on what was just said (R-089, C-55)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from loguru import logger
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.embedding import Embedder
from glyphoxa.memory.ports.talk_feed import TalkFeed
from glyphoxa.memory.recall.held import Bounds, HeldTalk
from glyphoxa.memory.recall.ranking import DEFAULT, Ranking, Weights, rank
from glyphoxa.memory.recall.talk_index import Seen, TalkIndex
from glyphoxa.memory.recall.terms import NAME, Asked

_IN_A_THREAD = 5_000
"""Turns from which a ranking takes longer than going to a thread and back."""
_REMEMBERED_QUESTIONS = 64


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """
    Attributes:
        deadline_ms: For reading a campaign's talk into memory when that was not done before.
        embed_deadline_ms: For the question's embedding; when it is late, words alone decide.
        refresh_deadline_ms: For what has changed in the log; what is not there yet is not recalled yet.
        min_cosine: With no word in common, less similar than this is not about the question.
        weights: Of the ranking.
    """

    deadline_ms: int = 1_000
    embed_deadline_ms: int = 40
    refresh_deadline_ms: int = 20
    min_cosine: float = 0.25
    weights: Weights = DEFAULT


class Recall:
    """A `PastTalk` over talk that is held in memory.

    Args:
        feed: Where talk is read.
        embedder: How questions are embedded; None for words alone.
    """

    def __init__(
        self,
        feed: TalkFeed,
        *,
        embedder: Embedder | None = None,
        settings: RecallSettings | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.held = HeldTalk(feed, dimensions=embedder.dimensions if embedder is not None else 1, bounds=bounds)
        self._embedder = embedder
        self._settings = settings or RecallSettings()
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
        """See `PastTalk.recall`."""
        asked = question.strip()
        if not asked or limit <= 0:
            return []
        index, vector = await asyncio.gather(self._up_to_date(campaign), self._embed(asked))
        if len(index) > _IN_A_THREAD:
            return await asyncio.to_thread(self._ranked, index, npc, asked, vector, exclude, limit)
        return self._ranked(index, npc, asked, vector, exclude, limit)

    def remind(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
    ) -> list[Recalled] | None:
        """See `PastTalk.remind`."""
        index = self.held.index(campaign)
        asked = question.strip()
        if index is None:
            return None
        if not asked or limit <= 0:
            return []
        return self._ranked(index, npc, asked, None, exclude, limit)

    async def _up_to_date(self, campaign: CampaignId) -> TalkIndex:
        held = self.held.index(campaign)
        deadline_ms = self._settings.deadline_ms if held is None else self._settings.refresh_deadline_ms
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await self.held.refresh(campaign)
        except (TimeoutError, GlyphoxaError) as error:
            if held is None:
                raise Unavailable(f"the talk of {campaign} is not in memory: {error or 'it is being read'}") from None
            logger.debug("recall goes without the latest talk: {}", error or "late")
            return held

    async def _embed(self, question: str) -> NDArray[float32] | None:
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

    def _ranked(
        self,
        index: TalkIndex,
        viewer: Viewer,
        question: str,
        vector: NDArray[float32] | None,
        exclude: Sequence[UtteranceId],
        limit: int,
    ) -> list[Recalled]:
        asked = index.terms.of_question(question)
        seen = index.look(viewer, asked, vector)
        bears = _with_neighbours(self._is_about_it(seen), seen)
        if not bears.any():
            return []
        ranking = rank(seen, speakers=_speakers(index, asked), weights=self._settings.weights)
        scores = np.where(bears, ranking.scores, np.float32(0.0))
        scores[index.places_of(viewer, exclude)] = 0.0
        best = _best(scores, limit + 1)
        said_now = question.casefold()
        found = [at for at in best if index.said(int(seen.columns.rows[at])).text.casefold() != said_now][:limit]
        return [_recalled(index, seen, ranking, at, viewer, top=float(scores[best[0]])) for at in found]

    def _is_about_it(self, seen: Seen) -> NDArray[np.bool_]:
        """Whether a turn shares a word with the question, or is near to it in meaning. A session that is spoken of in
        the question makes its turns likelier, none of them relevant.
        """
        found = np.zeros(len(seen.columns), np.bool_)
        for match in seen.matches:
            found[match.places] = True
        if seen.cosines is not None:
            found |= np.nan_to_num(seen.cosines, nan=-1.0) >= self._settings.min_cosine
        return found


def _with_neighbours(found: NDArray[np.bool_], seen: Seen) -> NDArray[np.bool_]:
    """An answer need not repeat the words of its question: it follows within two turns."""
    widened = found.copy()
    for distance in (1, 2):
        same = seen.columns.sessions[distance:] == seen.columns.sessions[:-distance]
        widened[distance:] |= found[:-distance] & same
        widened[:-distance] |= found[distance:] & same
    return widened


def _speakers(index: TalkIndex, asked: Asked) -> frozenset[int]:
    numbers = (index.speaker_number(name.removeprefix(NAME)) for name in asked.names)
    return frozenset(number for number in numbers if number is not None)


def _best(scores: NDArray[float32], limit: int) -> list[int]:
    """The places of the highest scores above 0, the later first among equals."""
    n = min(limit, len(scores))
    if n <= 0:
        return []
    candidates = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
    order = np.lexsort((-candidates, -scores[candidates]))
    return [int(at) for at in candidates[order][:n] if scores[at] > 0]


def _recalled(index: TalkIndex, seen: Seen, ranking: Ranking, at: int, viewer: Viewer, *, top: float) -> Recalled:
    said = index.said(int(seen.columns.rows[at]))
    similarity = None if seen.cosines is None or np.isnan(seen.cosines[at]) else float(seen.cosines[at])
    return Recalled(
        text=f"{'You' if str(said.speaker_id) == viewer else said.speaker_name} said: {said.text}",
        source="said",
        score=float(ranking.scores[at]) / top if top > 0 else 0.0,
        session_id=said.session_id,
        utterance_id=said.utterance_id,
        reason=f"witnessed in session {said.session_id}",
        at_ms=said.at_ms,
        speaker_id=said.speaker_id,
        similarity=similarity,
        signals={name: round(float(values[at]), 4) for name, values in ranking.signals.items()},
    )
