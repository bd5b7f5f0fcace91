"""Places in a raw text and in the text that replacements have made of it.

A replacement has a place in the text it is made in, and what comes there. A list of them is in order and without
overlap; what is empty (an insertion, a deletion) may stand at the edge of another.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from glyphoxa.domain.utterance import Correction


class Replacement(Protocol):
    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def after(self) -> str: ...


def applied(text: str, replacements: Sequence[Replacement]) -> str:
    """The text with the replacements made."""
    return _made(text, replacements, 0, len(text))


def leads_to(raw: str, corrections: Sequence[Correction], text: str) -> bool:
    """Whether the corrections are in order, replace what stands in the raw text, and make the text of it."""
    done = 0
    for each in corrections:
        if not done <= each.start <= each.end or raw[each.start : each.end] != each.before:
            return False
        done = each.end
    return applied(raw, corrections) == text


class Places:
    """Where something that stands in the one text stands in the other.

    Attributes:
        replaced: Start and end of what came instead, in the corrected text, one for each replacement.
    """

    def __init__(self, replacements: Sequence[Replacement]) -> None:
        self._raw = [(each.start, each.end) for each in replacements]
        self.replaced: list[tuple[int, int]] = []
        grown = 0
        for each in replacements:
            start = each.start + grown
            self.replaced.append((start, start + len(each.after)))
            grown += len(each.after) - (each.end - each.start)

    def in_text(self, start: int, end: int) -> tuple[int, int]:
        """The span of the corrected text for one of the raw text. What was replaced is in it whole or not at all."""
        return _span(start, end, self._raw, self.replaced)

    def in_raw(self, start: int, end: int) -> tuple[int, int]:
        """The span of the raw text for one of the corrected text, likewise."""
        return _span(start, end, self.replaced, self._raw)


def composed(raw: str, earlier: Sequence[Correction], later: Sequence[Correction]) -> tuple[Correction, ...]:
    """One list of corrections of the raw text that does what two do one after the other.

    Args:
        later: Their spans are places in the text that `earlier` made of the raw text. One that overlaps earlier ones
            takes their place; the rest of what those put in stays as it is.

    Returns:
        In order, without overlap. What was put in and taken out again is no correction.
    """
    middle = applied(raw, earlier)
    places = Places(earlier)
    steps = [(each.start, each.end, each, True) for each in later]
    steps += ((*span, each, False) for span, each in zip(places.replaced, earlier, strict=True))
    steps.sort(key=lambda step: step[:2])
    merged: list[Correction] = []
    grown = 0  # by how much the text in the middle is longer than the raw text, up to here
    at = 0
    while at < len(steps):
        start, end, *_ = steps[at]
        first = at
        while at < len(steps) and (at == first or steps[at][0] < end):
            end = max(end, steps[at][1])
            at += 1
        new = [each for _, _, each, is_new in steps[first:at] if is_new]
        old = [each for _, _, each, is_new in steps[first:at] if not is_new]
        after = _made(middle, new, start, end)
        raw_start = start - grown
        grown += sum(len(each.after) - (each.end - each.start) for each in old)
        raw_end = end - grown
        before = raw[raw_start:raw_end]
        if before == after:
            continue
        newest = (new or old)[0]
        if (newest.start, newest.end, newest.before, newest.after) != (raw_start, raw_end, before, after):
            newest = replace(newest, start=raw_start, end=raw_end, before=before, after=after)
        merged.append(newest)
    return tuple(merged)


def _made(text: str, replacements: Sequence[Replacement], start: int, end: int) -> str:
    """What `text[start:end]` is with the replacements that are in it."""
    pieces: list[str] = []
    for each in replacements:
        pieces += (text[start : each.start], each.after)
        start = each.end
    return "".join([*pieces, text[start:end]])


def _span(start: int, end: int, here: Sequence[tuple[int, int]], there: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """`here` and `there` are the places of the same replacements in the two texts."""
    first = bisect_right(here, start, key=lambda span: span[1])
    beyond = bisect_left(here, end, key=lambda span: span[0])
    if first >= beyond:  # none is touched
        moved = there[first - 1][1] - here[first - 1][1] if first else 0
        return start + moved, end + moved
    # From the first one's beginning to the last one's end, and further where the span is longer.
    before, behind = there[first][0] - here[first][0], there[beyond - 1][1] - here[beyond - 1][1]
    return min(start, here[first][0]) + before, max(end, here[beyond - 1][1]) + behind
