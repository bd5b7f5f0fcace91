"""Recall with more time: the shipped ranking, followed by the stages and methods of a memory graph.

With no stages and the method `hybrid`, the result is that of `Recall`. What an NPC did not witness is in none of it:
the ranking, the graph and the lines for a language model use its view only. The voice path never uses it. The tools of
an NPC of tier DEEP and `glyphoxa recall --method` do.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from loguru import logger
from numpy import int32
from numpy.typing import NDArray

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import open_asker
from glyphoxa.app.models import load_llama
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.calendar import Zone
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, FactId, NpcId
from glyphoxa.domain.knowledge import (
    Recalled,
    RecalledFact,
    RecalledSummary,
    RecalledUtterance,
    Signal,
    lines_of,
)
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.facts import spoken, why_known
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.relations import IN_ENGLISH, RelationWords
from glyphoxa.plugins.memory_graph.graph import TalkGraph, graph_of_view
from glyphoxa.plugins.memory_graph.pipeline import GraphQuestion, Recollection
from glyphoxa.plugins.memory_graph.recall_methods import LANGUAGE_MODEL, RERANK, GraphRecall
from glyphoxa.providers.registry import LLM, NONE, RECALL, build, runs_here
from glyphoxa.providers.registry import RERANK as RERANK_SECTION
from glyphoxa.recall.ranking import Ranked
from glyphoxa.recall.recall import NOTHING_ASKED, Recall, RecallResult
from glyphoxa.recall.signals import by_words, rarity, rarity_of_unsaid
from glyphoxa.recall.world import WorldSnapshot
from glyphoxa.transcript.ports import TalkQuery

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.openai_models import HttpReranker

_BASE: Final = 400
"""The best turns of the shipped ranking get a base score; the others get none."""
_LATEST: Final = 100
_LEAST: Final = 1e-6
_MOST_GRAPHS: Final = 8
"""Cached graphs; one of 10,000 turns takes 20 MB, most of it the turns' vectors."""


_LEAST_SHARE: Final = 0.35
"""A fact has a base score from this share of the question's words on, by rarity."""
_OF_FACTS: Final = 0.8
"""The base score of a fact with all words of the question; the best turn's is 1."""

_NO_WORLD: Final = WorldSnapshot({}, ())


class _Made(NamedTuple):
    """A graph, finished or being built, of rows of an index. No two states of any index have the same `changes`."""

    changes: int
    rows: NDArray[int32]
    world: WorldSnapshot
    graph: asyncio.Task[TalkGraph]

    @property
    def finished(self) -> TalkGraph | None:
        return self.graph.result() if self.graph.done() and not _failed(self.graph) else None

    def is_of(self, ranked: Ranked, world: WorldSnapshot) -> bool:
        """Return whether nothing has changed: no utterance, no fact, and none has begun or ended to hold."""
        is_same = self.changes == ranked.changes and self.world is world and not _failed(self.graph)
        is_over = self.finished is not None and self.finished.known.until_ms <= now_ms()
        return is_same and not is_over and np.array_equal(self.rows, ranked.seen.columns.rows)


