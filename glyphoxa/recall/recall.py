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
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.turn import Recalled
from glyphoxa.recall.lexical.talk_index import TalkIndex
from glyphoxa.recall.question import Question, read_question
from glyphoxa.recall.ranking.ranked import Ranked, rank_view
from glyphoxa.recall.ranking.ranking import DEFAULT, Weights
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.recall.semantic.question_vectors import LeftOut, QuestionVectors
from glyphoxa.recall.semantic.talk_embeddings import Another
from glyphoxa.recall.talk_cache import Bounds, TalkCache
from glyphoxa.recall.temporal.ports import TimesOfCampaigns
from glyphoxa.recall.temporal.recap import asks_for_recap, recap, sessions_in_question, without_repeats
from glyphoxa.recall.temporal.times_cache import TimesCache
from glyphoxa.transcript.feed import IndexGeneration, TalkFeed
from glyphoxa.transcript.ports import EVER, Between, SessionSummaries

_IN_A_THREAD = 20_000
"""Turns from which a ranking would hold up the event loop for more than three milliseconds. Beside others who work, a
thread waits for the interpreter for longer than that.
"""
_REMEMBERED_ANSWERS = 64
_OTHER_MODEL: Final = LeftOut("off", "talk was embedded anew by another model")


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """
    Attributes:
        deadline_ms: For reading a campaign's talk into memory when that was not done before.
        embed_deadline_ms: For the question's embedding; when it is late, words alone decide.
        patient_embed_deadline_ms: The same where nobody waits.
        refresh_deadline_ms: For what has changed in the log; what is not there yet is not recalled yet.
        patient_refresh_deadline_ms: The same where nobody waits.
        summaries_deadline_ms: For the summaries of the sessions of which a recap is asked for.
        min_cosine: With no word in common, less similar than this is not about the question. True hits are as low (at
            0.25 questions in other words lose 2.9 points of R@10); what is worth telling is decided after it.
        weights: Of the ranking.
    """

    deadline_ms: int = 1_000
    embed_deadline_ms: int = 40
    patient_embed_deadline_ms: int = 900
    refresh_deadline_ms: int = 20
    patient_refresh_deadline_ms: int = 300
    summaries_deadline_ms: int = 20
    min_cosine: float = 0.15
    weights: Weights = DEFAULT


@dataclass(frozen=True, slots=True)
class Reminded:
    """
    Attributes:
        items: Best first.
        left_out: What had no say in it, each with the reason: "meaning: the embedding was late".
    """

    items: tuple[Recalled, ...] = ()
    left_out: tuple[str, ...] = ()


NOTHING_ASKED: Final = Reminded(left_out=("everything: nothing was asked",))


