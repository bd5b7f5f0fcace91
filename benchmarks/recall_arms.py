"""Define the arms: baselines, the shipped ranking, and that without each stage.

Each baseline ranks by one rule, over the shipped index, so that only the rule differs. The stages that can be switched
off are those of the ranking, so a new stage is measured without a change here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.recall_data import WITNESS, Question, turn_id
from benchmarks.recall_world import LoadedTalk
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.knowledge import Recalled, RecalledUtterance, Signal
from glyphoxa.recall.ranking import RankingWeights
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.talk_index import ViewSnapshot
from glyphoxa.transcript.ports import TalkFilter, TalkQuery

Ask: TypeAlias = Callable[[Question], Awaitable[Sequence[str]]]
"""The ids of turns, best first, at most `DEPTH`."""
Scores: TypeAlias = NDArray[float32]

DEPTH: Final = 50
FULL: Final = "full"
LEXICAL: Final = "lexical"
_K1: Final = 1.2
_B: Final = 0.75
_RRF_DEPTH: Final = 100
_RRF_K: Final = 60


STAGES: Final[Mapping[str, tuple[Signal, ...]]] = {
    "meaning": (
        Signal.MEANING,
        Signal.MEANING_BEFORE,
        Signal.MEANING_AFTER,
        Signal.MEANING_ANSWERS,
        Signal.MEANING_NEAR,
    ),
    "neighbours": (Signal.LED_UP, Signal.MEANING_BEFORE, Signal.MEANING_AFTER, Signal.MEANING_NEAR),
    "answers": (Signal.ANSWERS, Signal.MEANING_ANSWERS, Signal.ASKS),
    "scene": (Signal.SCENE,),
    "speaker": (Signal.SPEAKER,),
    "traits": (Signal.TELLS_TIME,),
    "time": (Signal.TIME,),
}
"""Groups of signals that are switched off together."""


def arms() -> dict[str, Callable[[LoadedTalk], Ask]]:
    """Return all arms by name; each is made on demand, and has seen no question then."""
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
    return made


def chosen(names: Sequence[str], there_are: Mapping[str, Any]) -> list[str]:
    """Return the requested names, each once; "all" selects all.

    Raises:
        InvalidInput: There is no such arm.
    """
    for name in names:
        if name != "all" and name not in there_are:
            raise InvalidInput(f"no arm {name!r}; {did_you_mean(name, ('all', *there_are))}")
    wanted = [*there_are] if "all" in names else names
    return list(dict.fromkeys(wanted))


def without_a_stage(shipped: RecallSettings) -> dict[str, RecallSettings]:
    """Return the shipped settings with one stage switched off: without its signals, or with its switch off."""
    found = {_name(stage): replace(shipped, weights=_without(shipped.weights, stage)) for stage in STAGES}
    for field in fields(shipped):
        if getattr(shipped, field.name) is True:
            off: dict[str, Any] = {field.name: False}
            found[_name(field.name)] = replace(shipped, **off)
    return found


def _without(weights: RankingWeights, stage: str) -> RankingWeights:
    gone = STAGES[stage]
    return replace(
        weights,
        by_words={name: weight for name, weight in weights.by_words.items() if name not in gone},
        by_words_and_meaning={
            name: weight for name, weight in weights.by_words_and_meaning.items() if name not in gone
        },
    )


def _name(stage: str) -> str:
    return "no-" + stage.replace("_", "-")


# -- one question in one arm


def shipped_recall(recall: Recall) -> Ask:
    async def ask(question: Question) -> list[str]:
        return ids(question, await recall.recall(question.campaign, WITNESS, TalkQuery(question.text, limit=DEPTH)))

    return ask


def shipped_recall_nowait(recall: Recall) -> Ask:
    async def ask(question: Question) -> list[str]:
        return ids(
            question, recall.recall_nowait(question.campaign, WITNESS, TalkQuery(question.text, limit=DEPTH)) or ()
        )

    return ask


def ids(question: Question, recalled: Sequence[Recalled]) -> list[str]:
    return [turn_id(question.campaign, one.utterance_id) for one in recalled if isinstance(one, RecalledUtterance)]


def by_words(talk: LoadedTalk, match: Literal["any", "all"]) -> Ask:
    async def ask(question: Question) -> list[str]:
        found = await talk.store.talk_search.search(
            question.campaign, WITNESS, TalkFilter(question.text, match=match, limit=DEPTH)
        )
        return [turn_id(question.campaign, one.utterance.id) for one in found]

    return ask


def by_rule(talk: LoadedTalk, scores_of: Callable[[ViewSnapshot], Scores], *, with_meaning: bool = True) -> Ask:
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
    vector: NDArray[float32] = vectors[0]
    return vector


def bm25(seen: ViewSnapshot) -> Scores:
    """Robertson & Zaragoza, 2009, with the parameters of most engines."""
    n = len(seen.columns)
    scores = np.zeros(n, float32)
    norm = _K1 * (1 - _B + _B * seen.columns.lengths / max(seen.mean_length, 1.0))
    for match in seen.matches:
        idf = np.log1p((n - len(match.places) + 0.5) / (len(match.places) + 0.5))
        scores[match.places] += idf * match.counts * (_K1 + 1) / (match.counts + norm[match.places])
    return scores


def meaning(seen: ViewSnapshot) -> Scores:
    if seen.cosines is None:
        return np.zeros(len(seen.columns), float32)
    return np.maximum(np.nan_to_num(seen.cosines), 0).astype(float32)


def by_rank(seen: ViewSnapshot) -> Scores:
    """Reciprocal rank fusion with equal weights (Cormack, Clarke & Büttcher, 2009)."""
    fused = np.zeros(len(seen.columns), float32)
    for scores in (bm25(seen), meaning(seen)):
        best = np.argsort(-scores, kind="stable")[:_RRF_DEPTH]
        best = best[scores[best] > 0]
        fused[best] += (1 / (_RRF_K + np.arange(1, len(best) + 1))).astype(float32)
    return fused


def convex(seen: ViewSnapshot) -> Scores:
    """Add half of the word score and half of the meaning score, each relative to its best."""
    return 0.5 * _spread(bm25(seen)) + 0.5 * _spread(meaning(seen))


def _spread(scores: Scores) -> Scores:
    high = scores.max(initial=0.0)
    return scores / high if high > 0 else scores