@dataclass(eq=False, repr=False)
class DeepRecall:
    """
    Args:
        ranking: The ranking to start from.
        knowledge: Facts and links of a campaign. None: the graph is of talk only.
        words: Words facts.
        always_injected: Types of entities that are in each prompt. Facts about them are not recalled.
        settings: The method, and the active stages.
        llm: The language model, for methods that use one.
        reranker: For the method that reranks.
        deadline_ms: For one question. Without the graph by then, the result is the ranking. A late language model
            leaves what it has chosen so far, or the ranking.
        recent: Returns the utterances that an NPC heard last, oldest first, each with its speaker; a language model
            receives the end.
        world: Returns an NPC's standing knowledge of itself and of the world, for a language model.

    Raises:
        InvalidInput: The method needs a model that is not set.
    """

    ranking: Recall
    _: KW_ONLY
    knowledge: Store | None = None
    words: RelationWords = IN_ENGLISH
    always_injected: Collection[str] = ()
    settings: MemoryGraphSettings = field(default_factory=MemoryGraphSettings)
    llm: ModelAsker | None = None
    reranker: HttpReranker | None = None
    deadline_ms: int | None = None
    recent: Callable[[NpcId], Sequence[str]] = lambda _: ()
    world: Callable[[NpcId], str] = lambda _: ""
    _has_failed: bool = field(default=False, init=False)
    _made: OrderedDict[tuple[CampaignId, NpcId], _Made] = field(default_factory=OrderedDict, init=False)

    def __post_init__(self) -> None:
        by = self.settings.searches_by
        if self.settings.asks_a_model and self.llm is None:
            raise InvalidInput(f"recall by {by} needs a language model; valid without one: hybrid")
        if by == "hybrid_rerank" and self.reranker is None:
            raise InvalidInput(f"recall by {by} needs recall.rerank, which is not set; valid without: hybrid")

    async def recall(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = False
    ) -> Sequence[Recalled]:
        """See `Recall.recall`. A failure of a model is logged once until a success."""
        found = await self.search(campaign, npc, query, patient=patient)
        why = next((part for part in found.left_out if part.startswith((LANGUAGE_MODEL, RERANK))), "")
        if why and not self._has_failed:
            logger.warning("recall by {} falls back to words and meaning: {}", self.settings.searches_by, why)
        self._has_failed = bool(why)
        return found.items

    async def search(
        self, campaign: CampaignId, npc: NpcId, query: TalkQuery, *, patient: bool = True
    ) -> RecallResult[Recalled]:
        """Return what an NPC witnessed or knows that bears on a question, the most helpful first.

        Args:
            query: A reranker or a filtering language model receives more than its limit.

        Raises:
            Unavailable: See `Recall.recall`.
        """
        now = asyncio.get_running_loop().time()
        until = None if self.deadline_ms is None else now + self.deadline_ms / 1_000
        left_out: list[str] = []
        ranked = await self.ranking.ranked(campaign, npc, query, left_out=left_out, patient=patient)
        if ranked is None or query.limit <= 0:
            return NOTHING_ASKED
        try:
            async with asyncio.timeout_at(until):
                graph = await self._graph(campaign, npc, ranked)
        except (TimeoutError, Unavailable) as error:
            left_out.append(f"memory graph: {str(error) or 'not ready in time'}")
            items: list[Recalled] = [*ranked.items(query.limit)]
        else:
            # Filtering or reordering starts from more than the wanted results.
            second_look = self.settings.searches_by in ("hybrid_llm", "hybrid_rerank")
            most = max(query.limit, self.settings.max_results) if second_look else query.limit
            results = _Results(graph, ranked)
            recalling = GraphRecall(
                graph,
                lambda at: _line(results.recalled(at), ranked.question.times.zone),
                self.settings.model_copy(update={"max_results": most}),
                self.reranker,
                self.llm,
                until,
                ranked.index.terms.language,
            )
            asked, recent, world = _asked(graph, ranked), self.recent(npc), self.world(npc)
            found = await recalling.recall(asked, query.text, recent=recent, world=world)
            left_out += found.left_out
            items = [*results.of(found, await self._known(campaign, npc, graph))][: query.limit]
        talk = [one for one in items if not isinstance(one, RecalledFact)]
        told = await self.ranking.recaps.before(talk, ranked, campaign, npc, left_out=left_out)
        return RecallResult(tuple(items if told is talk else told), tuple(left_out))

    async def _world(self, campaign: CampaignId) -> WorldSnapshot:
        return _NO_WORLD if self.knowledge is None else await self.knowledge.snapshot(campaign)

    async def _known(self, campaign: CampaignId, npc: NpcId, graph: TalkGraph) -> Collection[FactId]:
        """Return the facts that an NPC still knows: something may have been hidden while a model was asked."""
        if not graph.facts:
            return ()
        try:
            world = await self._world(campaign)
        except Unavailable:
            return {fact.id for fact in graph.known.facts}
        known = await asyncio.to_thread(world.known_to, npc, now_ms())
        return {fact.id for fact in known.facts}

    async def _graph(self, campaign: CampaignId, npc: NpcId, ranked: Ranked) -> TalkGraph:
        """Build a graph once for all callers. A caller that cannot wait leaves it for later ones.

        Raises:
            Unavailable: The database cannot be reached in time.
        """
        whose, world = (campaign, npc), await self._world(campaign)
        made = self._made.get(whose)
        if made is None or not made.is_of(ranked, world):
            task = asyncio.create_task(self._build(whose, ranked, world, None if made is None else made.finished))
            task.add_done_callback(_failed)
            made = self._made[whose] = _Made(ranked.changes, ranked.seen.columns.rows, world, task)
        self._made.move_to_end(whose)
        while len(self._made) > _MOST_GRAPHS:
            self._made.popitem(last=False)
        return await asyncio.shield(made.graph)

    async def _build(
        self, whose: tuple[CampaignId, NpcId], ranked: Ranked, world: WorldSnapshot, before: TalkGraph | None
    ) -> TalkGraph:
        """Build a graph in a thread. See `docs/measurements.md` for how long it takes."""
        links = () if self.knowledge is None else await self.knowledge.links(*whose)
        known = partial(world.known_to, whose[1], now_ms())
        build = partial(graph_of_view, ranked.index, ranked.seen.columns, known, links=links, before=before)
        return await asyncio.to_thread(build, words=self.words, always_injected=self.always_injected)

    async def close(self) -> None:
        """Cancel the work in progress; the owner of the ranking closes it."""
        graphs = [made.graph for made in self._made.values()]
        self._made.clear()
        await asyncio.gather(*graphs, return_exceptions=True)


