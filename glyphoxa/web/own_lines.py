"""A player's own lines on their page, and their decisions which of them are kept in memory.

A player sees only their own lines, as they were heard, because a corrected name may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, PlayerId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.judgement import ConsentChange
from glyphoxa.web.events import Json
from glyphoxa.world.events import Cause
from glyphoxa.world.graph import WorldHistory

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.world.inspection import PostgresInspection

LINES_PER_PAGE: Final = 30


class SeatBody(BaseModel):
    """A request from the page of a seat."""

    model_config = ConfigDict(extra="forbid")

    player: str = Field(min_length=1, max_length=200)


class RememberBody(SeatBody):
    """A player's decision about one line, or about all lines of this session so far."""

    remember: bool
    line: str | None = Field(default=None, min_length=1, max_length=200)
    session: bool = False


@dataclass(frozen=True, slots=True)
class OwnLinesOfTable:
    """The own lines of all players of a table.

    Attributes:
        now_ms: Unix time.
    """

    campaign: CampaignId
    session: SessionId
    transcript: PostgresInspection
    world: WorldHistory
    now_ms: Callable[[], int]

    async def lines(self, player: PlayerId, *, before: str | None) -> Json:
        """Return a page of a player's lines, newest first.

        Args:
            before: The last line of the previous page; None for the first page.
        """
        last = UtteranceId(before) if before else None
        found = await self.transcript.own_lines(self.campaign, SpeakerId(player), before=last, limit=LINES_PER_PAGE + 1)
        lines = [
            {"id": line.utterance_id, "at_ms": line.at_ms, "text": line.text, "state": _state(line)}
            for line in found[:LINES_PER_PAGE]
        ]
        return {"lines": lines, "has_more": len(found) > LINES_PER_PAGE}

    async def decide(self, player: PlayerId, body: RememberBody) -> int:
        """Withhold a player's own lines from memory, or allow them again. Returns the number of changed lines.

        Raises:
            InvalidInput: The body names neither a line nor the session, or both.
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


def _state(line: CitedUtterance) -> str:
    if line.is_withheld:
        return "withheld"
    return "retracted" if line.is_retracted else "given"
