"""Which of many overlapping guesses stand: the set that explains most."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from glyphoxa.domain.heard import CorrectionStage
from glyphoxa.names.gazetteer import Name


@dataclass(frozen=True, slots=True)
class Match:
    """A guess that some adjacent words are a name.

    Attributes:
        first: Index of the first word.
        last: Index of the last word, inclusive.
        suffix: What is put after the name: a possessive or plural ending.
        score: Evidence, 0 to 1.
        weight: What the match is worth beside others that it cannot stand together with.
        keeps: The words are a name as they are and stay so; no other match may have them.
    """

    first: int
    last: int
    name: Name
    suffix: str
    score: float
    weight: float
    stage: CorrectionStage = "phonetic"
    reason: str = ""
    keeps: bool = False


def best_without_overlap(matches: Sequence[Match]) -> list[Match]:
    """The matches that together weigh most, in order (weighted interval scheduling); of equal ones the earlier."""
    ordered = sorted(matches, key=lambda match: (match.last, match.first))
    ends = [match.last for match in ordered]
    best = [0.0]
    takes: list[bool] = []
    for at, match in enumerate(ordered):
        with_it = match.weight + best[bisect_right(ends, match.first - 1, 0, at)]
        takes.append(with_it > best[at])
        best.append(max(best[at], with_it))
    chosen: list[Match] = []
    at = len(ordered)
    while at:
        if takes[at - 1]:
            chosen.append(ordered[at - 1])
            at = bisect_right(ends, ordered[at - 1].first - 1, 0, at - 1)
        else:
            at -= 1
    return chosen[::-1]
