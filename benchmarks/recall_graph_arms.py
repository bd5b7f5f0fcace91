"""The memory graph's stages, each alone over what is shipped: what it is worth decides whether it is on (C-43).

The shipped ranking is the graph's base; its nodes are the turns and the names that stand in them. An arm "+dpp" is what
is shipped with that one stage behind it, "+graph" with all that are documented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.recall_asking import Ask, bm25
from benchmarks.recall_data import WITNESS, Question, turn_id
from benchmarks.recall_figures import DEPTH
from benchmarks.recall_world import LoadedTalk
from glyphoxa.domain.ids import CampaignId, UtteranceId
from glyphoxa.memory.recall.graph.question import GraphQuestion
from glyphoxa.memory.recall.graph.recall import recall
from glyphoxa.memory.recall.graph.settings import STAGES, GraphRecallSettings
from glyphoxa.memory.recall.graph.talk_graph import TalkGraph, graph_of_talk
from glyphoxa.memory.recall.recall import Recall, RecallSettings
from glyphoxa.speech.language.words import words

_SHORT: Final = {
    "vector_prefilter": "prefilter",
    "diffusion": "pedsa",
    "hybrid_score": "hybrid",
    "topics": "nmf",
    "residual": "fista",
    "diversity": "dpp",
    "per_type_cap": "cap",
}
_LEAST: Final = 1e-6
_BASE: Final = 400
"""So many of the shipped ranking are its say; the others have none."""


def graph_arms(talk: LoadedTalk) -> dict[str, Callable[[], Ask]]:
    """By name; the graphs are built with the first question of each campaign, once for all arms."""
    graphs = _Graphs(talk)
    plain = replace(GraphRecallSettings(), max_results=DEPTH)
    made: dict[str, Callable[[], Ask]] = {}
    for stage in STAGES:
        settings = plain.with_stages(stage)
        made["+" + _SHORT.get(stage, stage.replace("_", "-"))] = lambda s=settings: _asking(talk, graphs, s)  # type: ignore[misc]
    documented = replace(GraphRecallSettings.documented(), max_results=DEPTH)
    made["+graph"] = lambda: _asking(talk, graphs, documented)
    return made


def _asking(talk: LoadedTalk, graphs: _Graphs, settings: GraphRecallSettings) -> Ask:
    shipped: Recall = talk.recall_with(RecallSettings())
    vectors: dict[str, NDArray[float32]] = {}  # what was asked before is not embedded again

    async def ask(question: Question) -> list[str]:
        talk.questions.take_last()
        found = await shipped.recall(question.campaign, WITNESS, question.text, limit=_BASE)
        nodes = graphs.of(question.campaign)
        base = np.zeros(len(nodes.of_talk.graph))
        level = 1.0
        for one in found:
            if one.utterance_id in nodes.places:
                # What is shipped may put a lower score first; its order is what the stages start from.
                level = max(_LEAST, min(one.score, level - _LEAST))
                base[nodes.places[one.utterance_id]] = level
        if not base.any():
            return []
        if (vector := talk.questions.take_last()) is not None:
            vectors[question.text] = vector
        asked = graphs.question(question, base, vectors.get(question.text))
        hits = recall(nodes.of_talk.graph, asked, settings).hits
        return [turn_id(question.campaign, hit.id) for hit in hits[:DEPTH]]

    return ask


@dataclass(frozen=True, slots=True)
class _Nodes:
    """
    Attributes:
        places: Of each turn's node.
    """

    of_talk: TalkGraph
    places: dict[UtteranceId, int]


class _Graphs:
    def __init__(self, talk: LoadedTalk) -> None:
        self._talk = talk
        self._made: dict[CampaignId, _Nodes] = {}

    def of(self, campaign: CampaignId) -> _Nodes:
        if campaign not in self._made:
            self._made[campaign] = self._build(campaign)
        return self._made[campaign]

    def question(self, question: Question, base: NDArray[np.float64], vector: NDArray[float32] | None) -> GraphQuestion:
        """What the stages are given besides the base ranking."""
        nodes, index = self.of(question.campaign), self._talk.index(question.campaign)
        seen = index.look(WITNESS, index.terms.of_question(question.text), vector)
        n_names = len(nodes.of_talk.graph) - nodes.of_talk.n_turns
        cosines = np.zeros(len(seen.columns)) if seen.cosines is None else seen.cosines
        return GraphQuestion(
            vector=vector,
            anchors=nodes.of_talk.anchors(question.text),
            among=nodes.of_talk.is_turn,
            cosines=np.concatenate((cosines, np.zeros(n_names))),
            lexical=np.concatenate((bm25(seen), np.zeros(n_names))),
            base=base,
        )

    def _build(self, campaign: CampaignId) -> _Nodes:
        index = self._talk.index(campaign)
        columns = index.look(WITNESS, index.terms.of_question("")).columns
        said = [index.said(int(row)) for row in columns.rows]
        vectors = index.vectors_at(columns, range(len(columns)))
        graph = graph_of_talk(
            [one.utterance_id for one in said],
            [set(index.terms.stems(one.text)) for one in said],
            [[one.speaker_name, *_names_in(one.text)] for one in said],
            sessions=columns.sessions.astype(np.int64),
            vectors=vectors if vectors.any() else None,
        )
        return _Nodes(graph, {one.utterance_id: place for place, one in enumerate(said)})


def _names_in(text: str) -> list[str]:
    """What is written like a name inside a sentence."""
    return [word.text for word in words(text) if word.is_capital and not word.opens and len(word.folded) > 1]
