"""Recall that may take its time: the shipped ranking, and behind it the stages and methods of a memory graph.

With no stage on and by the method HYBRID it gives what `Recall` gives. What an NPC did not witness is in none of it:
the ranking, the graph and the lines that a language model is shown are all of its view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from glyphoxa.context.wording import recalled_line
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.recalled import RecalledTalk, RecalledUtterance, Signal
from glyphoxa.experimental.graph.choosing import ChoiceRequest, NodeChoice, NodeChooser
from glyphoxa.experimental.graph.methods import GraphRecall, RecallMethod, RecallPath, check_method
from glyphoxa.experimental.graph.question import GraphQuestion, Hit, Recollection
from glyphoxa.experimental.graph.reranking import Reranker
from glyphoxa.experimental.graph.settings import GraphRecallSettings
from glyphoxa.experimental.graph.talk_graph import TalkGraph
from glyphoxa.experimental.graph_cache import GraphCache
from glyphoxa.recall.ranking.ranking import Ranked, RankingWeights
from glyphoxa.recall.ranking.signals import by_words
from glyphoxa.recall.recall import NOTHING_ASKED, Recall, RecallResult
from glyphoxa.recall.temporal.days import Zone
from glyphoxa.transcript.ports import TalkQuery

_BASE: Final = 400
"""So many of the shipped ranking are its say; the others have none."""
_LATEST: Final = 100
_LEAST: Final = 1e-6
_MOST_RESULTS: Final = 200


class DeepRecall:
    """
    Args:
        recall: Whose ranking is the beginning.
        settings: Which stages are on.
        chooser: The language model of the methods that ask one.
        reranker: Of the method that reranks.
        weights: Of the ranking, in place of those of `recall`.
    """

    def __init__(
        self,
        recall: Recall,
        *,
        settings: GraphRecallSettings | None = None,
        chooser: NodeChooser | None = None,
        reranker: Reranker | None = None,
        weights: RankingWeights | None = None,
    ) -> None:
        self.settings = settings or GraphRecallSettings()
        self._recall = recall
        self._chooser = chooser
        self._reranker = reranker
        self._weights = weights
        self._graphs = GraphCache()

    def check(self, method: RecallMethod, *, path: RecallPath = RecallPath.DEEP) -> None:
        """
        Raises:
            InvalidInput: It cannot be used there, or there is nobody whom it asks.
        """
        check_method(
            method,
            path=path,
            has_reranker=self._reranker is not None,
            has_chooser=self._chooser is not None,
        )

    async def recall(  # noqa: PLR0913 - what a language model is shown comes from three sides
        self,
        campaign: CampaignId,
        npc: NpcId,
        query: TalkQuery,
        *,
        method: RecallMethod = RecallMethod.HYBRID,
        path: RecallPath = RecallPath.DEEP,
        recent: Sequence[str] = (),
        world: str = "",
        deadline_ms: int | None = None,
    ) -> RecallResult:
        """What an NPC witnessed that bears on a question, the most helpful first.

        Args:
            query: Its limit is at most 200. A reranker or a language model that filters is given more than that.
            recent: What was said just before, oldest first, each with its speaker: a language model is shown the end.
            world: What the NPC knows of itself and of the world anyway, for a language model.
            deadline_ms: For all of it. What is not ready by then is left out: the ranking stands without the graph, and
                what a language model has chosen so far, or the ranking, without the rest.

        Raises:
            InvalidInput: See `check`.
            Unavailable: As `PastTalk.recall`.
        """
        self.check(method, path=path)
        now = asyncio.get_running_loop().time
        until = None if deadline_ms is None else now() + deadline_ms / 1_000
        left_out: list[str] = []
        ranked = await self._recall.ranked(campaign, npc, query, left_out=left_out, weights=self._weights)
        if ranked is None or query.limit <= 0:
            return NOTHING_ASKED
        try:
            async with asyncio.timeout_at(until):
                graph = await self._graphs.of_view(
                    (campaign, npc), ranked.index, ranked.seen.columns, changes=ranked.changes
                )
        except TimeoutError:
            left_out.append("memory graph: it was not ready in time")
            items: list[RecalledTalk] = [*ranked.items(query.limit)]
        else:
            second_look = method in (RecallMethod.HYBRID_LLM, RecallMethod.HYBRID_RERANK)
            most = max(query.limit, self.settings.max_results) if second_look else query.limit
            recalling = GraphRecall(
                graph.graph,
                lambda at: _line(ranked.recalled(at), ranked.question.times.zone),
                settings=replace(self.settings, max_results=min(most, _MOST_RESULTS)),
                reranker=self._reranker,
                chooser=None if self._chooser is None else _InTime(self._chooser, until),
            )
            found = await recalling.recall(
                _asked(graph, ranked), query.text, method=method, path=path, recent=recent, world_info=world
            )
            left_out += found.left_out
            items = _recalled(ranked, found)[: query.limit]
        items = await self._recall.recaps.before(items, ranked, campaign, npc, left_out=left_out)
        return RecallResult(tuple(items), tuple(left_out))

    async def close(self) -> None:
        """Give up what is under way; the ranking is another's to close."""
        await self._graphs.close()


