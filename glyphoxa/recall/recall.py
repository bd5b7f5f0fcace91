"""Recall past utterances that an NPC witnessed and that bear on a question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import Recalled, RecalledTalk, Viewer
from glyphoxa.recall.ranking import DEFAULT, Ranked, RankingWeights, rank_view
from glyphoxa.recall.recap_questions import ReadSummaries, Recaps
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import RecallQuestion, read_question
from glyphoxa.recall.transcript_memory import Transcripts
from glyphoxa.recall.vectors import LeftOut, QuestionVectors
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.graph import GraphRag, Neighbourhood, Passage

# -- settings
#
# Deadlines of recall, and the weights of its ranking.


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """
    Attributes:
        deadline_ms: For the first load of a campaign's utterances into memory.
        embed_deadline_ms: For the question's embedding. After it, recall ranks by words only.
        patient_embed_deadline_ms: The same where nobody waits for the answer.
        refresh_deadline_ms: For changes in the log. Later changes are not recalled yet.
        patient_refresh_deadline_ms: The same where nobody waits for the answer.
        summaries_deadline_ms: For the session summaries of a recap.
    """

    deadline_ms: int = 1_000
    embed_deadline_ms: int = 40
    patient_embed_deadline_ms: int = 900
    refresh_deadline_ms: int = 20
    patient_refresh_deadline_ms: int = 300
    summaries_deadline_ms: int = 20
    weights: RankingWeights = DEFAULT


_IN_A_THREAD = 20_000
"""With more turns than this, a ranking would block the event loop for more than three milliseconds. For fewer, a
thread waits longer for the interpreter than that."""


R = TypeVar("R", bound=Recalled, covariant=True)


@dataclass(frozen=True, slots=True)
class RecallResult(Generic[R]):
    """
    Attributes:
        items: Best first.
        left_out: Omitted signals and summaries, each with the reason: "meaning: the embedding was late".
    """

    items: tuple[R, ...] = ()
    left_out: tuple[str, ...] = ()


NOTHING_ASKED: Final[RecallResult[Any]] = RecallResult(left_out=("everything: nothing was asked",))


class Recall:
    """Recalls past utterances that are cached in memory, limited to what one NPC witnessed.

    Args:
        transcripts: They close with this object. Their embedder embeds questions, too.
        summaries: Session summaries for recaps, see `Recaps`; None if there are none.
        now_ms: Milliseconds since the Unix epoch; "last week" is relative to it.

    Attributes:
        transcript: Returns a campaign's transcript in memory.
        vectors: Vectors of questions, also for callers that compare them with other texts.
    """

    def __init__(
        self,
        transcripts: Transcripts,
        *,
        summaries: ReadSummaries | None = None,
        settings: RecallSettings | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self.transcripts = transcripts
        self.transcript = transcripts.of
        self.vectors = QuestionVectors(transcripts.embedder)
        self._settings = settings or RecallSettings()
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self.recaps = Recaps(summaries, deadline_ms=self._settings.summaries_deadline_ms)

    @property
    def weights(self) -> RankingWeights:
        """Weights of the ranking."""
        return self._settings.weights

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        """Return what `npc` heard that bears on the question, by words and by meaning, best first.

        An utterance that the NPC did not witness is neither returned nor counted, and does not affect the others. Empty
        if nothing bears on the question.

        Args:
            patient: Nobody waits for the answer, so a remote model may take its time to embed the question. A later
                urgent call for the same question then has the vector.

        Raises:
            Unavailable: The campaign's transcript is not in memory, and cannot be read in time.
        """
        return list((await self.search(campaign, npc, query, patient=patient)).items)

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        """Return the same by words only, at once, from what is in memory now.

        For every partial transcript, and while the database is unavailable. Changes since the last `recall` are not
        included. None if nothing of the campaign is in memory.
        """
        index = self.transcript(campaign).index
        if index is None:
            return None
        asked = self._read(campaign, index, npc, query.text)
        if asked is None or query.limit <= 0:
            return []
        return [*rank_view(index, npc, asked, query, self.weights).items(query.limit)]

    async def search(
        self,
        campaign: CampaignId,
        npc: NpcId,
        query: TalkQuery,
        *,
        by_words: bool = False,
        patient: bool = False,
    ) -> RecallResult[RecalledTalk]:
        """Recall as `recall` does, and report what was not considered.

        The same question at the same ordinal gets the same answer.

        Args:
            by_words: Ignore the question's meaning.

        Raises:
            Unavailable: See `recall`.
        """
        left_out: list[str] = []
        waits = self._waits(patient=patient)
        if by_words:
            waits = waits._replace(embed_ms=0)
        index, asked = await self._read_in_time(campaign, npc, query.text, waits, left_out)
        if asked is None or query.limit <= 0:
            return NOTHING_ASKED
        ranked = await self._ranked(index, npc, asked, query)
        items = await self.recaps.before([*ranked.items(query.limit)], ranked, campaign, npc, left_out=left_out)
        return RecallResult(tuple(items), tuple(left_out))

    async def ranked(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, left_out: list[str], patient: bool = True
    ) -> Ranked | None:
        """Return all that an NPC witnessed, ranked by a question, for further processing; see `recaps` as well.

        Returns None if nothing is asked.

        Args:
            left_out: Receives what was not considered.

        Raises:
            Unavailable: See `recall`.
        """
        index, asked = await self._read_in_time(campaign, npc, query.text, self._waits(patient=patient), left_out)
        return None if asked is None else await self._ranked(index, npc, asked, query)

    async def close(self) -> None:
        """Cancel the work in progress."""
        await self.vectors.close()
        await self.transcripts.close()

    async def _read_in_time(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        waits: _Waits,
        left_out: list[str],
    ) -> tuple[TalkIndex, RecallQuestion | None]:
        """Return the current utterances, and the question with its vector."""
        cached = self.transcript(campaign).index
        asked = None if cached is None else self._read(campaign, cached, npc, question)
        vector: NDArray[float32] | LeftOut | None = None
        if cached is None or asked is None:
            index = await self._up_to_date(campaign, waits, left_out)
        else:
            index, vector = await asyncio.gather(
                self._up_to_date(campaign, waits, left_out), self._embed(asked, waits.embed_ms)
            )
        if asked is None or asked.times is not self.transcript(campaign).table_times:
            asked = self._read(campaign, index, npc, question)
        if asked is not None and vector is None:
            vector = await self._embed(asked, waits.embed_ms)
        if isinstance(vector, LeftOut):
            left_out.append(f"meaning: {vector.text}")
            vector = None
        return index, None if asked is None else replace(asked, vector=vector)

    def _read(self, campaign: CampaignId, index: TalkIndex, viewer: Viewer, question: str) -> RecallQuestion | None:
        """Return None if nothing is asked."""
        if not question.strip():
            return None
        return read_question(
            question,
            terms=index.terms,
            speakers=index.speakers(viewer),
            now_ms=self._now_ms(),
            times=self.transcript(campaign).table_times,
        )

    async def _embed(self, asked: RecallQuestion, deadline_ms: int) -> NDArray[float32] | LeftOut | None:
        """Return the vector of a question; None where none is wanted."""
        if not deadline_ms:
            return None
        return await self.vectors.embed_in_time(asked.meaning, deadline_ms=deadline_ms)

    def _waits(self, *, patient: bool) -> _Waits:
        settings = self._settings
        if not patient:
            return _Waits(settings.embed_deadline_ms, settings.refresh_deadline_ms)
        refresh_ms = max(settings.patient_refresh_deadline_ms, settings.refresh_deadline_ms)
        return _Waits(settings.patient_embed_deadline_ms, refresh_ms)

    async def _up_to_date(self, campaign: CampaignId, waits: _Waits, left_out: list[str]) -> TalkIndex:
        cached = self.transcript(campaign).index
        deadline_ms = self._settings.deadline_ms if cached is None else waits.refresh_ms
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await self.transcript(campaign).refresh()
        except (TimeoutError, GlyphoxaError) as error:
            if cached is None:
                raise Unavailable(
                    f"the transcript of {campaign} is not in memory: {str(error) or 'it is being read'}"
                ) from None
            left_out.append(f"the latest utterances: {str(error) or f'it took more than {deadline_ms} ms'}")
            return cached

    async def _ranked(self, index: TalkIndex, viewer: Viewer, asked: RecallQuestion, query: TalkQuery) -> Ranked:
        """Rank in a thread if it would block the event loop."""
        if len(index) > _IN_A_THREAD:
            return await asyncio.to_thread(rank_view, index, viewer, asked, query, self.weights)
        return rank_view(index, viewer, asked, query, self.weights)


class _Waits(NamedTuple):
    """Return how long one question may wait for its vector and for the latest utterances."""

    embed_ms: int
    refresh_ms: int


# -- around
#
# Utterances about an entity, or about related ones, that bear on a question.
#
# "Who of the Watch was seen at the mine?" needs utterances about Joren, and only the graph knows that Joren is one of
# the Watch. No ranking by words or meaning finds them.


_DEPTHS: Final = (1, 2)
"""Entities are compared separately, because the many distant ones would hide the near ones."""
NEARER: Final = 1.15
"""Each relation closer multiplies the score by this. Ties go to the nearer entity, and an utterance that does not
bear on the question is never returned. Measured in `docs/measurements.md`."""
_FEWEST: Final = 10
"""Compare at least this many utterances of each neighbourhood, even if fewer are wanted."""
_LEAST_COSINE: Final = 0.25
"""A lower similarity does not bear on the question. It is above `RankingWeights.min_cosine`, because no other
signals follow here."""
_EMBED_DEADLINE_MS: Final = 900


class RecallAround:
    """A `TalkAround` over a graph.

    It searches by meaning. It searches by words if the question's vector is late, or if no utterance around the entity
    has a vector of the same model.

    Args:
        vectors: Embeds questions.
    """

    def __init__(self, graph: GraphRag, vectors: QuestionVectors) -> None:
        self._graph = graph
        self._vectors = vectors

    async def __call__(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: EntityId, limit: int = 5
    ) -> list[Passage]:
        """See `TalkAround`."""
        vector = await self._vectors.embed_in_time(question, deadline_ms=_EMBED_DEADLINE_MS)
        enough = 0 if limit <= 0 else max(limit, _FEWEST)
        middles = [Neighbourhood(around, depth) for depth in _DEPTHS]
        found: list[Passage] = []
        if not isinstance(vector, LeftOut):
            # All utterances may have been embedded again by another model, so this vector cannot be compared with
            # theirs.
            with suppress(InvalidInput):
                for near in middles:
                    found += await self._graph.query_with_embedding(campaign, viewer, vector, around=near, limit=enough)
        if not found:
            for near in middles:
                found += await self._graph.query_with_context(campaign, viewer, question, around=near, limit=enough)
        by_id = {passage.recalled.utterance_id: passage for passage in found if _bears_on_it(passage)}
        return sorted(by_id.values(), key=lambda one: one.score / NEARER**one.depth, reverse=True)[: max(0, limit)]


def _bears_on_it(passage: Passage) -> bool:
    """A hit without a similarity has a word in common."""
    similarity = passage.recalled.similarity
    return similarity is None or similarity >= _LEAST_COSINE
