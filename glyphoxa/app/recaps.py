"""Recaps: the most salient lines of a session, for players, the DM or an NPC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection, SessionTalk
from glyphoxa.chronicle.ports import said_in
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LineSelection, heard_by
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.dm.player_safe import PlayersView
from glyphoxa.dm.vault import PlayedSession
from glyphoxa.domain.budgets import SUMMARY_TOKENS
from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.judgement.safety import topics_of
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.recall.table_calendar import zone_of_campaign

ROWS_A_NAME: Final = 40
"""Rows that are read in the time in which one name is indexed."""
ROWS_A_LINE: Final = 40
"""Rows that are read in the time in which one line is judged."""


Audience = Literal["players", "dm"] | NpcId


@dataclass(frozen=True, slots=True)
class SessionRecaps:
    """Recaps of a campaign's sessions, with its current names and secrets."""

    campaign: Campaign
    log: PostgresChronicleLog
    known: Sequence[KnownEntity]
    names: Gazetteer
    players: PlayersView

    @classmethod
    async def of(cls, store: Store, campaign: CampaignId, *, log: PostgresChronicleLog | None = None) -> SessionRecaps:
        """Raises: Unavailable: The database is away."""
        log = log or PostgresChronicleLog(store.database, store.world)
        stored, known = await store.campaigns.get(campaign), await log.known(campaign)
        merged, secrets = await log.guarded(campaign)

        def read() -> SessionRecaps:
            players = PlayersView((*known, *merged), stored, secrets)
            return cls(stored, log, known, names_of(known, stored.language), players)

        return await offload(read, amount=len(known) * ROWS_A_NAME)

    async def said(self, session: SessionId) -> list[NumberedUtterance]:
        """Return the utterances of a session that are not retracted. Raises: Unavailable: The database is away."""
        return await said_in(self.log, self.campaign.id, session)

    async def told(
        self, said: Sequence[NumberedUtterance], audience: Audience, *, tokens: int = SUMMARY_TOKENS
    ) -> list[str]:
        """Return the recap of a session's utterances; see `recap_of`."""

        def told() -> list[str]:
            heard, own = said, None
            if audience == "players":
                heard = self.players.shown(heard)
            elif audience != "dm":
                own, forbids = NpcId(audience), topics_of(self.campaign).forbids
                heard = [each for each in heard_by(own, heard) if not forbids(each.utterance.text)]
            selection = LineSelection(self.campaign.language, lambda: self.names, tokens)
            return [one.text for one in selection.select([each.utterance for each in heard], own=own)]

        # This takes a second for a long session. Without a thread, an open table would hear nothing meanwhile.
        return await offload(told, amount=len(said) * ROWS_A_LINE)


async def recap_of(
    store: Store, campaign: CampaignId, session: SessionId, audience: Audience, *, tokens: int = SUMMARY_TOKENS
) -> Sequence[str]:
    """Return the recap of a session.

    Args:
        audience: `players`: lines that they may know. `dm`: all statements of players. An NPC: those that it heard.
        tokens: The maximum length.

    Raises:
        Unavailable: The database is away.
    """
    recaps = await SessionRecaps.of(store, campaign)
    return await recaps.told(await recaps.said(session), audience, tokens=tokens)


async def played_sessions(
    inspection: PostgresInspection, campaign: CampaignId, times: CampaignTimes
) -> list[PlayedSession]:
    """Return the sessions in which something was said, without recaps. Times are in the campaign's zone, or in UTC."""
    found = await inspection.entries_per_session(campaign)
    return [_played(number, talk, times) for number, talk in enumerate(found, start=1) if talk.n_entries]


def _played(number: int, talk: SessionTalk, times: CampaignTimes) -> PlayedSession:
    zone, span = zone_of_campaign(times.time_zone) or UTC, times.sessions.get(talk.id)
    days = "" if span is None else times.in_words(span.first, span.last)
    began, ended = (
        datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(zone)
        for at_ms in (talk.started_ms, talk.last_at_ms or talk.started_ms)
    )
    return PlayedSession(talk.id, number, began, ended, days)
