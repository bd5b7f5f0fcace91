"""What happened in a session, in its own most salient lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.chronicle.episodes import said_in
from glyphoxa.chronicle.rules.extractor import names_of
from glyphoxa.chronicle.rules.summaries import TOKENS, for_players, heard_by, summary_of
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId

_ROWS_A_LINE = 40
"""A line takes as long to judge as so many rows take to read."""
Audience = Literal["players", "dm"] | NpcId


async def recap_of(
    store: Store, campaign: CampaignId, session: SessionId, audience: Audience, *, tokens: int = TOKENS
) -> Sequence[str]:
    """
    Args:
        audience: `players`: what they may be read aloud. `dm`: all that was said, with the names as they are. An NPC:
            what it heard.
        tokens: How much there is room for.

    Raises:
        Unavailable: The database is away.
    """
    log = PostgresChronicleLog(store.database, store.world)
    stored = await store.campaigns.get(campaign)
    known = await log.known(campaign)
    said = await said_in(log, campaign, session)

    def told() -> list[str]:
        heard = said
        if audience == "players":
            heard = for_players(said, known, stored.language)
        elif audience != "dm":
            heard = heard_by(NpcId(audience), said)
        lines = summary_of(heard, language=stored.language, names=names_of(known, stored.language), tokens=tokens)
        return [line.in_words(stored.language) for line in lines]

    # An evening takes a second to read, in which a table that is open would hear nothing.
    return await offload(told, amount=len(said) * _ROWS_A_LINE)
