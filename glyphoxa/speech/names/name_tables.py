"""The look-up tables of a gazetteer, made anew from those of the one before it and what changed.

Each answers as a table made from all names at once; its cost is that of the copy.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from glyphoxa.speech.names.naming import Name

by_rank = attrgetter("rank")


def holder(wanted: Sequence[Name]) -> Name:
    """Whose a spelling is. Of several persons of one family, none is called by the family's name alone."""
    first = wanted[0]
    if first.kind == "short" and any(
        other.kind == "short" and other.entity_id != first.entity_id for other in wanted[1:]
    ):
        return replace(first, is_shared=True)
    return first


def codes_of(name: Name) -> tuple[str, ...]:
    return () if name.kind == "learned" else name.codes


def replaced(names: tuple[Name, ...], removed: Sequence[Name], added: Sequence[Name]) -> tuple[Name, ...]:
    listed = list(names)
    for name in removed:
        del listed[bisect_left(listed, name.rank, key=by_rank)]
    for name in added:
        insort(listed, name, key=by_rank)
    return tuple(listed)


def recoded(
    by_code: Mapping[str, tuple[Name, ...]], removed: Sequence[Name], added: Sequence[Name]
) -> dict[str, tuple[Name, ...]]:
    listed = dict(by_code)
    for name in removed:
        for code in codes_of(name):
            rest = tuple(other for other in listed.pop(code) if other.rank != name.rank)
            if rest:
                listed[code] = rest
    for name in added:
        for code in codes_of(name):
            listed[code] = tuple(sorted((*listed.get(code, ()), name), key=by_rank))
    return listed


def respelled(spellings: tuple[str, ...], removed: Sequence[Name], added: Sequence[Name]) -> tuple[str, ...]:
    gone, come = {name.joined for name in removed}, {name.joined for name in added}
    if gone == come:
        return spellings
    listed = list(spellings)
    for joined in gone - come:
        del listed[bisect_left(listed, joined)]
    for joined in come - gone:
        insort(listed, joined)
    return tuple(listed)


def recounted(lengths: Mapping[int, int], removed: Sequence[Name], added: Sequence[Name]) -> Counter[int]:
    counted = Counter(lengths)
    counted.subtract(len(name.words) for name in removed)
    counted.update(len(name.words) for name in added)
    return +counted
