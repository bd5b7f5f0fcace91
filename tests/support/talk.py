"""Stretches of talk as the chronicle reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from glyphoxa.chronicle.talk import NumberedUtterance, SceneTalk
from glyphoxa.domain.ids import NpcId
from tests.support.builders import CAMPAIGN, SESSION, an_utterance

HeardLine = str | tuple[str, Iterable[NpcId]]
"""A text, and who heard it; without that, the smith."""


def numbered(n: int, line: HeardLine, **changes: Any) -> NumberedUtterance:
    """The line with that number. Changes are those of `an_utterance`."""
    if not isinstance(line, str):
        line, heard_by = line
        changes["witnesses"] = frozenset(heard_by)
    return NumberedUtterance(an_utterance(line, **{"id": f"u{n}", **changes}), n)


def a_stretch(
    *lines: HeardLine, before: Sequence[str] = (), language: str = "en", first: int = 1, **changes: Any
) -> SceneTalk:
    earlier = tuple(numbered(n, line) for n, line in enumerate(before, start=first))
    said = tuple(numbered(n, line, **changes) for n, line in enumerate(lines, start=first + len(before)))
    return SceneTalk(CAMPAIGN, SESSION, language, said, earlier)