def _asked(graph: TalkGraph, ranked: Ranked) -> GraphQuestion:
    """Convert the question for the graph.

    A turn that must not be returned is not recallable, but may still lead to others.
    """
    seen, turns = ranked.seen, slice(graph.n_turns)
    base, lexical, cosines = np.zeros(len(graph)), np.zeros(len(graph)), np.zeros(len(graph))
    level = 1.0
    for at, score in ranked.best(_BASE):
        # The shipped order may put a lower score first; the stages start from its order.
        level = max(_LEAST, min(score, level - _LEAST))
        base[at] = level
    lexical[turns] = by_words(seen)
    vector = ranked.question.vector
    if vector is not None:
        cosines = graph.cosines(vector)
    if seen.cosines is not None:
        cosines[turns] = seen.cosines
    among = graph.recallable.copy()
    among[turns] &= ranked.may_be_told
    among[_the_question(ranked)] = False
    for node, fact in graph.facts.items():
        source, turns_of = fact.fact.provenance, list(fact.turns)
        is_new = bool(ranked.may_be_told[turns_of].any()) if turns_of else not ranked.query.speaker
        among[node] &= is_new and ranked.query.admits_time(source.session_id, source.at_ms)
    asked, rarities = 0.0, np.zeros(len(graph))
    for term in ranked.question.terms:
        matches = ranked.index.look(ranked.viewer, (term,)).matches
        rare = rarity(matches[0], len(seen)) if matches else rarity_of_unsaid(len(seen))
        asked += rare
        rarities[graph.postings.get(term, [])] += rare
    lexical += rarities
    share = rarities / asked if asked else rarities
    base += np.where(share >= _LEAST_SHARE, _OF_FACTS * share, 0.0)
    return GraphQuestion(base, lexical, cosines, vector, graph.anchors(ranked.question.text), among)


def _the_question(ranked: Ranked) -> list[int]:
    """Return the question's own place in the log: among the latest turns, or among those with all its words."""
    seen, asked = ranked.seen, ranked.question.terms
    places = set(range(max(0, len(seen) - _LATEST), len(seen)))
    if seen.matches and len(seen.matches) == len(asked):
        places |= set.intersection(*(set(match.places.tolist()) for match in seen.matches))
    return [at for at in places if ranked.is_the_question(at)]


