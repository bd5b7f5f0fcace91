"""Merging the rankings of several recall arms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def fuse_ranks(rankings: Iterable[Sequence[Key]], *, k: int = 60) -> list[tuple[Key, float]]:
    """Merge rankings by reciprocal rank (Cormack, Clarke & Büttcher, 2009): a key earns 1 / (k + rank) from each.

    Ranks count from 1. Ties keep the order in which keys were first seen. With arms of unequal worth it is no better
    than the best of them alone: recall is compared with it.
    """
    fused: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            fused[key] = fused.get(key, 0.0) + 1 / (k + rank)
    return sorted(fused.items(), key=lambda item: item[1], reverse=True)
