"""The DM's commands to an open table, the table's answers, and its controls."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.listen import TABLE, Listener
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId

ANSWERED_WITHIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class PastCommand:
    """
    Attributes:
        answer: The table's answer; empty if there was none.
    """

    at_ms: int
    session: SessionId
    told: Mapping[str, Any]
    answer: str
    is_done: bool


class PostgresTableCommands(CampaignQueries):
    """Implements `CommandInbox` for an open table, and sends commands to it.

    Reading and writing have a deadline of 1 s.
    """

    file = "transcript/table_commands"

    def __init__(self, database: Database, listener: Listener) -> None:
        super().__init__(database)
        self._listener = listener

    # -- for the sender

    async def command(
        self,
        campaign: CampaignId,
        told: Mapping[str, Any],
        *,
        session: SessionId | None = None,
        within_s: float = ANSWERED_WITHIN_S,
    ) -> str:
        """Send a command to an open table of this campaign.

        Args:
            session: The table of this session, if there are several.

        Returns: The table's answer.

        Raises:
            InvalidInput: The table rejected it; the message says why.
            Unavailable: No table answers, and the command is withdrawn. Or the database is away.
        """
        command = uuid.uuid4().hex
        try:
            async with asyncio.timeout(within_s), aclosing(self.changes(campaign)) as changes:
                await anext(changes)  # subscribed: no later answer is missed
                await self._fetch("ask", campaign, command, session, dict(told))
                async for _ in changes:
                    [row] = await self._fetch("answered", campaign, command)
                    if row["answer"] is not None:
                        return _as_told(row["answer"], is_done=row["is_done"])
        except (TimeoutError, Unavailable):
            pass
        of = f"campaign {campaign!r}" if session is None else f"session {session!r}"
        if await self._fetch("withdraw", campaign, command):
            raise Unavailable(f"no table of {of} is open: the command was not executed. `glyphoxa serve` opens one")
        for row in await self._fetch("answered", campaign, command):
            if row["answer"] is not None:
                return _as_told(row["answer"], is_done=row["is_done"])
        raise Unavailable(f"the table of {of} did not answer within {within_s:g} s and may have executed the command")

    async def latest(self, campaign: CampaignId, *, session: SessionId | None, limit: int) -> list[PastCommand]:
        """The commands that tables took, newest first."""
        return [PastCommand(**row) for row in await self._fetch("latest", campaign, session, limit)]

    # -- for the table

    async def take(self, campaign: CampaignId, session: SessionId) -> tuple[str, Mapping[str, object]] | None:
        for row in await self._fetch("take", campaign, session):
            return row["id"], row["command"]
        return None

    async def answer(self, campaign: CampaignId, command: str, text: str, *, is_done: bool) -> None:
        await self._fetch("answer", campaign, command, text, is_done)

    def changes(self, campaign: CampaignId) -> AsyncGenerator[object, None]:
        return self._listener.follow(TABLE, campaign)

    async def controls(self, campaign: CampaignId, session: SessionId) -> Mapping[str, Any]:
        for row in await self._fetch("controls", campaign, session):
            return dict(row["controls"])
        return {}

    async def keep_controls(self, campaign: CampaignId, session: SessionId, controls: Mapping[str, Any]) -> None:
        await self._fetch("keep_controls", campaign, session, dict(controls))


def _as_told(answer: str, *, is_done: bool) -> str:
    if not is_done:
        raise InvalidInput(answer)
    return answer
