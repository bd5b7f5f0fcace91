"""What a recogniser knows of each word, kept in its place while the text changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from glyphoxa.domain.utterance import Correction, HeardWord
from glyphoxa.speech.language.spans import Places

_SPACES = re.compile(r"\s+")
_STICKS = re.compile(r"[^\w\s]*")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as a service tells it, before its place in the transcript is known.

    Attributes:
        confidence: 0 to 1; None when the service tells none.
        from_ms: Since the beginning of the transcribed sound; None when that is not known.
    """

    text: str
    confidence: float | None = None
    from_ms: int | None = None
    to_ms: int | None = None


def placed(text: str, spoken: Iterable[SpokenWord]) -> tuple[HeardWord, ...]:
    """Where the words stand in their transcript. One that is not there is left out, and the next is looked for
    from the same place.

    >>> placed("Who is Grimjaw?", [SpokenWord("who", 0.9), SpokenWord("grimjaw", 0.4)])[1]
    HeardWord(start=7, end=15, confidence=0.4, from_ms=None, to_ms=None)
    """
    found: list[HeardWord] = []
    done = 0
    for word in spoken:
        # Letters whose small form is longer ("İ") would shift the places of a folded text.
        match = re.compile(re.escape(word.text.strip()), re.IGNORECASE).search(text, done)
        if match is None or match.start() == match.end():
            continue
        sticking = _STICKS.match(text, match.end())
        done = sticking.end() if sticking else match.end()
        found.append(HeardWord(match.start(), done, word.confidence, word.from_ms, word.to_ms))
    return tuple(found)


def words_of_text(words: Sequence[HeardWord], corrections: Sequence[Correction]) -> tuple[HeardWord, ...]:
    """The words of a corrected text, from those of the raw text and what was replaced in it.

    The words of a name that was put in share the beginning, the end and the lowest confidence of the words it took
    the place of; all others keep their own. Of a replacement where the recogniser told no words, none are told.

    Args:
        words: Of the raw text, in order, without overlap.
        corrections: Likewise.

    Returns:
        Places in the corrected text, in order, without overlap.
    """
    places = Places(corrections)
    moved: list[HeardWord] = []
    for group in _groups(words, corrections):
        start, end = places.in_text(group.start, group.end)
        if not group.replaced:
            moved += (word.moved(places=start - group.start) for word in group.words)
        elif group.words:
            moved += _run(group, start, end, places)
    return tuple(moved)


@dataclass(slots=True)
class _Group:
    """Words and replacements that overlap, directly or through each other."""

    start: int
    end: int
    words: list[HeardWord]
    replaced: list[Correction]


def _groups(words: Sequence[HeardWord], corrections: Sequence[Correction]) -> list[_Group]:
    groups: list[_Group] = []
    spans: list[HeardWord | Correction] = [*words, *corrections]
    for each in sorted(spans, key=lambda span: (span.start, span.end)):
        if not groups or each.start >= groups[-1].end:
            groups.append(_Group(each.start, each.end, [], []))
        group = groups[-1]
        group.end = max(group.end, each.end)
        if isinstance(each, Correction):
            group.replaced.append(each)
        else:
            group.words.append(each)
    return groups


def _run(group: _Group, start: int, end: int, places: Places) -> list[HeardWord]:
    """The corrected text of the group, cut at the spaces of what was put in: outside of that it has none."""
    spaces: list[tuple[int, int]] = []
    for correction in group.replaced:
        at, _ = places.in_text(correction.start, correction.end)
        spaces += ((at + space.start(), at + space.end()) for space in _SPACES.finditer(correction.after))
    edges = [start, *(place for space in spaces for place in space), end]
    known = [word.confidence for word in group.words if word.confidence is not None]
    begins = [word.from_ms for word in group.words if word.from_ms is not None]
    ends = [word.to_ms for word in group.words if word.to_ms is not None]
    return [
        HeardWord(first, last, min(known, default=None), min(begins, default=None), max(ends, default=None))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        if first < last
    ]
