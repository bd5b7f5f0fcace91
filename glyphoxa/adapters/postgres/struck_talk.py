from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyphoxa.adapters.postgres.world_rows import at_ms
from glyphoxa.domain.ids import CampaignId, SessionId

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.database import Connection


@dataclass(frozen=True, slots=True)
class Stretch:
    """Talk of one session.

    Attributes:
        after_floor: It begins behind that one.
        last_floor: It ends with that one.
        heard: How many of its utterances are not struck yet.
    """

    session: SessionId
    after_floor: int
    last_floor: int
    heard: int


class StruckTalk:
    """What rollbacks do to the talk of one campaign, on a connection that is in a transaction: it stays in the log, and
    nobody is reminded of it.
    """

    def __init__(self, connection: Connection, campaign: CampaignId, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._campaign = campaign
        self._sql = sql

    async def session_and_later(self, session: SessionId) -> list[SessionId]:
        """In the order in which they began; empty: there is no such session."""
        rows = await self._connection.fetch(self._sql["session_and_later"], self._campaign, session)
        return [SessionId(row["id"]) for row in rows]

    async def end_of(self, session: SessionId) -> int | None:
        """Its last trace, milliseconds since the Unix epoch; None: there is no such session."""
        end = await self._connection.fetchval(self._sql["end_of_session"], self._campaign, session)
        return None if end is None else at_ms(end)

    async def learned_behind(self, session: SessionId, floor: int, later: Sequence[SessionId]) -> list[int]:
        """Events that come from talk behind that floor of the session, or from later sessions."""
        rows = await self._connection.fetch(self._sql["learned_behind"], self._campaign, session, floor, later)
        return [row["seq"] for row in rows]

    async def behind(self, session: SessionId, floor: int, later: Sequence[SessionId]) -> list[Stretch]:
        """What was said there until now."""
        rows = await self._connection.fetch(self._sql["talk_behind"], self._campaign, session, floor, later)
        return [
            Stretch(SessionId(row["session_id"]), row["after_floor"], row["last_floor"], row["heard"]) for row in rows
        ]

    async def strike(self, rollback: int, stretches: Sequence[Stretch]) -> None:
        """Note what an event took: see `settle`."""
        await self._connection.execute(
            self._sql["strike"],
            self._campaign,
            rollback,
            [stretch.session for stretch in stretches],
            [stretch.after_floor for stretch in stretches],
            [stretch.last_floor for stretch in stretches],
        )

    async def settle(self, rollbacks: Collection[int], *, in_effect: Collection[int]) -> None:
        """Strike what any of these rollbacks took, or give it back.

        Args:
            in_effect: All rollbacks of the campaign that are not undone.
        """
        if rollbacks:
            await self._connection.execute(self._sql["lock_talk"], self._campaign)
            await self._connection.execute(
                self._sql["settle_struck"], self._campaign, sorted(rollbacks), sorted(in_effect)
            )
