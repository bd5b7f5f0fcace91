"""One question asked in one way: through what is shipped, or by one rule of the ladder of baselines.

The ladder ranks by one rule each, over the index that is shipped: what separates two rungs is the rule.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.rank_fusion import fuse_ranks
from benchmarks.recall_data import WITNESS, Question, turn_id
from benchmarks.recall_figures import DEPTH
from benchmarks.recall_world import LoadedTalk
from glyphoxa.domain.recalled import Recalled, RecalledUtterance
from glyphoxa.recall.index.talk_index import ViewSnapshot
from glyphoxa.recall.recall import Recall
from glyphoxa.transcript.ports import TalkFilter, TalkQuery

Ask: TypeAlias = Callable[[Question], Awaitable[Sequence[str]]]
"""The ids of turns, best first, at most `DEPTH`."""
Scores: TypeAlias = NDArray[float32]

_K1: Final = 1.2
_B: Final = 0.75
_RRF_DEPTH: Final = 100


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


# -- the ladder


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
    return None if vectors is None else vectors[0]


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
    """Equal weights, k = 60 (Cormack, Clarke & Büttcher, 2009)."""
    rankings = []
    for scores in (bm25(seen), meaning(seen)):
        best = np.argsort(-scores, kind="stable")[:_RRF_DEPTH]
        rankings.append([int(at) for at in best if scores[at] > 0])
    fused = np.zeros(len(seen.columns), float32)
    for at, score in fuse_ranks(rankings):
        fused[at] = score
    return fused


def convex(seen: ViewSnapshot) -> Scores:
    """Half words, half meaning, each as a share of its best."""
    return 0.5 * _spread(bm25(seen)) + 0.5 * _spread(meaning(seen))


def _spread(scores: Scores) -> Scores:
    high = scores.max(initial=0.0)
    return scores / high if high > 0 else scores