@dataclass(frozen=True, slots=True)
class SearchByMethod:
    """Recall by one method."""

    deep: DeepRecall
    method: RecallMethod

    @property
    def asks_a_model(self) -> bool:
        return self.method.asks_a_model

    async def recall(self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, world: str = "") -> RecallResult:
        """See `DeepRecall.recall`."""
        return await self.deep.recall(campaign, npc, query, method=self.method, world=world)


def _asked(graph: TalkGraph, ranked: Ranked) -> GraphQuestion:
    """The question as the graph takes it: what is not to be told is not among what may be recalled, and still leads to
    what is.
    """
    seen = ranked.seen
    base = np.zeros(len(seen))
    level = 1.0
    for at, score in ranked.best(_BASE):
        # What is shipped may put a lower score first; its order is what the stages start from.
        level = max(_LEAST, min(score, level - _LEAST))
        base[at] = level
    may_be_told = ranked.may_be_told.copy()
    may_be_told[_the_question(ranked)] = False
    return GraphQuestion(
        vector=ranked.question.vector,
        anchors=graph.anchors(ranked.question.text),
        among=_with_names(graph, may_be_told) > 0,
        cosines=_with_names(graph, np.zeros(len(seen)) if seen.cosines is None else seen.cosines),
        lexical=_with_names(graph, by_words(seen)),
        base=_with_names(graph, base),
    )


def _the_question(ranked: Ranked) -> list[int]:
    """Where it stands in the log itself: among the latest turns, or among those that have all its words."""
    seen, asked = ranked.seen, ranked.question.terms.words
    places = set(range(max(0, len(seen) - _LATEST), len(seen)))
    if seen.matches and len(seen.matches) == len(asked):
        places |= set.intersection(*(set(match.places.tolist()) for match in seen.matches))
    return [at for at in places if ranked.is_the_question(at)]


def _with_names(graph: TalkGraph, of_turns: NDArray[np.generic]) -> NDArray[float64]:
    """The same of all nodes: a name has nothing of it."""
    return np.concatenate((of_turns.astype(float64), np.zeros(len(graph.graph) - graph.n_turns)))


def _recalled(ranked: Ranked, found: Recollection) -> list[RecalledTalk]:
    most = max((hit.score for hit in found.hits), default=0.0)
    items: list[RecalledTalk] = []
    for hit in found.hits:
        recalled = ranked.recalled(hit.node, score=hit.score / most if most > 0 else 0.0)
        items.append(replace(recalled, signals={**recalled.signals, **_why(hit)}))
    return items


def _why(hit: Hit) -> dict[Signal, float]:
    """What the shipped ranking says is there already, in more detail than as the base of the stages."""
    return {} if set(hit.why) == {"base"} else {Signal(name): round(value, 4) for name, value in hit.why.items()}


def _line(recalled: RecalledUtterance, zone: Zone) -> str:
    """As a language model is shown it, with the day on the table's clock."""
    line = recalled_line(recalled)
    if recalled.at_ms is None:
        return line
    return f"{datetime.fromtimestamp(recalled.at_ms / 1_000, zone):%Y-%m-%d} {line}"


@dataclass(frozen=True, slots=True)
class _InTime:
    """A chooser that is asked no longer than there is time.

    Attributes:
        until: On the event loop's clock; None: as long as it may take.
    """

    chooser: NodeChooser
    until: float | None

    async def choose(self, asked: ChoiceRequest, lines: Sequence[str], *, deadline_ms: int) -> NodeChoice:
        left_ms = deadline_ms
        if self.until is not None:
            left_ms = min(left_ms, int((self.until - asyncio.get_running_loop().time()) * 1_000))
        if left_ms <= 0:
            raise Unavailable("there was no time left to ask it")
        try:
            async with asyncio.timeout(left_ms / 1_000):
                return await self.chooser.choose(asked, lines, deadline_ms=left_ms)
        except TimeoutError:
            raise Unavailable(f"it did not answer within {left_ms} ms") from None
