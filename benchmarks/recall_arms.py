"""The ways in which the same questions are asked: the ladder of baselines, what is shipped, and that without a stage.

What is switched off is taken from the weights themselves, so that a stage that is new is measured without a word here.
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
    shipped_reminder,
)
from benchmarks.recall_graph_arms import graph_arms
from benchmarks.recall_world import LoadedTalk
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.memory.recall.ranking import Weights
from glyphoxa.memory.recall.recall import RecallSettings

FULL: Final = "full"
LEXICAL: Final = "lexical"
_NO_STAGE: Final = frozenset(("k1", "b", "lexical"))
"""Weights that are no stage's: without them nothing is left to measure."""
_TOGETHER: Final = {"neighbours": ("near", "next_to_near")}
"""Weights that are one stage's."""


def arms_of(talk: LoadedTalk) -> dict[str, Callable[[], Ask]]:
    """All that can be asked, by name; each is made when it is wanted, and has seen no question then."""
    shipped = RecallSettings()
    made: dict[str, Callable[[], Ask]] = {
        "and": lambda: by_words(talk, "all"),
        "or": lambda: by_words(talk, "any"),
        "bm25": lambda: by_rule(talk, bm25, with_meaning=False),
        "dense": lambda: by_rule(talk, meaning),
        "rrf": lambda: by_rule(talk, by_rank),
        "convex": lambda: by_rule(talk, convex),
        FULL: lambda: shipped_recall(talk.recall_with(shipped)),
        LEXICAL: lambda: shipped_reminder(talk.recall_with(shipped)),
    }
    for name, settings in without_a_stage(shipped).items():
        made[name] = lambda settings=settings: shipped_recall(talk.recall_with(settings))  # type: ignore[misc]
    return made | graph_arms(talk)


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
    """What is shipped with one stage switched off: a switch turned, or a weight of nothing."""
    found: dict[str, RecallSettings] = {}
    for switch in _switches_on(shipped):
        off: dict[str, Any] = {switch: False}
        found[_name(switch)] = replace(shipped, **off)
    for stage, changes in stages_of(shipped.weights).items():
        found[_name(stage)] = replace(shipped, weights=replace(shipped.weights, **changes))
    return found


def stages_of(weights: Weights) -> dict[str, dict[str, Any]]:
    """By stage, the changes to the weights that switch it off; what is off has none."""
    single = [field.name for field in fields(weights) if field.name not in _NO_STAGE]
    for together in _TOGETHER.values():
        single = [name for name in single if name not in together]
    stages = {**_TOGETHER, **{name: (name,) for name in single}}
    off: dict[str, dict[str, Any]] = {}
    for stage, names in stages.items():
        values = {name: getattr(weights, name, None) for name in names}
        changes = {name: type(value)(0) for name, value in values.items() if isinstance(value, bool | int | float)}
        if any(values[name] for name in changes):
            off[stage] = changes
    return off


def _switches_on(settings: RecallSettings) -> list[str]:
    return [field.name for field in fields(settings) if getattr(settings, field.name) is True]


def _name(stage: str) -> str:
    return "no-" + stage.replace("_", "-")
