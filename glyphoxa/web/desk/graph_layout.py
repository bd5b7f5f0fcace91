"""Where the entities around one of them stand in a drawing: rings by distance, each beside what leads to it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

RING: Final = 150.0
"""Units of the drawing between two rings, wider where names would run into each other."""
_ROOM: Final = 62.0  # of the circle's length that a name needs


@dataclass(frozen=True, slots=True)
class Point:
    """In units of the drawing, whose middle is (0, 0); y grows downwards."""

    x: float
    y: float


def radial(depths: Mapping[str, int], edges: Iterable[tuple[str, str]]) -> dict[str, Point]:
    """A place for each node, by the radial layout of a breadth-first tree (Eades, 1992: "Drawing free trees").

    Args:
        depths: Nodes with their distance from the one in the middle, which alone has 0, the nearest first.
        edges: Pairs of nodes; direction does not matter. A node that no edge joins to a nearer one hangs on the middle.

    Returns:
        The same for the same arguments.
    """
    if not depths:
        return {}
    middle = next(iter(depths))
    below = _tree(depths, edges, middle)
    leaves = _leaves(below, depths)
    step = _step(depths)
    found: dict[str, Point] = {}
    waiting = [(middle, 0.0, math.tau)]
    while waiting:
        node, begin, end = waiting.pop()
        angle, radius = (begin + end) / 2, depths[node] * step
        found[node] = Point(round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1))
        at = begin
        for child in below[node]:
            share = (end - begin) * leaves[child] / sum(leaves[each] for each in below[node])
            waiting.append((child, at, at + share))
            at += share
    return found


def _tree(depths: Mapping[str, int], edges: Iterable[tuple[str, str]], middle: str) -> Mapping[str, Sequence[str]]:
    """Each node with those that hang on it: a node hangs on the first nearer one it is joined to."""
    joined: defaultdict[str, list[str]] = defaultdict(list)
    for one, other in edges:
        joined[one].append(other)
        joined[other].append(one)
    below: defaultdict[str, list[str]] = defaultdict(list)
    for node, depth in depths.items():
        if node != middle:
            above = next((each for each in joined[node] if depths.get(each, depth) < depth), middle)
            below[above].append(node)
    return below


def _leaves(below: Mapping[str, Sequence[str]], depths: Mapping[str, int]) -> dict[str, int]:
    """How many ends of branches hang on each node, itself if it is one."""
    counted: dict[str, int] = {}
    for node in sorted(depths, key=lambda each: -depths[each]):
        counted[node] = sum(counted[child] for child in below[node]) or 1
    return counted


def _step(depths: Mapping[str, int]) -> float:
    fullest = max(
        (sum(each == ring for each in depths.values()) / ring for ring in set(depths.values()) - {0}), default=0
    )
    return max(RING, fullest * _ROOM / math.tau)
