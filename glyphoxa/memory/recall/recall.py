"""Recall of talk: what an NPC witnessed that bears on what was just said (R-089, C-55)."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import bool_, float32
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.embedding import Embedder
from glyphoxa.memory.ports.talk import SessionSummaries
from glyphoxa.memory.ports.talk_feed import Said, TalkFeed
from glyphoxa.memory.question_vectors import LeftOut, QuestionVectors
from glyphoxa.memory.recall.asked import Question, read_question
from glyphoxa.memory.recall.held import Bounds, HeldTalk
from glyphoxa.memory.recall.ranking import DEFAULT, Ranking, Weights, rank
from glyphoxa.memory.recall.second_hop import second_hop
from glyphoxa.memory.recall.several import POOL, apart, wants_several
from glyphoxa.memory.recall.talk_index import Seen, TalkIndex
from glyphoxa.memory.recall.when.fit import Fit
from glyphoxa.memory.recall.when.in_view import fit_of
from glyphoxa.memory.recall.when.recap import asks_for_recap, recap, sessions_in_question, without_repeats

_IN_A_THREAD = 3_000
"""Turns from which a ranking takes longer than going to a thread and back."""
_REMEMBERED_ANSWERS = 64
_FITS = 0.5
"""A turn that fits the time of the question so well is told with that reason."""


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """
    Attributes:
        deadline_ms: For reading a campaign's talk into memory when that was not done before.
        embed_deadline_ms: For the question's embedding; when it is late, words alone decide.
        patient_embed_deadline_ms: The same where nobody waits.
        refresh_deadline_ms: For what has changed in the log; what is not there yet is not recalled yet.
        summaries_deadline_ms: For the summaries of the sessions of which a recap is asked for.
        min_cosine: With no word in common, less similar than this is not about the question.
        weights: Of the ranking.
    """

    deadline_ms: int = 1_000
    embed_deadline_ms: int = 40
    patient_embed_deadline_ms: int = 900
    refresh_deadline_ms: int = 20
    summaries_deadline_ms: int = 20
    min_cosine: float = 0.25
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


class Recall:
    """A `PastTalk` over talk that is held in memory.

    Args:
        feed: Where talk is read.
        embedder: How questions are embedded; None for words alone.
        summaries: Told where a recap is asked for; None for none.
        now_ms: Milliseconds since the Unix epoch; "last week" counts from it.
    """

    def __init__(
        self,
        feed: TalkFeed,
        *,
        embedder: Embedder | None = None,
        summaries: SessionSummaries | None = None,
        settings: RecallSettings | None = None,
        bounds: Bounds | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self.held = HeldTalk(feed, dimensions=embedder.dimensions if embedder is not None else 1, bounds=bounds)
        self.vectors = QuestionVectors(embedder)
        self._summaries = summaries
        self._settings = settings or RecallSettings()
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._answers: OrderedDict[_Key, tuple[int, Reminded]] = OrderedDict()

    async def recall(
        self,
        campaign: CampaignId,
        npc: NpcId,
        question: str,
        *,
        exclude: Sequence[UtteranceId] = (),
        limit: int = 5,
        patient: bool = False,
    ) -> list[Recalled]:
        """See `PastTalk.recall`."""
        found = await self.reminded(campaign, npc, question, exclude=exclude, limit=limit, patient=patient)
        return list(found.items)

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
        if index is None:
            return None
        asked = self._read(index, npc, question)
        if asked is None or limit <= 0:
            return []
        return self._ranked(index, npc, asked, None, exclude).items(limit)

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
    ) -> Reminded:
        """As `recall`, with what had no say in it. The same question on the same floor gets the same answer (R-400).

        Args:
            by_words: Without what the question means.

        Raises:
            Unavailable: As `PastTalk.recall`.
        """
        left_out: list[str] = []
        embed_ms = self._settings.patient_embed_deadline_ms if patient else self._settings.embed_deadline_ms
        if by_words:
            embed_ms = 0
        held = self.held.index(campaign)
        if held is None or self._read(held, npc, question) is None:
            index = await self._up_to_date(campaign, left_out)
            vector: NDArray[float32] | LeftOut | None = None
        else:
            index, vector = await asyncio.gather(
                self._up_to_date(campaign, left_out), self._embed(held, npc, question, embed_ms)
            )
        asked = self._read(index, npc, question)
        if asked is None or limit <= 0:
            return Reminded(left_out=("everything: nothing was asked",))
        if vector is None and not by_words:
            vector = await self._embed(index, npc, question, embed_ms)
        if isinstance(vector, LeftOut):
            left_out.append(f"meaning: {vector.text}")
            vector = None
        key = (campaign, npc, asked.text, frozenset(exclude), limit, vector is None)
        known = self._answers.get(key)
        if known is not None and known[0] == index.changes:
            return known[1]
        if len(index) > _IN_A_THREAD:
            ranked = await asyncio.to_thread(self._ranked, index, npc, asked, vector, exclude)
        else:
            ranked = self._ranked(index, npc, asked, vector, exclude)
        items = ranked.items(limit)
        if asks_for_recap(asked):
            items = await self._with_recap(ranked, campaign, npc, items, limit, left_out)
        answer = Reminded(tuple(items), tuple(left_out))
        self._answers[key] = (index.changes, answer)
        while len(self._answers) > _REMEMBERED_ANSWERS:
            self._answers.popitem(last=False)
        return answer

    async def close(self) -> None:
        """Give up what is under way."""
        await self.vectors.close()
        await self.held.close()

    def _read(self, index: TalkIndex, viewer: Viewer, question: str) -> Question | None:
        """None if nothing is asked."""
        if not question.strip():
            return None
        return read_question(question, terms=index.terms, speakers=index.speakers(viewer), now_ms=self._now_ms())

    async def _embed(
        self, index: TalkIndex, viewer: Viewer, question: str, deadline_ms: int
    ) -> NDArray[float32] | LeftOut | None:
        asked = self._read(index, viewer, question)
        if asked is None or not deadline_ms:
            return None
        return await self.vectors.embed_in_time(asked.meaning, deadline_ms=deadline_ms)

    async def _up_to_date(self, campaign: CampaignId, left_out: list[str]) -> TalkIndex:
        held = self.held.index(campaign)
        deadline_ms = self._settings.deadline_ms if held is None else self._settings.refresh_deadline_ms
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await self.held.refresh(campaign)
        except (TimeoutError, GlyphoxaError) as error:
            if held is None:
                raise Unavailable(f"the talk of {campaign} is not in memory: {error or 'it is being read'}") from None
            left_out.append(f"the latest talk: {error or f'it took more than {deadline_ms} ms'}")
            return held

    def _ranked(
        self,
        index: TalkIndex,
        viewer: Viewer,
        asked: Question,
        vector: NDArray[float32] | None,
        exclude: Collection[UtteranceId],
    ) -> _Ranked:
        weights = self._settings.weights
        seen = index.look(viewer, asked.terms, vector)
        fit = fit_of(asked, index, viewer, seen, now_ms=self._now_ms())
        heard = index.speakers(viewer)
        ranking = rank(
            asked,
            seen,
            speakers=frozenset(heard[name] for name in asked.speakers),
            time=None if fit is None else fit.prior,
            second_hop=second_hop(index, viewer, asked.terms, seen) if weights.has_second_hop else None,
            weights=weights,
        )
        may_be_told = np.ones(len(seen), bool_)
        may_be_told[index.places_of(viewer, exclude)] = False
        return _Ranked(index, viewer, asked, seen, ranking, fit, self._is_about_it(seen), may_be_told, weights.apart)

    async def _with_recap(
        self,
        ranked: _Ranked,
        campaign: CampaignId,
        npc: NpcId,
        items: list[Recalled],
        limit: int,
        left_out: list[str],
    ) -> list[Recalled]:
        """What happened comes first; what is like the question fills up."""
        summaries: dict[SessionId, str] = {}
        if self._summaries is not None:
            try:
                async with asyncio.timeout(self._settings.summaries_deadline_ms / 1000):
                    for session in sessions_in_question(ranked.index, ranked.seen, ranked.fit):
                        summary = await self._summaries.summary(campaign, npc, session)
                        if summary is not None:
                            summaries[session] = summary
            except (TimeoutError, GlyphoxaError) as error:
                left_out.append(f"summaries: {error or 'they took too long'}")
        happened = recap(
            ranked.question,
            ranked.index,
            ranked.viewer,
            ranked.seen,
            ranked.ranking.scores,
            summaries,
            told=lambda at: ranked.recalled(at) if ranked.may_be_told[at] else None,
            lines=limit,
            now_ms=self._now_ms(),
        )
        return without_repeats([*happened, *items])[:limit]

    def _is_about_it(self, seen: Seen) -> NDArray[bool_]:
        """Whether a turn shares a word with the question, or is near to it in meaning. A session that is spoken of in
        the question makes its turns likelier, none of them relevant.
        """
        found = np.zeros(len(seen), bool_)
        for match in seen.matches:
            found[match.places] = True
        if seen.cosines is not None:
            found |= np.nan_to_num(seen.cosines, nan=-1.0) >= self._settings.min_cosine
        return found


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A view in the light of a question.

    Attributes:
        is_about_it: Turns that have something of the question themselves.
        may_be_told: Turns that are not in the prompt already.
        apart: See `Weights`.
    """

    index: TalkIndex
    viewer: Viewer
    question: Question
    seen: Seen
    ranking: Ranking
    fit: Fit | None
    is_about_it: NDArray[bool_]
    may_be_told: NDArray[bool_]
    apart: float

    def items(self, limit: int) -> list[Recalled]:
        """The best that are about it, or beside what is."""
        scores = self.ranking.scores
        among = _with_neighbours(self.is_about_it, self.seen) & self.may_be_told
        # The question itself may be in the log already, under an id that the caller does not know.
        said_now = self.question.text.casefold()
        best = _best(scores, among, max(limit, POOL) + 1)
        if self.apart and wants_several(self.question.text, language=self.index.terms.language):
            best = apart(best, scores, self.seen.columns.sessions, cost=self.apart)
        found = [at for at in best[: limit + 1] if self._said(at).text.casefold() != said_now][:limit]
        if not found:
            return []
        least, most = float(scores.min()), float(scores[found].max())
        return [self.recalled(at, score=_relative(float(scores[at]), least, most)) for at in found]

    def recalled(self, at: int, *, score: float = 1.0) -> Recalled:
        said = self._said(at)
        cosines = self.seen.cosines
        reason = f"witnessed in session {said.session_id}"
        if self.fit is not None and self.fit.scores[at] >= _FITS:
            reason = f"{reason}; {self.fit.reason}"
        shares = self.ranking.shares.items()
        return Recalled(
            text=f"{'You' if str(said.speaker_id) == self.viewer else said.speaker_name} said: {said.text}",
            source="said",
            score=score,
            session_id=said.session_id,
            utterance_id=said.utterance_id,
            reason=reason,
            at_ms=said.at_ms,
            speaker_id=said.speaker_id,
            similarity=None if cosines is None or np.isnan(cosines[at]) else float(cosines[at]),
            signals={name: round(float(values[at]), 4) for name, values in shares if values[at]},
        )

    def _said(self, at: int) -> Said:
        return self.index.said(int(self.seen.columns.rows[at]))


_Key = tuple[CampaignId, NpcId, str, frozenset[UtteranceId], int, bool]


def _with_neighbours(found: NDArray[bool_], seen: Seen) -> NDArray[bool_]:
    """An answer need not repeat the words of its question: it follows within two turns."""
    widened = found.copy()
    for distance in (1, 2):
        same = seen.columns.sessions[distance:] == seen.columns.sessions[:-distance]
        widened[distance:] |= found[:-distance] & same
        widened[:-distance] |= found[distance:] & same
    return widened


def _best(scores: NDArray[float32], among: NDArray[bool_], limit: int) -> list[int]:
    """The places of the highest scores, the later first among equals."""
    places = np.flatnonzero(among)
    n = min(limit, len(places))
    if n <= 0:
        return []
    values = scores[places]
    candidates = places[values >= np.partition(values, -n)[-n]]
    order = np.lexsort((-candidates, -scores[candidates]))
    return [int(at) for at in candidates[order][:n]]


def _relative(score: float, least: float, best: float) -> float:
    return (score - least) / (best - least) if best > least else 1.0
