"""Recall with more time: the shipped ranking, followed by the stages and methods of a memory graph.

With no stages and the method `hybrid`, the result is that of `Recall`. What an NPC did not witness is in none of it:
the ranking, the graph and the lines for a language model use its view only. The voice path never uses it. The tools of
an NPC of tier DEEP and `glyphoxa recall --method` do.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from loguru import logger
from numpy import float32, float64, int32
from numpy.typing import NDArray

from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.knowledge import RecalledTalk, RecalledUtterance, Signal, Viewer
from glyphoxa.domain.structured import StructuredLlm
from glyphoxa.memory_graph.graph import Read, TalkGraph, graph_of_view
from glyphoxa.memory_graph.methods import LANGUAGE_MODEL, RERANK, GraphRecall, Reranker
from glyphoxa.memory_graph.pipeline import GraphQuestion, Recollection
from glyphoxa.memory_graph.settings import SECOND_HOP, MemoryGraphSettings
from glyphoxa.prompt.wording import recalled_line
from glyphoxa.recall.ranking import Ranked, RankingWeights
from glyphoxa.recall.recall import NOTHING_ASKED, Recall, RecallResult
from glyphoxa.recall.signals import SCALE, by_words, rarity
from glyphoxa.recall.table_calendar import Zone
from glyphoxa.recall.talk_index import TalkIndex, ViewSnapshot
from glyphoxa.recall.terms import SearchTerms
from glyphoxa.transcript.ports import PastTalk, TalkQuery

_BASE: Final = 400
"""The best turns of the shipped ranking get a base score; the others get none."""
_LATEST: Final = 100
_LEAST: Final = 1e-6
_MOST_GRAPHS: Final = 8
"""Cached graphs; one of 10,000 turns takes 20 MB, most of it the turns' vectors."""


class _Made(NamedTuple):
    """A graph, finished or being built, of rows of an index. No two states of any index have the same `changes`."""

    changes: int
    rows: NDArray[int32]
    graph: asyncio.Task[TalkGraph]


