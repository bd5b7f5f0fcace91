"""Define an arm for each stage of the memory graph on top of the shipped ranking.

A stage is on by default only if it wins.

An arm "+dpp" is the shipped ranking followed by that stage, "+graph" by all documented ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from benchmarks.recall_arms import DEPTH, Ask, ids
from benchmarks.recall_data import WITNESS, Question
from benchmarks.recall_world import LoadedTalk
from glyphoxa.memory_graph.deep_recall import DeepRecall
from glyphoxa.memory_graph.settings import SECOND_HOP, MemoryGraphSettings, RecallStage
from glyphoxa.recall.recall import RecallSettings
from glyphoxa.transcript.ports import TalkQuery

_SHORT: Final = {
    "vector_prefilter": "prefilter",
    "diffusion": "pedsa",
    "hybrid_score": "hybrid",
    "topics": "nmf",
    "residual": "fista",
    "diversity": "dpp",
    "per_type_cap": "cap",
}


def graph_arms() -> dict[str, Callable[[LoadedTalk], Ask]]:
    """Return the arms by name."""
    of_graph = [stage for stage in get_args(RecallStage) if stage != SECOND_HOP]
    stages = {_SHORT.get(stage, stage.replace("_", "-")): MemoryGraphSettings(stages=(stage,)) for stage in of_graph}
    stages["graph"] = MemoryGraphSettings(stages=tuple(of_graph))
    return {
        f"+{name}": lambda talk, settings=settings: _asking(talk, settings)  # type: ignore[misc]
        for name, settings in stages.items()
    }


def _asking(talk: LoadedTalk, settings: MemoryGraphSettings) -> Ask:
    deep = DeepRecall(talk.recall_with(RecallSettings()), settings=settings)

    async def ask(question: Question) -> list[str]:
        found = await deep.recall(question.campaign, WITNESS, TalkQuery(question.text, limit=DEPTH))
        return ids(question, found.items)

    return ask