class Recall:
    """A `PastTalk` over talk that is held in memory.

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
        self.held = TalkCache(feed, dimensions=dimensions, embedder=embedder, another=another, bounds=bounds)
        self.times = TimesCache(times)
        self.vectors = QuestionVectors(embedder)
        self._embedder = embedder
        self._first_edition: IndexGeneration | None = None
        self._of_editions: dict[IndexGeneration, QuestionVectors] = {}
        self._summaries = summaries
        self._settings = settings or RecallSettings()
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._answers: OrderedDict[_Key, tuple[int, tuple[Recalled, ...]]] = OrderedDict()

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
    ) -> list[Recalled]:
        """See `PastTalk.recall`."""
        found = await self.reminded(
            campaign, npc, question, exclude=exclude, limit=limit, patient=patient, between=between
        )
        return list(found.items)

    def remind(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
        between: Between = EVER,
    ) -> list[Recalled] | None:
        """See `PastTalk.remind`."""
        index = self.held.index(campaign)
        if index is None:
            return None
        asked = self._read(campaign, index, npc, question)
        if asked is None or limit <= 0:
            return []
        return self._ranked(index, npc, asked, None, exclude, between).items(limit)

    async def reminded(
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
    ) -> Reminded:
        """As `recall`, with what had no say in it. The same question on the same floor gets the same answer.

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
            return Reminded(known[1], tuple(left_out))
        ranked = await self._ranked_apart(index, npc, asked, vector, exclude, between)
        items = await self.with_recap(ranked, campaign, npc, ranked.items(limit), limit, left_out)
        if is_lasting:
            # As of when it was looked at: talk may have been rolled back since.
            self._answers[key] = (ranked.changes, tuple(items))
            while len(self._answers) > _REMEMBERED_ANSWERS:
                self._answers.popitem(last=False)
        return Reminded(tuple(items), tuple(left_out))

    async def ranked(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        between: Between = EVER,
        left_out: list[str],
    ) -> Ranked | None:
        """All that an NPC witnessed, ranked by a question, for who goes on from there; see `with_recap` as well. Where
        nobody waits for it: as `patient`. None if nothing is asked.

        Args:
            left_out: What had no say is added here.

        Raises:
            Unavailable: As `PastTalk.recall`.
        """
        index, asked, vector = await self._read_in_time(campaign, npc, question, False, True, left_out)
        return None if asked is None else await self._ranked_apart(index, npc, asked, vector, exclude, between)

    async def with_recap(
        self,
        ranked: Ranked,
        campaign: CampaignId,
        npc: NpcId,
        items: list[Recalled],
        limit: int,
        left_out: list[str],
    ) -> list[Recalled]:
        """Where a recap is asked for, what happened comes first, and what is like the question fills up."""
        if not asks_for_recap(ranked.question):
            return items
        summaries: dict[SessionId, str] = {}
        if self._summaries is not None:
            try:
                async with asyncio.timeout(self._settings.summaries_deadline_ms / 1000):
                    for session in sessions_in_question(ranked.index, ranked.seen, ranked.fit):
                        summary = await self._summaries.summary(campaign, npc, session)
                        if summary is not None:
                            summaries[session] = summary
            except (TimeoutError, GlyphoxaError) as error:
                left_out.append(f"summaries: {str(error) or 'they took too long'}")
        happened = recap(
            ranked.question,
            ranked.index,
            ranked.viewer,
            ranked.seen,
            ranked.ranking.scores,
            summaries,
            told=lambda at: ranked.recalled(at) if ranked.may_be_told[at] and not ranked.is_the_question(at) else None,
            lines=limit,
            now_ms=self._now_ms(),
        )
        happened = [one for one in happened if ranked.between.holds(one.at_ms)]  # a summary is no turn
        return without_repeats([*happened, *items])[:limit]

    async def refresh(self, campaign: CampaignId) -> TalkIndex:
        """Read what has changed until now; see `TalkCache.refresh`.

        Raises:
            Unavailable: The database cannot be reached, and what is held stays as it is; or all was closed.
        """
        index = await self.held.refresh(campaign)
        head = self.held.head(campaign)
        if head is not None:
            await self.times.refresh(campaign, head.times)
        return index

    async def close(self) -> None:
        """Give up what is under way."""
        for vectors in (self.vectors, *self._of_editions.values()):
            await vectors.close()
        await self.held.close()

    async def _read_in_time(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        by_words: bool,
        patient: bool,
        left_out: list[str],
    ) -> tuple[TalkIndex, Question | None, NDArray[float32] | None]:
        """The talk as it is now, the question, and its vector."""
        embed_ms = self._settings.patient_embed_deadline_ms if patient else self._settings.embed_deadline_ms
        if by_words:
            embed_ms = 0
        held = self.held.index(campaign)
        asked = None if held is None else self._read(campaign, held, npc, question)
        vector: NDArray[float32] | LeftOut | None = None
        if held is None or asked is None:
            index = await self._up_to_date(campaign, patient, left_out)
        else:
            index, vector = await asyncio.gather(
                self._up_to_date(campaign, patient, left_out), self._embed(held, asked, embed_ms)
            )
        if asked is None or asked.times is not self.times.of(campaign, index):
            asked = self._read(campaign, index, npc, question)
        if asked is not None and (vector is None or (held is not None and held.edition != index.edition)):
            vector = await self._embed(index, asked, embed_ms)
        if isinstance(vector, LeftOut):
            left_out.append(f"meaning: {vector.text}")
            vector = None
        return index, asked, vector

    def _read(self, campaign: CampaignId, index: TalkIndex, viewer: Viewer, question: str) -> Question | None:
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

    async def _embed(self, index: TalkIndex, asked: Question, deadline_ms: int) -> NDArray[float32] | LeftOut | None:
        """A vector that may be compared with those of the index."""
        if not deadline_ms:
            return None
        vectors = self._vectors_of(index.edition)
        return _OTHER_MODEL if vectors is None else await vectors.embed_in_time(asked.meaning, deadline_ms=deadline_ms)

    def _vectors_of(self, edition: IndexGeneration | None) -> QuestionVectors | None:
        """Of questions, by whoever embedded that edition: also a model of the same name may be another one by now."""
        ours, embedder = self._embedder, self.held.embedder
        if edition is None or ours is None or edition == self._first_edition:
            return self.vectors
        if self._first_edition is None and edition.is_of(ours.name, ours.dimensions):
            self._first_edition = edition
            return self.vectors
        if edition not in self._of_editions:
            if embedder is None or not edition.is_of(embedder.name, embedder.dimensions):
                return None
            self._of_editions[edition] = QuestionVectors(embedder)
        return self._of_editions[edition]

    async def _up_to_date(self, campaign: CampaignId, patient: bool, left_out: list[str]) -> TalkIndex:
        held, settings = self.held.index(campaign), self._settings
        deadline_ms = settings.patient_refresh_deadline_ms if patient else settings.refresh_deadline_ms
        deadline_ms = settings.deadline_ms if held is None else max(deadline_ms, settings.refresh_deadline_ms)
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await self.refresh(campaign)
        except (TimeoutError, GlyphoxaError) as error:
            if held is None:
                raise Unavailable(
                    f"the talk of {campaign} is not in memory: {str(error) or 'it is being read'}"
                ) from None
            left_out.append(f"the latest talk: {str(error) or f'it took more than {deadline_ms} ms'}")
            return held

    async def _ranked_apart(
        self,
        index: TalkIndex,
        viewer: Viewer,
        asked: Question,
        vector: NDArray[float32] | None,
        exclude: Collection[UtteranceId],
        between: Between,
    ) -> Ranked:
        """Away from the event loop where it would be held up."""
        if len(index) > _IN_A_THREAD:
            return await asyncio.to_thread(self._ranked, index, viewer, asked, vector, exclude, between)
        return self._ranked(index, viewer, asked, vector, exclude, between)

    def _ranked(
        self,
        index: TalkIndex,
        viewer: Viewer,
        asked: Question,
        vector: NDArray[float32] | None,
        exclude: Collection[UtteranceId],
        between: Between,
    ) -> Ranked:
        return rank_view(
            index,
            viewer,
            asked,
            vector,
            exclude=exclude,
            between=between,
            weights=self._settings.weights,
            min_cosine=self._settings.min_cosine,
            now_ms=self._now_ms(),
        )


_Key = tuple[CampaignId, NpcId, str, frozenset[UtteranceId], int, bool, Between]
