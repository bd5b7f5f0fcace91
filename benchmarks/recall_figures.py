"""Figures of rankings: how much of the evidence stands among the first, and how sure a difference is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from benchmarks.recall_data import Question

DEPTH: Final = 50
"""The reciprocal rank is looked for among so many; further down it is 0."""
SHOWN: Final = 20
RESAMPLES: Final = 2_000
SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Answer:
    """How one question was answered.

    Attributes:
        ranked: Ids of turns, best first, at most `DEPTH`.
        ms: What it took.
    """

    question: Question
    ranked: tuple[str, ...]
    ms: float = 0.0

    def recall_at(self, k: int) -> float:
        """Share of the evidence among the first `k`."""
        return len(set(self.ranked[:k]).intersection(self.question.evidence)) / len(self.question.evidence)

    @property
    def reciprocal_rank(self) -> float:
        return 1 / self.first_rank if self.first_rank else 0.0

    @property
    def first_rank(self) -> int | None:
        """Of the first evidence, from 1."""
        evidence = set(self.question.evidence)
        return next((rank for rank, id_ in enumerate(self.ranked, start=1) if id_ in evidence), None)

    @property
    def is_missed(self) -> bool:
        """No evidence among the first ten."""
        return self.first_rank is None or self.first_rank > 10


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Percentages, in the mean over the questions; the same of each category."""
    by_category: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_category[answer.question.category].append(answer)
    return {
        **quality(answers),
        "by_category": {category: quality(found) for category, found in sorted(by_category.items())},
        **times(answer.ms for answer in answers),
    }


def quality(answers: Sequence[Answer]) -> dict[str, float]:
    """Empty but for the number when nothing was asked."""
    n: dict[str, float] = {"questions": len(answers)}
    if not answers:
        return n
    return n | {
        **{f"r{k}": _percent(answer.recall_at(k) for answer in answers) for k in (5, 10, 20)},
        "mrr": _percent(answer.reciprocal_rank for answer in answers),
        "hit10": _percent(not answer.is_missed for answer in answers),
    }


def times(ms: Iterable[float], *, prefix: str = "") -> dict[str, float]:
    taken = np.fromiter(ms, float64)
    if not len(taken):
        return {}
    p50, p95 = np.percentile(taken, [50, 95])
    return {f"{prefix}p50_ms": round(float(p50), 3), f"{prefix}p95_ms": round(float(p95), 3)}


def compared(arm: Sequence[Answer], base: Sequence[Answer]) -> dict[str, Any]:
    """What an arm is better in R@10 than another that was asked the same, in points, with the 95 % interval; under
    `mrr` and `hit10` the same of those.
    """
    pairs = list(zip(arm, base, strict=True))
    return {
        **_interval([a.recall_at(10) - b.recall_at(10) for a, b in pairs]),
        "mrr": _interval([a.reciprocal_rank - b.reciprocal_rank for a, b in pairs]),
        "hit10": _interval([float(b.is_missed) - float(a.is_missed) for a, b in pairs]),
    }


def _interval(differences: Sequence[float]) -> dict[str, float]:
    diff, low, high = paired_interval(differences)
    return {"diff": round(100 * diff, 2), "low": round(100 * low, 2), "high": round(100 * high, 2)}


def paired_interval(
    differences: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float, float]:
    """The mean of paired differences with its 95 % interval, by the percentiles of resampled means (Efron, 1979)."""
    values: NDArray[float64] = np.asarray(differences, float64)
    if not len(values):
        return 0.0, 0.0, 0.0
    dice = np.random.default_rng(seed)
    means = np.array([values[dice.integers(0, len(values), len(values))].mean() for _ in range(resamples)])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def as_line(arm: str, answer: Answer) -> dict[str, Any]:
    """For a file with every question's ranking."""
    return {
        "id": answer.question.id,
        "campaign": answer.question.campaign,
        "category": answer.question.category,
        "arm": arm,
        "evidence": list(answer.question.evidence),
        "ranked": list(answer.ranked[:SHOWN]),
        "r10": round(answer.recall_at(10), 4),
        "rr": round(answer.reciprocal_rank, 4),
    }


def missed(answers: Sequence[Answer]) -> Mapping[str, Any]:
    """Questions without evidence among the first ten, by category; those whose evidence comes soon after first."""
    grouped: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        grouped[answer.question.category].append(answer)
    return {
        category: {
            "missed": sum(answer.is_missed for answer in found),
            "of": len(found),
            "beyond_50": sum(answer.first_rank is None for answer in found),
            "questions": [
                {
                    "id": answer.question.id,
                    "campaign": answer.question.campaign,
                    "question": answer.question.text,
                    "evidence": list(answer.question.evidence),
                    "first_rank": answer.first_rank,
                    "ranked": list(answer.ranked[:10]),
                }
                for answer in sorted(found, key=lambda answer: answer.first_rank or DEPTH + 1)
                if answer.is_missed
            ],
        }
        for category, found in sorted(grouped.items())
    }


def _percent(shares: Iterable[float]) -> float:
    return round(100 * float(np.mean([float(share) for share in shares])), 2)
