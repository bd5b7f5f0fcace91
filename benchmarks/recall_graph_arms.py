"""The memory graph's stages, each alone over what is shipped: what it is worth decides whether it is on.

An arm "+dpp" is the shipped ranking with that one stage behind it, "+graph" with all that are documented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.recall_arms import DEPTH, Ask, ids
from benchmarks.recall_data import WITNESS, Question
from benchmarks.recall_world import LoadedTalk
from glyphoxa.experimental.deep import DeepRecall
from glyphoxa.experimental.graph.settings import STAGES, GraphRecallSettings
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
    """By name."""
    off = GraphRecallSettings()
    stages = {_SHORT.get(stage, stage.replace("_", "-")): off.with_stages(stage) for stage in STAGES}
    stages["graph"] = off.with_stages(*STAGES)
    return {
        f"+{name}": lambda talk, settings=settings: _asking(talk, settings)  # type: ignore[misc]
        for name, settings in stages.items()
    }


def _asking(talk: LoadedTalk, settings: GraphRecallSettings) -> Ask:
    deep = DeepRecall(talk.recall_with(RecallSettings()), settings=settings)

    async def ask(question: Question) -> list[str]:
        found = await deep.recall(question.campaign, WITNESS, TalkQuery(question.text, limit=DEPTH))
        return ids(question, found.items)

    return ask
