"""Recall past utterances that an NPC witnessed and that bear on a question.

Questions about events and their order ("what happened last session", "what came first") are answered by sessions in
order, because no utterance states the order of events and similarity cannot find it. A session's summary represents it.
Without a summary, its most relevant turns do, one from each stretch, so that the beginning and the end are both
included.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy import float32, int64
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId
from glyphoxa.domain.knowledge import Recalled, RecalledSummary, RecalledTalk, RecalledUtterance, Signal, Viewer
from glyphoxa.language.sentences import CHARS_PER_TOKEN, first_sentences
from glyphoxa.recall.ranking import DEFAULT, Ranked, RankingWeights, rank_view
from glyphoxa.recall.signals import Fit, TurnTimes
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.terms import RecallQuestion, read_question
from glyphoxa.recall.time_reader import NO_TIME, TimeAsk
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
        weights: Weights of the ranking.
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
        self.weights = self._settings.weights
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self.recaps = Recaps(summaries, deadline_ms=self._settings.summaries_deadline_ms)

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


# -- recaps
#
# What happened, in order, before the turns that are similar to the question.


ReadSummaries = Callable[[CampaignId], Awaitable[Callable[[NpcId, SessionId], str | None]]]
LEAST_RECAP_TOKENS: Final = 40
"""A session with less room than this is left out: it would contain nothing useful."""
_TOKENS_PER_LINE: Final = 40
_LEAD_CHARACTERS: Final = 16
"""Characters in a prompt before the words of a turn, which name the speaker."""
_TURN_TOKENS: Final = 30
_IN_SCOPE: Final = 0.5
_LEAST_FIT: Final = 0.25
_TRIED: Final = 3
"""Cut a stretch until one turn is short enough."""
_ROUNDING: Final = 1e-6


class Recaps:
    """
    Args:
        summaries: Brings a campaign's summaries up to date; returns what an NPC may know of a session's, None if there
            is none. Without it, the most relevant turns of a session are used instead.
        deadline_ms: For the summaries of one question.
    """

    def __init__(self, summaries: ReadSummaries | None, *, deadline_ms: int) -> None:
        self._summaries = summaries
        self._deadline_ms = deadline_ms

    async def before(
        self,
        items: list[RecalledTalk],
        ranked: Ranked,
        campaign: CampaignId,
        npc: NpcId,
        *,
        left_out: list[str],
    ) -> list[RecalledTalk]:
        """Put the events first if the question asks for a recap, then fill up with similar turns.

        Args:
            items: Turns similar to the question, best first.
            left_out: Receives what was not considered.
        """
        if not ranked.question.time.asks_for_events:
            return items
        talk, lines = _talk_of(ranked), ranked.query.limit
        budget_tokens = lines * _TOKENS_PER_LINE
        sessions = sessions_told(talk, most=budget_tokens // LEAST_RECAP_TOKENS)
        first = ranked.seen.columns.rows[ranked.seen.columns.starts]
        ids = {nth: ranked.index.said(int(first[nth])).session_id for nth in sessions}
        summaries = await self._read(ids, campaign, npc, left_out)
        pieces = timeline_of(sessions, talk, summaries, budget_tokens=budget_tokens)
        happened = [_recalled(piece, ids[piece.session], ranked) for piece in pieces]
        # The middle is left out: a recap needs the beginning and the end.
        kept = np.linspace(0, len(happened) - 1, min(lines, len(happened))).round().astype(int)
        happened = [one for at in kept if ranked.query.admits((one := happened[at]).session_id, one.at_ms, _by(one))]
        # Keep the first occurrence of each. A turn counts as the same whether it is complete or cut.
        found: dict[tuple[str, str], RecalledTalk] = {}
        for one in [*happened, *items]:
            found.setdefault((one.source, one.utterance_id if isinstance(one, RecalledUtterance) else one.text), one)
        return list(found.values())[:lines]

    async def _read(
        self, ids: Mapping[int, SessionId], campaign: CampaignId, npc: NpcId, left_out: list[str]
    ) -> dict[int, str]:
        """Return the summaries that the viewer may know, by the place of their session in the view."""
        if self._summaries is None:
            return {}
        try:
            async with asyncio.timeout(self._deadline_ms / 1000):
                summary_of = await self._summaries(campaign)
        except (TimeoutError, GlyphoxaError) as error:
            left_out.append(f"summaries: {str(error) or 'they took too long'}")
            return {}
        return {nth: summary for nth, session in ids.items() if (summary := summary_of(npc, session)) is not None}


def _by(one: RecalledTalk) -> str:
    return one.speaker_name if isinstance(one, RecalledUtterance) else ""


def _talk_of(ranked: Ranked) -> RankedTalk:
    def text_of(at: int) -> str:
        return ranked.recalled(at).text if ranked.may_be_told[at] and not ranked.is_the_question(at) else ""

    columns, scores = ranked.seen.columns, ranked.ranking.scores
    turns, worth = TurnTimes(columns.at_ms, columns.sessions), scores - scores.min(initial=0.0)
    return RankedTalk(turns, worth, text_of, ranked.question.time, ranked.fit)


def _recalled(piece: TimelinePiece, session: SessionId, ranked: Ranked) -> RecalledTalk:
    why = "asked about the order of events" if ranked.fit is None else ranked.fit.reason
    if piece.place is None:
        at_ms = int(ranked.seen.columns.at_ms[ranked.seen.columns.starts[piece.session]])
        return RecalledSummary(session, piece.text, at_ms, reason=f"summary of session {session}; {why}")
    one = ranked.recalled(piece.place)
    reason, signals = f"witnessed in session {session}; {why}", {**one.signals, Signal.RECAP: 1.0}
    return replace(one, text=piece.text, score=1.0, reason=reason, signals=signals)


# -- which parts of which session


class TimelinePiece(NamedTuple):
    """A summary of a session, or a turn of it.

    Attributes:
        session: Place of the session in the view.
        place: Place of the turn; None for a summary.
    """

    session: int
    text: str
    place: int | None = None


@dataclass(frozen=True, slots=True)
class RankedTalk:
    """The material of a recap.

    Attributes:
        worth: How much each turn helps to answer the question, any scale from 0; shape (n,). For a recap, the summed
            rarity of its words works better than their number or their centrality.
        text_of: Returns a turn's words; empty if it must not be included.
        fit: How well each turn fits the time in the question; None if it contains none that was found.
    """

    turns: TurnTimes
    worth: NDArray[float32]
    text_of: Callable[[int], str]
    ask: TimeAsk = NO_TIME
    fit: Fit | None = None


def sessions_told(talk: RankedTalk, *, most: int) -> list[int]:
    """Return the sessions that were asked about, in order; empty if the question asks for no recap and no order.

    They have a turn that fits at least half as well as the best; without a time, all do. A turn that does not fit is
    not presented as if it did: nothing was said last year in a campaign that began in May. Of too many, those with the
    highest worth are included, and of equals the latest.
    """
    ask, fit = talk.ask, talk.fit
    if not ask.asks_for_events or (fit is None and "order" not in ask.asks):
        return []  # for example events since something that nobody mentioned
    there = talk.turns.sessions
    if fit is not None and len(there):
        there = there[fit.scores >= max(_LEAST_FIT, _IN_SCOPE * float(fit.scores.max()))]
    best = {nth: float(talk.worth[talk.turns.of_session(nth)].max()) for nth in np.unique(there).tolist()}
    by_worth = sorted(best, key=lambda nth: (best[nth], nth))
    return sorted(by_worth[max(0, len(best) - most) :])


def timeline_of(
    sessions: Sequence[int], talk: RankedTalk, summaries: Mapping[int, str], *, budget_tokens: int
) -> list[TimelinePiece]:
    """Return what represents each of these sessions, within the budget.

    Each session gets an equal share and passes what it does not use to the next.

    Args:
        sessions: See `sessions_told`.
        summaries: Texts, each under the place of its session.
    """
    # A summary describes a whole session, so it cannot describe a part of one.
    is_part = talk.ask.place is not None and talk.ask.place.part is not None
    told: list[TimelinePiece] = []
    left = budget_tokens
    for nth, session in enumerate(sessions):
        share = left // (len(sessions) - nth)
        text = "" if is_part else first_sentences(summaries.get(session, ""), share * CHARS_PER_TOKEN - 1)
        if text:
            pieces = [TimelinePiece(session, text)]
        else:
            places = _meant(talk.turns.of_session(session), talk.fit, part=is_part)
            pieces = [TimelinePiece(session, text, place) for place, text in _telling(places, talk, share)]
        left -= sum(estimated_tokens(piece.text, is_turn=piece.place is not None) for piece in pieces)
        told += pieces
    return told


def estimated_tokens(text: str, *, is_turn: bool = False) -> int:
    """Return the tokens of a summary, or of a turn with its speaker. A token is about four characters."""
    return (len(text) + _LEAD_CHARACTERS * is_turn) // CHARS_PER_TOKEN + 1


def _meant(of_session: slice, fit: Fit | None, *, part: bool) -> NDArray[int64]:
    places = np.arange(of_session.start, of_session.stop)
    if fit is None:
        return places
    scores = fit.scores[places]
    return places[scores >= (scores.max() - _ROUNDING if part else _ROUNDING)]


def _telling(places: NDArray[int64], talk: RankedTalk, share: int) -> Iterator[tuple[int, str]]:
    """Yield the best turn of as many stretches as fit, of equals the first.

    A stretch takes no room from the next: a long turn is cut to its first sentences. On three episodes of CRD3 with 600
    tokens, the result touches 31 % of what their recaps contain; with whole turns it was 5 %.
    """
    n_stretches = min(len(places), max(1, share // _TURN_TOKENS))
    for nth, stretch in enumerate(np.array_split(places, n_stretches) if n_stretches else ()):
        room = share // (n_stretches - nth) * CHARS_PER_TOKEN - _LEAD_CHARACTERS - 1
        best = stretch[np.argsort(-talk.worth[stretch], kind="stable")][:_TRIED].tolist()
        texts = ((place, first_sentences(talk.text_of(place), room)) for place in best)
        if (found := next((each for each in texts if each[1]), None)) is not None:
            yield found
            share -= estimated_tokens(found[1], is_turn=True)


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
