"""The memory of a running session in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from pydantic import TypeAdapter

from glyphoxa.adapters.postgres.server.database import CampaignQueries, Database
from glyphoxa.adapters.postgres.server.sql import storable, storable_json
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.domain.session_state import SessionState, SummarySentence, View

VERSION: Final = 2
"""Version of the stored format. Version 1 has no `version`, and does not mark an NPC's own sentences."""
_STATE: Final = TypeAdapter(SessionState)


class PostgresSessionStates(CampaignQueries):
    """Implements `SessionStates`. Calls have a deadline of 1 s.

    A state of a later version raises InvalidInput when it is read, and no write changes it.
    """

    file = "transcript/session_states"

    def __init__(self, database: Database, campaign: CampaignId, session: SessionId) -> None:
        super().__init__(database)
        self._campaign = campaign
        self._session = storable(session)

    async def state(self, view: View) -> SessionState:
        rows = await self._fetch("state", self._campaign, self._session, storable(view))
        return _state(rows[0]["state"]) if rows else SessionState()

    async def all(self) -> Mapping[View, SessionState]:
        """Return the stored states of all views."""
        rows = await self._fetch("states", self._campaign, self._session)
        return {View(row["view"]): _state(row["state"]) for row in rows}

    async def cover(
        self, view: View, summary: Sequence[SummarySentence], *, up_to: UtteranceId, after: int
    ) -> int | None:
        told = storable_json([asdict(sentence) for sentence in summary])
        where = (self._campaign, self._session, storable(view))
        async with self._use(self._campaign) as connection, connection.transaction():
            await connection.execute(self._sql["lock"], self._campaign)
            reached = await connection.fetchval(self._sql["cover"], *where, told, storable(up_to), after, VERSION)
        return None if reached is None else int(reached)

    async def note(self, view: View, flags: Mapping[str, bool]) -> None:
        values = self._session, storable(view), storable_json(dict(flags)), VERSION
        await self._fetch("note", self._campaign, *values)


def _state(stored: Mapping[str, Any]) -> SessionState:
    if (version := stored.get("version", 1)) > VERSION:
        text = f"the stored memory of this session has version {version}: this release reads versions 1 to {VERSION}"
        raise InvalidInput(f"{text}; install a newer Glyphoxa")
    return _STATE.validate_python(stored)
