"""The memory of running sessions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from glyphoxa.adapters.postgres.server.database import CampaignQueries
from glyphoxa.adapters.postgres.server.sql import storable, storable_json
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.session_state import SessionState, SummarySentence, View

VERSION: Final = 2
"""Version of the stored format. Version 1 has no `version`, and does not mark an NPC's own sentences."""


class PostgresSessionStates(CampaignQueries):
    """Implements `SessionStates`. Calls have a deadline of 1 s.

    A state of a later version raises InvalidInput when it is read, and no write changes it.
    """

    file = "transcript/session_states"

    async def state(self, campaign: CampaignId, session: SessionId, view: View) -> SessionState:
        rows = await self._fetch("state", campaign, storable(session), storable(view))
        return _state(rows[0]["state"]) if rows else SessionState()

    async def states(self, campaign: CampaignId, session: SessionId) -> Mapping[View, SessionState]:
        """Return the stored states of all views of a session."""
        rows = await self._fetch("states", campaign, storable(session))
        return {View(row["view"]): _state(row["state"]) for row in rows}

    async def cover(  # noqa: PLR0913 - a row, its new content, and what it must have been
        self,
        campaign: CampaignId,
        session: SessionId,
        view: View,
        summary: Sequence[SummarySentence],
        *,
        up_to: UtteranceId,
        after: int,
    ) -> int | None:
        told = storable_json([asdict(sentence) for sentence in summary])
        where = (campaign, storable(session), storable(view))
        async with self._database.use(campaign, deadline_ms=self.deadline_ms) as connection, connection.transaction():
            await connection.execute(self._sql["lock"], campaign)
            reached = await connection.fetchval(self._sql["cover"], *where, told, storable(up_to), after, VERSION)
        return None if reached is None else int(reached)

    async def note(self, campaign: CampaignId, session: SessionId, view: View, flags: Mapping[str, bool]) -> None:
        await self._fetch("note", campaign, storable(session), storable(view), storable_json(dict(flags)), VERSION)


def _state(stored: Mapping[str, Any]) -> SessionState:
    if (version := stored.get("version", 1)) > VERSION:
        text = f"the stored memory of this session has version {version}: this release reads versions 1 to {VERSION}"
        raise InvalidInput(f"{text}; install a newer Glyphoxa")
    summary = [
        SummarySentence(one["text"], tuple(map(UtteranceId, one["evidence"])), one.get("is_own", False))
        for one in stored["summary"]
    ]
    return SessionState(tuple(summary), stored["flags"], stored["last_ordinal"])
