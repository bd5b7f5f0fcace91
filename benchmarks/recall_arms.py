"""The ways in which the same questions are asked: the ladder of baselines, what is shipped, and that without a stage.

The ladder ranks by one rule each, over the index that is shipped: what separates two rungs is the rule. What is
switched off is taken from the weights themselves, so that a stage that is new is measured without a word here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.recall_data import WITNESS, Question, turn_id
from benchmarks.recall_figures import DEPTH
from benchmarks.recall_world import LoadedTalk
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.fusion import fuse_ranks
from glyphoxa.memory.recall.ranking import Weights
from glyphoxa.memory.recall.recall import Recall, RecallSettings
from glyphoxa.memory.recall.talk_index import Seen

Ask: TypeAlias = Callable[[Question], Awaitable[Sequence[str]]]
"""The ids of turns, best first, at most `DEPTH`."""
Scores: TypeAlias = NDArray[float32]

FULL: Final = "full"
LEXICAL: Final = "lexical"
LADDER: Final = ("and", "or", "bm25", "dense", "rrf", "convex")
_K1: Final = 1.2
_B: Final = 0.75
_RRF_DEPTH: Final = 100
_NO_STAGE: Final = frozenset(("k1", "b", "lexical"))
"""Weights that are no stage's: without them nothing is left to measure."""
_TOGETHER: Final = {"neighbours": ("near", "next_to_near")}
"""Weights that are one stage's."""


def arms_of(talk: LoadedTalk) -> dict[str, Callable[[], Ask]]:
    """All that can be asked, by name; each is made when it is wanted, and has seen no question then."""
    shipped = RecallSettings()
    made: dict[str, Callable[[], Ask]] = {
        "and": lambda: _words(talk, "all"),
        "or": lambda: _words(talk, "any"),
        "bm25": lambda: _ladder(talk, _bm25, with_meaning=False),
        "dense": lambda: _ladder(talk, _meaning),
        "rrf": lambda: _ladder(talk, _by_rank),
        "convex": lambda: _ladder(talk, lambda seen: 0.5 * _spread(_bm25(seen)) + 0.5 * _spread(_meaning(seen))),
        FULL: lambda: shipped_recall(talk.recall_with(shipped)),
        LEXICAL: lambda: shipped_reminder(talk.recall_with(shipped)),
    }
    for name, settings in without_a_stage(shipped).items():
        made[name] = lambda settings=settings: shipped_recall(talk.recall_with(settings))  # type: ignore[misc]
    return made


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


def shipped_recall(recall: Recall) -> Ask:
    async def ask(question: Question) -> list[str]:
        return ids(question, await recall.recall(question.campaign, WITNESS, question.text, limit=DEPTH))

    return ask


def shipped_reminder(recall: Recall) -> Ask:
    async def ask(question: Question) -> list[str]:
        return ids(question, recall.remind(question.campaign, WITNESS, question.text, limit=DEPTH) or ())

    return ask


def ids(question: Question, recalled: Sequence[Recalled]) -> list[str]:
    return [turn_id(question.campaign, one.utterance_id) for one in recalled if one.utterance_id is not None]


# -- the ladder


def _words(talk: LoadedTalk, match: Literal["any", "all"]) -> Ask:
    async def ask(question: Question) -> list[str]:
        found = await talk.store.talk_search.search(question.campaign, WITNESS, question.text, match=match, limit=DEPTH)
        return [turn_id(question.campaign, one.utterance.id) for one in found]

    return ask


def _ladder(talk: LoadedTalk, scores_of: Callable[[Seen], Scores], *, with_meaning: bool = True) -> Ask:
    async def ask(question: Question) -> list[str]:
        index = talk.index(question.campaign)
        vector = await embedded(talk, question.text) if with_meaning else None
        seen = index.look(WITNESS, index.terms.of_question(question.text), vector)
        scores = scores_of(seen)
        best = np.argsort(-scores, kind="stable")[:DEPTH]
        rows = seen.columns.rows[best[scores[best] > 0]]
        return [turn_id(question.campaign, index.said(int(row)).utterance_id) for row in rows]

    return ask


async def embedded(talk: LoadedTalk, text: str) -> NDArray[float32] | None:
    if talk.questions.embedder is None:
        return None
    vectors = await talk.questions.embedder.embed_questions([text])
    return None if vectors is None else vectors[0]


def _bm25(seen: Seen) -> Scores:
    """Robertson & Zaragoza, 2009, with the parameters of most engines."""
    n = len(seen.columns)
    scores = np.zeros(n, float32)
    norm = _K1 * (1 - _B + _B * seen.columns.lengths / max(seen.mean_length, 1.0))
    for match in seen.matches:
        idf = np.log1p((n - len(match.places) + 0.5) / (len(match.places) + 0.5))
        scores[match.places] += idf * match.counts * (_K1 + 1) / (match.counts + norm[match.places])
    return scores


def _meaning(seen: Seen) -> Scores:
    if seen.cosines is None:
        return np.zeros(len(seen.columns), float32)
    return np.maximum(np.nan_to_num(seen.cosines), 0).astype(float32)


def _by_rank(seen: Seen) -> Scores:
    """Equal weights, k = 60 (Cormack, Clarke & Büttcher, 2009)."""
    rankings = []
    for scores in (_bm25(seen), _meaning(seen)):
        best = np.argsort(-scores, kind="stable")[:_RRF_DEPTH]
        rankings.append([int(at) for at in best if scores[at] > 0])
    fused = np.zeros(len(seen.columns), float32)
    for at, score in fuse_ranks(rankings):
        fused[at] = score
    return fused


def _spread(scores: Scores) -> Scores:
    high = scores.max(initial=0.0)
    return scores / high if high > 0 else scores


def _switches_on(settings: RecallSettings) -> list[str]:
    return [field.name for field in fields(settings) if getattr(settings, field.name) is True]


def _name(stage: str) -> str:
    return "no-" + stage.replace("_", "-")
