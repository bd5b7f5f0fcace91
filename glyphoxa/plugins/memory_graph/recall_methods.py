"""Recall by the pipeline, by a language model, or by both.

    hybrid         the pipeline alone
    hybrid_rerank  its hits, reordered by a reranker: .4 * algorithm + .6 * reranker (memory graph document)
    hybrid_llm     its hits, filtered by a language model
    llm            a language model selects, and may ask for the neighbours of what it sees, for some rounds

If a model or a reranker fails, is late, or returns nonsense, the pipeline's hits stay, and the failure is reported.

Memories are data: the model receives them numbered in the last message, and whatever they say, it can return only their
numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy import bool_, float64
from numpy.typing import NDArray

from glyphoxa.actors.deadline import answered_within
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import ModelAnswer, ModelQuestion, Unparseable
from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.domain.errors import GlyphoxaError, Unavailable
from glyphoxa.language.language_data import texts
from glyphoxa.language.prompt_quotes import in_one_line
from glyphoxa.language.sentences import shortened
from glyphoxa.plugins.memory_graph.graph import MemoryGraph
from glyphoxa.plugins.memory_graph.pipeline import GraphQuestion, Hit, Recollection, recall
from glyphoxa.plugins.memory_graph.stages import best

if TYPE_CHECKING:
    from glyphoxa.adapters.openai_models import HttpReranker

_ALGORITHM: Final = 0.4
_RERANKER: Final = 0.6
LANGUAGE_MODEL: Final = "language model"
RERANK: Final = "rerank"
"""Reported as missing when it fails."""

_LONGEST_LINE: Final = 300


class MemoriesChosen(ModelAnswer):
    """An answer of a model: numbers of memories that help, and of those whose neighbours it wants to see."""

    chosen: list[int]
    open: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class GraphRecall:
    """Recall over one viewer's memory graph, by the method of the settings.

    Attributes:
        text_of: Returns the text of a node for a model.
        reranker, llm: For the methods that use one.
        language: BCP 47 tag of the campaign.
        until: Deadline on the event loop's clock; None: as long as the settings allow.
    """

    graph: MemoryGraph
    text_of: Callable[[int], str]
    settings: MemoryGraphSettings = field(default_factory=MemoryGraphSettings)
    reranker: HttpReranker | None = None
    llm: ModelAsker | None = None
    until: float | None = None
    language: str = "en"

    async def recall(
        self, question: GraphQuestion, text: str, *, recent: Sequence[str] = (), world: str = ""
    ) -> Recollection:
        """
        Args:
            question: For the pipeline.
            text: The question in words.
            recent: The preceding utterances, oldest first, each with its speaker.
            world: Lasting notes on the world.
        """
        settings = self.settings
        found = recall(self.graph, question, settings)
        text = text[-settings.max_query_chars :]  # the last words matter most
        if settings.searches_by == "hybrid_rerank" and self.reranker is not None:
            return await self._reranked(found, text, self.reranker)
        if not settings.asks_a_model or self.llm is None:
            return found
        visible = recent[max(0, len(recent) - settings.visible_recent_messages) :]
        known = world.strip() if settings.include_world_info else ""
        worded = partial(self.question, text, recent=visible, world=known)
        return await self._selected(question, found, self.llm, worded)

    def question(
        self, text: str, lines: Sequence[str], *, recent: Sequence[str] = (), world: str = "", may_open: bool = False
    ) -> ModelQuestion[MemoriesChosen]:
        """Return the request to the model. Numbers count from 1; a memory is one line, cut if it is long.

        Args:
            may_open: Whether there is another round, in which neighbours can be shown.
        """
        prompt, parts = texts("tasks", self.language).value("deep_recall"), []
        if world:
            parts += [prompt["world"], world]
        if recent:
            parts += [prompt["before"], *(shortened(in_one_line(line), _LONGEST_LINE) for line in recent)]
        parts.append(prompt["memories"])
        parts += [f"{n}. {shortened(in_one_line(line), _LONGEST_LINE)}" for n, line in enumerate(lines, start=1)]
        if not may_open:
            parts.append(prompt["last_round"])
        parts.append(prompt["question"].format(text=in_one_line(text)))
        return ModelQuestion(MemoriesChosen, prompt["system"], "\n".join(parts))

    async def _reranked(self, found: Recollection, text: str, reranker: HttpReranker) -> Recollection:
        """Return the same hits, ordered by algorithm and reranker, both scaled from 0 to 1.

        Equal hits keep their order. With fewer than two hits the reranker is not asked.
        """
        hits = found.hits
        if len(hits) < 2:
            return found
        try:
            async with answered_within(self._left_ms(self.settings.rerank_deadline_ms), "it did not answer"):
                opinions = np.asarray(await reranker.rerank(text, [self.text_of(hit.node) for hit in hits]), float64)
        except Exception as error:  # a second opinion is never worth a turn
            return found.without(RERANK, error if isinstance(error, GlyphoxaError) else repr(error))
        if opinions.shape != (len(hits),) or not np.isfinite(opinions).all():
            return found.without(RERANK, f"it gave no number to each of {len(hits)} texts")
        algorithm, opinions = _from_0_to_1(np.array([hit.score for hit in hits])), _from_0_to_1(opinions)
        final = _ALGORITHM * algorithm + _RERANKER * opinions
        reordered = []
        for at in np.argsort(-final, kind="stable"):
            why = {**hits[at].why, "algorithm": float(algorithm[at]), "reranker": float(opinions[at])}
            reordered.append(replace(hits[at], score=float(final[at]), why=why))
        return replace(found, hits=tuple(reordered))

    async def _selected(
        self,
        question: GraphQuestion,
        found: Recollection,
        llm: ModelAsker,
        worded: Callable[..., ModelQuestion[MemoriesChosen]],
    ) -> Recollection:
        """Run rounds in which the model sees nodes and may ask for the neighbours of some; one round to filter hits.

        No node is shown twice. Chosen nodes stay chosen, in the order of choice.

        Args:
            worded: Returns the request to the model for the texts of nodes; see `question`.
        """
        settings, rounds, start = self.settings, 1, found
        may_be_recalled = question.recallable(self.graph, settings)
        latest: list[int] = []
        if settings.searches_by == "llm":
            rounds = settings.llm_rounds
            start = recall(self.graph, question, settings.model_copy(update={"max_results": settings.llm_lines}))
            # The latest mentions fill up the first round, and are all of it if the pipeline finds nothing.
            active, among = self.graph.last_active.astype(float64), np.flatnonzero(may_be_recalled)
            latest = best(active, among, most=settings.llm_lines, ties=self.graph.ties).tolist()
        hits = {hit.node: hit for hit in start.hits}
        shown = [*hits, *(node for node in latest if node not in hits)][: max(len(hits), settings.llm_lines)]
        seen = set(shown)
        chosen: dict[int, int] = {}
        for round_ in range(1, rounds + 1):
            if not shown:
                break
            request = worded([self.text_of(node) for node in shown], may_open=round_ < rounds)
            try:
                deadline_ms = self._left_ms(settings.llm_deadline_ms)
                answer = await llm.ask(request, deadline_ms=deadline_ms, check=partial(picked_in, shown=shown))
                picked, opened = picked_in(answer, shown)
            except GlyphoxaError as error:
                found = found.without(LANGUAGE_MODEL, error)
                if not chosen:
                    return found
                break
            chosen |= {node: round_ for node in picked if node not in chosen}
            nearest = (near for node in opened for near in self._neighbours(node, may_be_recalled))
            shown = [*dict.fromkeys(node for node in nearest if node not in seen)][: settings.llm_lines]
            seen.update(shown)
        unranked = {node: Hit(node, self.graph.ids[node], 0.0) for node in chosen}
        picks = [(unranked | hits)[node] for node in chosen]
        picks = [replace(hit, why={**hit.why, "round": float(chosen[hit.node])}) for hit in picks]
        return replace(found, hits=tuple(picks[: settings.max_results]))

    def _neighbours(self, node: int, may_be_recalled: NDArray[bool_]) -> Iterator[int]:
        """Return recallable nodes next to a node, then those after unrecallable ones, as turns are linked through a
        name.
        """
        edges = self.graph.edges(self.settings)
        direct = edges.neighbours(node)
        behind = (far for near in direct if not may_be_recalled[near] for far in edges.neighbours(near))
        return (near for near in (*direct, *behind) if may_be_recalled[near] and near != node)

    def _left_ms(self, deadline_ms: int) -> int:
        """Return the remaining milliseconds, at most those of the deadline.

        Raises:
            Unavailable: There are none.
        """
        if self.until is not None:
            deadline_ms = min(deadline_ms, int((self.until - asyncio.get_running_loop().time()) * 1_000))
        if deadline_ms <= 0:
            raise Unavailable("no time was left to ask it")
        return deadline_ms


def picked_in(answer: MemoriesChosen, shown: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the shown nodes that a model picked, the most helpful first, and those whose neighbours it asks for.

    Raises:
        Unparseable: A number is that of no shown node.
    """
    if not all(1 <= number <= len(shown) for number in (*answer.chosen, *answer.open)):
        raise Unparseable(f"the model's answer contains numbers that are not from 1 to {len(shown)}")
    chosen, opened = ([shown[number - 1] for number in dict.fromkeys(one)] for one in (answer.chosen, answer.open))
    return chosen, opened


def _from_0_to_1(values: NDArray[float64]) -> NDArray[float64]:
    low, high = values.min(), values.max()
    return np.ones_like(values) if high == low else (values - low) / (high - low)