class DeepRecall:
    """
    Args:
        recall: Provides the ranking to start from.
        settings: The method, and the active stages.
        llm: The language model, for methods that use one.
        reranker: For the method that reranks.

    Raises:
        InvalidInput: The method needs a model that is not set.
    """

    def __init__(
        self,
        recall: Recall,
        *,
        settings: MemoryGraphSettings | None = None,
        llm: StructuredLlm | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self.settings = settings or MemoryGraphSettings()
        self._recall = recall
        self._llm = llm
        self._reranker = reranker
        self._weights = with_second_hop(recall.weights) if SECOND_HOP in self.settings.stages else None
        self._made: OrderedDict[tuple[CampaignId, NpcId], _Made] = OrderedDict()
        self._read: weakref.WeakKeyDictionary[TalkIndex, dict[int, Read]] = weakref.WeakKeyDictionary()
        by = self.settings.searches_by
        if self.asks_a_model and llm is None:
            raise InvalidInput(f"recall by {by} needs a language model; valid without one: hybrid")
        if by == "hybrid_rerank" and reranker is None:
            raise InvalidInput(f"recall by {by} needs recall.rerank, which is not set; valid without: hybrid")

    @property
    def asks_a_model(self) -> bool:
        return self.settings.asks_a_model

    async def recall(  # noqa: PLR0913 - what a language model is shown comes from two sides
        self,
        campaign: CampaignId,
        npc: NpcId,
        query: TalkQuery,
        *,
        recent: Sequence[str] = (),
        world: str = "",
        deadline_ms: int | None = None,
    ) -> RecallResult:
        """Return what an NPC witnessed that bears on a question, the most helpful first.

        Args:
            query: A reranker or a filtering language model receives more than its limit.
            recent: The preceding utterances, oldest first, each with its speaker: a language model receives the end.
            world: The NPC's standing knowledge of itself and of the world, for a language model.
            deadline_ms: For all of it. Without the graph by then, the result is the ranking. A late language model
                leaves what it has chosen so far, or the ranking.

        Raises:
            Unavailable: See `PastTalk.recall`.
        """
        until = None if deadline_ms is None else asyncio.get_running_loop().time() + deadline_ms / 1_000
        left_out: list[str] = []
        ranked = await self._recall.ranked(campaign, npc, query, left_out=left_out, weights=self._weights)
        if ranked is None or query.limit <= 0:
            return NOTHING_ASKED
        try:
            async with asyncio.timeout_at(until):
                graph = await self._graph((campaign, npc), ranked)
        except TimeoutError:
            left_out.append("memory graph: not ready in time")
            items: list[RecalledTalk] = [*ranked.items(query.limit)]
        else:
            # Filtering or reordering starts from more than the wanted results.
            second_look = self.settings.searches_by in ("hybrid_llm", "hybrid_rerank")
            most = max(query.limit, self.settings.max_results) if second_look else query.limit
            recalling = GraphRecall(
                graph,
                lambda at: _line(ranked.recalled(at), ranked.question.times.zone),
                self.settings.model_copy(update={"max_results": most}),
                self._reranker,
                self._llm,
                until,
                ranked.index.terms.language,
            )
            found = await recalling.recall(_asked(graph, ranked), query.text, recent=recent, world=world)
            left_out += found.left_out
            items = _recalled(ranked, found)[: query.limit]
        items = await self._recall.recaps.before(items, ranked, campaign, npc, left_out=left_out)
        return RecallResult(tuple(items), tuple(left_out))

    async def _graph(self, whose: tuple[CampaignId, NpcId], ranked: Ranked) -> TalkGraph:
        """Build a graph in a thread, once for all callers.

        10,000 turns take half a second, and a fifth of it if most of them were in an earlier one. A caller that cannot
        wait leaves it for later ones.
        """
        index, columns = ranked.index, ranked.seen.columns
        made = self._made.get(whose)
        is_of_it = made is not None and made.changes == ranked.changes and np.array_equal(made.rows, columns.rows)
        if made is None or not is_of_it or _failed(made.graph):
            read = self._read.setdefault(index, {})
            task = asyncio.create_task(asyncio.to_thread(graph_of_view, index, columns, read=read))
            task.add_done_callback(_failed)
            made = self._made[whose] = _Made(ranked.changes, columns.rows, task)
        self._made.move_to_end(whose)
        while len(self._made) > _MOST_GRAPHS:
            self._made.popitem(last=False)
        return await asyncio.shield(made.graph)

    async def close(self) -> None:
        """Cancel the work in progress; the owner of the ranking closes it."""
        graphs = [made.graph for made in self._made.values()]
        self._made.clear()
        await asyncio.gather(*graphs, return_exceptions=True)


class DeepTalk:
    """A `PastTalk` for the tools of an NPC of tier DEEP: it uses a method of the memory graph.

    If the method fails, it falls back to words and meaning. A failure is logged once until a success.

    Args:
        talk: The fallback.
        deadline_ms: For one answer; below the limit of a tool, so that there is one.
        recent: Returns the utterances that an NPC heard last, oldest first, each with its speaker.
        world: Returns an NPC's standing knowledge of itself and of the world.
    """

    def __init__(
        self,
        talk: PastTalk,
        deep: DeepRecall,
        *,
        deadline_ms: int,
        recent: Callable[[NpcId], Sequence[str]] = lambda _: (),
        world: Callable[[NpcId], str] = lambda _: "",
    ) -> None:
        self._talk = talk
        self._deep = deep
        self._deadline_ms = deadline_ms
        self._recent = recent
        self._world = world
        self._has_failed = False

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> list[RecalledTalk]:
        """See `PastTalk.recall`."""
        recent, world = self._recent(npc), self._world(npc)
        try:
            found = await self._deep.recall(
                campaign, npc, query, recent=recent, world=world, deadline_ms=self._deadline_ms
            )
        except GlyphoxaError as error:
            self._report(str(error))
            return await self._talk.recall(campaign, npc, query, patient=patient)
        self._report(next((part for part in found.left_out if part.startswith((LANGUAGE_MODEL, RERANK))), ""))
        return list(found.items)

    def recall_nowait(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> list[RecalledTalk] | None:
        """See `PastTalk.recall_nowait`."""
        return self._talk.recall_nowait(campaign, npc, query)

    def _report(self, why: str) -> None:
        if why and not self._has_failed:
            logger.warning("recall by {} falls back to words and meaning: {}", self._deep.settings.searches_by, why)
        self._has_failed = bool(why)


def _asked(graph: TalkGraph, ranked: Ranked) -> GraphQuestion:
    """Convert the question for the graph.

    A turn that must not be returned is not recallable, but may still lead to others.
    """
    seen = ranked.seen
    base = np.zeros(len(seen))
    level = 1.0
    for at, score in ranked.best(_BASE):
        # The shipped order may put a lower score first; the stages start from its order.
        level = max(_LEAST, min(score, level - _LEAST))
        base[at] = level
    may_be_told = ranked.may_be_told.copy()
    may_be_told[_the_question(ranked)] = False

    def with_names(of_turns: NDArray[np.generic]) -> NDArray[float64]:
        """Extend values of turns to all nodes; names get 0."""
        return np.append(of_turns.astype(float64), np.zeros(len(graph) - graph.n_turns))

    return GraphQuestion(
        with_names(base),
        with_names(by_words(seen)),
        with_names(np.zeros(len(seen)) if seen.cosines is None else seen.cosines),
        ranked.question.vector,
        graph.anchors(ranked.question.text),
        with_names(may_be_told) > 0,
    )


def _the_question(ranked: Ranked) -> list[int]:
    """Return the question's own place in the log: among the latest turns, or among those with all its words."""
    seen, asked = ranked.seen, ranked.question.terms
    places = set(range(max(0, len(seen) - _LATEST), len(seen)))
    if seen.matches and len(seen.matches) == len(asked):
        places |= set.intersection(*(set(match.places.tolist()) for match in seen.matches))
    return [at for at in places if ranked.is_the_question(at)]


def _recalled(ranked: Ranked, found: Recollection) -> list[RecalledTalk]:
    most = max((hit.score for hit in found.hits), default=0.0)
    items: list[RecalledTalk] = []
    for hit in found.hits:
        recalled = ranked.recalled(hit.node, score=hit.score / most if most > 0 else 0.0)
        # The shipped ranking's reasons are included already, in more detail than the base of the stages.
        why = {} if set(hit.why) == {"base"} else {Signal(name): round(value, 4) for name, value in hit.why.items()}
        items.append(replace(recalled, signals={**recalled.signals, **why}))
    return items


def _failed(task: asyncio.Task[TalkGraph]) -> bool:
    """Return whether the build failed; False while it runs. Only this function retrieves the exception."""
    return task.done() and (task.cancelled() or task.exception() is not None)


def _line(recalled: RecalledUtterance, zone: Zone) -> str:
    """Format a memory for a language model, with the day on the table's clock."""
    line = recalled_line(recalled)
    if recalled.at_ms is None:
        return line
    return f"{datetime.fromtimestamp(recalled.at_ms / 1_000, zone):%Y-%m-%d} {line}"


# -- second hop
#
# The second hop: words of the best turns lead to turns that share no word with the question.
#
# "Where does Tamsin's brother live?": one turn says that Joren is her brother, another where Joren lives. The link is a
# rare word, mostly a name: a word of the first hits that only few other turns contain.


_FIRST_HITS: Final = 3
_FEWEST, _MOST = 2, 6
"""A linking word must be in that many turns: a single one leads nowhere, and a common one everywhere."""


def with_second_hop(weights: RankingWeights) -> RankingWeights:
    """Return the same ranking with this signal, at the weight of any other. Measurements show no gain."""
    return replace(
        weights,
        by_words={**weights.by_words, Signal.SECOND_HOP: 1.0},
        by_words_and_meaning={**weights.by_words_and_meaning, Signal.SECOND_HOP: 1.0},
        extra={**weights.extra, Signal.SECOND_HOP: second_hop},
    )


def second_hop(index: TalkIndex, viewer: Viewer, asked: SearchTerms, seen: ViewSnapshot) -> NDArray[float32]:
    """Return the summed rarity of the words that lead to each turn, float32 of shape (n,)."""
    found = np.zeros(len(seen), float32)
    if not seen.matches:
        return found
    words = by_words(seen)
    hits = np.argpartition(-words, min(_FIRST_HITS, len(words) - 1))[:_FIRST_HITS]
    said = [index.said(int(seen.columns.rows[at])) for at in hits if words[at] > 0]
    terms = {term for one in said for term in index.terms.of_turn("", one.text)} - set(asked)
    for match in index.look(viewer, tuple(sorted(terms))).matches:
        if _FEWEST <= len(match.places) <= _MOST:
            places = match.places[match.places < len(seen)]  # the transcript may have grown since
            found[places] += rarity(match, len(seen))
    return found / np.float32(SCALE)