@dataclass(frozen=True, slots=True)
class _Results:
    """Presents nodes of a graph as what an NPC recalls."""

    graph: TalkGraph
    ranked: Ranked

    def of(self, found: Recollection, known: Collection[FactId]) -> Iterator[Recalled]:
        """Yield the hits, without facts that are not known any more."""
        most = max((hit.score for hit in found.hits), default=0.0)
        texts: set[str] = set()
        for hit in found.hits:
            fact = self.graph.facts.get(hit.node)
            if fact is not None and (fact.fact.id not in known or fact.text in texts):
                continue  # a node may sum up another with the same words
            texts |= set() if fact is None else {fact.text}
            recalled = self.recalled(hit.node, score=hit.score / most if most > 0 else 0.0)
            # The shipped ranking's reasons are included already, in more detail than the base of the stages.
            why = {} if set(hit.why) == {"base"} else {Signal(name): round(value, 4) for name, value in hit.why.items()}
            if isinstance(recalled, RecalledUtterance):
                yield replace(recalled, signals={**recalled.signals, **why})
                continue
            reasons = ", ".join(f"{name} {value:.2f}" for name, value in hit.why.items())
            if isinstance(recalled, RecalledFact):
                yield replace(recalled, path=reasons)
            else:
                yield replace(recalled, reason=f"{recalled.reason}; {reasons}")

    def recalled(self, node: int, *, score: float = 1.0) -> Recalled:
        if (found := self.graph.facts.get(node)) is None:
            return self.ranked.recalled(node, score=score)
        fact, source = found.fact, found.fact.provenance
        if found.is_summary and source.session_id is not None:
            reason = f"summary of session {source.session_id}"
            return RecalledSummary(source.session_id, spoken(fact), source.at_ms, score, reason, lines_of(fact))
        why = why_known(fact.visibility, NpcId(str(self.ranked.viewer)), session=source.session_id)
        return RecalledFact(fact.id, found.text, source.session_id, source.utterance_id, source.at_ms, score, why)


def _failed(task: asyncio.Task[TalkGraph]) -> bool:
    """Return whether the build failed; False while it runs. Only this function retrieves the exception."""
    return task.done() and (task.cancelled() or task.exception() is not None)


def _line(recalled: Recalled, zone: Zone) -> str:
    """Format a memory for a language model, with the day on the table's clock."""
    line = recalled_line(recalled)
    if recalled.at_ms is None:
        return line
    return f"{datetime.fromtimestamp(recalled.at_ms / 1_000, zone):%Y-%m-%d} {line}"


# Opening: how NPCs of tier DEEP search their memory, as configured.


_LOCAL_RECALL: Final = {"llm_lines": 16, "llm_rounds": 2}
"""A slot of the local model holds 2,048 tokens, and it reads about 50 a second."""


async def open_deep_recall(
    settings: Settings,
    store: Store,
    campaign: Campaign,
    stack: AsyncExitStack,
    *,
    llama: LlamaServer | None = None,
    **asked: Any,
) -> DeepRecall:
    """Open recall with the configured stages and language model. `stack` closes it; nothing is downloaded.

    Args:
        llama: The model that runs here. None: it is loaded if the method needs it.
        asked: `deadline_ms`, `recent` and `world` of `DeepRecall`.

    Raises:
        InvalidInput: See `open_asker`; or the method needs something unavailable.
        NotFound: The local model's weights are missing.
        Corrupt: They are damaged.
    """
    chosen = settings.recall.model_copy(update={"method": settings.recall.searches_by})
    llm: ModelAsker | None = None
    if chosen.asks_a_model:
        is_local = runs_here(RECALL, chosen.llm.name)
        if llama is None and is_local and runs_here(LLM, settings.providers.llm.name):
            llama = await load_llama(settings, stack)
        llm = replace(open_asker(settings, stack, kind=RECALL, llama=llama), forbids=topics_of(campaign).forbids)
        if is_local:
            unset = {
                name: value for name, value in _LOCAL_RECALL.items() if name not in settings.recall.model_fields_set
            }
            chosen = chosen.model_copy(update=unset)
    reranker: HttpReranker | None = None
    if chosen.method == "hybrid_rerank" and chosen.rerank.name != NONE:
        reranker = build(chosen.rerank, section=RERANK_SECTION)
        stack.push_async_callback(reranker.close)
    deep = DeepRecall(
        store.past_talk,
        knowledge=store,
        words=RelationWords.of(campaign),
        always_injected=campaign.schema.always_injected(),
        settings=chosen,
        llm=llm,
        reranker=reranker,
        **asked,
    )
    stack.push_async_callback(deep.close)
    return deep
