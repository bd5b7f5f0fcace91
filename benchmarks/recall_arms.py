"""The ways in which the same questions are asked: the ladder of baselines, what is shipped, and that without a stage.

What can be switched off is what the ranking says: a stage that is new is measured without a word here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from benchmarks.recall_asking import (
    Ask,
    bm25,
    by_rank,
    by_rule,
    by_words,
    convex,
    meaning,
    shipped_recall,
    shipped_recall_nowait,
)
from benchmarks.recall_graph_arms import graph_arms
from benchmarks.recall_world import LoadedTalk
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.recall.ranking.ranking import STAGES
from glyphoxa.recall.ranking.second_hop import with_second_hop
from glyphoxa.recall.settings import RecallSettings

FULL: Final = "full"
LEXICAL: Final = "lexical"


def arms() -> dict[str, Callable[[LoadedTalk], Ask]]:
    """All that can be asked, by name; each is made when it is wanted, and has seen no question then."""
    shipped = RecallSettings()
    made: dict[str, Callable[[LoadedTalk], Ask]] = {
        "and": lambda talk: by_words(talk, "all"),
        "or": lambda talk: by_words(talk, "any"),
        "bm25": lambda talk: by_rule(talk, bm25, with_meaning=False),
        "dense": lambda talk: by_rule(talk, meaning),
        "rrf": lambda talk: by_rule(talk, by_rank),
        "convex": lambda talk: by_rule(talk, convex),
        FULL: lambda talk: shipped_recall(talk.recall_with(shipped)),
        LEXICAL: lambda talk: shipped_recall_nowait(talk.recall_with(shipped)),
    }
    for name, settings in without_a_stage(shipped).items():
        made[name] = lambda talk, settings=settings: shipped_recall(talk.recall_with(settings))  # type: ignore[misc]
    hop = replace(shipped, weights=with_second_hop(shipped.weights))
    made["+second-hop"] = lambda talk: shipped_recall(talk.recall_with(hop))
    return made | graph_arms()


def chosen(names: Sequence[str], there_are: Mapping[str, Any]) -> list[str]:
    """The names that were asked for, each once; "all" is all of them.

    Raises:
        InvalidInput: There is no such arm.
    """
    for name in names:
        if name != "all" and name not in there_are:
            raise InvalidInput(f"no arm {name!r}; {did_you_mean(name, ('all', *there_are))}")
    wanted = [*there_are] if "all" in names else names
    return list(dict.fromkeys(wanted))


def without_a_stage(shipped: RecallSettings) -> dict[str, RecallSettings]:
    """What is shipped with one stage switched off: signals of the ranking left out, or a switch turned."""
    found = {_name(stage): replace(shipped, weights=shipped.weights.without(stage)) for stage in STAGES}
    for field in fields(shipped):
        if getattr(shipped, field.name) is True:
            off: dict[str, Any] = {field.name: False}
            found[_name(field.name)] = replace(shipped, **off)
    return found


def _name(stage: str) -> str:
    return "no-" + stage.replace("_", "-")
