"""What a player's own lines are remembered, and their decisions about it: the page's list of them.

A player reads only what they said themselves, in the words as they were heard: a corrected name may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict, Field

from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, PlayerId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.judgement import ConsentChange
from glyphoxa.web.events import Json
from glyphoxa.world.events import Cause
from glyphoxa.world.graph import World

LINES_PER_PAGE: Final = 30


class OwnLines(Protocol):
    """The transcript as far as one player said it."""

    async def own_lines(
        self, campaign: CampaignId, speaker: SpeakerId, *, before: UtteranceId | None = None, limit: int
    ) -> Sequence[CitedUtterance]:
        """Return what a player said before an utterance (None: the latest), newest first.

        Raises:
            Unavailable: The database cannot be reached.
        """
        ...


class SeatBody(BaseModel):
    """What the page of a seat posts."""

    model_config = ConfigDict(extra="forbid")

    player: str = Field(min_length=1, max_length=200)


class RememberBody(SeatBody):
    """A posted decision: about one line, or about all lines of this session so far."""

    remember: bool
    line: str | None = Field(default=None, min_length=1, max_length=200)
    session: bool = False


@dataclass(frozen=True, slots=True)
class Remembered:
    """
    Attributes:
        now_ms: Unix time.
    """

    campaign: CampaignId
    session: SessionId
    transcript: OwnLines
    world: World
    now_ms: Callable[[], int]

    async def lines(self, player: PlayerId, *, before: str | None) -> Json:
        """Return a page of a player's lines, newest first.

        Args:
            before: The last line of the page before; None: the first page.
        """
        after = UtteranceId(before) if before else None
        found = await self.transcript.own_lines(
            self.campaign, SpeakerId(player), before=after, limit=LINES_PER_PAGE + 1
        )
        lines = [
            {"id": each.utterance_id, "at_ms": each.at_ms, "text": each.text, "state": _state(each)}
            for each in found[:LINES_PER_PAGE]
        ]
        return {"lines": lines, "has_more": len(found) > LINES_PER_PAGE}

    async def decide(self, player: PlayerId, body: RememberBody) -> int:
        """Withhold lines from memory, or allow them again. Returns how many changed: other players' never do.

        Raises:
            InvalidInput: Neither a line nor the session is named, or both are.
            Unavailable: The database cannot be reached; nothing changed.
        """
        if (body.line is None) is not body.session:
            raise InvalidInput("name either a line or the session")
        change = ConsentChange(
            SpeakerId(player),
            "given" if body.remember else "withheld",
            () if body.line is None else (UtteranceId(body.line),),
            self.session if body.session else None,
        )
        return len(await self.world.consent(self.campaign, change, Cause("player", self.now_ms())))


def _state(said: CitedUtterance) -> str:
    if said.is_withheld:
        return "withheld"
    return "retracted" if said.is_retracted else "given"
