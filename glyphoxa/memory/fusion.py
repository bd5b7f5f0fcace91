"""Merging the rankings of several recall arms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def fuse_convex(arms: Sequence[tuple[float, Mapping[Key, float]]]) -> list[tuple[Key, float]]:
    """Weighted sum of min-max normalised scores, best first, scaled to 0 to 1.

    What an arm did not find counts 0 there; an arm that found nothing at all has no say, its weight goes to the
    others. Scores of an arm are spread over its own candidates from 0 to 1, with a floor so that its last candidate
    still counts more than one it did not find. Ties keep the order in which keys were first seen.

    Args:
        arms: Weight and scores (any scale, higher is better) of each arm.
    """
    heard = [(weight, scores) for weight, scores in arms if scores and weight > 0]
    total = sum(weight for weight, _ in heard)
    fused: dict[Key, float] = {}
    for weight, scores in heard:
        for key, score in _spread(scores).items():
            fused[key] = fused.get(key, 0.0) + weight / total * score
    return sorted(fused.items(), key=lambda item: item[1], reverse=True)


def fuse_ranks(rankings: Iterable[Sequence[Key]], *, k: int = 60) -> list[tuple[Key, float]]:
    """Merge rankings by reciprocal rank (Cormack, Clarke & Büttcher, 2009): a key earns 1 / (k + rank) from each.

    Ranks count from 1. Ties keep the order in which keys were first seen. With arms of unequal worth it is no better
    than the best of them alone (C-55): `fuse_convex` is what is used.
    """
    fused: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            fused[key] = fused.get(key, 0.0) + 1 / (k + rank)
    return sorted(fused.items(), key=lambda item: item[1], reverse=True)


_FLOOR = 0.05


def _spread(scores: Mapping[Key, float]) -> dict[Key, float]:
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {key: _FLOOR + (1 - _FLOOR) * (score - low) / (high - low) for key, score in scores.items()}
