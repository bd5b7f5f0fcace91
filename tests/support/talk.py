"""Stretches of talk as the chronicle reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from glyphoxa.chronicle.ports import Unread
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
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


class TranscriptTwin:
    """A transcript of one session, and a world, that no database holds.

    Attributes:
        retracted: Numbers of lines that are read as if nobody had said them.
    """

    def __init__(self, *lines: NumberedUtterance, known: Sequence[KnownEntity] = ()) -> None:
        self.lines = list(lines)
        self.entities = known
        self.retracted: set[int] = set()

    async def known(self, campaign: CampaignId) -> Sequence[KnownEntity]:
        return self.entities

    async def unread(self, campaign: CampaignId, session: SessionId, *, after: int, limit: int) -> Unread | None:
        page = tuple(each for each in self.lines if each.ordinal > after)[:limit]
        left = tuple(each for each in page if each.ordinal not in self.retracted)
        return Unread(left, (), page[-1].ordinal) if page else None
