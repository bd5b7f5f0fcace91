from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyphoxa.adapters.postgres.server.queries import load_queries
from glyphoxa.adapters.postgres.server.values import at_ms
from glyphoxa.adapters.postgres.world.event_log import retractions_in_effect, words_in_effect
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.world.events.log import WorldEvent

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.server.database import Connection


@dataclass(frozen=True, slots=True)
class TalkRange:
    """Part of the talk of one session.

    Attributes:
        after_ordinal: It begins behind that one.
        last_ordinal: It ends with that one.
        n_heard: How many of its utterances are not retracted yet.
    """

    session: SessionId
    after_ordinal: int
    last_ordinal: int
    n_heard: int


@dataclass(frozen=True, slots=True)
class LoggedUtterance:
    """An utterance as it stands in the log."""

    utterance: UtteranceId
    session: SessionId
    ordinal: int
    text: str


class TalkRetraction:
    """What rollbacks, and the DM's word on one utterance, do to the talk of one campaign, on a connection that is in a
    transaction: it stays in the log, and nobody recalls it, or what it said before.
    """

    def __init__(self, connection: Connection, campaign: CampaignId) -> None:
        self._connection = connection
        self._campaign = campaign
        self._sql = load_queries("world/retraction")

    async def session_and_later(self, session: SessionId) -> list[SessionId]:
        """In the order in which they began; empty: there is no such session."""
        rows = await self._connection.fetch(self._sql["session_and_later"], self._campaign, session)
        return [SessionId(row["id"]) for row in rows]

    async def end_of(self, session: SessionId) -> int | None:
        """Its last trace, milliseconds since the Unix epoch; None: there is no such session."""
        end = await self._connection.fetchval(self._sql["end_of_session"], self._campaign, session)
        return None if end is None else at_ms(end)

    async def learned_behind(self, session: SessionId, ordinal: int, later: Sequence[SessionId]) -> list[int]:
        """Events that come from talk behind that ordinal of the session, or from later sessions."""
        rows = await self._connection.fetch(self._sql["learned_behind"], self._campaign, session, ordinal, later)
        return [row["seq"] for row in rows]

    async def behind(self, session: SessionId, ordinal: int, later: Sequence[SessionId]) -> list[TalkRange]:
        """What was said there until now."""
        rows = await self._connection.fetch(self._sql["talk_behind"], self._campaign, session, ordinal, later)
        return [
            TalkRange(SessionId(row["session_id"]), row["after_ordinal"], row["last_ordinal"], row["heard"])
            for row in rows
        ]

    async def spoken(self, utterance: UtteranceId) -> LoggedUtterance:
        """
        Raises:
            NotFound: Nobody said it.
            InvalidInput: It is retracted.
        """
        row = await self._connection.fetchrow(self._sql["utterance"], self._campaign, utterance)
        if row is None:
            raise NotFound(f"no utterance {utterance!r} in the log of campaign {self._campaign!r}")
        if row["retracted"]:
            raise InvalidInput(f"utterance {utterance!r} is retracted already: nobody recalls it")
        return LoggedUtterance(utterance, SessionId(row["session_id"]), row["ordinal"], row["text"])

    async def learned_from(self, said: LoggedUtterance) -> list[int]:
        """Events that come from that utterance."""
        rows = await self._connection.fetch(
            self._sql["learned_from"], self._campaign, said.utterance, said.session, said.ordinal
        )
        return [row["seq"] for row in rows]

    async def learned_from_any(self, utterances: Sequence[UtteranceId]) -> list[int]:
        """Events that were learned from one of these, or from it and others."""
        rows = await self._connection.fetch(self._sql["learned_from_any"], self._campaign, list(utterances))
        return [row["seq"] for row in rows]

    async def retract(self, rollback: int, ranges: Sequence[TalkRange]) -> None:
        """Note what an event took: see `settle`."""
        await self._connection.execute(
            self._sql["retract"],
            self._campaign,
            rollback,
            [each.session for each in ranges],
            [each.after_ordinal for each in ranges],
            [each.last_ordinal for each in ranges],
        )

    async def settle(self, *, before: Sequence[WorldEvent], after: Sequence[WorldEvent]) -> list[UtteranceId]:
        """Retract, give back and word the talk as the second of these says, where that is not as the first says.
        Returns what is otherwise now.

        Args:
            before: All events of the campaign that speak of others, as they were; `after`: as they are now.
        """
        retracted = retractions_in_effect(after)
        old, new = words_in_effect(before), words_in_effect(after)
        words = {each: new.get(each) for each in {**old, **new} if old.get(each) != new.get(each)}
        changed = await self._settle_retracted(retractions_in_effect(before) ^ retracted, in_effect=retracted)
        return changed + await self._settle_words(words)

    async def _settle_retracted(self, retractions: Collection[int], *, in_effect: Collection[int]) -> list[UtteranceId]:
        if not retractions:
            return []
        await self._connection.execute(self._sql["lock_talk"], self._campaign)
        rows = await self._connection.fetch(
            self._sql["settle_retracted"], self._campaign, sorted(retractions), sorted(in_effect)
        )
        return [UtteranceId(row["utterance_id"]) for row in rows]

    async def _settle_words(self, words: Mapping[UtteranceId, str | None]) -> list[UtteranceId]:
        """
        Args:
            words: The DM's; None gives an utterance its own back.
        """
        if not words:
            return []
        await self._connection.execute(self._sql["lock_talk"], self._campaign)
        rows = await self._connection.fetch(
            self._sql["settle_words"], self._campaign, list(words.keys()), list(words.values())
        )
        return [UtteranceId(row["utterance_id"]) for row in rows]
