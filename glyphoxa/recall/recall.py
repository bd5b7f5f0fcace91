"""Recall of talk: what an NPC witnessed that bears on what was just said."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.recalled import RecalledTalk
from glyphoxa.recall.index.talk_index import TalkIndex
from glyphoxa.recall.question import RecallQuestion, read_question
from glyphoxa.recall.ranking.ranked import Ranked, rank_view
from glyphoxa.recall.ranking.ranking import RankingWeights
from glyphoxa.recall.ranking.recap import asks_for_recap
from glyphoxa.recall.recaps import Recaps
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.recall.semantic.generation_vectors import GenerationVectors
from glyphoxa.recall.semantic.question_vectors import LeftOut, QuestionVectors
from glyphoxa.recall.settings import RecallSettings
from glyphoxa.recall.talk_cache import Bounds, TalkCache
from glyphoxa.recall.talk_embeddings import Another
from glyphoxa.recall.temporal.ports import TimesOfCampaigns
from glyphoxa.recall.times_cache import TimesCache
from glyphoxa.transcript.feed import TalkFeed
from glyphoxa.transcript.ports import EVER, Between, SessionSummaries

_IN_A_THREAD = 20_000
"""Turns from which a ranking would hold up the event loop for more than three milliseconds. Beside others who work, a
thread waits for the interpreter for longer than that.
"""
_REMEMBERED_ANSWERS = 64


@dataclass(frozen=True, slots=True)
class RecallResult:
    """
    Attributes:
        items: Best first.
        left_out: What had no say in it, each with the reason: "meaning: the embedding was late".
    """

    items: tuple[RecalledTalk, ...] = ()
    left_out: tuple[str, ...] = ()


NOTHING_ASKED: Final = RecallResult(left_out=("everything: nothing was asked",))


class Recall:
    """A `PastTalk` over talk that is cached in memory.

    Args:
        feed: Where talk is read.
        embedder: How questions are embedded; None for words alone.
        another: See `TalkCache`: what embeds questions when talk was embedded anew by another model.
        summaries: Told where a recap is asked for; None for none.
        times: How campaigns tell the time; None: in UTC, and no story counts its days.
        now_ms: Milliseconds since the Unix epoch; "last week" counts from it.
    """

    def __init__(
        self,
        feed: TalkFeed,
        *,
        embedder: Embedder | None = None,
        another: Another | None = None,
        summaries: SessionSummaries | None = None,
        times: TimesOfCampaigns | None = None,
        settings: RecallSettings | None = None,
        bounds: Bounds | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        dimensions = embedder.dimensions if embedder is not None else 1
        self.talk_cache = TalkCache(feed, dimensions=dimensions, embedder=embedder, another=another, bounds=bounds)
        self.times = TimesCache(times)
        self._vectors = GenerationVectors(embedder, latest=lambda: self.talk_cache.embedder)
        self._settings = settings or RecallSettings()
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self.recaps = Recaps(summaries, deadline_ms=self._settings.summaries_deadline_ms, now_ms=self._now_ms)
        self._answers: OrderedDict[_Key, tuple[int, tuple[RecalledTalk, ...]]] = OrderedDict()

    @property
    def vectors(self) -> QuestionVectors:
        """Of questions, for whoever compares them with other talk."""
        return self._vectors.first

    @property
    def weights(self) -> RankingWeights:
        """Of the ranking."""
        return self._settings.weights

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
        patient: bool = False,
        between: Between = EVER,
    ) -> list[RecalledTalk]:
        """See `PastTalk.recall`."""
        found = await self.search(
            campaign, npc, question, exclude=exclude, limit=limit, patient=patient, between=between
        )
        return list(found.items)

    def recall_nowait(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
        between: Between = EVER,
    ) -> list[RecalledTalk] | None:
        """See `PastTalk.recall_nowait`."""
        index = self.talk_cache.index(campaign)
        if index is None:
            return None
        asked = self._read(campaign, index, npc, question)
        if asked is None or limit <= 0:
            return []
        return [*self._ranked(index, npc, asked, None, exclude, between).items(limit)]

    async def search(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
        by_words: bool = False,
        patient: bool = False,
        between: Between = EVER,
    ) -> RecallResult:
        """As `recall`, with what had no say in it. The same question on the same ordinal gets the same answer.

        Args:
            by_words: Without what the question means.

        Raises:
            Unavailable: As `PastTalk.recall`.
        """
        left_out: list[str] = []
        index, asked, vector = await self._read_in_time(campaign, npc, question, by_words, patient, left_out)
        if asked is None or limit <= 0:
            return NOTHING_ASKED
        key = (campaign, npc, asked.text, frozenset(exclude), limit, vector is None, between)
        # What was yesterday is not tomorrow, and a summary may change while talk does not.
        is_lasting = not (asked.time.tells_a_time or asks_for_recap(asked))
        known = self._answers.get(key)
        if is_lasting and known is not None and known[0] == index.changes:
            return RecallResult(known[1], tuple(left_out))
        ranked = await self._ranked_apart(index, npc, asked, vector, exclude, between)
        items = await self.recaps.before([*ranked.items(limit)], ranked, campaign, npc, limit=limit, left_out=left_out)
        if is_lasting:
            # As of when it was looked at: talk may have been rolled back since.
            self._answers[key] = (ranked.changes, tuple(items))
            while len(self._answers) > _REMEMBERED_ANSWERS:
                self._answers.popitem(last=False)
        return RecallResult(tuple(items), tuple(left_out))

    async def ranked(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        between: Between = EVER,
        left_out: list[str],
        weights: RankingWeights | None = None,
    ) -> Ranked | None:
        """All that an NPC witnessed, ranked by a question, for who goes on from there; see `recaps` as well. Where
        nobody waits for it: as `patient`. None if nothing is asked.

        Args:
            left_out: What had no say is added here.
            weights: Of the ranking, in place of the usual ones.

        Raises:
            Unavailable: As `PastTalk.recall`.
        """
        index, asked, vector = await self._read_in_time(campaign, npc, question, False, True, left_out)
        if asked is None:
            return None
        return await self._ranked_apart(index, npc, asked, vector, exclude, between, weights)

    async def refresh(self, campaign: CampaignId) -> TalkIndex:
        """Read what has changed until now; see `TalkCache.refresh`.

        Raises:
            Unavailable: The database cannot be reached, and what is cached stays as it is; or all was closed.
        """
        index = await self.talk_cache.refresh(campaign)
        head = self.talk_cache.head(campaign)
        if head is not None:
            await self.times.refresh(campaign, head.times)
        return index

    async def close(self) -> None:
        """Give up what is under way."""
        await self._vectors.close()
        await self.talk_cache.close()

    async def _read_in_time(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        by_words: bool,
        patient: bool,
        left_out: list[str],
    ) -> tuple[TalkIndex, RecallQuestion | None, NDArray[float32] | None]:
        """The talk as it is now, the question, and its vector."""
        embed_ms = self._settings.patient_embed_deadline_ms if patient else self._settings.embed_deadline_ms
        if by_words:
            embed_ms = 0
        cached = self.talk_cache.index(campaign)
        asked = None if cached is None else self._read(campaign, cached, npc, question)
        vector: NDArray[float32] | LeftOut | None = None
        if cached is None or asked is None:
            index = await self._up_to_date(campaign, patient, left_out)
        else:
            index, vector = await asyncio.gather(
                self._up_to_date(campaign, patient, left_out), self._embed(cached, asked, embed_ms)
            )
        if asked is None or asked.times is not self.times.of(campaign, index):
            asked = self._read(campaign, index, npc, question)
        if asked is not None and (vector is None or (cached is not None and cached.edition != index.edition)):
            vector = await self._embed(index, asked, embed_ms)
        if isinstance(vector, LeftOut):
            left_out.append(f"meaning: {vector.text}")
            vector = None
        return index, asked, vector

    def _read(self, campaign: CampaignId, index: TalkIndex, viewer: Viewer, question: str) -> RecallQuestion | None:
        """None if nothing is asked."""
        if not question.strip():
            return None
        return read_question(
            question,
            terms=index.terms,
            speakers=index.speakers(viewer),
            now_ms=self._now_ms(),
            times=self.times.of(campaign, index),
        )

    async def _embed(
        self, index: TalkIndex, asked: RecallQuestion, deadline_ms: int
    ) -> NDArray[float32] | LeftOut | None:
        """A vector that may be compared with those of the index; None where none is wanted."""
        if not deadline_ms:
            return None
        return await self._vectors.embed(index.edition, asked.meaning, deadline_ms=deadline_ms)

    async def _up_to_date(self, campaign: CampaignId, patient: bool, left_out: list[str]) -> TalkIndex:
        cached, settings = self.talk_cache.index(campaign), self._settings
        deadline_ms = settings.patient_refresh_deadline_ms if patient else settings.refresh_deadline_ms
        deadline_ms = settings.deadline_ms if cached is None else max(deadline_ms, settings.refresh_deadline_ms)
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await self.refresh(campaign)
        except (TimeoutError, GlyphoxaError) as error:
            if cached is None:
                raise Unavailable(
                    f"the talk of {campaign} is not in memory: {str(error) or 'it is being read'}"
                ) from None
            left_out.append(f"the latest talk: {str(error) or f'it took more than {deadline_ms} ms'}")
            return cached

    async def _ranked_apart(
        self,
        index: TalkIndex,
        viewer: Viewer,
        asked: RecallQuestion,
        vector: NDArray[float32] | None,
        exclude: Collection[UtteranceId],
        between: Between,
        weights: RankingWeights | None = None,
    ) -> Ranked:
        """Away from the event loop where it would be held up."""
        if len(index) > _IN_A_THREAD:
            return await asyncio.to_thread(self._ranked, index, viewer, asked, vector, exclude, between, weights)
        return self._ranked(index, viewer, asked, vector, exclude, between, weights)

    def _ranked(
        self,
        index: TalkIndex,
        viewer: Viewer,
        asked: RecallQuestion,
        vector: NDArray[float32] | None,
        exclude: Collection[UtteranceId],
        between: Between,
        weights: RankingWeights | None = None,
    ) -> Ranked:
        return rank_view(
            index,
            viewer,
            asked,
            vector,
            exclude=exclude,
            between=between,
            weights=weights or self._settings.weights,
            min_cosine=self._settings.min_cosine,
            now_ms=self._now_ms(),
        )


_Key = tuple[CampaignId, NpcId, str, frozenset[UtteranceId], int, bool, Between]
